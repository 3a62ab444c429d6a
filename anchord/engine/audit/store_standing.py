"""Where records stand by their events that hold, and where their rows say so without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from anchord.core.event import ANCHORED, CAPTURED, ITEM_STORED, WITHDRAWN, event_id
from anchord.core.finding import Part
from anchord.core.model import BatchState
from anchord.core.standing import Standing
from anchord.core.storage import CaptureState
from anchord.engine.ledger import live_anchored
from anchord.ports.reading import RawEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.model import Batch, Series, StoredRecord
    from anchord.engine.audit.store_series import Facts
    from anchord.engine.audit.store_view import View
    from anchord.ports.reading import Alike, ReadingStore

STORAGE_TYPES = (CAPTURED, ITEM_STORED)
_UNDER_WAY = (BatchState.SUBMITTED, BatchState.ATTESTED, BatchState.ANCHORED)

NO_ROW = RawEvent(0, 0, 0, 0, b"", b"")


class Held(NamedTuple):
    """One event of a record, with what is known of its series."""

    row: RawEvent
    """`NO_ROW` where records are only counted."""
    series: Series
    facts: Facts


class Foreign(NamedTuple):
    """What documents of others prove beside."""

    anchored_at: tuple[int, int] | None = None
    """Height, and when it was signed."""
    stored_at: int | None = None


def live_of(events: Sequence[Held]) -> list[Held]:
    """Return events that no withdrawal by the same signer names."""
    gone = {(one.series.withdraws, one.facts.signer) for one in events
            if one.series.event_type == WITHDRAWN}  # fmt: skip
    if not gone:
        return list(events)
    return [
        one
        for one in events
        if (one.series.id, one.facts.signer) not in gone and one.series.event_type != WITHDRAWN
    ]


def standing_of(
    record: StoredRecord | Alike,
    live: Sequence[Held],
    batch: Batch | None,
    copying: str,
    foreign: Foreign | None = None,
    *,
    sound: bool = True,
) -> Standing:
    """Return where a record stands, or many that are alike.

    Args:
        record: source, and when it was added.
        live: its events that stand.
        batch: the one it is in.
        copying: where its copy is on the way, while no event says that it is stored.
        foreign: what documents of others prove.
        sound: nothing about it is broken.
    """
    blocks = [
        (one.facts.height, one.series.created_at)
        for one in live
        if one.series.event_type == ANCHORED and one.facts.block == "confirmed"
    ]
    copies = [one.series.created_at for one in live if one.series.event_type in STORAGE_TYPES]
    if foreign is not None:
        blocks += [] if foreign.anchored_at is None else [foreign.anchored_at]
        copies += [] if foreign.stored_at is None else [foreign.stored_at]
    anchored = "anchored" if blocks else _waiting(None if batch is None else batch.state)
    return Standing(
        source=record.source_kind or "none",
        added_at=record.added_at,
        anchored=anchored,
        anchored_at=min(blocks)[1] if blocks else None,
        stored="stored" if copies else copying,
        stored_at=min(copies, default=None),
        sound=sound,
    )


def _waiting(state: BatchState | None) -> str:
    if state is BatchState.PARKED:
        return "parked"
    return "submitted" if state in _UNDER_WAY else "not anchored"


def copying(view: View, record: StoredRecord) -> str:
    """Return where the copy of a record's source is on the way."""
    states = {one.state for one in view.chunk.captures.get(record.id, ()) if one.role == "source"}
    if CaptureState.PARKED in states:
        return "parked"
    return "capturing" if states else "not stored"


class Expected:
    """What rows say without any event: an anchored batch whose member has none.

    Args:
        store: opened to be read.
    """

    def __init__(self, store: ReadingStore) -> None:
        self._store = store
        self._live: dict[int, list[Series]] = {}

    def check(self, view: View, record: StoredRecord, live: Sequence[Held]) -> None:
        """Find records that are said to be anchored, and have no event that says so."""
        batch = view.chunk.batches.get(record.batch_id or 0)
        if batch is None or batch.state is not BatchState.ANCHORED or record.id in view.broken:
            return
        if any(one.series.event_type == ANCHORED and one.series.batch_id == batch.id
               for one in live):  # fmt: skip
            return
        member = view.places[record.id].get(batch.id)
        if member is None:
            return
        if batch.id not in self._live:
            self._live = {batch.id: live_anchored(self._store, batch.id)}
        covering = [one for one in self._live[batch.id] if one.start <= member.index < one.stop]
        if any(member.index >= one.next for one in covering):
            view.outcome.doubt("records are anchored, and their event is still to be signed")
            return
        what = f"batch {batch.id} is stored as anchored, and no event of the record says so"
        view.find("event-missing", Part.RECORD, record.id, what)


def report_headers(view: View, live: Sequence[Held]) -> None:
    """Note what headers say against events that nothing withdrew."""
    for one in live:
        for code, what in one.facts.headers:
            view.find(code, Part.HEADER, one.row.record_id, what, event_id(one.row.event_id))
