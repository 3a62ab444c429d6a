"""A record's graph as JSON-LD: what stands about it, who says so, and what it is tied to.

Nodes are the record, works and people it is tied to; a claim is a node, too, with the event's id,
so that each tie names who signed it. Only what stands is here: what was withdrawn, contradicted or
could not be verified is in `events.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anchord.app.face.context import CONTEXT_FILE, address
from anchord.app.face.documents import encoded, name_of, names
from anchord.app.face.site import ROOT, Site
from anchord.core.record_view import Citing, RecordView

_ORCID = "https://orcid.org/"
_ARXIV = "https://arxiv.org/abs/"
_DOI = "https://doi.org/"


def graph(view: RecordView, site: Site) -> bytes:
    """Return `graph.json`."""
    bundle, current = view.bundle, view.state["current"]
    name = name_of(bundle)
    record = {
        "@id": name,
        "@type": "Record",
        **names(bundle),
        "canonical_sha256": bundle.digest.hex(),
        "canonical_record": current["canonical_record"],
        "source_aliases": current["source_aliases"],
        "completeness": current["completeness"],
        "cited_by_count": view.cited_by_count,
    }
    document = {
        "@context": address(site, CONTEXT_FILE, ROOT),
        "@id": name,
        "@graph": [record, *_nodes(view, name)],
    }
    return encoded(document)


def _nodes(view: RecordView, name: str) -> Iterator[dict[str, Any]]:
    current = view.state["current"]
    for event in current["timestamps"]:
        yield {**_said(event, "Timestamp", name), "event_type": event["event_type"],
               "payload": event["payload"]}  # fmt: skip
    for event in current["storage"]:
        yield {**_said(event, "Storage", name), "event_type": event["event_type"],
               "payload": event["payload"]}  # fmt: skip
    for event in current["author_claims"]:
        yield _author_claim(event, name)
    for events in current["citations"].values():
        for event in events:
            yield _citation(event, name)
    for event in current["replications"]:
        yield _replication(event, name)
    for event in current["graph_snapshots"]:
        yield {**_said(event, "GraphSnapshot", name), "payload": event["payload"]}
    for citing in view.cited_by:
        yield _cited_by(citing, name)


def _said(event: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    """Return what every node made of an event has. The merge has read signed events strictly."""
    signer = event.get("signer")
    signer_id = signer.get("signer_id") if isinstance(signer, dict) else None
    return {
        "@id": event["event_id"],
        "@type": kind,
        "about": name,
        "created_at": event["created_at"],
        "signer_id": signer_id,
    }


def _author_claim(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    author, position = event["payload"]["author"], event["payload"].get("position")
    person: dict[str, Any] = {"@type": "schema:Person", "name": author["name"]}
    if author.get("orcid") is not None:
        person = {"@id": _ORCID + author["orcid"], **person}
    return {
        **_said(event, "AuthorClaim", name),
        "author": person,
        **({} if position is None else {"position": position}),
    }


def _citation(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    payload = event["payload"]
    other = payload.get("cited") or payload["citing"]
    ends = {"citing": name, "cited": _work(other)}
    if payload.get("cited") is None:
        ends = {"citing": _work(other), "cited": name}
    return {**_said(event, "Citation", name), "relation": payload["relation"], **ends}


def _replication(event: Mapping[str, Any], name: str) -> dict[str, Any]:
    payload = event["payload"]
    return {
        **_said(event, "Replication", name),
        "kind": payload["kind"],
        "report": _work(payload["report"]),
    }


def _cited_by(citing: Citing, name: str) -> dict[str, Any]:
    return {
        "@id": citing.event_id,
        "@type": "Citation",
        "about": citing.name,
        "created_at": citing.created_at,
        "signer_id": citing.signer_id,
        "relation": citing.relation,
        "citing": citing.name,
        "cited": name,
    }


def _work(work: Mapping[str, Any]) -> dict[str, Any]:
    """Return a work under its most exact name, with all that was said of it."""
    ways = (("pith_number", ""), ("record_id", ""), ("doi", _DOI), ("arxiv", _ARXIV), ("url", ""))
    name = next(start + work[key] for key, start in ways if work.get(key) is not None)
    return {"@id": name, "@type": "schema:CreativeWork", "work": dict(work)}
