"""What monitoring is told of a store is what is in it, on either database."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.monitored import (
    AUTHORITY,
    REPORT,
    URL_A,
    URL_B,
    Samples,
    configured,
    filled,
    samples,
    value,
)
from support.stored_rows import NOW
from support.stores import made

from anchord.adapters.store import schema
from anchord.adapters.store.measures import Changes, measure
from anchord.adapters.store.sql import SqlStore
from anchord.app.config import Loaded
from anchord.app.metrics.exposition import Metrics, text_now
from anchord.app.metrics.families import FAMILIES
from anchord.app.metrics.tally import Tally
from anchord.errors import StoreBusyError

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
def place(kept_in: str, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Made once; tests only read it."""
    return filled(tmp_path_factory.mktemp(kept_in))


@pytest.fixture(scope="module")
def shown(place: Loaded) -> Samples:
    return samples(text_now(place))


def test_records_are_counted_where_they_stand(shown: Samples) -> None:
    states = {"not_anchored": 4, "sealed": 0, "submitted": 2, "attested": 0, "anchored": 3,
              "parked": 5}  # fmt: skip
    for state, count in states.items():
        assert value(shown, "records", facet="anchored", state=state) == count
    assert value(shown, "backlog_records", facet="anchored") == 6
    assert value(shown, "records", facet="stored", state="stored") == 1
    assert value(shown, "records", facet="stored", state="not_stored") == 13
    assert value(shown, "backlog_records", facet="stored") == 13
    for state, count in {"submitted": 1, "anchored": 1, "parked": 1, "sealed": 0}.items():
        assert value(shown, "batches", state=state) == count


def test_the_oldest_that_waits_is_dated(shown: Samples) -> None:
    assert value(shown, "oldest_waiting_timestamp_seconds", facet="anchored") == NOW
    assert value(shown, "oldest_waiting_timestamp_seconds", facet="stored") == NOW
    assert value(shown, "next_due_timestamp_seconds") == NOW + 4


def test_the_ledger_and_its_checkpoint_are_dated(shown: Samples) -> None:
    assert value(shown, "ledger_events") == 3
    assert value(shown, "ledger_due_events") == 2
    assert value(shown, "ledger_last_event_timestamp_seconds") == NOW + 5
    assert value(shown, "checkpoint_events") == 2
    assert value(shown, "checkpoint_timestamp_seconds") == NOW + 6


def test_services_are_those_that_are_configured(shown: Samples) -> None:
    assert value(shown, "calendar_failures", calendar=URL_A) == 3
    assert value(shown, "calendar_last_success_timestamp_seconds", calendar=URL_A) == NOW + 9
    assert value(shown, "calendar_last_error_timestamp_seconds", calendar=URL_A) == NOW + 8
    assert value(shown, "calendar_failures", calendar=URL_B) == 0
    assert value(shown, "authority_tokens", authority=AUTHORITY) == 1
    assert value(shown, "authority_waiting_batches", authority=AUTHORITY) == 1
    ok_at = value(shown, "authority_last_success_timestamp_seconds", authority=AUTHORITY)
    assert ok_at == NOW + 3
    assert value(shown, "calendar_failures", calendar="https://gone.example.org") is None


def test_the_archive_is_told_by_ways_states_and_roles(shown: Samples) -> None:
    assert value(shown, "captures", role="source", state="stored") == 1
    assert value(shown, "captures", role="source", state="waiting") == 1
    assert value(shown, "captures", role="extra", state="waiting") == 1
    assert value(shown, "bundles", state="parked") == 2
    assert value(shown, "unpacked_records") == 8
    assert value(shown, "unclaimed_records") == 7
    assert value(shown, "archive_lane_stopped", lane="spn") == 1
    assert value(shown, "archive_lane_refusals", lane="spn") == 3
    assert value(shown, "archive_lane_paused_until_timestamp_seconds", lane="index") == 1 << 40
    assert value(shown, "archive_lane_paused_until_timestamp_seconds", lane="spn") is None
    for state in ("open", "paused", "stopped"):
        assert value(shown, "archive_hosts", state=state) == 1
    assert value(shown, "archive_alerts") == 2


def test_what_was_set_aside_is_counted_by_kind(shown: Samples) -> None:
    for what, count in {"batch": 1, "capture": 0, "file": 1, "delivery": 1}.items():
        assert value(shown, "parked", what=what) == count


def test_what_comes_and_goes_is_told_by_its_name(shown: Samples) -> None:
    assert value(shown, "source_taken_records_total", source="registry") == 7
    assert value(shown, "source_refused_records_total", source="registry") == 1
    assert value(shown, "source_failures", source="registry") == 2
    assert value(shown, "source_failures", source="gone") is None
    assert value(shown, "source_last_success_timestamp_seconds", source="registry") == NOW + 1
    assert value(shown, "source_next_look_timestamp_seconds", source="registry") == NOW + 90
    assert value(shown, "outlet_lag_events", outlet="folder") == 2
    assert value(shown, "outlet_delivered_events_total", outlet="folder") == 1
    assert value(shown, "outlet_failures", outlet="folder") == 0
    assert value(shown, "outlet_failures", outlet="gone") is None
    assert value(shown, "outlet_last_success_timestamp_seconds", outlet="folder") == NOW + 2
    assert value(shown, "outlet_aside_events", outlet="folder", state="waiting") == 1
    assert value(shown, "outlet_aside_events", outlet="folder", state="parked") == 1


def test_every_metric_of_the_catalogue_is_shown_where_there_is_something_to_show(
    place: Loaded, kept_in: str
) -> None:
    tally = Tally()
    tally.made("pass", REPORT, 0.5)
    tally.looked()
    metrics = Metrics(lambda: place, tally)
    try:
        text = metrics.exposition(30).decode("utf-8")
    finally:
        metrics.close()
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE anchord_")}
    absent = {"anchord_workers"} if kept_in == "sqlite" else set()
    assert {family.name for family in FAMILIES} - shown == absent


def test_an_empty_store_has_nothing_to_date(tmp_path: Path) -> None:
    shown = samples(text_now(configured(tmp_path)))
    dated = {name for name, _ in shown if name.endswith("_timestamp_seconds")}
    assert dated == {"anchord_store_reading_timestamp_seconds"}
    assert value(shown, "store_up") == 1
    assert value(shown, "records", facet="anchored", state="not_anchored") == 0


def test_whatever_is_changed_is_seen_by_the_next_look(tmp_path: Path) -> None:
    """Not only new records and events: any committed change of any row."""
    filled(tmp_path)
    changes, store = Changes(made(tmp_path)), SqlStore(made(tmp_path))
    tables = (schema.calendars, schema.lanes, schema.outlets)
    values = ({"failures": 77}, {"strikes": 77}, {"seq": 3})
    try:
        for table, changed in zip(tables, values, strict=True):
            before = changes.mark()
            with store._engine.begin() as connection:
                connection.execute(sa.update(table).values(changed))
            assert changes.mark() != before, table.name
    finally:
        store.close()
        changes.close()


def test_a_question_that_takes_long_is_ended_in_the_middle(tmp_path: Path) -> None:
    url = made(tmp_path)
    store = SqlStore(url)
    with store._engine.begin() as connection:
        rows = [
            {"url": f"{n}", "batch_id": n, "attempts": 0, "last_error": "x" * 200}
            for n in range(20_000)
        ]
        connection.execute(sa.insert(schema.tokens), rows)
    store.close()
    began = time.monotonic()
    with pytest.raises(StoreBusyError):
        measure(url, [], 0.01)
    assert time.monotonic() - began < 5


def test_reading_holds_up_no_writer_and_sees_one_moment(tmp_path: Path) -> None:
    filled(tmp_path)
    url, done = made(tmp_path), threading.Event()
    store = SqlStore(url)

    def read() -> None:
        while not done.is_set():
            found = measure(url, [], 30)
            # Moved in one transaction, so no moment has them in both places or in none.
            moved.add(found.batches.get("parked", 0) + found.batches.get("anchored", 0))

    moved: set[int] = set()
    thread = threading.Thread(target=read)
    thread.start()
    try:
        for turn in range(20):
            states = ("parked", "anchored") if turn % 2 else ("anchored", "parked")
            with store._engine.begin() as connection:
                for batch_id, state in zip((1, 3), states, strict=True):
                    where = schema.batches.c.id == batch_id
                    connection.execute(sa.update(schema.batches).where(where).values(state=state))
    finally:
        done.set()
        thread.join()
        store.close()
    assert moved == {2}
