"""The state of a record: what the merge of its bundle's events comes to, as one JSON document.

The named keys are the registry's (docs/protocol.md, Merge and state); the rest is anchord's. The
bytes follow from the bundle and the keyring alone, so every mirror writes the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from anchord.core.bundle import Bundle, read_bundle
from anchord.core.canonical import canonical_bytes, parse, record_id
from anchord.core.claims import AUTHOR_CLAIM, CITATION, RELATIONS, REPLICATION
from anchord.core.event import CAPTURED, ITEM_STORED, SUBMITTED, TIMESTAMPS, WITHDRAWN
from anchord.core.merge import MERGE_VERSION, Doubted, Merged, MergedEvent, merge
from anchord.core.registry_events import CREATED, is_snapshot
from anchord.core.trust import Keys
from anchord.core.verify import read_proof
from anchord.core.verify_event import ProofReader

STATE_TYPE = "pith_open_graph_state"
STATE_VERSION = "1.0"
MAX_STATE_BYTES = 64 << 20
"""A state has a line for each event of its bundle, however short that is."""
_WHOLE_PROOF = "proof_b64"
"""Stays in the bundle: a state says what stands, the bundle proves it."""


def merge_bundle(bundle: Bundle, keys: Keys, proofs: ProofReader = read_proof) -> Merged:
    """Return what a bundle's events come to."""
    return merge(bundle.digest, bundle.number, bundle.canonical, bundle.events, keys, proofs)


def state_of(bundle: Bundle | bytes, keys: Keys) -> dict[str, Any]:
    """Return the state of a bundle's record.

    Args:
        bundle: read, or as it is.
        keys: the keyring. Give none that only the bundle states: they make nothing valid.

    Raises:
        RefusedError: no bundle.
        DigestMismatchError: it does not agree with itself about its record.
    """
    if isinstance(bundle, bytes):
        bundle = read_bundle(bundle)
    return state_of_merged(bundle, merge_bundle(bundle, keys))


def state_of_merged(bundle: Bundle, merged: Merged) -> dict[str, Any]:
    """Return the state of a bundle's record, whose events have been merged."""
    name = {"record_id": record_id(bundle.digest)}
    if bundle.number is not None:
        name = {"pith_number": bundle.number}
    return {
        "state_type": STATE_TYPE,
        "state_version": STATE_VERSION,
        **name,
        "canonical_sha256": bundle.digest.hex(),
        "merge_version": MERGE_VERSION,
        "event_count": merged.event_count,
        "valid_event_count": len(merged.valid),
        "invalid_event_count": len(merged.invalid),
        "unverified_event_count": len(merged.unverified),
        "equivocation_count": len(merged.equivocations),
        "current": _current(bundle, merged),
        "invalid_events": [_doubted(one) for one in merged.invalid],
        "unverified_events": [_doubted(one) for one in merged.unverified],
        "unsigned_events": [one.proved.event_id for one in merged.valid if not one.signed],
        "equivocations": [
            {
                "signer_id": one.signer_id,
                "about": one.about,
                "event_ids": list(one.event_ids),
                "fallen": list(one.fallen),
            }
            for one in merged.equivocations
        ],
    }


def state_bytes(bundle: Bundle | bytes, keys: Keys) -> bytes:
    """Return the state as canonical bytes (scheme pith-json-v1) and a line break.

    Raises:
        RefusedError: no bundle.
        DigestMismatchError: it does not agree with itself about its record.
    """
    return canonical_bytes(state_of(bundle, keys)) + b"\n"


def completeness(merged: Merged) -> dict[str, str]:
    """Return the four words of the strip on a record's page, by facet."""
    types = {one.proved.event_type for one in merged.standing}
    anchored = "anchored" if merged.anchored else "not anchored"
    if not merged.anchored and SUBMITTED in types:
        anchored = "submitted"
    return {
        "attested": "attested" if AUTHOR_CLAIM in types else "not attested",
        "anchored": anchored,
        "stored": "stored" if merged.stored else "not stored",
        "refs": "refs" if CITATION in types else "refs pending",
    }


def _current(bundle: Bundle, merged: Merged) -> dict[str, Any]:
    standing = merged.standing
    snapshots = [one for one in merged.valid if is_snapshot(one.event)]
    named = [one for one in standing if not is_snapshot(one.event)]
    return {
        "canonical_record": None if bundle.canonical is None else parse(bundle.canonical),
        "source_aliases": _aliases(bundle.aliases),
        "graph_snapshots": [_snapshot(one) for one in snapshots],
        "record_created": [_shown(one) for one in merged.valid if _type(one) == CREATED],
        "timestamps": [_shown(one) for one in named if _type(one) in TIMESTAMPS],
        "storage": [_shown(one) for one in named if one.proved.stored is not None],
        "author_claims": [_shown(one) for one in named if _type(one) == AUTHOR_CLAIM],
        "citations": _citations(named),
        "replications": [_shown(one) for one in named if _type(one) == REPLICATION],
        "withdrawn": _withdrawn(merged),
        "other": [_shown(one) for one in named if _type(one) not in _GROUPED],
        "completeness": completeness(merged),
    }


def _type(one: MergedEvent) -> str:
    return one.proved.event_type


_GROUPED = frozenset(
    (*TIMESTAMPS, WITHDRAWN, CREATED, AUTHOR_CLAIM, CITATION, REPLICATION,
     CAPTURED, ITEM_STORED)
)  # fmt: skip


def _snapshot(one: MergedEvent) -> dict[str, Any]:
    """Return a graph snapshot with the fields that the registry's states have."""
    names = ("event_id", "target", "created_at", "signer", "payload")
    return {name: one.event.get(name) for name in names}


def _shown(one: MergedEvent) -> dict[str, Any]:
    payload = one.event.get("payload")
    if isinstance(payload, dict):
        payload = {name: value for name, value in payload.items() if name != _WHOLE_PROOF}
    return {**_snapshot(one), "event_type": one.event.get("event_type"), "payload": payload}


def _citations(standing: Iterable[MergedEvent]) -> dict[str, list[dict[str, Any]]]:
    """Return citations by relation; relations nobody used are left out."""
    found: dict[str, list[dict[str, Any]]] = {relation: [] for relation in RELATIONS}
    for one in standing:
        if _type(one) == CITATION and one.proved.claim is not None:
            found[one.proved.claim.word].append(_shown(one))
    return {relation: events for relation, events in found.items() if events}


def _withdrawn(merged: Merged) -> list[dict[str, Any]]:
    by_id = {one.proved.event_id: one.event for one in merged.valid if one.signed}
    return [
        {
            "event_id": name,
            "event_type": by_id[name]["event_type"],
            "withdrawn_by": by,
            "reason": by_id[by]["payload"].get("reason"),
        }
        for name, by in sorted(merged.withdrawn.items())
    ]


def _aliases(stated: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = [dict(alias) for alias in stated]
    names = {(alias["alias_kind"], alias["alias_value"]) for alias in found}
    if len(names) < len(found):  # only then their order needs more than their names
        found.sort(key=canonical_bytes)
    return sorted(found, key=lambda alias: (alias["alias_kind"], alias["alias_value"]))


def _doubted(one: Doubted) -> dict[str, str]:
    return {"event_id": one.event_id, "reason": one.reason}
