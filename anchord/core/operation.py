"""OpenTimestamps operations: the edges of a proof.

Tags, limits and results are those of python-opentimestamps (opentimestamps/core/op.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from anchord.errors import RefusedError

MAX_MESSAGE = 4096
"""Longest message, argument and result."""
MAX_HEXLIFY = 2048

SHA1 = 0x02
RIPEMD160 = 0x03
SHA256 = 0x08
KECCAK256 = 0x67
APPEND = 0xF0
PREPEND = 0xF1
REVERSE = 0xF2
HEXLIFY = 0xF3

BINARY = frozenset({APPEND, PREPEND})
"""Tags that carry an argument."""


class Op(msgspec.Struct, frozen=True, order=True):
    """One operation; orders as the standard library writes them: by tag, then argument."""

    tag: int
    argument: bytes = b""


def apply(op: Op, message: bytes) -> bytes:
    """Return the result of `op` on `message`.

    Raises:
        RefusedError: unknown tag, or a message, argument or result outside the limits.
    """
    if len(message) > MAX_MESSAGE:
        raise RefusedError(f"expected a message of at most {MAX_MESSAGE} bytes, got {len(message)}")
    if op.tag in BINARY:
        return _concatenate(op, message)
    run = _UNARY.get(op.tag)
    if run is None:
        raise RefusedError(
            f"expected an OpenTimestamps operation, got tag 0x{op.tag:02x}: "
            "the proof is damaged or newer than this program"
        )
    return run(message)


def _concatenate(op: Op, message: bytes) -> bytes:
    if not 1 <= len(op.argument) <= MAX_MESSAGE:
        raise RefusedError(
            f"expected an argument of 1 to {MAX_MESSAGE} bytes, got {len(op.argument)}"
        )
    result = message + op.argument if op.tag == APPEND else op.argument + message
    if len(result) > MAX_MESSAGE:
        raise RefusedError(f"expected a result of at most {MAX_MESSAGE} bytes, got {len(result)}")
    return result


def _sha1(message: bytes) -> bytes:
    return hashlib.sha1(message, usedforsecurity=False).digest()


def _sha256(message: bytes) -> bytes:
    return hashlib.sha256(message).digest()


def _ripemd160(message: bytes) -> bytes:
    """Not through hashlib: OpenSSL 3.0.0 to 3.0.6 and many later builds lack it."""
    from Cryptodome.Hash import RIPEMD160 as ALGORITHM

    return ALGORITHM.new(message).digest()


def _keccak256(message: bytes) -> bytes:
    from Cryptodome.Hash import keccak

    return keccak.new(digest_bits=256, data=message).digest()


def _reverse(message: bytes) -> bytes:
    if not message:
        raise RefusedError("expected a message to reverse, got an empty one")
    return message[::-1]


def _hexlify(message: bytes) -> bytes:
    if not 1 <= len(message) <= MAX_HEXLIFY:
        raise RefusedError(
            f"expected a message of 1 to {MAX_HEXLIFY} bytes to hexlify, got {len(message)}"
        )
    return message.hex().encode("ascii")


_UNARY: dict[int, Callable[[bytes], bytes]] = {
    SHA1: _sha1,
    RIPEMD160: _ripemd160,
    SHA256: _sha256,
    KECCAK256: _keccak256,
    REVERSE: _reverse,
    HEXLIFY: _hexlify,
}
