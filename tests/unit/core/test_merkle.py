"""The flat tree is the library's tree; tiles compose; paths prove one leaf of one tree only."""

from __future__ import annotations

import itertools
import random
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentimestamps.core.timestamp import Timestamp, make_merkle_tree

from anchord.core import merkle
from anchord.core.merkle import Step
from anchord.core.operation import Op, apply
from anchord.errors import RefusedError, VerificationError

LIMITED = settings(deadline=None, max_examples=100, derandomize=True)
SIZES = [*range(1, 71), 1000, 1023, 1024, 1025, 2049, 3000]


def _leaves(size: int) -> bytes:
    return random.Random(size).randbytes(32 * size)


def _nodes(level: bytes) -> list[bytes]:
    return [level[at : at + 32] for at in range(0, len(level), 32)]


@pytest.mark.parametrize("size", SIZES)
def test_the_root_is_the_library_root(size: int) -> None:
    leaves = _leaves(size)
    assert merkle.root(leaves) == make_merkle_tree(map(Timestamp, _nodes(leaves))).msg


@pytest.mark.parametrize("size", SIZES)
def test_levels_halve_from_the_leaves_to_one_root(size: int) -> None:
    levels = merkle.levels(_leaves(size))
    counts = [len(level) // 32 for level in levels]
    assert counts[0] == size
    assert counts[-1] == 1
    assert all(above == (below + 1) // 2 for below, above in itertools.pairwise(counts))


@LIMITED
@given(st.integers(1, 5000), st.sampled_from([1, 2, 4, 64, merkle.TILE]))
def test_the_root_of_tile_roots_is_the_root_of_all(size: int, tile: int) -> None:
    leaves = _leaves(size)
    tiles = [leaves[at : at + 32 * tile] for at in range(0, len(leaves), 32 * tile)]
    assert merkle.root(b"".join(merkle.root(part) for part in tiles)) == merkle.root(leaves)


def test_a_leaf_is_the_hash_of_digest_and_its_nonce() -> None:
    digests = _nodes(_leaves(5))
    nonces = random.Random(0).randbytes(80)
    expected = [
        sha256(digest + nonces[16 * at : 16 * at + 16]).digest()
        for at, digest in enumerate(digests)
    ]
    assert _nodes(merkle.leaves(digests, nonces)) == expected
    assert merkle.leaves([], b"") == b""


@pytest.mark.parametrize("length", [0, 15, 17, 31, 33])
def test_nonces_that_do_not_fit_the_digests_are_refused(length: int) -> None:
    with pytest.raises(RefusedError, match="nonces"):
        merkle.leaves(_nodes(_leaves(2)), bytes(length))


@pytest.mark.parametrize("leaves", [b"", bytes(31), bytes(33)])
def test_no_tree_over_nothing_or_over_pieces(leaves: bytes) -> None:
    with pytest.raises(RefusedError, match="leaves"):
        merkle.levels(leaves)
    with pytest.raises(RefusedError, match="leaves"):
        merkle.root(leaves)


@LIMITED
@given(st.integers(1, 300), st.data())
def test_a_path_proves_its_leaf_and_no_other(size: int, data: st.DataObject) -> None:
    levels = merkle.levels(_leaves(size))
    nodes = _nodes(levels[0])
    index = data.draw(st.integers(0, size - 1))
    steps, root = merkle.path(levels, index), levels[-1]
    merkle.verify_path(nodes[index], index, size, steps, root)
    other = data.draw(st.integers(0, size - 1))
    if other != index:
        with pytest.raises(VerificationError):
            merkle.verify_path(nodes[other], index, size, steps, root)
        with pytest.raises(VerificationError):
            merkle.verify_path(nodes[index], other, size, merkle.path(levels, other), root)


@LIMITED
@given(st.integers(1, 300), st.data())
def test_a_changed_path_proves_nothing(size: int, data: st.DataObject) -> None:
    levels = merkle.levels(_leaves(size))
    index = data.draw(st.integers(0, size - 1))
    leaf, root = _nodes(levels[0])[index], levels[-1]
    steps = merkle.path(levels, index)
    spoiled = [steps[:-1], steps[1:], [*steps, Step(bytes(32), left=False)], steps[::-1]]
    for at, step in enumerate(steps):
        changed = [
            Step(bytes(32), step.left),
            Step(step.sibling, not step.left),
            Step(step.sibling[:-1], step.left),
            Step(step.sibling + b"\x00", step.left),
        ]
        spoiled += [[*steps[:at], item, *steps[at + 1 :]] for item in changed]
    for bad in spoiled:
        if bad != steps:
            with pytest.raises(VerificationError):
                merkle.verify_path(leaf, index, size, bad, root)


@pytest.mark.parametrize(
    ("index", "size"), [(-1, 4), (4, 4), (0, 0), (2, 3), (0, 3), (2, 8), (2, 5), (2, 2)]
)
def test_a_path_of_another_index_or_size_proves_nothing(index: int, size: int) -> None:
    levels = merkle.levels(_leaves(4))
    leaf, steps = _nodes(levels[0])[2], merkle.path(levels, 2)
    with pytest.raises(VerificationError):
        merkle.verify_path(leaf, index, size, steps, levels[-1])


def test_another_root_is_named() -> None:
    levels = merkle.levels(_leaves(3))
    with pytest.raises(VerificationError, match="00" * 32):
        merkle.verify_path(levels[0][:32], 0, 3, merkle.path(levels, 0), bytes(32))


@pytest.mark.parametrize("size", SIZES)
def test_suffixes_replay_to_the_root(size: int) -> None:
    levels = merkle.levels(_leaves(size))
    chosen = range(size) if size < 71 else (0, 1, size // 2, size - 2, size - 1)
    found = merkle.suffixes(levels, b"tail")
    assert len(found) == size
    for index in chosen:
        assert found[index].endswith(b"tail")
        assert _replay(found[index][:-4], _nodes(levels[0])[index]) == levels[-1]


def _replay(suffix: bytes, node: bytes) -> bytes:
    for at in range(0, len(suffix), 35):
        step = suffix[at : at + 35]
        assert (step[1], step[34]) == (0x20, 0x08)
        node = apply(Op(0x08), apply(Op(step[0], step[2:34]), node))
    return node


@LIMITED
@given(st.integers(1, 200), st.data())
def test_a_range_of_suffixes_is_a_slice_of_all(size: int, data: st.DataObject) -> None:
    levels = merkle.levels(_leaves(size))
    start = data.draw(st.integers(0, size))
    stop = data.draw(st.integers(start, size))
    everything = merkle.suffixes(levels, b"tail")
    assert merkle.suffixes(levels, b"tail", start, stop) == everything[start:stop]
    assert merkle.suffixes(levels, b"tail", start) == everything[start:]


@pytest.mark.parametrize("size", [1, 1024, 1025, 2047, 2049, 5000])
def test_suffixes_of_tiles_compose(size: int) -> None:
    leaves = _leaves(size)
    span = 32 * merkle.TILE
    tiles = [leaves[at : at + span] for at in range(0, len(leaves), span)]
    upper = merkle.levels(b"".join(map(merkle.root, tiles)))
    composed: list[bytes] = []
    for number, tile in enumerate(tiles):
        tail = merkle.suffixes(upper, b"tail", number, number + 1)[0]
        composed += merkle.suffixes(merkle.levels(tile), tail)
    assert composed == merkle.suffixes(merkle.levels(leaves), b"tail")


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 5), (3, 2), (5, 5)])
def test_leaves_that_do_not_exist_are_refused(start: int, stop: int) -> None:
    levels = merkle.levels(_leaves(4))
    with pytest.raises(RefusedError, match=r"\[0, 4\)"):
        merkle.suffixes(levels, b"", start, stop)


@pytest.mark.parametrize("index", [-1, 4, 100])
def test_there_is_no_path_of_a_leaf_that_does_not_exist(index: int) -> None:
    with pytest.raises(RefusedError, match=r"\[0, 4\)"):
        merkle.path(merkle.levels(_leaves(4)), index)
