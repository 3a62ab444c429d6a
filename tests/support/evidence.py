"""Evidence made to measure: proofs, events and bundles that are right until a test bends them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from anchord.core.bundle_text import render_bundle, whole_event
from anchord.core.canonical import pith_number
from anchord.core.event import (
    ANCHORED,
    CAPTURED,
    ITEM_STORED,
    WITHDRAWN,
    canonical_body,
    event_digest,
    signer_block,
)
from anchord.core.key_document import to_document
from anchord.core.model import Record
from anchord.core.moment import utc
from anchord.core.proof import parse_timestamp, serialise_detached
from anchord.core.verify import read_proof
from support.parties import START, URI_A, FakeCalendar, FakeChain, FakeSigner, mine_together


def mined(digest: bytes, chain: FakeChain, *, more: int = 5) -> bytes:
    """Return an `.ots` of `digest`, whose path ends in a block of `chain`."""
    calendar = FakeCalendar()
    answer = calendar.submit(digest)
    mine_together(chain, calendar)
    chain.grow(more)
    (point,) = answer.pendings
    path = calendar.upgrade(URI_A, point.commitment)
    whole = answer.raw[: -len(_pending())] + path.raw  # type: ignore[union-attr]
    return serialise_detached(digest, parse_timestamp(whole, digest))


def waiting(digest: bytes) -> bytes:
    """Return an `.ots` of `digest` that is still pending."""
    raw = FakeCalendar().submit(digest).raw
    return serialise_detached(digest, parse_timestamp(raw, digest))


def _pending() -> bytes:
    uri = URI_A.encode()
    payload = bytes([len(uri)]) + uri
    return bytes.fromhex("0083dfe30d2ef90c8e") + bytes([len(payload)]) + payload


def sign(body: dict[str, Any], signer: FakeSigner) -> dict[str, Any]:
    """Return the event that `signer` makes of a body."""
    digest = event_digest(canonical_body(body))
    return json.loads(whole_event(canonical_body(body), digest, signer.sign(digest)))


def body_of(record: Record, by: FakeSigner, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an event's body."""
    body = {
        "event_type": ANCHORED,
        "target": "timestamp",
        "created_at": utc(START),
        "signer": signer_block(by.key_id, by.public_key, by.signer_id),
        "payload": {"canonical_sha256": record.digest.hex(), **payload},
        "subject_pith_number": pith_number(record.digest, record.year or ""),
    }
    return {key: value for key, value in {**body, **more}.items() if value is not None}


def anchored_payload(ots: bytes, chain: FakeChain) -> dict[str, Any]:
    """Return what a `timestamp_anchored` event says about a proof."""
    (found,) = read_proof(ots).bitcoin
    height = found.attestation.height or 0
    from anchord.core.verify import confirm

    block = confirm(found, {chain.name: chain.headers[height]}, len(chain.headers) - 1)
    return {
        "protocol": "opentimestamps",
        "chain": "bitcoin-regtest",
        "block_height": height,
        "block_hash": block.hash.hex(),
        "block_merkle_root": block.merkle_root.hex(),
        "block_time": utc(block.time),
        "confirmations": block.confirmations,
        "checked_with": [chain.name],
        "proof_sha256": hashlib.sha256(ots).hexdigest(),
        "proof_b64": base64.b64encode(ots).decode(),
    }


def withdrawal(
    record: Record, signer: FakeSigner, event_id: str, target: str = "timestamp"
) -> dict[str, Any]:
    """Return a `facet_withdrawn` event."""
    payload = {"withdraws": event_id, "reason": "reorg"}
    return sign(body_of(record, signer, payload, event_type=WITHDRAWN, target=target), signer)


CAPTURE = {
    "archive": "wayback",
    "original_url": "https://arxiv.org/abs/2507.10392v1",
    "final_url": "https://arxiv.org/abs/2507.10392v1",
    "capture_url": "https://web.archive.org/web/20240801110000/https://arxiv.org/abs/2507.10392v1",
    "captured_at": "2024-08-01T11:00:00Z",
    "http_status": 200,
    "grade": "replayed",
    "sha256": "ab" * 32,
    "size": 4321,
    "x_archive_src": "spn2-20240801110000-example.warc.gz",
}
"""What a right `capture_stored` says."""


def item_payload(record: Record) -> dict[str, Any]:
    """Return what a right `item_stored` says of a record."""
    return {
        "archive": "archive.org",
        "identifier": "registry-example-2024-08-01",
        "file": "bundles-000000001-000001000.zip",
        "member": record.digest.hex() + ".json",
        "member_sha256": "cd" * 32,
        "size": 1_234_567,
        "md5": "01" * 16,
        "sha1": "02" * 20,
        "sha256": "03" * 32,
    }


def stored_event(
    record: Record, signer: FakeSigner, kind: str = CAPTURED, **changes: Any
) -> dict[str, Any]:
    """Return a signed storage event; `changes` bend its payload (None: the field is left out)."""
    payload = CAPTURE if kind != ITEM_STORED else item_payload(record)
    bent = {key: value for key, value in {**payload, **changes}.items() if value is not None}
    return sign(body_of(record, signer, bent, event_type=kind, target="storage"), signer)


def bundle_with(
    record: Record, events: Sequence[dict[str, Any]], signers: Sequence[FakeSigner] = ()
) -> bytes:
    """Return a bundle of these events."""
    return render_bundle(
        record,
        utc(START),
        [json.dumps(event).encode() for event in events],
        [to_document(signer.public()) for signer in signers],
    )
