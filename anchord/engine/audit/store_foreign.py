"""Auditing what others say of a record, merged by the rules of every bundle (`core.merge`).

It is the slow way, a record at a time: only records take it that came in documents of others, or
that have more than one event of a kind, which might contradict each other.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from anchord.core.bundle import read_bundle
from anchord.core.event import ANCHORED, event_id
from anchord.core.finding import Part, Severity
from anchord.core.merge import merge
from anchord.core.moment import seconds
from anchord.core.proof import attestations, parse_detached
from anchord.core.receipt import check_receipt, receipts
from anchord.engine.audit.store_blocks import older_of
from anchord.engine.audit.store_standing import Foreign
from anchord.engine.export import record_bundle
from anchord.errors import AnchordError, RefusedError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from anchord.core.bundle import Bundle
    from anchord.core.merge import Merged, MergedEvent
    from anchord.core.model import StoredRecord
    from anchord.core.proof import Found
    from anchord.core.trust import Keys
    from anchord.engine.audit.store_frame import Frame, Older
    from anchord.engine.audit.store_standing import Held
    from anchord.engine.audit.store_view import View
    from anchord.ports.reading import ReadingStore


class Documents:
    """Merges what the store signed with what came from elsewhere.

    Args:
        store: opened to be read.
        frame: what this audit is about.
        keys: whose signatures are believed.
    """

    def __init__(self, store: ReadingStore, frame: Frame, keys: Keys) -> None:
        self._store, self._frame, self._keys = store, frame, keys

    def audit(self, view: View, record: StoredRecord, own: Sequence[Held]) -> Foreign:
        """Audit one record's foreign events; return what of them stands."""
        try:
            bundle = read_bundle(record_bundle(self._store, self._frame.keyring, record))
        except AnchordError as error:
            view.find("bundle-refused", Part.BUNDLE, record.id, str(error))
            return Foreign()
        merged = merge(bundle.digest, bundle.number, bundle.canonical, bundle.events, self._keys)
        mine = {event_id(one.row.event_id) for one in own}
        self._receipts(view, record.id, bundle)
        self._count(view, record.id, merged, mine)
        return self._standing(view, record.id, merged, mine)

    def _receipts(self, view: View, record_id: int, bundle: Bundle) -> None:
        for receipt in receipts(bundle):
            try:
                check_receipt(receipt, bundle.digest, self._keys)
            except VerificationError as error:
                view.find("receipt-wrong", Part.BUNDLE, record_id, str(error))

    def _count(self, view: View, record_id: int, merged: Merged, mine: set[str]) -> None:
        for bad in merged.invalid:
            if bad.event_id not in mine:
                view.find("event-refused", Part.EVENT, record_id, bad.reason, bad.event_id)
        for both in merged.equivocations:
            what = f"{both.signer_id} says two things of {both.about}: {', '.join(both.event_ids)}"
            view.outcome.find(
                "signer-contradicts-itself", Severity.WARNING, Part.EVENT, view.name(record_id),
                f"{what}; these do not count: {', '.join(both.fallen)}",
                "ask the signer, who should withdraw what is false",
            )  # fmt: skip
        view.outcome.count("foreign_events", len(merged.unverified))
        for doubted in merged.unverified:
            signer = doubted.event.get("signer")
            key_id = signer.get("key_id") if isinstance(signer, dict) else None
            if isinstance(key_id, str):
                view.outcome.lack(key_id)
        for one in merged.valid:
            if one.proved.event_id in mine:
                continue
            kind = "events" if one.signed else "foreign_events"
            view.outcome.count(kind)
            view.outcome.count("signatures", int(one.signed))

    def _standing(self, view: View, record_id: int, merged: Merged, mine: set[str]) -> Foreign:
        blocks = []
        copies = [seconds(one.created_at) for one in merged.stored if one.event_id not in mine]
        for one in merged.standing:
            if one.proved.event_type == ANCHORED and one.proved.event_id not in mine:
                blocks += self._blocks(view, record_id, one)
        return Foreign(min(blocks, default=None), min(copies, default=None))

    def _blocks(self, view: View, record_id: int, one: MergedEvent) -> list[tuple[int, int]]:
        proved, found = one.proved, []
        if proved.proof is None or (proved.claims and proved.claims.chain != self._frame.chain):
            return []
        replaced = self._frame.replaced_by(proved.claims)
        if replaced is not None:
            view.find("header-differs", Part.HEADER, record_id, replaced, proved.event_id)
            return []
        for path in proved.proof.bitcoin:
            height = path.attestation.height or 0
            verdict = self._frame.verdicts.get((height, path.message))
            if verdict is not None and verdict.state == "false":
                view.find("header-differs", Part.HEADER, record_id, verdict.detail, proved.event_id)
            elif verdict is not None and verdict.state == "confirmed":
                found.append((height, seconds(proved.created_at)))
        return found


def paths_in(raw: bytes, keys: Collection[str]) -> Iterable[Found]:
    """Yield the attestations of the proofs in a document's events, to be held against headers.

    Args:
        raw: the document.
        keys: names of the keys that are trusted: what others sign proves nothing here, so a block
            they name that nobody knows leaves nothing open either.
    """
    for payload in _payloads(raw, keys):
        text = payload.get("proof_b64")
        try:
            proof = base64.b64decode(text, validate=True) if isinstance(text, str) else None
            if proof is not None:
                yield from attestations(parse_detached(proof).timestamp)
        except (ValueError, RefusedError):
            continue


def older_in(raw: bytes, keys: Collection[str]) -> Iterable[Older]:
    """Yield the blocks that a document's events by trusted keys say they are younger than."""
    for payload in _payloads(raw, keys):
        yield from older_of(payload)


def _payloads(raw: bytes, keys: Collection[str]) -> Iterable[dict[str, Any]]:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return
    events = document.get("events") if isinstance(document, dict) else None
    for event in events if isinstance(events, list) else ():
        payload = event.get("payload") if isinstance(event, dict) else None
        signer = event.get("signer") if isinstance(event, dict) else None
        key_id = signer.get("key_id") if isinstance(signer, dict) else None
        if isinstance(payload, dict) and isinstance(key_id, str) and key_id in keys:
            yield payload
