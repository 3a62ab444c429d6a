"""Auditing captures and items: their rows against what was signed about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchord.core.capture import moment_of
from anchord.core.event import CAPTURED, ITEM_STORED, WITHDRAWN
from anchord.core.finding import Part, Severity
from anchord.core.moment import utc
from anchord.core.storage import CaptureState, FileState
from anchord.engine.audit.store_frame import RESTORE
from anchord.engine.audit.store_series import object_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.model import Series
    from anchord.core.storage import Capture, Range
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.store_standing import Held
    from anchord.engine.audit.store_view import View
    from anchord.ports.reading import PlainFile, ReadingStore


def check_captures(view: View, record_id: int, live: Sequence[Held]) -> None:
    """Hold a record's captures against its live `capture_stored` events, both ways."""
    events = {one.series.id: one for one in live if one.series.event_type == CAPTURED}
    named = set()
    for capture in view.chunk.captures.get(record_id, ()):
        if capture.series_id is None:
            if capture.state is CaptureState.STORED:
                what = f"capture {capture.id} is stored, and names no event"
                view.find("event-missing", Part.CAPTURE, record_id, what)
            continue
        named.add(capture.series_id)
        found = events.get(capture.series_id)
        if found is None:
            _no_event(view, record_id, capture)
            continue
        for name, said, signed in _capture_differs(capture, found.series, found.facts.payload):
            what = f"capture {capture.id}: its row says {name} {said!r:.100}, "
            what += f"the event {signed!r:.100}"
            view.find("capture-differs", Part.CAPTURE, record_id, what)
    for series_id in events.keys() - named:
        what = f"series {series_id} signed for a capture, and no row of one names it"
        view.find("capture-missing", Part.CAPTURE, record_id, what)


def _no_event(view: View, record_id: int, capture: Capture) -> None:
    series = view.chunk.series.get(capture.series_id or 0)
    if series is None:
        # Decided and not signed yet, or dropped: the length of the series tells (store_ledger).
        return
    what = f"capture {capture.id} names series {series.id}, which has no event of it that holds"
    view.find("capture-differs", Part.CAPTURE, record_id, what)


def _capture_differs(
    capture: Capture, series: Series, signed: dict[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    row = {
        "original_url": capture.url,
        "final_url": capture.final_url,
        "captured_at": _moment(capture.timestamp),
        "http_status": capture.http_status,
        "sha256": None if capture.sha256 is None else capture.sha256.hex(),
        "size": capture.size,
        "x_archive_src": capture.x_archive_src,
    }
    for name, said in row.items():
        if said != signed.get(name):
            yield name, said, signed.get(name)
    if (capture.batch_id, capture.place) != (series.batch_id, series.start):
        yield "place", (capture.batch_id, capture.place), (series.batch_id, series.start)
    if capture.state is not CaptureState.STORED and capture.state is not CaptureState.PARKED:
        yield "state", capture.state.value, "stored"


def _moment(timestamp: str | None) -> str | None:
    try:
        return None if timestamp is None else utc(moment_of(timestamp))
    except ValueError:
        return timestamp


class FileAudit:
    """Files of items against the series that signed for them.

    Args:
        store: opened to be read.
        outcome: where findings go.
    """

    def __init__(self, store: ReadingStore, outcome: Outcome) -> None:
        self._store, self._outcome = store, outcome

    def run(self) -> None:
        """Audit all files."""
        for file in self._store.audit.files():
            if file.kind == "bundles":
                self._file(file)

    def _file(self, file: PlainFile) -> None:
        ranges = self._store.storage.items.ranges(file.id)
        held = len(file.sha256s or b"")
        place = 0
        for part in ranges:
            if part.place != place or part.stop <= part.start:
                self._broken(file, f"its stretch of batch {part.batch_id} begins at {part.place}, "
                             f"expected {place}")  # fmt: skip
            place = part.place + part.stop - part.start
        if not file.members == place == held / 32:
            self._broken(file, f"it has {file.members} members by its row, {place} by its "
                         f"stretches, and {held} bytes of hashes")  # fmt: skip
        self._signed(file, ranges)

    def _signed(self, file: PlainFile, ranges: Sequence[Range]) -> None:
        signed: dict[int, list[Series]] = {}
        for batch_id in {part.batch_id for part in ranges}:
            found = self._store.ledger.series_of(batch_id, (ITEM_STORED, WITHDRAWN))
            gone = {one.withdraws for one in found}
            signed[batch_id] = [one for one in found if one.file_id == file.id
                                and one.id not in gone and one.stop > one.start]  # fmt: skip
            for series in signed[batch_id]:
                self._compare(file, series)
        if file.state == FileState.STORED.value:
            for part in ranges:
                self._cover(file, part, signed[part.batch_id])
        elif file.state == FileState.GONE.value and any(signed.values()):
            self._broken(file, "it is gone by its row, and its events were not withdrawn")

    def _cover(self, file: PlainFile, part: Range, signed: Sequence[Series]) -> None:
        at = part.start
        for one in sorted(signed, key=_start):
            if one.start <= at < one.stop:
                at = one.stop
        if at < part.stop:
            what = f"it is stored by its row, and nothing was signed about members {at} to "
            self._broken(file, f"{what}{part.stop} of batch {part.batch_id}", "event-missing")

    def _compare(self, file: PlainFile, series: Series) -> None:
        said = object_of(series.payload)
        row = {
            "identifier": file.identifier,
            "file": file.name,
            "size": file.size,
            "md5": file.md5.hex(),
            "sha1": file.sha1.hex(),
            "sha256": file.sha256.hex(),
        }
        for name, value in row.items():
            if said.get(name) != value:
                self._broken(file, f"its row says {name} {value!r:.100}, series {series.id} signed "
                             f"for {said.get(name)!r:.100}")  # fmt: skip

    def _broken(self, file: PlainFile, what: str, code: str = "item-differs") -> None:
        name = f"{file.identifier or 'no item'}/{file.name}"
        self._outcome.find(code, Severity.BROKEN, Part.ITEM, name, what, RESTORE)


def _start(series: Series) -> int:
    return series.start
