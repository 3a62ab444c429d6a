"""What others say about a record, for `anchord show`: author claims, citations, replications.

They come out of bundles of others that were added; anchord makes none. A claim counts when the key
that signed it is in the keyring for that; the rest is shown, and named as what it is.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from anchord.core.claims import AUTHOR_CLAIM, CITATION, REPLICATION, TARGETS, read_claim
from anchord.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.wiring import App
    from anchord.core.merge import Doubted, Merged, MergedEvent
    from anchord.core.model import StoredRecord

_ROWS = {AUTHOR_CLAIM: "author_claims", CITATION: "citations", REPLICATION: "replications"}
_LABELS = {
    "author_claims": "author claim",
    "citations": "citations",
    "replications": "replications",
}
TRUSTED = "key in the keyring"


def describe(app: App, record: StoredRecord) -> dict[str, Any]:
    """Return the claims about a record, with stable keys, and the two words they earn it."""
    found: dict[str, Any] = {name: [] for name in _ROWS.values()}
    found |= {"attested": "not attested", "refs": "refs pending"}
    if not app.store.records.documents(record.id):
        return found  # no event of anybody else has ever come in
    from anchord.core.state import completeness

    merged = _merged(app, record)
    words = completeness(merged)
    found |= {"attested": words["attested"], "refs": words["refs"]}
    for one in merged.valid:
        if one.proved.claim is not None:
            found[_ROWS[one.proved.event_type]].append(_proved(one, merged))
    for doubted in merged.unverified:
        kind = doubted.event.get("event_type")
        if isinstance(kind, str) and kind in TARGETS:
            with contextlib.suppress(VerificationError, TypeError):
                found[_ROWS[kind]].append(_doubted(doubted, kind, record.digest))
    return found


def _merged(app: App, record: StoredRecord) -> Merged:
    from anchord.core.bundle import read_bundle
    from anchord.core.state import merge_bundle
    from anchord.core.trust import Keys
    from anchord.engine.export import record_bundle

    bundle = read_bundle(record_bundle(app.store, app.keyring, record))
    return merge_bundle(bundle, Keys(app.keyring))


def _proved(one: MergedEvent, merged: Merged) -> dict[str, Any]:
    proved, claim = one.proved, one.proved.claim
    twice = any(proved.event_id in found.fallen for found in merged.equivocations)
    return {
        "event_id": proved.event_id,
        "word": "" if claim is None else claim.word,
        "text": "" if claim is None else claim.text,
        "created_at": proved.created_at,
        "signer_id": proved.signer_id,
        "key_id": proved.key_id,
        "trust": TRUSTED,
        "withdrawn_by": merged.withdrawn.get(proved.event_id),
        "contradicted": twice,
    }


def _doubted(one: Doubted, kind: str, digest: bytes) -> dict[str, Any]:
    """Return a claim nobody vouches for; what it names as its signer is its own word."""
    event = one.event
    claim = read_claim(kind, one.event_id, event.get("payload") or {}, digest)
    signer = event.get("signer")
    signer = signer if isinstance(signer, dict) else {}
    return {
        "event_id": one.event_id,
        "word": claim.word,
        "text": claim.text,
        "created_at": str(event.get("created_at")),
        "signer_id": str(signer.get("signer_id")),
        "key_id": str(signer.get("key_id")),
        "trust": f"not verified: {one.reason}",
        "withdrawn_by": None,
        "contradicted": False,
    }


def lines(claims: dict[str, Any]) -> Iterator[str]:
    """Yield the rows of a record's page: who says what, since when, and whether he is believed."""
    yield ""
    for name, label in _LABELS.items():
        if not claims[name]:
            yield f"{label:<14}open"
        for one in claims[name]:
            yield f"{label:<14}{one['text']}"
            by = f"{one['signer_id']}, {one['created_at']}, {one['key_id']}"
            yield f"    by {by}: {_standing(one)}"


def _standing(one: dict[str, Any]) -> str:
    if one["withdrawn_by"]:
        return f"WITHDRAWN by {one['withdrawn_by']}"
    if one["contradicted"]:
        return "does not count, its signer has said the contrary, too"
    return str(one["trust"])
