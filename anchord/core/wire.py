"""Reading and writing the primitives of the OpenTimestamps format, within limits.

Format: python-opentimestamps, opentimestamps/core/serialize.py. Integers are LEB128; like the
library this reader takes superfluous zero groups, but never more than ten bytes in all.
"""

from __future__ import annotations

from anchord.errors import RefusedError

MAX_VARUINT_BYTES = 10


class Reader:
    """A position in some bytes.

    Args:
        raw: the bytes to read.
        at: where to begin.
    """

    __slots__ = ("at", "raw")

    def __init__(self, raw: bytes, at: int = 0) -> None:
        self.raw = raw
        self.at = at

    def byte(self) -> int:
        """Return the next byte.

        Raises:
            RefusedError: the bytes end here.
        """
        at = self.at
        if at >= len(self.raw):
            raise _truncated(1, 0)
        self.at = at + 1
        return self.raw[at]

    def take(self, length: int) -> bytes:
        """Return the next `length` bytes.

        Raises:
            RefusedError: fewer are left.
        """
        at = self.at
        found = self.raw[at : at + length]
        if len(found) != length:
            raise _truncated(length, len(found))
        self.at = at + length
        return found

    def varuint(self) -> int:
        """Return the next LEB128 integer.

        Raises:
            RefusedError: it has more than ten bytes, or the bytes end within.
        """
        value = 0
        for shift in range(0, 7 * MAX_VARUINT_BYTES, 7):
            group = self.byte()
            value |= (group & 0x7F) << shift
            if group < 0x80:
                return value
        raise RefusedError(
            f"expected an integer of at most {MAX_VARUINT_BYTES} bytes, got a longer one: "
            "the proof is damaged"
        )

    def varbytes(self, longest: int, what: str) -> bytes:
        """Return bytes that come with their length.

        Raises:
            RefusedError: longer than `longest`, or the bytes end within.
        """
        length = self.varuint()
        if length > longest:
            raise RefusedError(f"expected {what} of at most {longest} bytes, got {length}")
        return self.take(length)

    def finish(self, what: str) -> None:
        """Check that nothing is left.

        Raises:
            RefusedError: bytes are left.
        """
        left = len(self.raw) - self.at
        if left:
            raise RefusedError(f"expected {what} to end, got {left} more bytes: cut them off")


def _truncated(wanted: int, got: int) -> RefusedError:
    return RefusedError(f"expected {wanted} more bytes of proof, got {got}: the proof is cut off")


def varuint(value: int) -> bytes:
    """Return the shortest LEB128 form."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varbytes(value: bytes) -> bytes:
    """Return the bytes after their length."""
    return varuint(len(value)) + value
