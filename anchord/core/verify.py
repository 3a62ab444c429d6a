"""What evidence proves. Functions return what they proved or raise; nothing to check is a failure.

Obligations, each with the function that meets it. Events are in `anchord.core.verify_event`,
receipts in `anchord.core.receipt`, records in `anchord.core.bundle`, keys in `anchord.core.trust`.

Proof (`read_proof`)
 1. The file is a whole OpenTimestamps proof of version 1, within the limits, nothing left over.
 2. It starts at the digest in question, made by the hash function in question.
 3. Each path is recomputed step by step from that digest to the attested message.
 4. There is at least one attestation. A pending one proves nothing; unknown ones prove nothing.

Block header (`confirm`, `check_depth`, `check_claims`)
 5. The header has 80 bytes, stands at the attested height on the best chain of every witness
    that was asked, and its Merkle root is the attested message, all 32 bytes.
 6. It has the number of confirmations that was asked for.
 7. Where an event states hash and time of the block, they are those of that header; and it is
    not dated before its block, as one signed later with a key long revoked would be.
 What follows is "existed before" the header's time, which is good to hours; never "created at".

Record (`read_bundle`)
 8. The canonical bytes recompute from the record, and hash to the digest.
 9. All named keys are there; number, record id, source and aliases follow from the record.

Event (`read_event`)
10. The id is the SHA-256 of the canonical body.
11. The signature was made by the key named, and that key may sign this target at that moment.
12. The key's fingerprint is the one stated, and the key is that of the signer named. A trusted id
    never stands for two different keys, and what revokes a key in one place revokes it in all.
    What evidence states of keys neither refutes nor hides what a trusted key proves.
13. The subject is this record, by number or id, and the payload names its digest.
14. `timestamp_submitted` names protocol, commitment and proof, and proves no more than that.
    `timestamp_anchored`: the proof inside has the hash stated, meets 1 to 4, and ends in a Bitcoin
    attestation at the height stated, on the Merkle root stated. `not_before` names a block older
    than that one, whose hash the proof carries below all calendars; each token of `rfc3161` is
    over a message there, of the time stated, and signed by the certificate it carries.
15. Events of others cannot be checked where their makers publish no rule; the registry's
    receipts inside them are checked (`check_receipt`): Ed25519 over the 32 bytes of the digest;
    the record inside recomputes, and the signer named is the one of the key named.

Storage (`anchord.core.verify_stored`)
17. `capture_stored`: a replay was signed for, nothing less; status 200, a hash, a final URL on the
    host of the original one, and a capture URL that is the one of the final URL at that moment,
    not later than the event.
18. `item_stored`: the member is this record's, and item, file and hashes are well formed.
 What follows is who said where a copy is. Whether it still is there, only a download tells.

Withdrawal (`withdrawn`)
16. An event withdrawn by the same signer proves nothing. A key that is not trusted cannot
    withdraw what a trusted one signed. A withdrawal has the target of what it withdraws, is not
    dated before it, and is final.

Claims of others (`anchord.core.claims`)
19. An author claim names a person, a citation a relation and another work, a replication a kind
    and a report; the target is that of the kind.

Contradictions (`anchord.core.equivocation`)
20. Of what one signer says and has not taken back, no two things exclude each other.

Log (`anchord.core.included`)
21. Every inclusion proof in a bundle leads from an event in it, its signature included, to the root
    of the checkpoint beside it, and that checkpoint is signed by the key it names.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from anchord.core.chain import MAX_FUTURE_S
from anchord.core.header import block_hash, parse_header
from anchord.core.model import Block
from anchord.core.moment import utc
from anchord.core.paths import unattested
from anchord.core.proof import Found, attestations, parse_detached
from anchord.core.witnessed import Witnessed
from anchord.errors import AttestationError, DigestMismatchError


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The attestations of a proof, every path recomputed."""

    digest: bytes
    algorithm: str
    bitcoin: tuple[Found, ...]
    """Lowest block first; claims until a header confirms them."""
    pending: tuple[Found, ...]
    """Calendars that still owe a path."""
    answered: tuple[Found, ...]
    """Calendars whose path to Bitcoin is in the proof."""
    other: tuple[Found, ...]
    """Attestations anchord does not judge."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What a `timestamp_anchored` event says about its block."""

    chain: str
    height: int
    hash: str
    time: str
    confirmations: int
    signed_at: int
    """Unix seconds: the event's `created_at`."""
    witnessed: Witnessed = Witnessed()
    """Its further witnesses, held against the proof."""


def read_proof(raw: bytes, digest: bytes | None = None, algorithm: str = "sha256") -> Proof:
    """Return the attestations of an `.ots` file (obligations 1 to 4).

    Args:
        raw: the file.
        digest: where it has to start; None when that is checked elsewhere.
        algorithm: what made the digest.

    Raises:
        RefusedError: not a proof.
        DigestMismatchError: it is a proof of something else.
        AttestationError: nothing attests.
    """
    detached = parse_detached(raw)
    if digest is not None and (detached.digest, detached.algorithm) != (digest, algorithm):
        raise DigestMismatchError(
            f"the proof is about {detached.algorithm} {detached.digest.hex()}, "
            f"not about {algorithm} {digest.hex()}"
        )
    found = attestations(detached.timestamp)
    if not found:
        raise AttestationError("the proof holds no attestation, so it proves nothing")
    owing = set(unattested(detached.timestamp))
    bitcoin = [item for item in found if item.attestation.kind == "bitcoin"]
    pending = [item for item in found if item.attestation.kind == "pending"]
    return Proof(
        digest=detached.digest,
        algorithm=detached.algorithm,
        bitcoin=tuple(sorted(bitcoin, key=lambda item: item.attestation.height or 0)),
        pending=tuple(item for item in pending if _asked(item) in owing),
        answered=tuple(item for item in pending if _asked(item) not in owing),
        other=tuple(item for item in found if item.attestation.kind not in ("pending", "bitcoin")),
    )


def _asked(found: Found) -> tuple[str, bytes]:
    return found.attestation.uri or "", found.message


def confirm(found: Found, headers: Mapping[str, bytes], tip: int) -> Block:
    """Prove that the block at the attested height carries the attested message (5).

    Args:
        found: a Bitcoin attestation and its message.
        headers: the header at that height by the name of each witness asked.
        tip: height of the lowest of their tips.

    Raises:
        AttestationError: no header, witnesses at odds, or another Merkle root.
    """
    height = found.attestation.height
    if height is None or found.attestation.kind != "bitcoin":
        raise AttestationError(f"an attestation of kind {found.attestation.kind} names no block")
    if not headers:
        raise AttestationError(f"no header of block {height} was seen: nothing is proved")
    if len(set(headers.values())) > 1:
        raise AttestationError(f"witnesses disagree about block {height}: {', '.join(headers)}")
    raw = next(iter(headers.values()))
    header = parse_header(raw)
    if header.merkle_root != found.message:
        raise AttestationError(
            f"block {height} has Merkle root {header.merkle_root[::-1].hex()}, the path leads "
            f"to {found.message[::-1].hex():.128}: the proof or the chain is another one"
        )
    return Block(
        height=height,
        hash=block_hash(raw)[::-1],
        merkle_root=header.merkle_root[::-1],
        time=header.time,
        confirmations=tip - height + 1,
        checked_with=tuple(headers),
    )


def check_depth(block: Block, confirmations: int) -> None:
    """Prove that enough blocks stand on a block, itself included (6).

    Raises:
        AttestationError: too few.
    """
    if block.confirmations < confirmations:
        raise AttestationError(
            f"block {block.height} has {block.confirmations} confirmations, "
            f"{confirmations} are asked for"
        )


def check_claims(claims: Claims, block: Block) -> None:
    """Compare what an event says about its block with the header (7).

    Raises:
        AttestationError: another hash or time, or a date before the block was there.
    """
    pairs = (
        ("block_hash", claims.hash, block.hash.hex()),
        ("block_time", claims.time, utc(block.time)),
    )
    for name, stated, found in pairs:
        if stated != found:
            raise AttestationError(
                f"the event states {name} {stated!r:.80}, block {block.height} has {found}: "
                "it speaks of another chain"
            )
    if claims.signed_at < block.time - MAX_FUTURE_S:
        raise AttestationError(
            f"the event is dated {utc(claims.signed_at)}, block {block.height} is of "
            f"{utc(block.time)}: it was signed later than it says"
        )
