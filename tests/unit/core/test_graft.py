"""Changing proofs: union laws, nothing mutated, nothing lost, no dead branch."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import ots_oracle
from support.ots_oracle import digests, shapes

from anchord.core import proof
from anchord.core.attestation import Attestation, bitcoin, pending
from anchord.core.proof import Op, Timestamp
from anchord.core.timestamp import walk
from anchord.errors import RefusedError

pytestmark = pytest.mark.filterwarnings(ots_oracle.REVERSE_IS_FINE)

LIMITED = settings(deadline=None, max_examples=150, derandomize=True)
DIGEST = bytes(range(32))
ALICE, BOB = pending("https://alice.example.org"), pending("https://bob.example.org")


def _claims(timestamp: Timestamp) -> set[tuple[bytes, Attestation]]:
    return {(item.message, item.attestation) for item in proof.attestations(timestamp)}


@LIMITED
@given(shapes, shapes, shapes, digests)
def test_merge_is_a_union(
    a: ots_oracle.Shape, b: ots_oracle.Shape, c: ots_oracle.Shape, digest: bytes
) -> None:
    x, y, z = (ots_oracle.ours(shape, digest) for shape in (a, b, c))
    before = [proof.serialise(item) for item in (x, y, z)]
    assert proof.merge(x, x) == x
    assert proof.merge(x, y) == proof.merge(y, x)
    assert proof.merge(proof.merge(x, y), z) == proof.merge(x, proof.merge(y, z))
    assert _claims(proof.merge(x, y)) == _claims(x) | _claims(y)
    assert [proof.serialise(item) for item in (x, y, z)] == before


@LIMITED
@given(shapes, shapes, digests)
def test_merge_is_the_library_merge(
    a: ots_oracle.Shape, b: ots_oracle.Shape, digest: bytes
) -> None:
    theirs = ots_oracle.theirs(a, digest)
    theirs.merge(ots_oracle.theirs(b, digest))
    ours = proof.merge(ots_oracle.ours(a, digest), ots_oracle.ours(b, digest))
    assert proof.serialise(ours) == ots_oracle.written(theirs)


def test_proofs_of_two_messages_do_not_merge() -> None:
    with pytest.raises(RefusedError, match="different records"):
        proof.merge(Timestamp(DIGEST, {ALICE}), Timestamp(bytes(32), {ALICE}))


@LIMITED
@given(shapes, shapes, digests, st.data())
def test_an_addition_is_attached_wherever_its_message_stands(
    shape: ots_oracle.Shape, more: ots_oracle.Shape, digest: bytes, data: st.DataObject
) -> None:
    timestamp = ots_oracle.ours(shape, digest)
    before = proof.serialise(timestamp)
    place = data.draw(st.sampled_from(proof.attestations(timestamp))).message
    addition = ots_oracle.ours(more, place)
    assume([node.message for node in walk(addition)].count(place) == 1)  # it may turn back
    attached = proof.attach(timestamp, addition)
    assert _claims(attached) == _claims(timestamp) | _claims(addition)
    assert proof.serialise(timestamp) == before
    assert proof.attach(attached, addition) == attached


def test_an_addition_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(RefusedError, match="belongs to another proof"):
        proof.attach(Timestamp(DIGEST, {ALICE}), Timestamp(bytes(32), {ALICE}))


def test_two_calendars_in_one_block_both_survive() -> None:
    """The standard client keeps one of them only (opentimestamps-client issue 27)."""
    paths = [
        proof.parse_timestamp(
            b"\xf0\x01" + letter + b"\x08" + proof.serialise(Timestamp(b"", {bitcoin(105)})), DIGEST
        )
        for letter in (b"a", b"b")
    ]
    found = proof.attestations(proof.merge(*paths))
    assert [item.attestation.height for item in found] == [105, 105]
    assert len({item.message for item in found}) == 2


def test_attestations_come_in_the_order_of_the_written_file() -> None:
    branch = proof.parse_timestamp(
        b"\x08" + proof.serialise(Timestamp(b"", {bitcoin(1), bitcoin(300), bitcoin(20)})), DIGEST
    )
    timestamp = proof.merge(branch, Timestamp(DIGEST, {BOB, ALICE, bitcoin(9)}))
    attested = [item.attestation for item in proof.attestations(timestamp)]
    assert attested == [bitcoin(9), ALICE, BOB, bitcoin(1), bitcoin(20), bitcoin(300)]
    raw = proof.serialise(timestamp)
    at = [raw.index(item.tag + bytes((len(item.payload),)) + item.payload) for item in attested]
    assert at == sorted(at)


@LIMITED
@given(shapes, digests, st.sampled_from(["pending", "bitcoin", "unknown"]))
def test_dropping_leaves_the_rest_and_no_dead_branch(
    shape: ots_oracle.Shape, digest: bytes, kind: str
) -> None:
    timestamp = ots_oracle.ours(shape, digest)
    before = proof.serialise(timestamp)
    left = proof.drop(timestamp, lambda _message, item: item.kind == kind)
    expected = {claim for claim in _claims(timestamp) if claim[1].kind != kind}
    assert proof.serialise(timestamp) == before
    if left is None:
        assert not expected
        return
    assert _claims(left) == expected
    assert proof.parse_timestamp(proof.serialise(left), digest) == left


def test_dropping_sees_the_message() -> None:
    timestamp = Timestamp(DIGEST, {ALICE}, {Op(8): Timestamp(bytes(32), {ALICE})})
    left = proof.drop(timestamp, lambda message, _item: message == DIGEST)
    assert left == Timestamp(DIGEST, set(), {Op(8): Timestamp(bytes(32), {ALICE})})
    assert proof.drop(timestamp, lambda _message, _item: True) is None


def test_timestamps_are_equal_when_they_say_the_same() -> None:
    one = Timestamp(DIGEST, {ALICE, BOB})
    same = proof.merge(Timestamp(DIGEST, {BOB}), Timestamp(DIGEST, {ALICE}))
    assert one == same
    assert hash(one) == hash(same)
    assert one != Timestamp(DIGEST, {ALICE})
    assert one != Timestamp(bytes(32), {ALICE, BOB})
    assert one != DIGEST
