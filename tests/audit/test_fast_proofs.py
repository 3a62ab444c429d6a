"""Proofs read quickly say what proofs read one by one say, whatever they are."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parties import URI_A, FakeCalendar, FakeChain, mine_together

from anchord.core import merkle
from anchord.core.proof import join, parse_timestamp, serialise
from anchord.core.verify import Proof, read_proof
from anchord.engine.audit.fast_proofs import ProofReader
from anchord.errors import AnchordError


def _batch(size: int) -> list[tuple[bytes, bytes]]:
    """Return (digest, `.ots`) of a batch that two calendars brought into a block."""
    digests = [hashlib.sha256(b"record %d" % n).digest() for n in range(size)]
    nonces = b"".join(hashlib.sha256(digest).digest()[:16] for digest in digests)
    tree = merkle.levels(merkle.leaves(digests, nonces))
    root, chain, calendar = tree[-1], FakeChain(height=2), FakeCalendar()
    pending = calendar.submit(root)
    mine_together(chain, calendar)
    path = calendar.upgrade(URI_A, pending.pendings[0].commitment)
    known = parse_timestamp(pending.raw, root)
    from anchord.core.proof import attach

    whole = attach(known, parse_timestamp(path.raw, pending.pendings[0].commitment))
    tails = merkle.suffixes(tree, serialise(whole))
    return [
        (digest, join(digest, nonces[16 * n : 16 * n + 16], tails[n]))
        for n, digest in enumerate(digests)
    ]


BATCH = _batch(13)


def told(read: object, raw: bytes, digest: bytes) -> Proof | str:
    try:
        return read(raw, digest)  # type: ignore[operator]
    except AnchordError as error:
        return f"{type(error).__name__}: {error}"


def test_all_of_a_batch_say_the_same_as_one_by_one() -> None:
    reader = ProofReader()
    for digest, raw in [*BATCH, *reversed(BATCH)]:
        assert reader(raw, digest) == read_proof(raw, digest)
    assert len(reader._known) == 1


@pytest.mark.parametrize("warm", [False, True])
def test_one_byte_changed_anywhere_is_told_as_one_by_one(warm: bool) -> None:
    reader = ProofReader()
    if warm:
        assert all(reader(raw, digest) for digest, raw in BATCH)
    digest, raw = BATCH[5]
    for place in range(len(raw)):
        for bit in (1, 128):
            bent = raw[:place] + bytes([raw[place] ^ bit]) + raw[place + 1 :]
            assert told(reader, bent, digest) == told(read_proof, bent, digest), place


@given(
    which=st.integers(0, 12), other=st.integers(0, 12), cut=st.integers(0, 400),
    cut_other=st.integers(0, 400), data=st.binary(max_size=40),
)  # fmt: skip
def test_parts_of_proofs_put_together_are_told_as_one_by_one(
    which: int, other: int, cut: int, cut_other: int, data: bytes
) -> None:
    reader = ProofReader()
    for digest, raw in BATCH:
        reader(raw, digest)
    digest, raw = BATCH[which]
    mixed = raw[:cut] + data + BATCH[other][1][cut_other:]
    for asked in (digest, BATCH[other][0]):
        assert told(reader, mixed, asked) == told(read_proof, mixed, asked)


@given(st.lists(st.tuples(st.sampled_from((0xF0, 0xF1, 0x08)), st.binary(min_size=1, max_size=200)),
                max_size=300))  # fmt: skip
def test_lines_up_to_every_limit_are_told_as_one_by_one(steps: list[tuple[int, bytes]]) -> None:
    from anchord.core.proof import DETACHED_HEADER
    from anchord.core.wire import varbytes

    digest = b"\x01" * 32
    line = b"".join(
        bytes([tag]) + (varbytes(argument) if tag != 0x08 else b"") for tag, argument in steps
    )
    end = bytes.fromhex("000588960d73d719010165")
    reader = ProofReader()
    for some in (line, line[: len(line) // 2], b"\x08" * 254, b"\x08" * 255, b"\x08" * 256):
        raw = DETACHED_HEADER + digest + some + end
        for _ in range(2):
            assert told(reader, raw, digest) == told(read_proof, raw, digest)


def test_a_longer_line_to_a_known_upper_part_is_held_to_the_limits() -> None:
    from anchord.core.proof import DETACHED_HEADER

    end = bytes.fromhex("000588960d73d719010165")
    reader = ProofReader()
    start = b"\x01" * 32
    chain = [start]
    for _ in range(300):
        chain.append(hashlib.sha256(chain[-1]).digest())
    for steps in (10, 200, 255, 256, 299):
        digest = chain[300 - steps]
        raw = DETACHED_HEADER + digest + b"\x08" * steps + end
        assert told(reader, raw, digest) == told(read_proof, raw, digest), steps
    assert list(reader._known) == [chain[300]]
