"""DER (ITU-T X.690): splitting bytes into tagged pieces, and writing the few that are asked for.

Only what the structures of RFC 3161 and RFC 5652 need: tags of one byte and definite lengths.
"""

from __future__ import annotations

import msgspec

from anchord.errors import VerificationError

INTEGER = 0x02
BIT_STRING = 0x03
OCTETS = 0x04
OID = 0x06
UTF8 = 0x0C
SEQUENCE = 0x30
SET = 0x31
FIRST = 0xA0
"""[0], constructed."""

_LONG = 0x80
_MANY_BYTES_TAG = 0x1F


class Piece(msgspec.Struct, frozen=True):
    """One tagged value."""

    tag: int
    raw: bytes
    """The whole of it: tag, length, body."""
    body: bytes


def pieces(raw: bytes) -> list[Piece]:
    """Return the values that stand one after another.

    Raises:
        VerificationError: not DER, or the last value is cut off.
    """
    found, at = [], 0
    while at < len(raw):
        start, stop = _span(raw, at)
        found.append(Piece(raw[at], raw[at:stop], raw[start:stop]))
        at = stop
    return found


def _span(raw: bytes, at: int) -> tuple[int, int]:
    """Return where the body of the value at `at` begins and ends."""
    header = raw[at : at + 2]
    if len(header) < 2 or header[0] & _MANY_BYTES_TAG == _MANY_BYTES_TAG:
        raise VerificationError(f"expected DER, got a value at byte {at} that is none")
    start, length = at + 2, header[1]
    if length & _LONG:
        width = length & ~_LONG
        digits = raw[start : start + width]
        if not 1 <= width <= 4 or len(digits) != width:
            raise VerificationError(f"expected DER, got a length at byte {at} that is none")
        start, length = start + width, int.from_bytes(digits, "big")
    if start + length > len(raw):
        raise VerificationError(f"expected DER, got a value at byte {at} that is cut off")
    return start, start + length


def only(raw: bytes, tag: int, what: str) -> Piece:
    """Return the one value that `raw` is.

    Raises:
        VerificationError: it is something else, or more.
    """
    found = pieces(raw)
    if len(found) != 1 or found[0].tag != tag:
        raise VerificationError(f"expected {what}, got other bytes: it was changed or is none")
    return found[0]


def take(found: list[Piece], tag: int, what: str) -> Piece:
    """Remove and return the next value.

    Raises:
        VerificationError: there is none, or one with another tag.
    """
    if not found or found[0].tag != tag:
        raise VerificationError(f"expected {what}, got other bytes: it was changed or is none")
    return found.pop(0)


def optional(found: list[Piece], tag: int) -> Piece | None:
    """Remove and return the next value if it has this tag."""
    return found.pop(0) if found and found[0].tag == tag else None


def wrap(tag: int, body: bytes) -> bytes:
    """Return a value."""
    size = len(body)
    if size < _LONG:
        return bytes((tag, size)) + body
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, _LONG | len(digits))) + digits + body


def integer(value: int) -> bytes:
    """Return an INTEGER that is not negative."""
    return wrap(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big"))
