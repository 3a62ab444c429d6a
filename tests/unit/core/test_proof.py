"""Proofs: the library writes the same bytes, and nothing but the truth survives damage."""

from __future__ import annotations

import contextlib
import hashlib
import random
import struct
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ots_oracle
from support.ots_oracle import digests, shapes

from anchord.core import merkle, operation, proof, wire
from anchord.core.attestation import (
    BITCOIN,
    MAX_HEIGHT,
    MAX_PAYLOAD,
    MAX_URI,
    PENDING,
    bitcoin,
    pending,
)
from anchord.core.proof import Op, Timestamp
from anchord.core.timestamp import MAX_DEPTH
from anchord.errors import RefusedError

pytestmark = pytest.mark.filterwarnings(ots_oracle.REVERSE_IS_FINE)

LIMITED = settings(deadline=None, max_examples=200, derandomize=True)
DIGEST = bytes(range(32))
URI = "https://alice.example.org"
SHORT = bytes(10)
"""An attestation of an unknown kind without payload."""
TAIL = b"\x00" + PENDING + wire.varbytes(wire.varbytes(URI.encode()))


def _attestation(tag: bytes, payload: bytes) -> bytes:
    return b"\x00" + tag + wire.varbytes(payload)


def _facts(detached: proof.Detached) -> tuple[object, ...]:
    found = proof.attestations(detached.timestamp)
    return detached.algorithm, detached.digest, {(i.message, i.attestation) for i in found}


@LIMITED
@given(shapes, digests)
def test_random_trees_give_the_library_bytes_both_ways(
    shape: ots_oracle.Shape, digest: bytes
) -> None:
    ours, theirs = ots_oracle.ours(shape, digest), ots_oracle.theirs(shape, digest)
    raw = ots_oracle.written_file(theirs)
    assert proof.serialise_detached(digest, ours) == raw
    assert proof.serialise(ours) == ots_oracle.written(theirs)
    assert proof.parse_detached(raw) == proof.Detached("sha256", digest, ours)
    assert proof.parse_timestamp(proof.serialise(ours), digest) == ours
    assert ots_oracle.read_file(raw).timestamp == theirs


@LIMITED
@given(shapes, digests, st.data())
def test_damaged_proofs_are_refused_or_read_as_the_library_reads_them(
    shape: ots_oracle.Shape, digest: bytes, data: st.DataObject
) -> None:
    raw = bytearray(proof.serialise_detached(digest, ots_oracle.ours(shape, digest)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(len(proof.DETACHED_HEADER), len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    try:
        detached = proof.parse_detached(bytes(raw))
    except RefusedError:
        return
    ots_oracle.read_file(bytes(raw))  # what anchord takes, the library takes
    written = proof.serialise_detached(detached.digest, detached.timestamp)
    assert ots_oracle.written_file(ots_oracle.read_file(written).timestamp) == written


@LIMITED
@given(shapes, digests)
def test_a_single_flipped_bit_never_leaves_the_claims_as_they_were(
    shape: ots_oracle.Shape, digest: bytes
) -> None:
    digest = hashlib.sha256(digest).digest()  # appending to itself must not be prepending to it
    raw = proof.serialise_detached(digest, ots_oracle.ours(shape, digest))
    before = _facts(proof.parse_detached(raw))
    step = max(1, len(raw) * 8 // 200)
    for bit in range(len(raw) % step, len(raw) * 8, step):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            after = _facts(proof.parse_detached(bytes(flipped)))
        except RefusedError:
            continue
        assert after != before, bit


@LIMITED
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_raise_only_refusals(raw: bytes, headed: bool) -> None:
    whole = proof.DETACHED_HEADER + DIGEST + raw if headed else raw
    for read in (proof.parse_detached, lambda item: proof.parse_timestamp(item, DIGEST)):
        with contextlib.suppress(RefusedError):
            read(whole)


@pytest.mark.parametrize("size", [*range(1, 71), 1000, 1025])
def test_a_joined_file_is_the_file_the_library_writes(size: int) -> None:
    source = random.Random(size)
    records = [source.randbytes(32) for _ in range(size)]
    nonces = source.randbytes(16 * size)
    stamps, tip = ots_oracle.stamp(records, nonces, [URI, "https://bob.example.org"])
    levels = merkle.levels(merkle.leaves(records, nonces))
    assert levels[-1] == tip.msg
    suffixes = merkle.suffixes(levels, ots_oracle.written(tip))
    for at in range(size) if size < 71 else (0, 1, 511, 512, 998, 999, size - 1):
        nonce = nonces[16 * at : 16 * at + 16]
        raw = proof.join(records[at], nonce, suffixes[at])
        assert raw == ots_oracle.written_file(stamps[at])
        assert proof.serialise_detached(records[at], proof.parse_detached(raw).timestamp) == raw


def test_a_file_without_a_nonce_joins_too() -> None:
    tip = ots_oracle.calendar_answer(DIGEST, URI, 0)
    raw = proof.join(DIGEST, b"", ots_oracle.written(tip))
    assert raw == ots_oracle.written_file(tip)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "cut off"),
        (b"\xff", "cut off"),
        (b"\x00" + PENDING, "cut off"),
        (b"\xff" + TAIL, "cut off"),
        (b"\xff\xff" + TAIL, "tag 0xff"),
        (b"\x09" + TAIL, "tag 0x09"),
        (TAIL + b"\x00", "1 more bytes"),
        (b"\xf0\x00" + TAIL, "argument of 1 to 4096"),
        (b"\xf0\x81\x20" + bytes(4097) + TAIL, "argument of at most 4096"),
        (b"\xf0\x80\x20" + bytes(4096) + TAIL, "result of at most 4096"),
        (b"\xf0" + b"\x80" * 10 + b"\x00" + TAIL, "at most 10 bytes"),
        (b"\xf3" * 8 + TAIL, "2048 bytes to hexlify"),
        (b"\x08" * (MAX_DEPTH + 1) + TAIL, "255 operations in a row"),
        (b"\xff\x08" * (MAX_DEPTH + 1), "255 operations in a row"),
        ((b"\xff\x08" + SHORT) * 4097 + SHORT, "4096 operations in a proof"),
        (b"\x08" * 70_000, "65536 bytes"),
        (_attestation(BITCOIN, wire.varuint(MAX_HEIGHT + 1)), "block height up to"),
        (_attestation(BITCOIN, b""), "cut off"),
        (_attestation(BITCOIN, b"\x01\x00"), "1 more bytes"),
        (_attestation(PENDING, wire.varbytes(b"https://a?b")), "b'?'"),
        (_attestation(PENDING, wire.varbytes(b"user@host")), "b'@'"),
        (_attestation(PENDING, wire.varbytes(b"h" * (MAX_URI + 1))), "URI of at most 1000"),
        (_attestation(PENDING, wire.varbytes(b"h") + b"x"), "1 more bytes"),
        (_attestation(bytes(8), bytes(MAX_PAYLOAD + 1)), "at most 8192"),
    ],
)
def test_refusals_say_what_was_expected(raw: bytes, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        proof.parse_timestamp(raw, DIGEST)
    assert reason in str(caught.value)


def test_what_the_limits_just_allow_is_read_and_written() -> None:
    for raw in (
        b"\x08" * MAX_DEPTH + TAIL,
        b"\xf0\xe0\x1f" + bytes(4064) + TAIL,
        b"\xf3" * 7 + TAIL,
        _attestation(PENDING, wire.varbytes(b"h" * MAX_URI)),
        _attestation(BITCOIN, wire.varuint(MAX_HEIGHT)),
        _attestation(bytes(8), bytes(MAX_PAYLOAD)),
    ):
        assert proof.serialise(proof.parse_timestamp(raw, DIGEST)) == raw


def test_deep_and_wide_proofs_need_no_recursion() -> None:
    limit = sys.getrecursionlimit()
    forks = [b"\xf0\x02" + struct.pack(">H", n) + TAIL for n in range(1000)]
    raw = b"\xff" + b"\x08" * MAX_DEPTH + TAIL + b"\xff" + b"\xff".join(forks[:-1]) + forks[-1]
    sys.setrecursionlimit(_stack_depth() + 40)
    try:
        timestamp = proof.parse_timestamp(raw, DIGEST)
        again = proof.merge(timestamp, timestamp)
        whole = proof.attach(again, Timestamp(DIGEST, {bitcoin(1)}))
        pruned = proof.drop(whole, lambda _message, item: item.kind == "bitcoin")
        assert pruned == timestamp == again
        assert proof.serialise(again) == raw
        assert len(proof.attestations(whole)) == 1002
        assert repr(whole).count("\n") == 0
        del timestamp, again, whole, pruned
    finally:
        sys.setrecursionlimit(limit)


def _stack_depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return depth


def test_forks_that_repeat_an_operation_are_merged() -> None:
    other = _attestation(BITCOIN, b"\x07")
    raw = b"\xff\x08\x08" + TAIL + b"\xff\x08" + TAIL + b"\x08\x08" + other
    timestamp = proof.parse_timestamp(raw, DIGEST)
    assert len(timestamp.ops) == 1
    assert len(proof.attestations(timestamp)) == 3


def test_padded_integers_are_read_like_the_library_reads_them() -> None:
    raw = b"\xf0\x81\x00a\x00" + BITCOIN + b"\x82\x00\x81\x00"
    timestamp = proof.parse_timestamp(raw, DIGEST)
    theirs = ots_oracle.read_file(proof.DETACHED_HEADER + DIGEST + raw).timestamp
    assert proof.serialise(timestamp) == ots_oracle.written(theirs)


@pytest.mark.parametrize(
    ("algorithm", "length", "tag"),
    [("sha1", 20, 0x02), ("ripemd160", 20, 0x03), ("sha256", 32, 0x08), ("keccak256", 32, 0x67)],
)
def test_files_over_other_hashes_are_read_and_written(
    algorithm: str, length: int, tag: int
) -> None:
    digest = bytes(length)
    raw = proof.DETACHED_HEADER[:-1] + bytes((tag,)) + digest + TAIL
    detached = proof.parse_detached(raw)
    assert (detached.algorithm, detached.digest) == (algorithm, digest)
    assert proof.serialise_detached(digest, detached.timestamp, algorithm) == raw


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "does not begin like one"),
        (b'{"ots":1}', "does not begin like one"),
        (proof.DETACHED_HEADER[:-1], "cut off"),
        (proof.DETACHED_HEADER[:-2] + b"\x02\x08", "version 2"),
        (proof.DETACHED_HEADER[:-2] + b"\xff" * 70_000, "version 255"),
        (proof.DETACHED_HEADER[:-1] + b"\xf3" + DIGEST, "hash tag 0xf3"),
        (proof.DETACHED_HEADER + DIGEST[:-1], "cut off"),
        (proof.DETACHED_HEADER + DIGEST + TAIL + b"\n", "1 more bytes"),
    ],
)
def test_what_is_no_proof_file_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        proof.parse_detached(raw)
    assert reason in str(caught.value)


def test_a_branch_without_an_attestation_cannot_be_written() -> None:
    for empty in (Timestamp(DIGEST), Timestamp(DIGEST, ops={Op(8): Timestamp(DIGEST)})):
        with pytest.raises(RefusedError, match="every branch"):
            proof.serialise(empty)


def test_a_file_is_only_written_over_its_own_digest() -> None:
    timestamp = Timestamp(DIGEST, {pending(URI)})
    for digest, algorithm in ((bytes(32), "sha256"), (DIGEST, "sha1"), (DIGEST, "md5")):
        with pytest.raises(RefusedError):
            proof.serialise_detached(digest, timestamp, algorithm)


@given(st.binary(min_size=1, max_size=100))
@LIMITED
def test_operations_give_the_library_results(message: bytes) -> None:
    for tag in (0x02, 0x03, 0x08, 0x67, 0xF2, 0xF3):
        assert operation.apply(Op(tag), message) == ots_oracle.their_operation(Op(tag))(message)
    for tag in (0xF0, 0xF1):
        op = Op(tag, b"argument")
        assert operation.apply(op, message) == ots_oracle.their_operation(op)(message)


def test_ripemd160_needs_no_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_args: object, **_named: object) -> None:
        raise ValueError("unsupported hash type ripemd160")

    monkeypatch.setattr(hashlib, "new", missing)
    expected = "9c1185a5c5e9fc54612808977ee8f548b2258d31"
    assert operation.apply(Op(operation.RIPEMD160), b"").hex() == expected


@pytest.mark.parametrize("tag", [operation.REVERSE, operation.HEXLIFY])
def test_an_empty_message_cannot_be_turned_around(tag: int) -> None:
    with pytest.raises(RefusedError):
        operation.apply(Op(tag), b"")


@pytest.mark.parametrize("uri", ["https://a?b", "user@host", "h" * 1001, "https://\u00e9"])
def test_pending_uris_outside_the_format_are_refused(uri: str) -> None:
    with pytest.raises(RefusedError):
        pending(uri)


@pytest.mark.parametrize("height", [-1, MAX_HEIGHT + 1])
def test_heights_outside_the_format_are_refused(height: int) -> None:
    with pytest.raises(RefusedError):
        bitcoin(height)


@LIMITED
@given(st.integers(0, 2**70 - 1))
def test_integers_round_trip(value: int) -> None:
    reader = wire.Reader(wire.varuint(value))
    assert reader.varuint() == value
    reader.finish("an integer")
