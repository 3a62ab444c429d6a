"""The straight line a proof begins with: steps one after another, before any fork or attestation.

In the proofs of a batch the line differs, from the record to the batch's root; what follows is the
same bytes from the same message. A timestamp's meaning is a function of its bytes and the message
it starts at, so what follows has to be read once only.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from anchord.core.operation import APPEND, PREPEND, SHA256
from anchord.core.proof import DETACHED_HEADER, MAX_PROOF_BYTES
from anchord.core.timestamp import MAX_DEPTH

START = len(DETACHED_HEADER) + 32
"""Where the first step of a proof about a SHA-256 stands."""
_LONGEST = 0x7F
"""Lengths up to this take one byte, as every step of a Merkle tree does."""


class Line(NamedTuple):
    """The line of one proof."""

    ops: tuple[tuple[int, bytes], ...]
    """Tag and argument of each step."""
    messages: tuple[bytes, ...]
    """The digest the proof is about, then what each step leads to."""
    rest: bytes
    """The bytes that follow; they start at the last message."""


_PIECE = 8
"""Steps that are walked, and remembered, at once: four levels of a Merkle tree."""


@lru_cache(maxsize=4)  # of one record the same proof lies in a bundle and in a file beside it
def climb(raw: bytes) -> Line | None:
    """Return the line of a proof, nothing else of which is checked.

    None: it is no proof about a SHA-256, or too long to be one.
    """
    if not raw.startswith(DETACHED_HEADER) or not START < len(raw) <= MAX_PROOF_BYTES:
        return None
    return _walk(raw[START:], raw[len(DETACHED_HEADER) : START], MAX_DEPTH)


def _walk(raw: bytes, message: bytes, most: int) -> Line:
    """Walk up to `most` steps, a piece at a time: other proofs share all but the lowest pieces."""
    lower = _steps(raw, message, min(_PIECE, most))
    if len(lower.ops) < _PIECE or most == _PIECE:
        return lower
    upper = _walk_shared(lower.rest, lower.messages[-1], most - _PIECE)
    return Line(lower.ops + upper.ops, lower.messages[:-1] + upper.messages, upper.rest)


_walk_shared = lru_cache(maxsize=512)(_walk)


def _steps(raw: bytes, message: bytes, most: int) -> Line:
    """Walk up to `most` steps from a message."""
    at, end = 0, len(raw) - 1
    ops: list[tuple[int, bytes]] = []
    messages = [message]
    while at < end and len(ops) < most:
        tag = raw[at]
        if tag == SHA256:
            message, argument = sha256(message).digest(), b""
            at += 1
        elif tag in (APPEND, PREPEND):
            stop = at + 2 + raw[at + 1]
            argument = raw[at + 2 : stop]
            if not 0 < raw[at + 1] <= _LONGEST or stop > end or len(message) > _LONGEST:
                break
            message = message + argument if tag == APPEND else argument + message
            at = stop
        else:
            break
        ops.append((tag, argument))
        messages.append(message)
    return Line(tuple(ops), tuple(messages), raw[at:])
