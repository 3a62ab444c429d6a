"""Reading the proofs of many records quickly: what is the same in all of them is read once.

The proofs of a batch differ in their lower part, a straight line of steps from the record to the
batch's root; the upper part, with its forks and attestations, is the same bytes from the same
message. The line is walked step by step. Where the rest of the bytes and the message reached are
those of a proof that `read_proof` has read whole, its attestations are this proof's, too: a
timestamp's meaning is a function of its bytes and the message it starts at. Everything else goes
to `read_proof`, which is the law.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from anchord.core.line import climb
from anchord.core.verify import Proof, read_proof

_KEPT = 1_024


class _Upper(NamedTuple):
    """The upper part of a proof that was read whole."""

    rest: bytes
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
        line = climb(raw)
        if line is None or line.messages[0] != digest:
            return read_proof(raw, digest)
        message, steps = line.messages[-1], len(line.ops)
        known = self._known.get(message)
        if known is not None and steps <= known.steps and line.rest == known.rest:
            return msgspec.structs.replace(known.proof, digest=digest)
        proof = read_proof(raw, digest)
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[message] = _Upper(line.rest, steps, proof)
        return proof
