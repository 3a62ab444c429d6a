"""A crowd of signers around one record, and one event of every kind that a merge can meet."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from anchord.core.event import ITEM_STORED, SUBMITTED
from anchord.core.keyring import REGISTRY_TARGETS, PublicKey, fingerprint, make_keyring
from anchord.core.moment import utc
from anchord.core.trust import Keys
from support.evidence import (
    anchored_payload,
    body_of,
    mined,
    sign,
    stored_event,
    waiting,
    withdrawal,
)
from support.parties import FIRST_BLOCK, START, FakeChain, FakeSigner
from support.workplace import sample

RECORD, OTHER = sample(1), sample(2)
NUMBER = "pith:2001:UFMYT6GU4RRBK3Y42U62UU2RE5"

OWN = FakeSigner()
RIVAL = FakeSigner("rival-2024", "rival.example.org")
"""In the keyring for the same targets, and somebody else."""
REVOKED = FakeSigner("revoked-2024")
EXPIRED = FakeSigner("expired-2024")
READER = FakeSigner("reader-2024", "reader.example.org")
"""In the keyring for claims alone."""
STRANGER = FakeSigner("stranger-2024", "stranger.example.org")
REGISTRY = FakeSigner("registry-2024", "pith.example.org")

KEYRING = make_keyring(
    [
        OWN.public(own=True, active=True),
        RIVAL.public(),
        REVOKED.public(revoked_at=START - 1),
        EXPIRED.public(valid_until=START - 1),
        READER.public(targets=("author", "citation", "replication")),
        REGISTRY.public(signer_type="pith_registry", targets=REGISTRY_TARGETS),
    ]
)
KEYS = Keys(KEYRING)


def claim(event_type: str, target: str, by: FakeSigner = READER, **payload: Any) -> dict[str, Any]:
    """Return a signed claim about the record."""
    return sign(body_of(RECORD, by, payload, event_type=event_type, target=target), by)


def citation(relation: str, by: FakeSigner = READER, **work: Any) -> dict[str, Any]:
    """Return a signed citation of another work by the record."""
    cited = work or {"doi": "10.1000/182"}
    return claim("citation", "citation", by, relation=relation, cited=cited)


def anchored(ots: bytes, chain: FakeChain, by: FakeSigner = OWN, **more: Any) -> dict[str, Any]:
    """Return a `timestamp_anchored`; `more` bends its body."""
    return sign(body_of(RECORD, by, anchored_payload(ots, chain), **more), by)


def registry_signer() -> dict[str, str]:
    """Return the signer of the registry's events."""
    return {
        "key_id": REGISTRY.key_id,
        "public_key_fingerprint": fingerprint(REGISTRY.public_key),
        "signer_id": REGISTRY.signer_id,
        "signer_type": "pith_registry",
    }


def registry_event(kind: str, target: str, number: str, **payload: Any) -> dict[str, Any]:
    """Return an event as the registry writes it: an id nobody can recompute, no signature."""
    return {
        "event_type": kind,
        "subject_pith_number": NUMBER,
        "target": target,
        "payload": payload,
        "event_id": "sha256:" + number * 32,
        "created_at": "2024-05-18T01:05:52Z",
        "signer": registry_signer(),
    }


def receipt(digest: bytes = RECORD.digest, by: FakeSigner = REGISTRY) -> dict[str, str]:
    """Return a receipt over a digest."""
    return {
        "kind": "pith_receipt",
        "key_id": by.key_id,
        "algorithm": "ed25519",
        "signed_at": "2024-05-18T01:05:52Z",
        "signature_b64": base64.b64encode(by.sign(digest)).decode(),
        "note": "kept",
    }


def created(**payload: Any) -> dict[str, Any]:
    """Return a `record_created` of the registry."""
    stated = {
        "canonical_record": json.loads(RECORD.canonical or b""),
        "canonical_sha256": RECORD.digest.hex(),
        "receipt": receipt(),
        **payload,
    }
    return registry_event("record_created", "record", "a1", **stated)


def bent(event: dict[str, Any], **payload: Any) -> dict[str, Any]:
    """Return an event whose payload was changed after it was signed."""
    return {**event, "payload": {**event["payload"], **payload}}


def _valid() -> dict[str, dict[str, Any]]:
    one, two = FakeChain(), FakeChain(time=FIRST_BLOCK + 60)
    first, second = mined(RECORD.digest, one), mined(RECORD.digest, two)
    late = FakeChain(height=120)
    submitted = {
        "protocol": "opentimestamps",
        "calendars": ["https://calendar.example.org"],
        "commitment": "00" * 32,
        "proof_sha256": "11" * 32,
    }
    events = {
        "anchored": anchored(first, one),
        "anchored by a rival": anchored(second, two, RIVAL),
        "anchored later": anchored(mined(RECORD.digest, late), late, created_at=utc(START + 60)),
        "submitted": sign(body_of(RECORD, OWN, submitted, event_type=SUBMITTED), OWN),
        "capture": stored_event(RECORD, OWN),
        "item": stored_event(RECORD, OWN, ITEM_STORED),
        "author": claim("author_claim", "author", author={"name": "A. Reader"}),
        "supports": citation("supports"),
        "extends": citation("extends"),
        "replication": claim(
            "replication", "replication", kind="replication", report={"doi": "10.1000/9"}
        ),
        "unknown type": sign(body_of(RECORD, OWN, {}, event_type="blessing"), OWN),
        "created": created(),
        "graph": registry_event("graph_snapshot", "graph", "b2", graph_snapshot={"nodes": 1.5}),
        # Contradictions: each of the two is valid by itself.
        "anchored elsewhere": anchored(second, two),
        "other content": stored_event(RECORD, OWN, sha256="ef" * 32),
        "other file": stored_event(RECORD, OWN, ITEM_STORED, sha256="0a" * 32),
        "refutes": citation("refutes"),
    }
    for name in ("anchored", "anchored elsewhere", "capture", "other content"):
        one = events[name]
        events[f"withdraws {name}"] = withdrawal(RECORD, OWN, one["event_id"], one["target"])
    return events


VALID = _valid()
CONTRADICTIONS = ("anchored elsewhere", "other content", "other file", "refutes")


def _powerless() -> dict[str, dict[str, Any]]:
    """Events that must change nothing of what the valid ones say."""
    first = VALID["anchored"]
    chain = FakeChain()
    ots = mined(RECORD.digest, chain)
    posing = {**body_of(RECORD, OWN, anchored_payload(ots, chain)), "created_at": utc(START + 5)}
    wrong = anchored_payload(ots, chain)
    pending = waiting(RECORD.digest)
    unproved = {
        **wrong,
        "proof_b64": base64.b64encode(pending).decode(),
        "proof_sha256": hashlib.sha256(pending).hexdigest(),
    }
    foreign = mined(OTHER.digest, FakeChain())
    return {
        "payload changed": bent(first, block_time="2001-01-01T00:00:00Z"),
        "payload retyped": bent(first, confirmations=float(first["payload"]["confirmations"])),
        "signed by a thief": sign(posing, STRANGER),
        "signature of another": {**first, "signature_b64": VALID["capture"]["signature_b64"]},
        "of another record": sign(body_of(OTHER, OWN, {}, event_type=SUBMITTED), OWN),
        "proof of another record": sign(body_of(RECORD, OWN, {
            **wrong, "proof_b64": base64.b64encode(foreign).decode(),
            "proof_sha256": hashlib.sha256(foreign).hexdigest()}), OWN),
        "only pending": sign(body_of(RECORD, OWN, unproved), OWN),
        "another height": sign(body_of(RECORD, OWN, {**wrong, "block_height": 7}), OWN),
        "revoked": anchored(ots, chain, REVOKED),
        "expired": stored_event(RECORD, EXPIRED),
        "not permitted": stored_event(RECORD, READER),
        "claims permission": claim("author_claim", "author", OWN, author={"name": "X"}),
        "wrong target": sign(body_of(RECORD, READER, wrong, target="citation"), READER),
        "unknown key": anchored(ots, chain, STRANGER),
        "unknown key withdraws": withdrawal(RECORD, STRANGER, first["event_id"]),
        "a rival withdraws": withdrawal(RECORD, RIVAL, first["event_id"]),
        "unsigned withdrawal": {
            k: v for k, v in withdrawal(RECORD, OWN, first["event_id"]).items()
            if k != "signature_b64"
        },
        "unsigned": {k: v for k, v in first.items() if k != "signature_b64"},
        "under a copied id": {"event_type": "note", "event_id": first["event_id"], "target": "x"},
        "note": {"event_type": "note", "target": "wall", "payload": {"n": 1e300}},
        "graph of another": {**VALID["graph"], "subject_pith_number": "pith:2001:" + "A" * 26},
        "graph by another signer": {
            **VALID["graph"], "signer": {**registry_signer(), "signer_id": "other.example.org"},
        },
        "graph of no day": {**VALID["graph"], "created_at": "yesterday"},
        "graph by nobody": {**VALID["graph"], "signer": {"key_id": "registry-2024"}},
        "forged receipt": created(receipt=receipt(by=STRANGER)),
        "receipt of another": created(receipt=receipt(OTHER.digest)),
        "record changed": created(canonical_record={"a": 1}),
        "bad relation": citation("likes"),
        "submits nothing": sign(body_of(RECORD, OWN, {"protocol": "opentimestamps"},
                                        event_type=SUBMITTED), OWN),
        "a withdrawal of nothing": withdrawal(RECORD, OWN, "sha256:" + "0" * 64),
    }  # fmt: skip


POWERLESS = _powerless()


def stated(signer: FakeSigner) -> PublicKey:
    """Return the key of a signer as a bundle would state it."""
    return signer.public(targets=("*",))
