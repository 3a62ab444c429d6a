"""Headers for tests that ask nothing of their proof of work."""

from __future__ import annotations

import struct

from anchord.core.header import block_hash, display


def header(number: int, salt: int = 0) -> bytes:
    """Return the 80 bytes of a made-up header; another `salt` gives another block."""
    root = number.to_bytes(32, "big")
    return struct.pack("<i32s32sIII", 4, b"\x01" * 32, root, 1_700_000_000 + number, 0, salt)


def shown(raw: bytes) -> str:
    """Return the block hash of a header as explorers print it."""
    return display(block_hash(raw))
