"""What signed events prove; the obligations are listed in `anchord.core.verify`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from anchord.core.canonical import pith_suffix, record_id
from anchord.core.chain import MAX_FUTURE_S
from anchord.core.claims import TARGETS as CLAIM_TARGETS
from anchord.core.claims import Claim, read_claim
from anchord.core.event import (
    ANCHORED,
    CAPTURED,
    ITEM_STORED,
    STORAGE,
    SUBMITTED,
    TARGET,
    WITHDRAWN,
    canonical_body,
    event_digest,
)
from anchord.core.keyring import PublicKey, check_permitted, check_signature, fingerprint
from anchord.core.moment import seconds
from anchord.core.receipt import strict_base64
from anchord.core.trust import Keys, Trust
from anchord.core.verify import Claims, Proof, read_proof
from anchord.core.verify_stored import StoredClaim, read_stored
from anchord.core.witnessed import StatedBlock, StatedToken, read_witnessed
from anchord.errors import (
    AttestationError,
    DigestMismatchError,
    SignatureError,
    VerificationError,
)

_HASH = re.compile(r"[0-9a-f]{64}")
OWN_TYPES = frozenset((SUBMITTED, ANCHORED, WITHDRAWN, CAPTURED, ITEM_STORED))
"""Event types whose id and signature follow anchord's rules; nothing less is accepted of them."""


class EventProved(msgspec.Struct, frozen=True, kw_only=True):
    """What one event proved."""

    event_id: str
    event_type: str
    target: str
    created_at: str
    signer_id: str
    key_id: str
    trust: Trust | None
    """None: the signature could not be checked, because no rule or no key is known."""
    reason: str = ""
    """Why it could not be checked."""
    revoked: bool = False
    """Its key was revoked, be it later: what it says against other keys of its signer falls."""
    proof: Proof | None = None
    claims: Claims | None = None
    withdraws: str | None = None
    stored: StoredClaim | None = None
    """Where a copy is said to be."""
    claim: Claim | None = None
    """What an author claim, a citation or a replication says."""
    facts: tuple[tuple[str, str], ...] = ()
    """(about, content): one signer can say only one of each; see `anchord.core.equivocation`."""


class _Signer(msgspec.Struct):
    key_id: str
    public_key_fingerprint: str
    signer_id: str
    signer_type: str


class _Event(msgspec.Struct):
    event_id: str
    event_type: str
    target: str
    created_at: str
    signer: _Signer
    payload: dict[str, Any]
    signature_b64: str
    subject_pith_number: str | None = None
    subject_record_id: str | None = None


ProofReader = Callable[[bytes, bytes], Proof]
"""(an `.ots`, the digest it has to start at) -> what it proves, or an error as of `read_proof`."""


def read_event(
    event: Mapping[str, Any],
    digest: bytes,
    number: str | None,
    keys: Keys,
    proofs: ProofReader = read_proof,
) -> EventProved:
    """Return what one event proves about the record `digest` (obligations 10 to 15).

    Args:
        event: as it came.
        digest: of the record.
        number: its Pith Number, where it has one.
        keys: what signatures are checked with.
        proofs: reads the proof inside; one that remembers what many proofs share is faster.

    Raises:
        VerificationError: it is signed by anchord's rules, or claims to be, and breaks one.
        RefusedError: a proof inside that is no proof.
    """
    if not _is_ours(event):
        return _foreign(event, digest, number)
    try:
        stated = msgspec.convert(dict(event), _Event)
    except msgspec.ValidationError as error:
        raise VerificationError(
            f"event {event.get('event_id')!r:.80} lacks what a signed event has: {error}"
        ) from None
    body = {key: value for key, value in event.items() if key not in ("event_id", "signature_b64")}
    found = event_digest(canonical_body(body))
    if stated.event_id != "sha256:" + found.hex():
        raise DigestMismatchError(
            f"event {stated.event_id:.80} recomputes to sha256:{found.hex()}: it was changed"
        )
    _check_subject(stated, digest, number)
    trust, reason = _check_signed(stated, found, keys)
    _check_target(stated)
    return _with_payload(
        EventProved(
            event_id=stated.event_id,
            event_type=stated.event_type,
            target=stated.target,
            created_at=stated.created_at,
            signer_id=stated.signer.signer_id,
            key_id=stated.signer.key_id,
            trust=trust,
            reason=reason,
            revoked=_was_revoked(keys, stated.signer.key_id),
        ),
        stated,
        digest,
        proofs,
    )


def _with_payload(
    event: EventProved, stated: _Event, digest: bytes, proofs: ProofReader
) -> EventProved:
    """Return the event with what its payload says, held against the record."""
    kind, add = stated.event_type, msgspec.structs.replace
    if kind == ANCHORED:
        proof, claims = _anchored(stated, digest, proofs)
        return add(event, proof=proof, claims=claims, facts=_block_facts(stated))
    if kind in (CAPTURED, ITEM_STORED):
        stored = read_stored(kind, stated.event_id, stated.payload, digest, stated.created_at)
        return add(event, stored=stored, facts=stored.facts)
    if kind in CLAIM_TARGETS:
        claim = read_claim(kind, stated.event_id, stated.payload, digest)
        return add(event, claim=claim, facts=claim.facts)
    if kind == SUBMITTED:
        _check_submitted(stated)
    if kind == WITHDRAWN:
        withdraws = stated.payload.get("withdraws")
        if not isinstance(withdraws, str):
            raise VerificationError(f"event {stated.event_id} does not say what it withdraws")
        return add(event, withdraws=withdraws)
    return event


def _block_facts(stated: _Event) -> tuple[tuple[str, str], ...]:
    """A block stands at one height of one chain, and one block stands there."""
    block = stated.payload
    place = f"{block['chain']} block {block['block_height']}"
    content = f"{block['block_hash']} {block['block_merkle_root']} {block['block_time']}"
    return ((place, content), (f"block {block['block_hash']}", place))


def _is_ours(event: Mapping[str, Any]) -> bool:
    signer = event.get("signer")
    kind = signer.get("signer_type") if isinstance(signer, dict) else None
    named = event.get("event_type")
    ours = isinstance(named, str) and named in OWN_TYPES
    return "signature_b64" in event or ours or kind == "anchord"


def _foreign(event: Mapping[str, Any], digest: bytes, number: str | None) -> EventProved:
    """An event whose maker publishes neither the id's preimage nor a signature."""
    payload = event.get("payload")
    stated = payload.get("canonical_sha256") if isinstance(payload, dict) else None
    if stated is not None and stated != digest.hex():
        raise DigestMismatchError(
            f"event {event.get('event_id')!r:.80} is about {stated!r:.80}, not about this record"
        )
    by_number, by_id = event.get("subject_pith_number"), event.get("subject_record_id")
    _check_names(_text(event.get("event_id")), by_number, by_id, digest, number)
    signer = event.get("signer")
    signer = signer if isinstance(signer, dict) else {}
    return EventProved(
        event_id=_text(event.get("event_id")),
        event_type=_text(event.get("event_type")),
        target=_text(event.get("target")),
        created_at=_text(event.get("created_at")),
        signer_id=_text(signer.get("signer_id")),
        key_id=_text(signer.get("key_id")),
        trust=None,
        reason="its maker publishes no rule to check it by",
    )


def _text(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


def _check_subject(event: _Event, digest: bytes, number: str | None) -> None:
    name = event.event_id
    by_number, by_id = event.subject_pith_number, event.subject_record_id
    if (by_number is None) == (by_id is None):
        raise VerificationError(f"event {name} must name its subject once, by number or by id")
    _check_names(name, by_number, by_id, digest, number)
    if event.payload.get("canonical_sha256") != digest.hex():
        raise DigestMismatchError(f"event {name} has a payload about another record")


def _check_names(
    event_id: str, by_number: Any, by_id: Any, digest: bytes, number: str | None
) -> None:
    """Compare what an event names as its subject, where it names one, with the record."""
    suffix = ":" + pith_suffix(digest)
    mine = isinstance(by_number, str) and by_number.endswith(suffix)
    if by_number is not None and (not mine or (number is not None and by_number != number)):
        raise DigestMismatchError(
            f"event {event_id} is about {by_number!r:.80}, not about this record"
        )
    if by_id is not None and by_id != record_id(digest):
        raise DigestMismatchError(f"event {event_id} is about {by_id!r:.80}, not about this record")


def _check_target(event: _Event) -> None:
    """A key's permission is by target, so a target never stands for an event of another facet."""
    targets = _TARGETS.get(event.event_type)
    if targets is not None and event.target not in targets:
        raise VerificationError(
            f"event {event.event_id} is a {event.event_type} with target {event.target!r:.40}: "
            f"expected {' or '.join(targets)}"
        )


_TARGETS = {
    SUBMITTED: (TARGET,),
    ANCHORED: (TARGET,),
    CAPTURED: (STORAGE,),
    ITEM_STORED: (STORAGE,),
    WITHDRAWN: (TARGET, STORAGE, *CLAIM_TARGETS.values()),
    **{kind: (target,) for kind, target in CLAIM_TARGETS.items()},
}


def _check_signed(event: _Event, digest: bytes, keys: Keys) -> tuple[Trust | None, str]:
    """Check a signature; an unknown key leaves it unchecked, and the event proves nothing."""
    signature = strict_base64(event.signature_b64, f"the signature of event {event.event_id}")
    at = seconds(event.created_at)
    known = keys.find(event.signer.key_id)
    if known is None:
        return None, f"key {event.signer.key_id:.100} is not known: give it with --key"
    key, trust = known
    try:
        _check_key(event, key, at)
        check_signature(key, digest, signature)
    except SignatureError as error:
        if trust is not Trust.CLAIMED:
            raise
        # Anybody can state a key that did not sign this: that says nothing of the event.
        return None, f"by a key that only the evidence states: {error}"
    return trust, ""


def _was_revoked(keys: Keys, key_id: str) -> bool:
    known = keys.find(key_id)
    return known is not None and known[0].revoked_at is not None


def _check_key(event: _Event, key: PublicKey, at: int) -> None:
    """Check that a key is the one an event names, of the same signer, and may sign it."""
    if fingerprint(key.public_key) != event.signer.public_key_fingerprint:
        raise SignatureError(
            f"event {event.event_id} names key {key.key_id} with fingerprint "
            f"{event.signer.public_key_fingerprint!r:.80}, known is {fingerprint(key.public_key)}"
        )
    # Who may withdraw what is decided by the signer: its name is the key's, not the event's word.
    if key.signer_id != event.signer.signer_id:
        raise SignatureError(
            f"event {event.event_id} says it is by {event.signer.signer_id!r:.100}, and its key "
            f"{key.key_id} belongs to {key.signer_id!r:.100}"
        )
    check_permitted(key, at, event.target)


class _Submitted(msgspec.Struct):
    protocol: str
    calendars: list[str]
    commitment: str
    proof_sha256: str


def _check_submitted(event: _Event) -> None:
    """Check what a `timestamp_submitted` says; it proves an intention, so there is no more."""
    try:
        stated = msgspec.convert(event.payload, _Submitted)
    except msgspec.ValidationError as error:
        raise VerificationError(f"event {event.event_id} lacks a field: {error}") from None
    hashes = (stated.commitment, stated.proof_sha256)
    if stated.protocol != "opentimestamps" or not all(_HASH.fullmatch(text) for text in hashes):
        raise VerificationError(
            f"event {event.event_id} names no OpenTimestamps commitment and proof by their hashes"
        )


class _Anchored(msgspec.Struct):
    protocol: str
    chain: str
    block_height: int
    block_hash: str
    block_merkle_root: str
    block_time: str
    confirmations: int
    proof_sha256: str
    proof_b64: str
    not_before: StatedBlock | None = None
    rfc3161: list[StatedToken] = []


def _anchored(event: _Event, digest: bytes, proofs: ProofReader) -> tuple[Proof, Claims]:
    """Check a `timestamp_anchored` payload against the proof it carries (14)."""
    try:
        stated = msgspec.convert(event.payload, _Anchored)
    except msgspec.ValidationError as error:
        raise VerificationError(f"event {event.event_id} lacks a field: {error}") from None
    raw = strict_base64(stated.proof_b64, f"the proof in event {event.event_id}")
    if (
        stated.protocol != "opentimestamps"
        or hashlib.sha256(raw).hexdigest() != stated.proof_sha256
    ):
        raise DigestMismatchError(
            f"event {event.event_id}: the proof inside is not the one it names by hash"
        )
    proof = proofs(raw, digest)
    is_hash = _HASH.fullmatch(stated.block_merkle_root) is not None
    root = bytes.fromhex(stated.block_merkle_root)[::-1] if is_hash else b""
    if not any(
        item.message == root and item.attestation.height == stated.block_height
        for item in proof.bitcoin
    ):
        raise AttestationError(
            f"event {event.event_id} states block {stated.block_height} with Merkle root "
            f"{stated.block_merkle_root:.80}, and the proof inside does not lead there"
        )
    if stated.confirmations < 1:
        raise AttestationError(
            f"event {event.event_id} states {stated.confirmations} confirmations: a block itself "
            "is the first"
        )
    claims = Claims(
        chain=stated.chain,
        height=stated.block_height,
        hash=stated.block_hash,
        time=stated.block_time,
        confirmations=stated.confirmations,
        signed_at=seconds(event.created_at),
        witnessed=read_witnessed(raw, stated.block_height, stated.not_before, stated.rfc3161),
    )
    return proof, claims


def withdrawn(events: Sequence[EventProved]) -> dict[str, str]:
    """Return which events are withdrawn: their ids to the id of the first withdrawal (16).

    A withdrawal is final: taking it back has no effect, the signer makes a new event instead.
    """
    # What could not be checked may carry any id: it never stands in the place of what could.
    by_id = {event.event_id: event for event in events if event.trust is not None}
    found: dict[str, str] = {}
    taking = [event for event in events if event.withdraws is not None]
    for event in sorted(taking, key=lambda event: (event.created_at, event.event_id)):
        target = by_id.get(event.withdraws or "")
        if event.trust is None or target is None or target.signer_id != event.signer_id:
            continue
        if event.target != target.target or target.event_type == WITHDRAWN:
            continue
        if event.trust is Trust.CLAIMED and target.trust is not Trust.CLAIMED:
            continue
        # It names a hash that nobody knew before: dated earlier, it was signed later than it says,
        # as with a key of the signer that was revoked meanwhile.
        if seconds(event.created_at) < seconds(target.created_at) - MAX_FUTURE_S:
            continue
        found.setdefault(target.event_id, event.event_id)
    return found
