"""A calendar's answer is taken only when it is exactly what was asked for."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ots_oracle

from anchord.core import proof, wire
from anchord.core.attestation import BITCOIN, ETHEREUM, PENDING
from anchord.core.proof import MAX_ANSWER_BYTES, check_submit_answer, check_upgrade_answer
from anchord.errors import ProtocolError

LIMITED = settings(deadline=None, max_examples=300, derandomize=True)
DIGEST = bytes(range(32))
COMMITMENT = bytes(range(44))
URI = "https://alice.example.org"
URIS = (URI, "https://alice2.example.org")
ANSWER = ots_oracle.written(ots_oracle.calendar_answer(DIGEST, URI, 0))


def _pending(uri: str) -> bytes:
    return b"\x00" + PENDING + wire.varbytes(wire.varbytes(uri.encode()))


def _bitcoin(height: int) -> bytes:
    return b"\x00" + BITCOIN + wire.varbytes(wire.varuint(height))


def test_a_real_submit_answer_gives_uri_and_commitment() -> None:
    theirs = ots_oracle.calendar_answer(DIGEST, URI, 0)
    ((commitment, _),) = theirs.all_attestations()
    assert check_submit_answer(ANSWER, DIGEST, URIS) == [(URI, commitment)]
    assert len(commitment) == 44


def test_several_pending_points_are_all_given() -> None:
    raw = b"\xff" + _pending(URIS[1]) + b"\x08" + _pending(URI)
    points = check_submit_answer(raw, DIGEST, URIS)
    assert [uri for uri, _ in points] == [URIS[1], URI]
    assert points[0][1] == DIGEST


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "cut off"),
        (ANSWER[:-1], "cut off"),
        (ANSWER + b"\x00", "1 more bytes"),
        (b"<html>", "0x3c"),
        (b"\x02" + _pending(URI), "0x02"),
        (b"\x67" + _pending(URI), "0x67"),
        (b"\xf2" + _pending(URI), "0xf2"),
        (b"\xf3" + _pending(URI), "0xf3"),
        (b"\x08" + _bitcoin(1), "kind bitcoin"),
        (b"\xff" + _bitcoin(1) + b"\x08" + _pending(URI), "kind bitcoin"),
        (b"\x00" + bytes(8) + b"\x00", "kind unknown"),
        (_pending(URI + "/"), URI + "/"),
        (_pending(URI.upper()), URI.upper()),
        (_pending(URI.replace("https", "http")), "http://alice"),
        (_pending("file:///etc/passwd"), "file:///etc/passwd"),
        (b"\xff" + _pending(URI) + _pending("https://evil.example.org"), "evil"),
        ((b"\xff\x08" + _pending(URI)) * 300 + _pending(URI), "10000 bytes"),
    ],
)
def test_a_submit_answer_with_anything_else_breaks_the_protocol(raw: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_submit_answer(raw, DIGEST, URIS)
    assert reason in str(caught.value)


def test_no_uri_is_taken_when_none_is_configured() -> None:
    with pytest.raises(ProtocolError):
        check_submit_answer(ANSWER, DIGEST, ())


def test_upgrade_answers_give_every_height() -> None:
    raw = b"\xff\x08" + _bitcoin(105) + b"\xf0\x01a\x08" + _bitcoin(7)
    assert sorted(check_upgrade_answer(raw, COMMITMENT)) == [7, 105]
    with_other = b"\xff\x08" + b"\x00" + ETHEREUM + b"\x01\x05" + b"\x03\x08" + _bitcoin(7)
    assert check_upgrade_answer(with_other, COMMITMENT) == [7]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "cut off"),
        (b"\x08" + _bitcoin(1) + b"\x00", "1 more bytes"),
        (b"Pending confirmation in Bitcoin blockchain", "0x50"),
        (b"\x08" + _pending(URI), "pending itself"),
        (b"\xff" + _pending(URI) + b"\x08" + _bitcoin(1), "pending itself"),
        (_bitcoin(1), "32-byte"),
        (b"\x08\xf0\x01a" + _bitcoin(1), "32-byte"),
        (b"\x08\x00" + ETHEREUM + b"\x01\x05", "kinds: ethereum"),
        (b"\x08" + _bitcoin(2**31), "block height"),
        (b"\x08" * 256 + _bitcoin(1), "in a row"),
        (bytes(MAX_ANSWER_BYTES + 1), "10000 bytes"),
    ],
)
def test_an_upgrade_answer_that_proves_nothing_breaks_the_protocol(raw: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_upgrade_answer(raw, COMMITMENT)
    assert reason in str(caught.value)


@LIMITED
@given(st.one_of(st.binary(max_size=200), st.integers(0, 8 * len(ANSWER) - 1)))
def test_random_and_damaged_answers_raise_only_protocol_errors(noise: bytes | int) -> None:
    if isinstance(noise, int):
        flipped = bytearray(ANSWER)
        flipped[noise // 8] ^= 1 << noise % 8
        noise = bytes(flipped)
    for check in (
        lambda raw: check_submit_answer(raw, DIGEST, URIS),
        lambda raw: check_upgrade_answer(raw, COMMITMENT),
    ):
        with contextlib.suppress(ProtocolError):
            assert check(noise)


def test_a_checked_answer_is_what_attaches() -> None:
    ((_, commitment),) = check_submit_answer(ANSWER, DIGEST, URIS)
    upgrade = b"\x08" + _bitcoin(105)
    assert check_upgrade_answer(upgrade, commitment) == [105]
    whole = proof.attach(
        proof.parse_timestamp(ANSWER, DIGEST), proof.parse_timestamp(upgrade, commitment)
    )
    assert [item.attestation.kind for item in proof.attestations(whole)] == ["pending", "bitcoin"]
