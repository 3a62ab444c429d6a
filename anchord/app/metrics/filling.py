"""From a reading of the store to the sheet of metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from anchord import __version__
from anchord.adapters.store.schema import REVISION
from anchord.app.cli import storage
from anchord.core.model import BatchState
from anchord.core.pacing import used_on
from anchord.core.storage import CaptureState, FileState, StoredWhen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anchord.adapters.store.measures import Measured
    from anchord.app.config import Config
    from anchord.app.metrics.exposing import Sheet
    from anchord.app.metrics.reading import Reading
    from anchord.core.storage import Lane

_ON_THEIR_WAY = (BatchState.SEALED, BatchState.SUBMITTED, BatchState.ATTESTED)
_LANES = ("spn", "status", "index", "replay", "items", "metadata")
"""The ways to the archive that there are whatever is captured; hosts are only counted."""
_MOST_NAMES = 100
"""Of sources and of outlets; more of them are left out."""


def fill(sheet: Sheet, config: Config, reading: Reading, now: int) -> None:
    """Put everything that was read on the sheet.

    Args:
        sheet: takes it.
        config: tells who is configured and what earns the word "stored".
        reading: what was read.
        now: Unix seconds.
    """
    sheet.put("build_info", 1, version=__version__, schema=REVISION)
    sheet.put("store_up", reading.measured is not None and reading.error is None)
    sheet.put("store_reading_timestamp_seconds", reading.known_at)
    sheet.put("store_reading_seconds", reading.took_s)
    if reading.tip is not None:
        sheet.put("header_tip_height", reading.tip.height)
        sheet.put("header_tip_timestamp_seconds", reading.tip.time)
    if reading.size is not None:
        for file, size in zip(("database", "wal"), reading.size, strict=True):
            sheet.put("store_size_bytes", size, file=file)
    for state, count in (reading.workers or {}).items():
        sheet.put("workers", count, state=state)
    if reading.measured is not None:
        _records(sheet, config, reading.measured)
        _ledger(sheet, reading.measured)
        _calendars(sheet, config, reading.measured)
        _archive(sheet, reading.measured)
        _lanes(sheet, reading.measured.lanes, now)
        _sources(sheet, config, reading.measured)
        _outlets(sheet, config, reading.measured)


def _records(sheet: Sheet, config: Config, found: Measured) -> None:
    states = {"not_anchored": found.waiting} | {
        state.value: found.records.get(state.value, 0) for state in BatchState
    }
    for state, count in states.items():
        sheet.put("records", count, facet="anchored", state=state)
    for one in BatchState:
        sheet.put("batches", found.batches.get(one.value, 0), state=one.value)
    when = config.archive.stored_when
    stored = storage.records_stored(when, found.stored)["stored"]
    missing = max(sum(states.values()) - stored, 0)
    sheet.put("records", stored, facet="stored", state="stored")
    sheet.put("records", missing, facet="stored", state="not_stored")
    going = found.waiting + sum(states[state.value] for state in _ON_THEIR_WAY)
    sheet.put("backlog_records", going, facet="anchored")
    sheet.put("backlog_records", missing, facet="stored")
    oldest = earliest(found.waiting_since, found.unfinished_since)
    sheet.put("oldest_waiting_timestamp_seconds", oldest, facet="anchored")
    sheet.put("oldest_waiting_timestamp_seconds", unstored_since(config, found), facet="stored")
    sheet.put("next_due_timestamp_seconds", found.next_moment)


def unstored_since(config: Config, found: Measured) -> int | None:
    """Return a moment before which nothing began that still waits to be stored.

    Where either receipt will do, a record is done with the item, which takes every record.
    """
    archive = config.archive
    captures = found.captures_since if archive.captures.enabled else None
    items_on = archive.items.enabled and bool(archive.items.prefix)
    items = found.items_since if items_on else None
    match archive.stored_when:
        case StoredWhen.CAPTURE:
            return captures
        case StoredWhen.ITEM:
            return items
        case StoredWhen.BOTH:
            return earliest(captures, items)
        case _:
            return items if items_on else captures


def earliest(*moments: int | None) -> int | None:
    """Return the earliest of the moments that there are."""
    return min((moment for moment in moments if moment is not None), default=None)


def _ledger(sheet: Sheet, found: Measured) -> None:
    sheet.put("ledger_events", found.events)
    sheet.put("ledger_due_events", found.events_due)
    sheet.put("ledger_last_event_timestamp_seconds", found.last_event_at)
    sheet.put("checkpoint_events", found.covered)
    sheet.put("checkpoint_timestamp_seconds", found.checkpoint_at)


def _calendars(sheet: Sheet, config: Config, found: Measured) -> None:
    known = {one.url: one for one in found.calendars}
    for url in (one.url for one in config.anchoring.calendars):
        health = known.get(url)
        sheet.put("calendar_failures", 0 if health is None else health.failures, calendar=url)
        if health is not None:
            ok_at, error_at = health.last_ok_at, health.last_error_at
            sheet.put("calendar_last_success_timestamp_seconds", ok_at, calendar=url)
            sheet.put("calendar_last_error_timestamp_seconds", error_at, calendar=url)
    tokens = {one.url: one for one in found.authorities}
    for url in (one.url for one in config.anchoring.authorities):
        authority = tokens.get(url)
        kept, waits = (authority.kept, authority.pending) if authority else (0, 0)
        sheet.put("authority_tokens", kept, authority=url)
        sheet.put("authority_waiting_batches", waits, authority=url)
        ok_at = authority.last_ok_at if authority else None
        sheet.put("authority_last_success_timestamp_seconds", ok_at, authority=url)


def _archive(sheet: Sheet, found: Measured) -> None:
    stored = found.stored
    for state in CaptureState:
        sheet.put("captures", stored.captures.get(state, 0), role="source", state=state.value)
        sheet.put("captures", stored.extras.get(state, 0), role="extra", state=state.value)
    for one in FileState:
        sheet.put("bundles", stored.files.get(one, 0), state=one.value)
    sheet.put("unclaimed_records", stored.unclaimed)
    sheet.put("unpacked_records", stored.unpacked)
    parked = CaptureState.PARKED
    captures = stored.captures.get(parked, 0) + stored.extras.get(parked, 0)
    deliveries = sum(outlet.aside.get("parked", 0) for outlet in found.outlets)
    sheet.put("parked", found.batches.get(BatchState.PARKED.value, 0), what="batch")
    sheet.put("parked", captures, what="capture")
    sheet.put("parked", found.parked_files, what="file")
    sheet.put("parked", deliveries, what="delivery")


def _lanes(sheet: Sheet, found: Iterable[Lane], now: int) -> None:
    lanes = list(found)
    hosts = Counter(dict.fromkeys(("open", "paused", "stopped"), 0))
    for lane in lanes:
        waits = lane.until is not None and lane.until > now
        if lane.name.startswith("host:"):
            hosts["stopped" if lane.stopped else "paused" if waits else "open"] += 1
        elif lane.name in _LANES:
            name = lane.name
            sheet.put("archive_lane_stopped", lane.stopped, lane=name)
            until = lane.until if waits else None
            sheet.put("archive_lane_paused_until_timestamp_seconds", until, lane=name)
            sheet.put("archive_lane_calls_today", used_on(lane, now), lane=name)
            sheet.put("archive_lane_refusals", lane.strikes, lane=name)
    for state, count in hosts.items():
        sheet.put("archive_hosts", count, state=state)
    sheet.put("archive_alerts", len(storage.alerts(lanes)))


def _sources(sheet: Sheet, config: Config, found: Measured) -> None:
    known = {source.name: source for source in found.sources}
    for name in [one.name for one in config.sources if one.name in known][:_MOST_NAMES]:
        source = known[name]
        sheet.put("source_failures", source.failures, source=name)
        sheet.put("source_last_success_timestamp_seconds", source.last_ok_at, source=name)
        sheet.put("source_next_look_timestamp_seconds", source.next_at, source=name)
        sheet.put("source_taken_records_total", source.taken, source=name)
        sheet.put("source_refused_records_total", source.refused, source=name)


def _outlets(sheet: Sheet, config: Config, found: Measured) -> None:
    known = {outlet.name: outlet for outlet in found.outlets}
    for name in [one.name for one in config.outlets if one.name in known][:_MOST_NAMES]:
        outlet = known[name]
        sheet.put("outlet_lag_events", max(found.events - outlet.seq, 0), outlet=name)
        sheet.put("outlet_failures", outlet.failures, outlet=name)
        sheet.put("outlet_last_success_timestamp_seconds", outlet.last_ok_at, outlet=name)
        sheet.put("outlet_delivered_events_total", outlet.delivered, outlet=name)
        for state in ("waiting", "parked"):
            count = outlet.aside.get(state, 0)
            sheet.put("outlet_aside_events", count, outlet=name, state=state)
