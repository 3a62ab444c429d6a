"""Existing `.ots` files, complete or pending: somebody else's proof, adopted as it came."""

from __future__ import annotations

from anchord.core.model import Adoption, Record, Scheme
from anchord.core.proof import attestations, parse_detached
from anchord.errors import RefusedError

_FOLLOWED = frozenset(("pending", "bitcoin"))


def read_proof(raw: bytes, label: str | None) -> Adoption:
    """Return the record an `.ots` file is about, with the file.

    Args:
        raw: the whole file.
        label: name of the stamped file.

    Raises:
        RefusedError: not a proof under the limits, not of a SHA-256 file hash, or without any
            attestation that anchord can follow.
    """
    proof = parse_detached(raw)
    if proof.algorithm != "sha256":
        raise RefusedError(
            f"the proof is about a {proof.algorithm} hash: only sha256 is adopted; "
            "`anchord verify` can still read it"
        )
    kinds = {found.attestation.kind for found in attestations(proof.timestamp)}
    if kinds.isdisjoint(_FOLLOWED):
        raise RefusedError(
            f"the proof has {', '.join(sorted(kinds)) or 'no'} attestations only: expected a "
            "pending one, which can be upgraded, or a Bitcoin one"
        )
    return Adoption(record=Record(digest=proof.digest, scheme=Scheme.SHA256, label=label), ots=raw)
