"""Bitcoin block headers: 80 bytes, their hash, and the compact form of targets.

Bytes are in Bitcoin's internal order here; `display` turns a hash round for people. The layout
is that of the Bitcoin developer reference ("Block Headers"); the compact form follows
`arith_uint256::SetCompact` and `GetCompact` of Bitcoin Core.
"""

from __future__ import annotations

import hashlib
import struct

import msgspec

from anchord.errors import VerificationError

HEADER_SIZE = 80
FIELDS = struct.Struct("<i32s32sIII")
"""version, previous hash, merkle root, time, bits, nonce; all little-endian."""

_SIGN = 0x00800000
_MANTISSA = 0x007FFFFF


class Header(msgspec.Struct, frozen=True):
    """The fields of one block header; hashes are in internal byte order."""

    version: int
    prev_hash: bytes
    merkle_root: bytes
    time: int
    """Unix seconds as the miner stated them: good to hours."""
    bits: int
    nonce: int

    def pack(self) -> bytes:
        """Return the 80 bytes."""
        return FIELDS.pack(
            self.version, self.prev_hash, self.merkle_root, self.time, self.bits, self.nonce
        )


def parse_header(raw: bytes) -> Header:
    """Split 80 bytes into fields; nothing is judged.

    Raises:
        VerificationError: not 80 bytes.
    """
    if len(raw) != HEADER_SIZE:
        raise VerificationError(f"a block header has 80 bytes, got {len(raw)}: fetch it again")
    return Header(*FIELDS.unpack(raw))


def block_hash(raw: bytes | memoryview) -> bytes:
    """Return SHA-256 of SHA-256 of the header, internal byte order."""
    return hashlib.sha256(hashlib.sha256(raw).digest()).digest()


def display(internal: bytes) -> str:
    """Return a hash as explorers print it: bytes reversed, hex."""
    return internal[::-1].hex()


def internal(shown: str) -> bytes:
    """Return the internal bytes of a hash printed as explorers do.

    Raises:
        VerificationError: not 64 hex digits.
    """
    try:
        raw = bytes.fromhex(shown)[::-1]
    except ValueError:
        raw = b""
    if len(raw) != 32:
        raise VerificationError(f"a block hash has 64 hex digits, got {shown[:80]!r}")
    return raw


def target_of(bits: int) -> int:
    """Return the target that compact `bits` stand for.

    Raises:
        VerificationError: the compact form is negative, zero, or over 256 bits.
    """
    size, mantissa = bits >> 24, bits & _MANTISSA
    target = mantissa >> 8 * (3 - size) if size <= 3 else mantissa << 8 * (size - 3)
    if bits & _SIGN and mantissa:
        raise VerificationError(f"bits {bits:08x} are a negative target: the header is not valid")
    if target >> 256:
        raise VerificationError(f"bits {bits:08x} are over 256 bits: the header is not valid")
    if target == 0:
        raise VerificationError(f"bits {bits:08x} are a zero target: the header is not valid")
    return target


def bits_of(target: int) -> int:
    """Return the compact form of a target; low bits are lost, as in every header."""
    size = (target.bit_length() + 7) // 8
    mantissa = target << 8 * (3 - size) if size <= 3 else target >> 8 * (size - 3)
    if mantissa & _SIGN:  # the top bit is a sign: one byte more, one digit less
        mantissa, size = mantissa >> 8, size + 1
    return size << 24 | mantissa


def work_of(bits: int) -> int:
    """Return the expected number of hashes behind a header with these bits.

    Raises:
        VerificationError: as `target_of`.
    """
    return (1 << 256) // (target_of(bits) + 1)
