"""The service's parts by themselves: guard, clock, watch, agenda, metronome, lock."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time

import msgspec
import pytest
import sqlalchemy as sa
from support.check_ledger import check_ledger
from support.parties import FakeChain, make_parts
from support.passes import Passes, bare

from anchord.adapters.store.serving import owner_of, serving
from anchord.app.service.agenda import Agenda
from anchord.app.service.clock import TOLERANCE_S, ClockWatch
from anchord.app.service.guard import Guard, StopNow
from anchord.app.service.logs import logging_as, tell
from anchord.app.service.metronome import Metronome
from anchord.engine.run import run_pass
from anchord.errors import (
    ConfigError,
    FatalError,
    LedgerError,
    NetworkError,
    ProtocolError,
    StoreBusyError,
)


def raising(error: BaseException):
    def work() -> None:
        raise error

    return work


# ---------------------------------------------------------------------- guard


@pytest.mark.parametrize("error", [NetworkError("x"), StoreBusyError("x"), ProtocolError("x")])
def test_what_passes_by_itself_is_tried_again_at_the_next_beat(error):
    guard, done = Guard(lambda: None), []
    guard("pass", raising(error))
    guard("pass", lambda: done.append(1))
    assert done == [1]
    assert guard.paused is None


def test_what_wants_a_person_pauses_work_until_it_is_resumed(caplog):
    guard, done = Guard(lambda: None), []
    guard("pass", raising(ConfigError("set the key right")))
    guard("pass", lambda: done.append(1))
    assert (done, guard.paused) == ([], "set the key right")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    guard.resume()
    guard("pass", lambda: done.append(1))
    assert (done, guard.paused) == ([1], None)


@pytest.mark.parametrize("error", [FatalError("x"), LedgerError("x"), ZeroDivisionError("x")])
def test_what_is_unsafe_or_unforeseen_ends_the_service(error):
    ended, done = [], []
    guard = Guard(lambda: ended.append(1))
    guard("pass", raising(error))
    guard("pass", lambda: done.append(1))
    assert (ended, done, guard.ended_by) == ([1], [], error)


def test_other_work_that_goes_well_does_not_end_a_pause():
    guard = Guard(lambda: None)
    guard("pass", raising(ConfigError("set the key right")))
    guard._paused_until = 0
    guard("storing", lambda: None)
    assert guard.paused == "set the key right"
    guard("pass", lambda: None)
    assert guard.paused is None


def test_to_stop_is_no_error():
    guard = Guard(lambda: None)
    guard("pass", raising(StopNow()))
    assert (guard.paused, guard.ended_by) == (None, None)


def test_the_same_words_are_logged_once(caplog):
    caplog.set_level(logging.INFO)
    guard = Guard(lambda: None)
    for _ in range(5):
        guard("pass", raising(NetworkError("nobody is there")))
    assert len(caplog.records) == 1
    guard("pass", lambda: None)
    guard("pass", raising(NetworkError("nobody is there")))
    assert len(caplog.records) == 2


# ---------------------------------------------------------------------- clock


class Wall:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_clock_that_goes_back_stops_work_until_it_is_right_again():
    wall = Wall(1_000_000)
    clock = ClockWatch(wall)
    clock.check(None)
    wall.now -= TOLERANCE_S
    clock.check(None)
    wall.now -= 1
    with pytest.raises(ConfigError, match="the clock went back"):
        clock.check(None)
    wall.now += 1
    clock.check(None)


def test_a_clock_behind_the_ledger_at_the_start_stops_work_until_accepted():
    wall = Wall(1_000_000)
    clock = ClockWatch(wall)
    with pytest.raises(ConfigError):
        clock.check(2_000_000)
    assert clock.accept()
    clock.check(2_000_000)
    # The next event has the right time, and counts again.
    clock.check(1_000_000)
    wall.now -= 1_000
    with pytest.raises(ConfigError):
        clock.check(1_000_000)


def test_accepting_a_clock_that_is_right_changes_nothing():
    clock = ClockWatch(Wall(1_000_000))
    clock.check(999_999)
    assert not clock.accept()


@pytest.mark.parametrize("off", [TOLERANCE_S + 1, -TOLERANCE_S - 1])
def test_a_clock_that_is_not_the_stores_stops_work_until_one_is_set_right(off):
    wall = Wall(1_000_000)
    clock = ClockWatch(wall)
    with pytest.raises(ConfigError, match="database server"):
        clock.check(None, 1_000_000 + off)
    clock.accept()
    with pytest.raises(ConfigError, match="database server"):
        clock.check(None, 1_000_000 + off)
    clock.check(None, 1_000_000 + (TOLERANCE_S if off > 0 else -TOLERANCE_S))


def test_only_a_server_has_a_clock_of_its_own(tmp_path):
    from support.postgres import Cluster

    from anchord.adapters.store.database import create
    from anchord.adapters.store.sql import SqlStore

    with Cluster() as cluster:
        for url, has in ((f"sqlite:///{tmp_path / 'anchord.db'}", False), (cluster.empty(), True)):
            create(url)
            store = SqlStore(url)
            found = store.server_time()
            store.close()
            assert (found is not None) is has
            assert not has or abs(found - time.time()) < 60


# ---------------------------------------------------------------------- lock


def test_the_owner_of_a_store_is_told_while_it_lives(tmp_path):
    store = tmp_path / "anchord.db"
    assert owner_of(store) is None
    with serving(store, 1_700_000_000):
        assert "runs since 2023-11-14T22:13:20Z" in str(owner_of(store))
        with pytest.raises(StoreBusyError, match=r"pid .* on host .* runs since"):
            serving(store, 1_700_000_001).__enter__()
    assert owner_of(store) is None
    with serving(store, 1_700_000_002):
        pass


def test_a_folder_that_takes_no_lock_is_told(tmp_path):
    with pytest.raises(ConfigError, match="check the folder"):
        serving(tmp_path / "absent" / "anchord.db", 0).__enter__()


# ---------------------------------------------------------------------- watch and agenda


class Place:
    """As much of a session as an agenda asks."""

    def __init__(self, parts) -> None:
        self.parts, self.archiving, self.app = parts, None, self
        self.store = parts.store
        self.mark = parts.store.watch.mark


def test_any_commit_is_noticed_and_nothing_else(tmp_path):
    parts = make_parts(tmp_path, headers=[FakeChain()])
    mark = parts.store.watch.mark()
    parts.store.records.waiting()
    assert parts.store.watch.mark() == mark
    parts.store.add(bare(1), 0)
    assert parts.store.watch.mark() != mark
    parts.store.close()


def test_a_look_when_nothing_is_due_asks_the_store_for_nothing(tmp_path):
    parts = make_parts(tmp_path, headers=[FakeChain()])
    agenda = Agenda(Place(parts))
    agenda.passed(0, run_pass(parts, 0))
    statements = []
    sa.event.listen(
        parts.store._engine, "before_cursor_execute", lambda *said: statements.append(said[2])
    )
    assert not any(agenda.pass_due(now) for now in range(1_000))
    assert statements == []
    parts.store.close()


def test_a_pass_is_due_for_new_records_and_for_moments_that_come_and_not_else(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    go = Passes(parts, chain)
    agenda = Agenda(Place(parts))

    def passed() -> None:
        now = go.clock.now()
        for _ in range(4):  # one pass sets off the next, until nothing is done
            if agenda.pass_due(now):
                agenda.passed(now, run_pass(parts, now))

    assert agenda.pass_due(go.clock.now())
    passed()
    assert not agenda.pass_due(go.clock.advance(1_000))
    parts.store.add(bare(3), 0)
    assert agenda.pass_due(go.clock.now())
    passed()
    assert not agenda.pass_due(go.clock.now())
    moment = parts.store.counts.next_moment()
    assert not agenda.pass_due(moment - 1)
    assert agenda.pass_due(moment)
    parts.store.close()


@pytest.mark.parametrize("at", [1, 2])
def test_a_pass_that_is_stopped_between_two_items_goes_on_later(tmp_path, at):
    chain = FakeChain()
    calls = []

    def stop(_stage: str, _done: int, _total: int) -> None:
        calls.append(1)
        if len(calls) == at:
            raise StopNow

    parts = make_parts(tmp_path, headers=[chain])
    go = Passes(parts, chain)
    parts.store.add(bare(3_000), 0)
    with pytest.raises(StopNow):
        run_pass(msgspec.structs.replace(parts, on_progress=stop), go.clock.now())
    run_pass(parts, go.clock.advance(60))
    parts.calendars[0].mine(chain)
    chain.grow(5)
    run_pass(parts, go.clock.advance(60))
    assert parts.store.counts.events() == 6_000
    check_ledger(parts.store, chain, records=3_000, step=100)
    parts.store.close()


# ---------------------------------------------------------------------- metronome, log


def test_beats_that_were_missed_become_one_and_never_overlap():
    metronome, began, free = Metronome(), [], threading.Event()
    came = threading.Event()

    def work() -> None:
        began.append(time.monotonic())
        came.set()
        free.wait(5)

    metronome.every("work", work, 0.05)
    metronome.start()
    assert came.wait(5)
    time.sleep(0.4)
    assert len(began) == 1
    metronome.halt()
    free.set()
    metronome.stop()
    assert len(began) <= 2


def test_an_interval_is_counted_anew_after_the_clock_was_set(monkeypatch):
    metronome, count = Metronome(), []
    metronome.every("work", lambda: count.append(1), 0.1)
    metronome.start()
    job = metronome._scheduler.get_job("work")
    job.modify(next_run_time=job.next_run_time.replace(year=2090))
    time.sleep(0.3)
    before = len(count)
    time.sleep(0.3)
    assert len(count) == before
    metronome.retime()
    end = time.monotonic() + 5
    while len(count) < before + 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    metronome.stop()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_of_the_log_stays_one_line(form, capsys):
    with logging_as(form):
        tell(logging.ERROR, "alert", "a\nb\x1b[2Jc", count=3, none=0)
    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
    if form == "json":
        value = json.loads(line)
        assert (value["event"], value["level"], value["count"]) == ("alert", "error", 3)
        assert "none" not in value
    else:
        assert "anchord: ALERT a b" in line


def test_the_journal_has_the_time_already(capsys, monkeypatch):
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    with logging_as("text"):
        tell(logging.INFO, "note", "well")
    assert capsys.readouterr().err == "anchord: well\n"


def test_a_reader_who_is_cut_off_at_the_stop_is_no_fault() -> None:
    from anchord.app.web.application import Guarded

    async def cut_off(*_: object) -> None:
        raise asyncio.CancelledError

    async def nothing(*_: object) -> dict[str, str]:
        return {"type": "http.disconnect"}

    asyncio.run(Guarded(cut_off)({"type": "http", "headers": []}, nothing, nothing))
