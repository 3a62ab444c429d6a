"""Bundles in the registry's shape: its keys in its order, compact, with what only it knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anchord.core.keyring import REGISTRY_KEY, fingerprint
from anchord.core.number import pith_suffix

SEED = Path(__file__).resolve().parents[2] / "anchord" / "sandbox" / "seed" / "seed-records.jsonl"
ADDED = "2026-07-04T16:09:46Z"
SIGNER = {
    "key_id": REGISTRY_KEY.key_id,
    "public_key_fingerprint": fingerprint(REGISTRY_KEY.public_key),
    "signer_id": "pith.science",
    "signer_type": "pith_registry",
}


def seeds() -> list[dict[str, Any]]:
    """Return the four seed records as the registry lists them."""
    return [json.loads(line) for line in SEED.read_text("utf-8").splitlines()]


def registry_aliases(digest: str, source: dict[str, Any] | None) -> list[dict[str, str]]:
    """Return the aliases that a bundle of the registry has."""
    suffix = pith_suffix(bytes.fromhex(digest))
    found = {}
    if source is not None:
        found = {
            "arxiv": source["id"],
            "arxiv_version": f"{source['id']}v{source['version']}",
            "doi": f"10.48550/arxiv.{source['id']}",
        }
    found |= {f"pith_short_{length}": suffix[:length] for length in (12, 16, 8)}
    return [
        {"alias_kind": kind, "alias_value": text, "created_at": ADDED}
        for kind, text in found.items()
    ]


def registry_bundle(
    record: dict[str, Any] | None,
    digest: str,
    number: str,
    receipt: dict[str, Any] | None = None,
    **more: Any,
) -> bytes:
    """Return a bundle as the registry writes it, a graph snapshot and keys of its own inside."""
    payload: dict[str, Any] = {} if record is None else {"canonical_record": record}
    payload["canonical_sha256"] = digest
    if receipt is not None:
        payload["receipt"] = receipt
    source = None if record is None else dict(record["source"])
    events = [
        event("record_created", number, "record", "5c", payload),
        event(
            "graph_snapshot", number, "graph", "82", {"graph_snapshot": {"edges": [], "w": 1.50}}
        ),
    ]
    value = {
        "bundle_type": "pith_open_graph_bundle",
        "bundle_version": "1.0",
        "pith_number": number,
        "short_pith_number": "pith:" + number.rpartition(":")[2][:8],
        "canonical_record": record,
        "canonical_sha256": digest,
        "source": source,
        "source_aliases": registry_aliases(digest, source),
        "events": events,
        **more,
    }
    # The registry's order of keys, and numbers and escapes that no encoder of ours would write.
    return json.dumps(value, separators=(",", ":")).replace("1.5}", "1.50e0}").encode()


def event(
    kind: str, number: str, target: str, mark: str, payload: dict[str, Any]
) -> dict[str, Any]:
    """Return an event with the registry's fields in the registry's order."""
    return {
        "event_type": kind,
        "subject_pith_number": number,
        "target": target,
        "payload": payload,
        "event_id": "sha256:" + mark * 32,
        "created_at": ADDED,
        "signer": SIGNER,
    }


def real_receipts(shared: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (digest, suffix, receipt) of each real signature of the registry."""
    stated = json.loads((shared / "pith-signatures.json").read_text("utf-8"))
    return [
        (
            one["canonical_sha256"],
            one["pith_suffix"],
            {
                "kind": "pith_receipt",
                "key_id": stated["public_key"]["key_id"],
                "algorithm": "ed25519",
                "signed_at": ADDED,
                "signature_b64": one["signature_b64"],
                "registry_note": ["kept", 1e0, "\u00e9"],
            },
        )
        for one in stated["signatures"]
    ]
