"""What agents read about a record: the resolver's answer, and its events with their verdicts.

Pure functions of the view, like the page: nothing here is asked for, and nothing tells the time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from anchord.app.face.context import CONTEXT_FILE, address
from anchord.app.face.site import ROOT, Site, place_of
from anchord.core.bundle import Bundle
from anchord.core.canonical import parse, record_id, short_pith_number
from anchord.core.merge import MERGE_VERSION, Doubted, Merged, MergedEvent
from anchord.core.model import Scheme
from anchord.core.record_view import RecordView

_BESIDE = "../"
"""From `pith/X` and `pith/X.json`, where the resolver's answer is, to the root."""


def name_of(bundle: Bundle) -> str:
    """Return the one name of a record that every mirror gives it."""
    return bundle.number or record_id(bundle.digest)


def resolver(view: RecordView, site: Site) -> bytes:
    """Return what `pith/<id>` says to `Accept: application/ld+json`, and `pith/<id>.json` to all.

    Its keys are those of a bundle where both have them, so what reads one reads the other. The
    canonical record comes first, in its canonical order.
    """
    bundle, state = view.bundle, view.state
    current = state["current"]
    document = {
        "@context": address(site, CONTEXT_FILE, _BESIDE),
        "@id": name_of(bundle),
        "@type": "Record",
        **names(bundle),
        "canonical_record": current["canonical_record"],
        **_scheme(view),
        "canonical_sha256": bundle.digest.hex(),
        "source": source_of(bundle),
        "source_aliases": current["source_aliases"],
        **({"receipt": view.receipts[0].receipt} if view.receipts else {}),
        "completeness": current["completeness"],
        "anchored": _block(view.merged),
        "stored": [
            {"event_type": one.event_type, "event_id": one.event_id, "created_at": one.created_at}
            for one in view.merged.stored
        ],
        "merge_version": MERGE_VERSION,
        "event_count": state["event_count"],
        "valid_event_count": state["valid_event_count"],
        "invalid_event_count": state["invalid_event_count"],
        "cited_by_count": view.cited_by_count,
        "links": _links(bundle, site),
    }
    return encoded(document)


def names(bundle: Bundle) -> dict[str, str]:
    """Return what a record is called, by the names of the keys that say it."""
    whole = {"record_id": record_id(bundle.digest)}
    if bundle.number is None:
        return whole
    short = short_pith_number(bundle.digest)
    return {"pith_number": bundle.number, "short_pith_number": short, **whole}


def source_of(bundle: Bundle) -> dict[str, Any] | None:
    """Return what the canonical record says of its source."""
    record = None if bundle.canonical is None else parse(bundle.canonical)
    source = record.get("source") if isinstance(record, dict) else None
    return source if isinstance(source, dict) else None


class _Stated(msgspec.Struct):
    """The one key of a bundle that says how its record's bytes were made."""

    canonical_scheme: msgspec.Raw = msgspec.Raw()


def _scheme(view: RecordView) -> dict[str, str]:
    stated = bytes(msgspec.json.decode(view.raw, type=_Stated).canonical_scheme)
    name = Scheme.RFC8785.value
    return {"canonical_scheme": name} if stated == f'"{name}"'.encode() else {}


def _block(merged: Merged) -> dict[str, Any] | None:
    event = merged.anchored
    if event is None or event.claims is None:
        return None
    claims = event.claims
    return {
        "chain": claims.chain,
        "height": claims.height,
        "hash": claims.hash,
        "time": claims.time,
        "event_id": event.event_id,
    }


def _links(bundle: Bundle, site: Site) -> dict[str, str]:
    place = place_of(bundle)
    found = {
        "page": place,
        "json": f"{place}.json",
        "bundle": f"{place}/bundle.json",
        "state": f"{place}/state.json",
        "graph": f"{place}/graph.json",
        "events": f"{place}/events.json",
        "badge": f"{place}/badge.svg",
        "mirrors": "pith-mirrors.json",
    }
    return {name: address(site, path, _BESIDE) for name, path in found.items()}


# ---------------------------------------------------------------------- events


def events(view: RecordView, site: Site) -> bytes:
    """Return every event of the bundle as it came, each with what the merge makes of it."""
    bundle = view.bundle
    found = sorted(_events(view.merged), key=_moment)
    document = {
        "@context": address(site, CONTEXT_FILE, ROOT),
        "@id": name_of(bundle),
        "@type": "Record",
        **names(bundle),
        "canonical_sha256": bundle.digest.hex(),
        "merge_version": MERGE_VERSION,
        "event_count": len(found),
        "events": found,
    }
    return encoded(document)


def _events(merged: Merged) -> Iterator[dict[str, Any]]:
    contradicted = {name for twice in merged.equivocations for name in twice.fallen}
    for one in merged.valid:
        yield _judged(one, *_status(one, merged.withdrawn, contradicted))
    for doubted in merged.unverified:
        yield _doubted(doubted, "unverified")
    for doubted in merged.invalid:
        yield _doubted(doubted, "invalid")


def _status(
    one: MergedEvent, withdrawn: dict[str, str], contradicted: set[str]
) -> tuple[str, str | None]:
    name = one.proved.event_id
    if not one.signed:
        return "unsigned", "it counts, and advances nothing: nobody signed it"
    if name in withdrawn:
        return "withdrawn", f"by {withdrawn[name]}"
    if name in contradicted:
        return "contradicted", "its signer says something else, too"
    return "standing", None


def _judged(one: MergedEvent, status: str, reason: str | None) -> dict[str, Any]:
    return {
        "event_id": one.proved.event_id,
        "status": status,
        "reason": reason,
        "event": one.event,
    }


def _doubted(one: Doubted, status: str) -> dict[str, Any]:
    return {
        "event_id": one.event_id,
        "status": status,
        "reason": one.reason,
        "event": one.event,
    }


def _moment(item: dict[str, Any]) -> tuple[str, str, str, str]:
    at = item["event"].get("created_at")
    text = at if isinstance(at, str) else ""
    # Of two events under one name, the text decides: the order must not depend on who came first.
    return text, item["event_id"], item["status"], json.dumps(item["event"], sort_keys=True)


def encoded(document: dict[str, Any]) -> bytes:
    """Return a document as JSON and a line break; strangers' integers may be of any size."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8") + b"\n"
