"""The log against a naive RFC 6962, written here as the RFC writes it."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.log import (
    EMPTY,
    Frontier,
    consistency_ranges,
    entry_of,
    leaf_hash,
    node_hash,
    root,
    verify_consistency,
    verify_inclusion,
)
from anchord.core.log_tree import Growth, LogTree
from anchord.errors import RefusedError, VerificationError

MOST = 300
ENTRIES = [b"entry %d" % number for number in range(MOST)]


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def split(size: int) -> int:
    """RFC 6962, 2.1: k is the largest power of two smaller than n."""
    k = 1
    while 2 * k < size:
        k *= 2
    return k


def mth(entries: list[bytes]) -> bytes:
    """RFC 6962, 2.1."""
    if not entries:
        return sha(b"")
    if len(entries) == 1:
        return sha(b"\0" + entries[0])
    k = split(len(entries))
    return sha(b"\1" + cached(entries[:k]) + cached(entries[k:]))


_CACHE: dict[tuple[bytes, int], bytes] = {}


def cached(entries: list[bytes]) -> bytes:
    key = (entries[0], len(entries)) if entries else (b"", 0)
    if key not in _CACHE:
        _CACHE[key] = mth(entries)
    return _CACHE[key]


def path(index: int, entries: list[bytes]) -> list[bytes]:
    """RFC 6962, 2.1.1."""
    if len(entries) == 1:
        return []
    k = split(len(entries))
    if index < k:
        return [*path(index, entries[:k]), cached(entries[k:])]
    return [*path(index - k, entries[k:]), cached(entries[:k])]


def proof(old: int, entries: list[bytes], *, whole: bool = True) -> list[bytes]:
    """RFC 6962, 2.1.2: SUBPROOF."""
    if old == len(entries):
        return [] if whole else [cached(entries)]
    k = split(len(entries))
    if old <= k:
        return [*proof(old, entries[:k], whole=whole), cached(entries[k:])]
    return [*proof(old - k, entries[k:], whole=False), cached(entries[:k])]


class Memory:
    """A stored log in memory; what was read is counted."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.leaves = b"".join(leaves)
        self.full: dict[tuple[int, int], bytes] = {}
        self.read = 0
        self.size = len(leaves)
        for level, place, node in Growth().extend(self.leaves):
            self.full[level, place] = node

    def leaf_hashes(self, start: int, stop: int) -> bytes:
        self.read += stop - start
        assert stop <= self.size
        return self.leaves[32 * start : 32 * stop]

    def nodes(self, level: int, start: int, stop: int) -> bytes:
        assert level >= 1
        return b"".join(self.full[level, place] for place in range(start, stop))


LEAVES = [leaf_hash(entry) for entry in ENTRIES]


@pytest.fixture(scope="module")
def tree():
    return LogTree(Memory(LEAVES), MOST)


def test_hashes_are_those_of_the_rfc():
    assert leaf_hash(b"") == sha(b"\0")
    assert node_hash(b"a" * 32, b"b" * 32) == sha(b"\1" + b"a" * 32 + b"b" * 32)
    assert mth([]) == EMPTY == root(b"") == Frontier().root()


def test_the_roots_known_from_certificate_transparency_come_out():
    """Inputs and roots of the reference implementation's Merkle tree tests (RFC 6962)."""
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657",
              "606162636465666768696a6b6c6d6e6f"]  # fmt: skip
    roots = {
        1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        7: "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    }
    leaves = [leaf_hash(bytes.fromhex(text)) for text in inputs]
    for size, expected in roots.items():
        assert root(b"".join(leaves[:size])).hex() == expected


def test_every_root_is_the_naive_one(tree):
    frontier = Frontier()
    for size in range(MOST + 1):
        expected = cached(ENTRIES[:size])
        assert frontier.root() == expected
        assert root(b"".join(LEAVES[:size])) == expected
        assert tree.root(size) == expected
        assert tree.frontier(size).peaks == frontier.peaks
        if size < MOST:
            frontier.append(LEAVES[size])


def test_every_inclusion_proof_is_the_naive_one_and_holds(tree):
    for size in [*range(1, 70), 127, 128, 129, 255, 256, 257, 258, 299, 300]:
        for index in range(size):
            found = tree.inclusion(index, size)
            assert found == path(index, ENTRIES[:size])
            verify_inclusion(LEAVES[index], index, size, found, cached(ENTRIES[:size]))


def test_every_consistency_proof_is_the_naive_one_and_holds(tree):
    for new in [*range(1, 70), 127, 128, 129, 255, 256, 257, 299, 300]:
        for old in range(1, new + 1):
            found = tree.consistency(old, new)
            assert found == proof(old, ENTRIES[:new])
            roots = cached(ENTRIES[:old]), cached(ENTRIES[:new])
            verify_consistency(old, new, *roots, found)


def test_an_inclusion_proof_of_another_place_size_hash_or_root_is_refused(tree):
    for size in (1, 2, 7, 8, 33, 257, 300):
        whole = cached(ENTRIES[:size])
        for index in {0, size // 2, size - 1}:
            found, leaf = tree.inclusion(index, size), LEAVES[index]
            wrong = [
                (leaf, index + 1, size, found, whole),
                (leaf, index - 1, size, found, whole),
                (LEAVES[index - 1] if size > 1 else bytes(32), index, size, found, whole),
                (leaf, index, size, found, bytes(32)),
                (leaf, index, size, [*found, bytes(32)], whole),
                (leaf, index, size, [bytes(32), *found], whole),
                (leaf[:-1], index, size, found, whole),
            ]
            if found:
                wrong += [
                    (leaf, index, size, found[:-1], whole),
                    (leaf, index, size, found[1:], whole),
                    (leaf, index, size, [found[0][:-1] + b"?", *found[1:]], whole),
                    (leaf, index, size, [found[0][1:], *found[1:]], whole),
                    (leaf, index, 2 * size + 1, found, whole),
                ]
            for attempt in wrong:
                with pytest.raises(VerificationError):
                    verify_inclusion(*attempt)


def test_a_proof_holds_for_no_other_index_of_its_log(tree):
    size = 37
    whole = cached(ENTRIES[:size])
    for index in range(size):
        found = tree.inclusion(index, size)
        for other in set(range(size)) - {index}:
            with pytest.raises(VerificationError):
                verify_inclusion(LEAVES[index], other, size, found, whole)


def test_a_consistency_proof_of_other_sizes_roots_or_hashes_is_refused(tree):
    for old, new in ((1, 2), (3, 7), (4, 8), (7, 8), (6, 300), (128, 256), (256, 300), (299, 300)):
        first, second = cached(ENTRIES[:old]), cached(ENTRIES[:new])
        found = tree.consistency(old, new)
        wrong = [
            (old, new, second, first, found),
            (old, new, first, bytes(32), found),
            (old, new, bytes(32), second, found),
            (old, new, first, second, found[:-1]),
            (old, new, first, second, [*found, bytes(32)]),
            (old, new, first, second, [bytes(32), *found]),
            (old, new, first, second, [bytes(32), *found[1:]]),
            (old, new, first, second, []),
            (old - 1, new, first, second, found),
            (new, old, second, first, found),
            (old, old, first, second, []),
        ]
        for attempt in wrong:
            with pytest.raises(VerificationError):
                verify_consistency(*attempt)


def test_everything_follows_from_nothing_and_each_log_from_itself(tree):
    for size in (0, 1, 5, 256, 300):
        whole = cached(ENTRIES[:size])
        assert tree.consistency(0, size) == tree.consistency(size, size) == []
        verify_consistency(0, size, EMPTY, whole, [])
        verify_consistency(size, size, whole, whole, [])
    with pytest.raises(VerificationError, match="rewritten"):
        verify_consistency(5, 5, cached(ENTRIES[:5]), cached(ENTRIES[:4]), [])
    with pytest.raises(VerificationError):
        verify_consistency(0, 5, cached(ENTRIES[:1]), cached(ENTRIES[:5]), [])
    with pytest.raises(VerificationError):
        verify_consistency(5, 5, cached(ENTRIES[:5]), cached(ENTRIES[:5]), [bytes(32)])


def test_what_is_not_there_is_refused(tree):
    for attempt in (
        lambda: tree.inclusion(5, 5),
        lambda: tree.inclusion(-1, 5),
        lambda: tree.inclusion(0, MOST + 1),
        lambda: tree.root(MOST + 1),
        lambda: tree.consistency(6, 5),
        lambda: tree.consistency(1, MOST + 1),
        lambda: consistency_ranges(-1, 5),
        lambda: Frontier(3, [bytes(32)]),
        lambda: Frontier(1, [bytes(31)]),
        lambda: Frontier(1, [bytes(32)]).append_subtree(bytes(32), 1),
        lambda: entry_of(bytes(31), bytes(64)),
        lambda: entry_of(bytes(32), bytes(63)),
    ):
        with pytest.raises(RefusedError):
            attempt()


@given(st.integers(0, MOST), st.integers(0, MOST))
def test_a_frontier_that_was_kept_goes_on_to_the_same_root(one, other):
    old, new = sorted((one, other))
    kept = Frontier()
    kept.extend(b"".join(LEAVES[:old]))
    again = Frontier.from_nodes(old, kept.peaks)
    assert again.root() == cached(ENTRIES[:old])
    again.extend(b"".join(LEAVES[old:new]))
    assert again.root() == cached(ENTRIES[:new])
    assert len(again.peaks) == new.bit_count()


def test_full_subtrees_can_be_taken_in_whole():
    frontier = Frontier()
    frontier.append_subtree(cached(ENTRIES[:256]), 8)
    frontier.append_subtree(cached(ENTRIES[256:288]), 5)
    frontier.extend(b"".join(LEAVES[288:]))
    assert frontier.root() == cached(ENTRIES)


# ---------------------------------------------------------------------- larger logs, by tiles


LARGE = 70_000
"""The size that tlog-tiles takes as its example: three levels of tiles."""


@pytest.fixture(scope="module")
def large():
    return Memory([sha(b"%d" % number) for number in range(LARGE)])


@given(steps=st.lists(st.integers(0, 700), max_size=6))
def test_growing_in_steps_fills_the_same_tiles_as_growing_at_once(steps):
    whole = [sha(b"%d" % number) for number in range(sum(steps))]
    memory = Memory(whole)
    found, size = {}, 0
    for step in steps:
        growth = Growth.of(memory, size)
        assert growth.frontier().root() == root(b"".join(whole[:size]))
        chunk = b"".join(whole[size : size + step])
        found |= {(level, place): node for level, place, node in growth.extend(chunk)}
        size += step
        assert growth.size == size
        assert growth.frontier().root() == root(b"".join(whole[:size]))
    assert found == memory.full


def test_tiles_of_several_levels_are_roots_of_what_is_below(large):
    assert sum(level == 1 for level, _ in large.full) == 273
    assert sum(level == 2 for level, _ in large.full) == 1
    assert large.full[2, 0] == root(large.leaves[: 32 * 65_536])
    assert large.full[1, 272] == root(large.leaves[32 * 272 * 256 : 32 * 273 * 256])
    assert LogTree(large, LARGE).root(LARGE) == root(large.leaves)


def test_proofs_of_a_large_log_hold(large):
    tree = LogTree(large, LARGE)
    for size in (LARGE, 65_536, 65_537, 66_000, 256, 1):
        whole = root(large.leaves[: 32 * size])
        for index in {0, 1 % size, 255 % size, size // 3, size - 1}:
            leaf = large.leaves[32 * index : 32 * index + 32]
            verify_inclusion(leaf, index, size, tree.inclusion(index, size), whole)
        old = root(large.leaves[: 32 * (size // 2)])
        proof = tree.consistency(size // 2, size)
        verify_consistency(size // 2, size, old, whole, proof)


def test_proofs_of_neighbours_read_their_tile_once(large):
    tree, before = LogTree(large, LARGE), large.read
    for index in range(1024, 1536):
        tree.inclusion(index, LARGE)
    tail = LARGE % 256
    assert large.read - before == 512 + tail
