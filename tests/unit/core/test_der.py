"""DER: what is written is read again, and no bytes whatever do harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core import der
from anchord.errors import VerificationError

tags = st.sampled_from([der.INTEGER, der.OCTETS, der.SEQUENCE, der.SET, der.FIRST])
values = st.tuples(tags, st.binary(max_size=300))


@given(st.lists(values, max_size=5))
def test_what_is_written_is_read_again(items):
    raw = b"".join(der.wrap(tag, body) for tag, body in items)
    found = der.pieces(raw)
    assert [(piece.tag, piece.body) for piece in found] == items
    assert b"".join(piece.raw for piece in found) == raw


@given(st.integers(0, 2**70))
def test_integers_are_never_negative_and_have_no_idle_byte(value):
    body = der.only(der.integer(value), der.INTEGER, "a number").body
    assert int.from_bytes(body, "big", signed=True) == value
    assert len(body) == 1 or body[0] or body[1] & 0x80


@given(st.binary(max_size=60))
def test_any_bytes_are_whole_values_or_refused(raw):
    try:
        found = der.pieces(raw)
    except VerificationError:
        return
    assert b"".join(piece.raw for piece in found) == raw


@pytest.mark.parametrize(
    "raw",
    [b"\x30", b"\x30\x02\x00", b"\x1f\x01\x00", b"\x30\x80\x00\x00", b"\x30\x85" + bytes(5),
     b"\x30\x82\x01"],
)  # fmt: skip
def test_cut_off_indefinite_and_oversized_lengths_are_refused(raw):
    with pytest.raises(VerificationError, match="DER"):
        der.pieces(raw)
