from __future__ import annotations

from anchord.core.attestation import bitcoin, pending
from anchord.core.operation import SHA256, Op, apply
from anchord.core.paths import unattested
from anchord.core.proof import Timestamp
from anchord.core.wire import varbytes

URI = "https://alice.example.org"


def behind(message: bytes, *steps, found=()) -> Timestamp:
    """Return a straight path with attestations at its end."""
    if not steps:
        return Timestamp(message, set(found))
    op, *rest = steps
    return Timestamp(message, set(), {op: behind(apply(op, message), *rest, found=found)})


STEP = Op(SHA256)


def test_a_calendar_without_a_path_behind_it_owes_one():
    start = behind(b"m", STEP, found=[pending(URI)])
    assert unattested(start) == [(URI, apply(STEP, b"m"))]


def test_a_calendar_whose_path_is_there_owes_nothing():
    end = behind(apply(STEP, b"m"), STEP, STEP, found=[bitcoin(7)])
    end.attestations.add(pending(URI))
    start = Timestamp(b"m", set(), {STEP: end})
    assert unattested(start) == []


def test_another_calendars_path_pays_no_debt():
    other = "https://bob.example.org"
    start = Timestamp(
        b"m",
        set(),
        {
            STEP: behind(apply(STEP, b"m"), found=[pending(URI)]),
            Op(0xF0, b"x"): behind(b"mx", STEP, found=[bitcoin(9), pending(other)]),
        },
    )
    assert unattested(start) == [(URI, apply(STEP, b"m"))]


def test_two_calendars_at_one_message_both_owe():
    start = Timestamp(b"m", {pending("https://b.example.org"), pending(URI)})
    assert unattested(start) == [(URI, b"m"), ("https://b.example.org", b"m")]


def test_attestations_without_an_address_are_nobodys():
    assert unattested(Timestamp(b"m", {bitcoin(1)})) == []
    assert unattested(Timestamp(b"m", {pending("")})) == []
    assert varbytes(b"") == b"\x00"
