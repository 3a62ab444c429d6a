"""Auditing one chunk of records, in whichever process: everything about them in one view."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from anchord.core.event import event_id
from anchord.core.finding import Part
from anchord.core.trust import Keys
from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.store_foreign import Documents
from anchord.engine.audit.store_frame import UNREADABLE, unreadable
from anchord.engine.audit.store_garbage import no_collections
from anchord.engine.audit.store_records import check_record
from anchord.engine.audit.store_series import SeriesAudit
from anchord.engine.audit.store_standing import (
    NO_ROW,
    STORAGE_TYPES,
    Expected,
    Held,
    copying,
    live_of,
    report_headers,
    standing_of,
)
from anchord.engine.audit.store_storage import check_captures
from anchord.engine.audit.store_view import View
from anchord.engine.event_reader import read_event

if TYPE_CHECKING:
    from anchord.core.model import Series, StoredRecord
    from anchord.core.standing import Standing
    from anchord.engine.audit.store_frame import Frame, Job
    from anchord.ports.reading import Chunk, Counted, RawEvent, ReadingStore


class ChunkAudit:
    """Audits chunks one after another; what neighbours share is kept between them.

    Args:
        store: opened to be read.
        frame: what this audit is about.

    Raises:
        SignatureError: one key id stands for two different keys.
    """

    def __init__(self, store: ReadingStore, frame: Frame) -> None:
        self._store, self._frame = store, frame
        keys = Keys(frame.keyring, frame.given)
        self._series = SeriesAudit(store, frame, keys)
        self._expected = Expected(store)
        self._documents = Documents(store, frame, keys)

    @no_collections()
    def run(self, job: Job) -> Outcome:
        """Audit the records of a stretch."""
        outcome = Outcome(self._frame.options)
        try:
            if job.verified:
                chunk = self._store.audit.chunk(job.low, job.high, job.tiles)
                self._chunk(View(chunk, outcome), job)
            else:
                self._count(self._store.audit.counted(job.low, job.high), outcome)
        except UNREADABLE as error:
            return self._halves(job, error)
        return outcome

    def _halves(self, job: Job, error: Exception) -> Outcome:
        """Find out which record cannot be read: halve until it stands alone."""
        outcome = Outcome(self._frame.options)
        if job.low == job.high:
            outcome.count("records_counted")
            unreadable(outcome, f"record {job.low}", error)
            return outcome
        middle = (job.low + job.high) // 2
        outcome.merge(self.run(job._replace(high=middle)))
        outcome.merge(self.run(job._replace(low=middle + 1)))
        return outcome

    def _chunk(self, view: View, job: Job) -> None:
        chunk = view.chunk
        wanted = self._wanted(chunk)
        view.outcome.count("records_counted", len(chunk.records))
        view.outcome.count("records", len(wanted))
        view.place_all(job)
        for record in chunk.records:
            if record.id in wanted:
                check_record(view, record)
        self._stand(view, wanted, self._events(view, wanted))

    def _count(self, counted: Counted, outcome: Outcome) -> None:
        """Count records by their rows, many at once."""
        for group in counted.groups:
            outcome.count("records_counted", group.records)
            series = [
                counted.series[int(number)]
                for number in (group.series or "").split(",")
                if number and int(number) in counted.series
            ]
            facts = [self._series.facts(one) for one in series]
            live = live_of([Held(NO_ROW, one, own) for one, own in zip(series, facts, strict=True)])
            batch = counted.batches.get(group.batch_id or 0)
            copying = ("not stored", "capturing", "parked")[group.capture or 0]
            outcome.stand(standing_of(group, live, batch, copying), group.records)

    def _wanted(self, chunk: Chunk) -> set[int]:
        """Return the records to verify: all, those drawn, or those something happened to."""
        ids = {record.id for record in chunk.records}
        if self._frame.upto:
            ids &= {row.record_id for row in chunk.events if row.seq > self._frame.upto}
        if self._frame.drawn is not None:
            ids &= self._frame.drawn
        return ids

    def _events(self, view: View, wanted: set[int]) -> dict[int, list[RawEvent]]:
        """Verify the events of the wanted records; return all that hold, by record."""
        by_series: dict[int, list[RawEvent]] = {}
        for row in view.chunk.events:
            by_series.setdefault(row[2], []).append(row)
        for one in view.chunk.series.values() if wanted else ():
            _name_lost(view, one, by_series.get(one.id, []), wanted)
        held: dict[int, list[RawEvent]] = {}
        for series_id, rows in by_series.items():
            series = view.chunk.series.get(series_id)
            if series is None:
                continue
            mine = rows if len(wanted) == len(view.records) else [r for r in rows if r[1] in wanted]
            good = self._series.verify(view, series, mine) if mine else []
            others = [] if len(mine) == len(rows) else [r for r in rows if r[1] not in wanted]
            for row in (*good, *others):
                held.setdefault(row[1], []).append(row)
        return held

    def _stand(self, view: View, wanted: set[int], held: dict[int, list[RawEvent]]) -> None:
        """Count where the records stand. Neighbours mostly stand alike: that is found out once."""
        standings: Counter[Standing] = Counter()
        alike: dict[tuple[object, ...], Standing | None] = {}
        chunk = view.chunk
        for record in chunk.records:
            rows = held.get(record.id, [])
            kind = (record.source_kind, record.added_at, record.batch_id, record.id in wanted,
                    *[row[2] for row in rows])  # fmt: skip
            plain = not (
                record.id in view.broken
                or record.id in chunk.captures
                or record.id in chunk.documents
            )
            standing = alike.get(kind) if plain else None
            if standing is None:
                standing = self._standing(view, record, rows, verified=record.id in wanted)
                if plain and self._is_common(view, record, rows, standing):
                    alike[kind] = standing
            standings[standing] += 1
        for standing, count in standings.items():
            view.outcome.stand(standing, count)

    def _is_common(
        self, view: View, record: StoredRecord, rows: list[RawEvent], standing: Standing
    ) -> bool:
        """Tell whether what was found about a record holds for all with events like its own."""
        kinds = [view.chunk.series[row.series_id].event_type for row in rows]
        offered = self._frame.options.online is not None and not {*STORAGE_TYPES}.isdisjoint(kinds)
        simple = len(set(kinds)) == len(kinds) and not offered
        return simple and standing.anchored == "anchored" and record.id not in view.broken

    def _standing(
        self, view: View, record: StoredRecord, rows: list[RawEvent], *, verified: bool
    ) -> Standing:
        series = [view.chunk.series[row.series_id] for row in rows]
        events = [
            Held(row, one, self._series.facts(one)) for row, one in zip(rows, series, strict=True)
        ]
        live, foreign = live_of(events), None
        if verified:
            report_headers(view, live)
            self._expected.check(view, record, live)
            check_captures(view, record.id, live)
            self._offer(view, live)
            if record.id in view.chunk.documents or _several(live):
                foreign = self._documents.audit(view, record, events)
        batch, sound = view.chunk.batches.get(record.batch_id or 0), record.id not in view.broken
        return standing_of(record, live, batch, copying(view, record), foreign, sound=sound)

    def _offer(self, view: View, live: list[Held]) -> None:
        if self._frame.options.online is None:
            return
        for one in live:
            if one.series.event_type in STORAGE_TYPES:
                payload = self._whole(one)
                view.outcome.offer(event_id(one.row.event_id), one.series.event_type, payload)

    def _whole(self, one: Held) -> dict[str, object]:
        """Return the payload with what differs by record."""
        record = self._store.records.get(one.row.record_id)
        if record is None:
            return dict(one.facts.payload)
        rows = self._store.ledger.ids_in_series(one.series.id, [record.id])
        found: dict[str, object] = read_event(self._store, record, rows[record.id])["payload"]
        return found


def _name_lost(view: View, series: Series, rows: list[RawEvent], wanted: set[int]) -> None:
    """Find records whose event of a series was taken away, or given to another record."""
    for member in view.lacking(series, {row[1] for row in rows}):
        if member.record_id in wanted:
            what = f"series {series.id} ({series.event_type}) appended an event for it, member "
            what += f"{member.index} of batch {series.batch_id}, and the ledger has none"
            view.find("event-missing", Part.RECORD, member.record_id, what)


def _several(live: list[Held]) -> bool:
    """Tell whether two events of one kind stand, which might contradict each other."""
    if len(live) < 2:
        return False
    kinds = [one.series.event_type for one in live]
    return len(set(kinds)) < len(kinds)
