"""Reading the proofs of many records quickly: what is the same in all of them is read once.

The proofs of a batch differ in their lower part, a straight line of steps from the record to the
batch's root; the upper part, with its forks and attestations, is the same bytes from the same
message. The line is walked step by step. Where the rest of the bytes and the message reached are
those of a proof that `read_proof` has read whole, its attestations are this proof's, too: a
timestamp's meaning is a function of its bytes and the message it starts at. Everything else goes
to `read_proof`, which is the law.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgspec

from anchord.core.proof import DETACHED_HEADER, MAX_PROOF_BYTES
from anchord.core.verify import Proof, read_proof

_APPEND, _PREPEND, _SHA256 = 0xF0, 0xF1, 0x08
_START = len(DETACHED_HEADER) + 32
_LONGEST = 0x7F
"""Lengths up to this take one byte, as every step of a Merkle tree does."""
_KEPT = 1_024


class _Upper(NamedTuple):
    """The upper part of a proof that was read whole."""

    tail: bytes
    steps: int
    """How many stood below it: with no more than these it is within the limits again."""
    proof: Proof


class ProofReader:
    """Reads proofs as `read_proof` does, and remembers the upper parts it has seen.

    Only what `read_proof` has read whole is remembered, and not more than a few of these.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, _Upper] = {}
        """By the message the upper part starts at."""

    def __call__(self, raw: bytes, digest: bytes) -> Proof:
        """Return the attestations of an `.ots` that has to start at a digest.

        Raises:
            RefusedError, DigestMismatchError, AttestationError: as `read_proof`.
        """
        start = raw[:_START] == DETACHED_HEADER + digest and len(raw) <= MAX_PROOF_BYTES
        at, steps, message = _climb(raw, digest) if start else (0, 0, b"")
        known = self._known.get(message)
        if known is not None and steps <= known.steps and raw[at:] == known.tail:
            return msgspec.structs.replace(known.proof, digest=digest)
        proof = read_proof(raw, digest)
        if start:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[message] = _Upper(raw[at:], steps, proof)
        return proof


def _climb(raw: bytes, message: bytes) -> tuple[int, int, bytes]:
    """Walk up the straight line a proof begins with.

    Returns:
        Where it ends: place in the bytes, operations on the way, and the message reached.
    """
    at, steps = _START, 0
    while at < len(raw) - 1:
        tag = raw[at]
        if tag == _SHA256:
            message = sha256(message).digest()
            at += 1
        elif tag in (_APPEND, _PREPEND):
            length = raw[at + 1]
            stop = at + 2 + length
            if not 0 < length <= _LONGEST or stop > len(raw) or len(message) > _LONGEST:
                break
            argument = raw[at + 2 : stop]
            message = message + argument if tag == _APPEND else argument + message
            at = stop
        else:
            break
        steps += 1
    return at, steps, message
