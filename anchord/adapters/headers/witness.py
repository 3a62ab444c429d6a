"""What one server says about a header, held against itself before anybody uses it."""

from __future__ import annotations

import re

from anchord.core.header import HEADER_SIZE, block_hash, display, parse_header
from anchord.errors import ProtocolError
from anchord.ports import Tip

_HASH = re.compile(r"[0-9a-f]{64}")
_HEADER = re.compile(rf"[0-9a-f]{{{2 * HEADER_SIZE}}}")


def checked_hash(text: str, who: str) -> str:
    """Return a block hash as printed: 64 lower-case hex digits.

    Raises:
        ProtocolError: something else.
    """
    if not _HASH.fullmatch(text):
        raise ProtocolError(
            f"{who}: expected a block hash of 64 hex digits, got {len(text)} other characters; "
            "nothing of it is used"
        )
    return text


def checked_header(text: str, asked: str, who: str) -> bytes:
    """Return the 80 bytes that `text` spells, when they hash to the block `asked` for.

    Raises:
        ProtocolError: not 160 hex digits, or the header of another block.
    """
    if not _HEADER.fullmatch(text):
        raise ProtocolError(
            f"{who}: expected a header of 160 hex digits for block {asked}, got {len(text)} "
            "other characters; nothing of it is used"
        )
    raw = bytes.fromhex(text)
    got = display(block_hash(raw))
    if got != asked:
        raise ProtocolError(
            f"{who}: expected the header of block {asked}, got the one of {got}; "
            "it is not used, do not trust this server until it is understood"
        )
    return raw


def tip_of(height: int, raw: bytes) -> Tip:
    """Return the tip that the header `raw` at `height` makes."""
    shown = bytes.fromhex(display(block_hash(raw)))
    return Tip(height, shown, parse_header(raw).time)
