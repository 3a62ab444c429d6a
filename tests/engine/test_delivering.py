"""Receipts out: every event arrives, in order within its record, whatever an outlet does."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.handing_over import Exchange, FakeOutlet, whole
from support.passes import bare, numbered
from support.workplace import sample

from anchord.core.bundle import read_bundle
from anchord.engine import deliveries, delivering, outlet_turn
from anchord.engine.delivering import deliver, next_moment
from anchord.engine.outlet_turn import PARK_AFTER, STUBBORN_AFTER
from anchord.errors import (
    AnchordError,
    ConfigError,
    LedgerError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    StoreBusyError,
    TransientError,
)
from anchord.ports.outlet import PARKED, WAITING, Partly

DAY_S = 86_400
OUTCOMES = ["taken"] * 4 + ["refused", "away", "lost", "killed"]


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture
def world(tmp_path):
    opened = []

    def make(*outlets: Any, **numbers: Any) -> Exchange:
        opened.append(Exchange(tmp_path, *outlets, **numbers))
        return opened[-1]

    yield make
    for one in opened:
        one.parts.store.close()


def aside(go, name="fake"):
    return go.parts.store.outlets.counts().get((name, WAITING), 0)


def parked(go, name="fake"):
    return go.parts.store.outlets.counts().get((name, PARKED), 0)


def failing(error):
    return lambda _some: error


# ---------------------------------------------------------------------- the usual day


@pytest.mark.both_stores
def test_every_event_arrives_whole_once_and_in_the_order_of_the_ledger(world):
    outlet, one, many = FakeOutlet(at_once=7), FakeOutlet("one"), FakeOutlet("many", at_once=500)
    go = world(outlet, one, many)
    go.add([*bare(4), *numbered(4)])
    assert go().delivered.events == 3 * 8
    go.add(bare(3, "later"))
    go(60)
    go.anchor()
    assert outlet.rows == one.rows == many.rows == list(range(1, go.head + 1))
    go.all_arrived(outlet)
    for one in outlet.got:
        event = whole(one, go.parts.signer)
        assert (event["event_type"], one.facet) == (one.event_type, "anchored")
        assert one.record.digest.hex() == event["payload"]["canonical_sha256"]
        assert event.get("pith_number", one.number) == one.number
    assert {one.event_type for one in outlet.got} == {"timestamp_submitted", "timestamp_anchored"}
    calls, state = outlet.calls, go.parts.store.outlets.get("fake")
    assert (state.seq, state.delivered, state.failures) == (go.head, go.head, 0)
    assert next_moment(go.parts, go.clock.now()) is None
    go(60, times=3)
    assert outlet.calls == calls


@pytest.mark.parametrize("wants", ["event", "bundle"])
def test_documents_that_are_long_go_a_few_at_a_time(world, monkeypatch, wants):
    monkeypatch.setattr(deliveries, "TOGETHER_BYTES", 5_000)
    outlet = FakeOutlet(wants=wants, at_once=64)
    go = world(outlet)
    go.add(bare(20))
    go()
    assert outlet.rows == list(range(1, 21))
    assert outlet.calls > 2


def test_withdrawals_tell_what_they_are_about(world):
    outlet = FakeOutlet()
    go = world(outlet)
    go.add(bare(2))
    go()
    go.anchor()
    go.chain.reorg(6)
    go.parts.calendars[0].mine(go.chain)
    go(6 * 3_600)
    kinds = [(one.event_type, one.facet) for one in outlet.got]
    assert kinds[-2:] == [("facet_withdrawn", "anchored")] * 2
    whole(outlet.got[-1], go.parts.signer)
    go.all_arrived(outlet)


def test_bundles_wait_for_the_checkpoint_that_covers_them_and_are_those_of_now(world):
    outlet = FakeOutlet(wants="bundle", at_once=64)
    go = world(outlet, checkpoint_every_s=600)
    go.add([sample(1), sample(2)])
    go()
    first = len(outlet.got)
    go.add(bare(1, "more"))
    go(60)
    go.anchor(300)
    store = go.parts.store
    length, covered = store.log.sizes()
    assert max(outlet.rows) <= covered < length
    at = next_moment(go.parts, go.clock.now())
    assert at is None  # the checkpoint, which passes know of, comes first
    go(700)
    go.all_arrived(outlet)
    assert first == 2
    for one in outlet.got[-2:]:
        bundle = read_bundle(one.document)
        assert bundle.digest == one.record.digest
        ids = {row.event_id for row in store.ledger.of_record(one.record.id)}
        assert {f"sha256:{one.hex()}" for one in ids} == {
            event["event_id"] for event in json.loads(one.document)["events"]
        }
    document = json.loads(outlet.got[-1].document)
    proved = {e["event_id"] for part in document["inclusion"] for e in part["events"]}
    assert outlet.got[-1].event_id in proved


def test_an_outlet_takes_the_events_it_asks_for_and_passes_over_the_rest(world):
    outlet = FakeOutlet(events=["timestamp_anchored"])
    go = world(outlet)
    go.add(bare(3))
    go()
    assert outlet.got == []
    go.anchor()
    assert [one.event_type for one in outlet.got] == ["timestamp_anchored"] * 3
    assert go.parts.store.outlets.get("fake").seq == go.head


def test_a_new_outlet_begins_at_the_beginning_or_now(world):
    go = world()
    go.add(bare(3))
    go()
    old, new = FakeOutlet("old"), FakeOutlet("new", from_now=True)
    go.use(old, new)
    go(60)
    assert (old.rows, new.rows) == ([1, 2, 3], [])
    go.anchor()
    assert (old.rows, new.rows) == ([1, 2, 3, 4, 5, 6], [4, 5, 6])


def test_a_damaged_event_is_not_handed_over(world):
    outlet = FakeOutlet()
    go = world()
    go.add(bare(2))
    go()
    with go.parts.store._engine.execution_options(writes=True).begin() as connection:
        connection.exec_driver_sql("UPDATE series SET created_at = created_at + 1")
    go.use(outlet)
    with pytest.raises(LedgerError, match="nothing is handed over"):
        deliver(go.parts, go.clock.now())
    assert outlet.got == []


# ---------------------------------------------------------------------- outlets that fail


@pytest.mark.parametrize(
    "error",
    [TransientError("away"), ProtocolError("nonsense"), ConfigError("no secret"),
     NetworkError("no", refused=True), RateLimitedError("less")],
)  # fmt: skip
def test_an_outlet_that_fails_costs_nothing_but_time(world, error):
    outlet, other = FakeOutlet(), FakeOutlet("other")
    go = world(outlet, other)
    outlet.fails = failing(error)
    go.add(bare(4))
    report = go()
    assert report.delivered.problems == {"fake": str(error)}
    assert (report.signed, other.rows) == (4, [1, 2, 3, 4])
    go(10)
    assert outlet.calls == 1  # not before its time
    waits = []
    for _ in range(9):
        state = go.parts.store.outlets.get("fake")
        waits.append(state.next_attempt_at - go.clock.now())
        assert next_moment(go.parts, go.clock.now()) == state.next_attempt_at
        go.clock.moment = state.next_attempt_at
        go(0)
    assert waits[1:4] == [60, 120, 240]
    assert max(waits) <= 3_600
    assert (aside(go), parked(go), go.parts.store.outlets.get("fake").seq) == (0, 0, 0)
    outlet.fails = failing(None)
    go(3_600)
    go.all_arrived(outlet)
    assert outlet.rows == [1, 2, 3, 4]


def test_what_was_asked_for_is_respected(world):
    outlet = FakeOutlet()
    outlet.fails = failing(TransientError("later", retry_after=5_000))
    go = world(outlet)
    go.add(bare(1))
    go()
    assert go.parts.store.outlets.get("fake").next_attempt_at == go.clock.now() + 5_000


def test_an_outlet_that_refuses_everything_has_nothing_set_aside(world):
    outlet = FakeOutlet()
    outlet.refuses = lambda _one: True
    go = world(outlet)
    go.add(bare(9))
    assert "in a row" in go().delivered.problems["fake"]
    assert (outlet.calls, aside(go)) == (3, 0)
    outlet.refuses = lambda _one: False
    go(60)
    assert outlet.rows == list(range(1, 10))


def test_an_outlet_that_wants_no_more_is_left_alone_until_a_person_says_so(world):
    outlet = FakeOutlet()
    go = world(outlet)
    go.add(bare(3))
    outlet.closed = True
    assert go().delivered.problems == {"fake": "no more"}
    go(30 * DAY_S, times=2)
    assert (outlet.calls, next_moment(go.parts, go.clock.now())) == (1, None)
    outlet.closed = False
    go.parts.store.outlets.revive("fake", go.clock.now())
    assert next_moment(go.parts, go.clock.now()) == go.clock.now()
    go()
    assert outlet.rows == [1, 2, 3]


def test_a_lost_answer_makes_events_arrive_twice_and_none_be_left_out(world):
    outlet = FakeOutlet(at_once=3)
    go = world(outlet)
    go.add(bare(8))
    outlet.lost = failing(NetworkError("hung up"))
    go()
    assert go.parts.store.outlets.get("fake").seq == 0
    outlet.lost = failing(None)
    go(60)
    assert Counter(outlet.rows) == {**dict.fromkeys(range(1, 9), 1), 1: 2, 2: 2, 3: 2}
    go.all_arrived(outlet)


# ---------------------------------------------------------------------- one bad record


@pytest.mark.both_stores
def test_one_bad_record_holds_up_its_own_events_and_no_others(world):
    outlet = FakeOutlet()
    outlet.refuses = lambda one: one.record.id == 2
    go = world(outlet)
    go.add(bare(4))
    assert go().delivered == delivering.Delivered(events=3, set_aside=1)
    go.anchor()
    assert outlet.rows == [1, 3, 4, 5, 7, 8]
    assert aside(go) == 2  # the refused one, and the later one behind it
    outlet.refuses = lambda _one: False
    at = go.parts.store.outlets.next_moment("fake")
    assert next_moment(go.parts, go.clock.now()) == at
    go.clock.moment = at
    go(0)
    assert outlet.rows[-2:] == [2, 6]
    assert aside(go) == 0
    go.all_arrived(outlet)


def test_what_is_refused_too_often_is_parked_with_words_until_it_is_brought_back(world):
    outlet = FakeOutlet()
    outlet.refuses = lambda one: one.record.id == 1
    go = world(outlet)
    go.add(bare(3))
    go()
    table, began = go.parts.store.outlets, go.clock.now()
    while table.next_moment("fake") is not None:
        go.clock.moment = table.next_moment("fake")
        go(0)
    (row,) = table.rows("fake", PARKED, 9)
    assert (row.seq, row.attempts, row.last_error) == (1, PARK_AFTER, "not this one")
    assert DAY_S < go.clock.now() - began < 3 * DAY_S
    go.anchor(1_000)
    assert (aside(go), parked(go)) == (1, 1)  # the later event waits behind it
    assert next_moment(go.parts, go.clock.now()) is None
    outlet.refuses = lambda _one: False
    assert table.revive("fake", go.clock.now()) == 1
    go()
    go.all_arrived(outlet)
    assert (aside(go), parked(go)) == (0, 0)


def test_in_a_group_only_the_refused_ones_are_set_aside(world):
    outlet = FakeOutlet(at_once=50)
    outlet.refuses = lambda one: one.record.id in (3, 7, 8)
    go = world(outlet)
    go.add(bare(20))
    assert go().delivered == delivering.Delivered(events=17, set_aside=3)
    assert aside(go) == 3


@pytest.mark.parametrize(
    "error", [NetworkError("no answer"), ProtocolError("403 forbidden"), ConfigError("XX001")]
)
def test_an_event_at_which_an_outlet_always_fails_holds_it_up_for_minutes_not_for_ever(
    world, error
):
    """An outlet's failure does not tell whose fault it is: the event behind it does."""
    outlet = FakeOutlet(at_once=5)

    def fails(some):
        return error if any(one.record.id == 2 for one in some) else None

    outlet.fails = fails
    go = world(outlet)
    go.add(bare(6))
    began = go.clock.now()
    go()
    while aside(go) == 0:
        assert go.clock.now() - began < 3_600
        go.clock.moment = go.parts.store.outlets.get("fake").next_attempt_at
        go(0)
    assert go.parts.store.outlets.get("fake").failures == 0
    go.add(bare(4, "later"))
    go(600)
    assert set(outlet.rows) == set(range(1, go.head + 1)) - {2}
    outlet.fails = failing(None)
    go(3_600)
    go.all_arrived(outlet)


@pytest.mark.parametrize("count", [1, 6])
@pytest.mark.parametrize(
    "error", [NetworkError("no answer"), ConfigError("no secret"), ProtocolError("404")]
)
def test_an_outlet_that_is_away_for_weeks_has_nothing_parked(world, error, count):
    outlet = FakeOutlet()
    outlet.fails = failing(error)
    go = world(outlet)
    go.add(bare(count))
    go()
    for _ in range(21):
        deliver(go.parts, go.clock.advance(16 * 3_600))
    assert (aside(go), parked(go)) == (0, 0)
    assert go.parts.store.outlets.get("fake").failures > STUBBORN_AFTER
    outlet.fails = failing(None)
    go(3_600)
    assert outlet.rows == list(range(1, count + 1))


def test_what_was_set_aside_before_an_outlet_went_away_is_not_parked_for_that(world):
    outlet = FakeOutlet()
    outlet.refuses = lambda one: one.record.id == 1
    go = world(outlet)
    go.add(bare(2))
    go()
    outlet.fails = failing(NetworkError("no answer"))
    for _ in range(21):
        deliver(go.parts, go.clock.advance(16 * 3_600))
    assert (aside(go), parked(go)) == (1, 0)
    outlet.fails, outlet.refuses = failing(None), lambda _one: False
    go(4 * 3_600)
    assert sorted(outlet.rows) == [1, 2]


def test_what_was_asked_for_is_respected_by_whoever_guesses(world):
    """After many failures, too, when events are tried one after another."""
    outlet = FakeOutlet()
    outlet.fails = failing(TransientError("later", retry_after=5_000))
    go = world(outlet)
    go.add(bare(3))
    go()
    for _ in range(2 * STUBBORN_AFTER):
        at = go.parts.store.outlets.get("fake").next_attempt_at
        assert at >= go.clock.now() + 5_000
        deliver(go.parts, go.clock.advance(at - go.clock.now()))


def test_rows_that_an_outlet_passed_and_that_are_gone_are_told(world):
    """A ledger that was put back to an older state grows again, under the outlet's place in it."""
    outlet = FakeOutlet()
    go = world()
    go.add(bare(3))
    go()
    go.parts.store.outlets.begin("fake", "fake", 10, go.clock.now())
    go.use(outlet)
    with pytest.raises(LedgerError, match="older state"):
        deliver(go.parts, go.clock.now())
    assert outlet.got == []


def test_a_call_whose_time_is_over_goes_on_where_it_stopped(world):
    """Each takes two of what it is offered, and refuses one of those."""
    outlet = FakeOutlet(at_once=7)
    hand_over = outlet.hand_over
    outlet.refuses = lambda one: one.record.id == 2

    def some(deliveries):
        refused = hand_over(deliveries[:2])
        return Partly(refused, deliveries[2].seq) if len(deliveries) > 2 else refused

    outlet.hand_over = some  # type: ignore[method-assign]
    go = world(outlet)
    go.add(bare(9))
    go()
    assert outlet.rows == [1, 3, 4, 5, 6, 7, 8, 9]
    outlet.refuses = lambda _one: False
    go(3_600)
    go.all_arrived(outlet)


# ---------------------------------------------------------------------- crashes, and others


def test_whoever_is_second_writes_nothing_down(world):
    """A worker that slept over its lease: what it handed over arrived twice, no more."""
    slow, quick = FakeOutlet(), FakeOutlet()
    go = world()
    go.add(bare(5))
    go()

    def meanwhile(_some):
        slow.lost = failing(None)
        deliver(go.with_outlets(go.parts, quick), go.clock.now())

    slow.lost = meanwhile
    go.use(slow)
    with pytest.raises(StoreBusyError, match="another worker"):
        deliver(go.parts, go.clock.now())
    assert quick.rows == [1, 2, 3, 4, 5]
    assert go.parts.store.outlets.get("fake").delivered == 5


def test_a_turn_ends_when_its_time_is_over_and_the_next_goes_on(world, monkeypatch):
    outlet = FakeOutlet()
    go = world()
    go.add(bare(50))
    go()
    go.use(outlet)
    monkeypatch.setattr(outlet_turn, "TURN_S", -1.0)
    assert deliver(go.parts, go.clock.now()).events == 0
    assert next_moment(go.parts, go.clock.now()) <= go.clock.now()
    monkeypatch.undo()
    assert deliver(go.parts, go.clock.now()).events == 50


def test_what_arrived_before_a_stop_is_written_down(world):
    """The service stops between two events by an exception out of the progress."""
    outlet = FakeOutlet()
    go = world()
    go.add(bare(9))
    go()

    def stop(_stage, done, _total):
        if done == 4:
            raise KilledError

    go.parts = msgspec.structs.replace(go.parts, on_progress=stop)
    go.use(outlet)
    with pytest.raises(KilledError):
        deliver(go.parts, go.clock.now())
    assert (outlet.rows, go.parts.store.outlets.get("fake").seq) == ([1, 2, 3, 4], 4)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=40), st.sampled_from([1, 3]))
def test_whatever_happens_every_event_arrives_and_records_keep_their_order(
    tmp_path_factory, script, at_once
):
    go = Exchange(_signed_store(tmp_path_factory))
    outlet = _scripted(FakeOutlet(at_once=at_once), script)
    go.use(outlet)
    try:
        assert go.head == 10
        for _ in range(15):
            _hand_over(go, 1_800)
            go.in_order(outlet)
        outlet.fails = outlet.lost = failing(None)
        outlet.refuses = lambda _one: False
        go.parts.store.outlets.revive("fake", go.clock.now())
        _hand_over(go, 2 * DAY_S)
        go.all_arrived(outlet)
        assert (aside(go), parked(go)) == (0, 0)
        assert go.parts.store.outlets.get("fake").seq == go.head
    finally:
        go.parts.store.close()


def _signed_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of a store of five records and two events each."""
    first, folder = _FIRST.get("folder"), tmp_path_factory.mktemp("any")
    if first is None:
        first = _FIRST["folder"] = tmp_path_factory.mktemp("first")
        go = Exchange(first)
        go.add(bare(5))
        go()
        go.anchor()
        go.parts.store.close()
    shutil.copy(first / "anchord.db", folder / "anchord.db")
    return folder


_FIRST: dict[str, Path] = {}


def _hand_over(go: Exchange, seconds: int) -> None:
    with contextlib.suppress(KilledError):
        deliver(go.parts, go.clock.advance(seconds))


def _scripted(outlet: FakeOutlet, script: list[str]) -> FakeOutlet:
    """Let calls go as the script says, over and over; refusals stay with their records."""
    at = [0]
    refused: set[int] = set()

    def fails(some: Any) -> AnchordError | None:
        at[0] += 1
        outcome = script[at[0] % len(script)]
        refused.clear()
        if outcome == "refused":
            refused.add(some[0].record.id)
        if outcome == "killed" and at[0] % 2:
            raise KilledError
        return NetworkError("away") if outcome == "away" else None

    def lost(_some: Any) -> AnchordError | None:
        outcome = script[at[0] % len(script)]
        if outcome == "killed":
            raise KilledError
        return NetworkError("hung up") if outcome == "lost" else None

    outlet.fails, outlet.lost = fails, lost
    outlet.refuses = lambda one: one.record.id in refused
    return outlet


def test_the_laws_of_this_file_can_fail(tmp_path: Path) -> None:
    go = Exchange(tmp_path)
    go.add(bare(2))
    go()
    outlet = FakeOutlet()
    go.use(outlet)
    deliver(go.parts, go.clock.now())
    outlet.got.reverse()
    go.anchor()
    outlet.got[0], outlet.got[-1] = outlet.got[-1], outlet.got[0]
    with pytest.raises(AssertionError):
        go.in_order(outlet)
    go.parts.store.close()
