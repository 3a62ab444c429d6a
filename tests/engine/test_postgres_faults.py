"""A PostgreSQL store whose server fails at every moment: nothing is lost, doubled, false or stuck.

Faults are real ones: sessions are ended by the server, the server is killed and started again, and
a commit whose answer never came did happen.
"""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from support.check_ledger import check_all_anchored, check_ledger, live_anchored
from support.parties import (
    URI_A,
    URI_B,
    URL_B,
    FakeCalendar,
    FakeChain,
    FakeClock,
    make_parts,
    mine_together,
)
from support.passes import bare, numbered
from support.postgres import Cluster
from support.stores import POSTGRES, keep_in, made, server

from anchord.adapters.store import postgres
from anchord.adapters.store.database import create
from anchord.adapters.store.sql import SqlStore
from anchord.engine.run import run_pass
from anchord.errors import DiskError, FatalError, StoreBusyError

RECORDS, MORE = 3, 2


@pytest.fixture(autouse=True)
def on_postgres() -> None:
    keep_in(POSTGRES)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return made(tmp_path)


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], SqlStore]]:
    """Open the store as often as a test wants."""
    stores: list[SqlStore] = []

    def make() -> SqlStore:
        stores.append(SqlStore(url, [URI_A, URI_B]))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


class Life:
    """Records from first to last, over a store that may fail anywhere; failures are tried again."""

    def __init__(self, store: SqlStore, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.chain, self.clock = FakeChain(height=10), FakeClock()
        self.calendars = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))]
        self.busy = 0

    def again(self, act: Callable[[], object]) -> None:
        """Do it until it is done; judge after each failure."""
        for _ in range(200):
            try:
                act()
            except StoreBusyError:
                self.busy += 1
                self.clock.advance(1)
                continue
            return
        raise AssertionError("the store never came back")

    def go_on(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.again(lambda: run_pass(self.parts(), self.clock.now()))
        self.again(lambda: check_ledger(self.store))

    def parts(self) -> Any:
        return make_parts(
            self.folder, store=self.store, calendars=self.calendars, headers=[self.chain]
        )

    def live(self) -> None:
        self.again(lambda: self.store.add(numbered(RECORDS), self.clock.now()))
        self.go_on(0)
        self.go_on(61)
        mine_together(self.chain, *self.calendars)
        self.chain.grow(5)
        self.go_on(61)
        self.chain.reorg(7)
        self.go_on(6 * 3600)
        mine_together(self.chain, *self.calendars)
        self.chain.grow(5)
        self.go_on(900)
        self.again(lambda: self.store.add(bare(MORE, "more"), self.clock.now()))
        self.go_on(900)
        mine_together(self.chain, *self.calendars)
        self.chain.grow(5)
        self.go_on(900)
        self.go_on(900)

    def judge(self) -> None:
        check_ledger(self.store, self.chain, records=RECORDS + MORE)
        check_all_anchored(self.store)
        assert set(live_anchored(self.store).values()) == {1}
        assert self.store.ledger.open_series() == []
        asked = Counter(call[1] for call in self.calendars[0].log if call[0] == "submit")
        assert len(asked) == 2, "two batches, each with one root, whatever was not heard of"


class Unheard:
    """Loses connections at commits of writers, before they happen or after."""

    def __init__(self, store: SqlStore, seed: int) -> None:
        self.lost: Counter[str] = Counter()
        self._draw = random.Random(seed)
        self._writes = False
        self._real = store._engine.dialect.do_commit
        store._engine.dialect.do_commit = self  # type: ignore[method-assign]

        @sa.event.listens_for(store._engine, "begin")
        def _(connection: sa.Connection) -> None:
            self._writes = bool(connection.get_execution_options().get("writes"))

    def __call__(self, connection: Any) -> None:
        fates = self._draw.choices(("heard", "before", "after"), (60, 20, 20))
        fate = fates[0] if self._writes else "heard"
        driver = getattr(connection, "driver_connection", connection)
        if fate == "after":
            self._real(connection)
        if fate != "heard":
            self.lost[fate] += 1
            driver.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        self._real(connection)


@pytest.mark.parametrize("seed", range(3))
def test_commits_that_happened_and_were_not_heard_of_and_such_that_did_not(
    opened: Callable[[], SqlStore], tmp_path: Path, seed: int
) -> None:
    life = Life(opened(), tmp_path)
    faults = Unheard(life.store, seed)
    life.live()
    assert faults.lost["before"] > 2
    assert faults.lost["after"] > 2
    assert life.busy > 4
    life.store.close()
    life.store = opened()
    life.judge()


def test_the_server_is_killed_in_the_middle_of_transactions(tmp_path: Path) -> None:
    with Cluster() as cluster:
        url = cluster.empty()
        create(url)
        life = Life(SqlStore(url, [URI_A, URI_B]), tmp_path)
        crashes: list[str] = []

        @sa.event.listens_for(life.store._engine, "after_cursor_execute")
        def _(_c: Any, _cursor: Any, text: str, _v: Any, _x: Any, _many: bool) -> None:
            kind = " ".join(text.split()[:3])
            if text.startswith(("INSERT", "UPDATE")) and kind not in crashes and len(crashes) < 6:
                crashes.append(kind)
                cluster.restart(signal.SIGQUIT if len(crashes) % 2 else signal.SIGINT)

        life.live()
        life.judge()
        life.store.close()
    assert len(crashes) == 6
    assert life.busy >= 6


def test_a_server_without_room_stops_us_and_what_was_confirmed_is_kept(
    opened: Callable[[], SqlStore], tmp_path: Path
) -> None:
    store = opened()
    life = Life(store, tmp_path)
    database = str(store._engine.url.database)
    server().execute(
        database,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
        "'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$",
    )
    server().execute(
        database,
        "CREATE TRIGGER full_disk BEFORE INSERT ON events "
        "FOR EACH ROW EXECUTE FUNCTION full_disk()",
    )
    store.add(numbered(RECORDS), life.clock.now())
    with pytest.raises(DiskError, match=r"no room: .*Make room on the server"):
        run_pass(life.parts(), life.clock.advance(61))
    assert store.ledger.head()[0] == 0
    server().execute(database, "DROP TRIGGER full_disk ON events")
    life.live()
    life.judge()


def test_a_writer_that_stops_is_ended_and_others_go_on(
    opened: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = postgres._BEGIN_WRITING.replace("'60s'", "'300ms'")
    monkeypatch.setattr(postgres, "_BEGIN_WRITING", shorter)
    stopped, other = opened(), opened()

    def stop() -> None:
        with stopped.ledger._database.writing() as connection:
            connection.execute(sa.text("INSERT INTO calendars VALUES ('half', 1, 1, '', 1)"))
            other.add(bare(1), 1)  # waits until the server has ended this one

    with pytest.raises(StoreBusyError):
        stop()
    assert other.records.waiting()[0] == 1
    assert other.counts.calendars() == []


def test_a_writer_whose_turn_does_not_come_says_so(
    opened: Callable[[], SqlStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = postgres._BEGIN_WRITING.replace("lock_timeout = '30s'", "lock_timeout = '200ms'")
    monkeypatch.setattr(postgres, "_BEGIN_WRITING", shorter)
    one, other = opened(), opened()
    with (
        one.ledger._database.writing(),
        pytest.raises(StoreBusyError, match="lock timeout"),
    ):
        other.add(bare(1), 1)
    assert other.add(bare(1), 1).new == 1


def test_two_that_pass_at_once_do_each_thing_once(
    opened: Callable[[], SqlStore], tmp_path: Path
) -> None:
    life = Life(opened(), tmp_path)
    life.store.add(numbered(RECORDS), life.clock.now())
    other = Life(opened(), tmp_path)
    other.chain, other.clock, other.calendars = life.chain, life.clock, life.calendars
    failed: list[BaseException] = []

    def work(mine: Life) -> None:
        try:
            mine.store.patience_s = 30
            for _ in range(6):
                mine.again(lambda: run_pass(mine.parts(), life.clock.now()))
        except BaseException as error:  # noqa: BLE001  the test's own thread tells it
            failed.append(error)

    for step in (0, 61, 61):
        life.clock.advance(step)
        threads = [threading.Thread(target=work, args=(one,)) for one in (life, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert not failed
        if step == 61 and life.calendars[0].waiting(life.chain):
            mine_together(life.chain, *life.calendars)
            life.chain.grow(5)
    check_ledger(life.store, life.chain, records=RECORDS)
    check_all_anchored(life.store)
    roots = [call[1] for calendar in life.calendars for call in calendar.log if call[0] == "submit"]
    assert len(roots) == 2


def test_an_error_of_our_own_is_no_server_that_is_away(opened: Callable[[], SqlStore]) -> None:
    with pytest.raises(FatalError), opened().ledger._database.writing() as connection:
        connection.exec_driver_sql("SELECT nothing FROM nowhere")
    with pytest.raises(FatalError), opened().ledger._database.writing() as connection:
        connection.exec_driver_sql("SELECT %s", ())


def test_reading_one_moment_ends_with_words_when_the_server_goes(
    opened: Callable[[], SqlStore], url: str
) -> None:
    from anchord.adapters.store.reading import SqlReadingStore

    opened().add(bare(2), 1)
    reading = SqlReadingStore(url)
    assert reading.records.waiting()[0] == 2
    server().execute(
        url.rpartition("/")[2],
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    for _ in range(2):
        with pytest.raises(StoreBusyError):
            reading.records.waiting()
    reading.close()
