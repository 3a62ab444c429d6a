"""The stages one by one, as workers do them: the same ledger as a pass makes, whoever is beside."""

from __future__ import annotations

import threading

import pytest
from support.check_ledger import check_all_anchored
from support.parties import FakeCalendar, FakeChain, make_parts
from support.passes import Passes, bare, numbered
from support.stores import address

from anchord.adapters.store.sql import SqlStore
from anchord.core import event
from anchord.engine import ledger, stages
from anchord.engine.stages import STAGES
from anchord.errors import StoreBusyError, TransientError

pytestmark = pytest.mark.both_stores


def rows(store):
    """Return what the ledger says, without signatures' moments."""
    return [
        (row.record_id, store.ledger.get_series(row.series_id).event_type)
        for chunk in store.ledger.walk()
        for row in chunk
    ]


class World:
    """One store with a calendar and a chain, worked on by passes or by stages."""

    def __init__(self, folder):
        folder.mkdir()
        self.calendar, self.chain = FakeCalendar(), FakeChain()
        self.parts = make_parts(folder, calendars=[self.calendar], headers=[self.chain])
        self.url = address(folder)
        self.go = Passes(self.parts, self.chain)

    def stage_by_stage(self, advance_s=0):
        now = self.go.clock.advance(advance_s)
        for stage in STAGES:
            stage.work(self.parts, now)
            self.go.judge()

    def live(self, work):
        self.go.add([*bare(3), *numbered(4)])
        work(0)
        self.calendar.mine(self.chain)
        work(60)
        self.chain.grow(5)
        work(900)


@pytest.fixture
def make_world(tmp_path):
    made = []

    def make(name="one"):
        made.append(World(tmp_path / name))
        return made[-1]

    yield make
    for world in made:
        world.parts.store.close()


def test_stages_one_by_one_make_the_ledger_a_pass_makes(make_world):
    passed, staged = make_world("passed"), make_world("staged")
    passed.live(passed.go)
    staged.live(staged.stage_by_stage)
    assert rows(staged.parts.store) == rows(passed.parts.store)
    check_all_anchored(staged.parts.store)
    assert [call[0] for call in staged.calendar.log] == [call[0] for call in passed.calendar.log]


@pytest.mark.parametrize("kind", ["submit", "upgrade"])
def test_nobody_waits_for_the_right_to_write_while_a_calendar_is_asked(make_world, kind):
    world = make_world()
    world.go.add(bare(2))
    now = world.go.clock.now()
    stages.seal(world.parts, now)
    if kind == "upgrade":
        stages.submit(world.parts, now)
    beside = SqlStore(world.url)
    real, seen = getattr(world.calendar, kind), []

    def asked(*arguments):
        with beside.exclusive():
            seen.append(kind)
        return real(*arguments)

    setattr(world.calendar, kind, asked)
    getattr(stages, kind)(world.parts, now + 3_600)
    beside.close()
    assert seen == [kind]
    world.go.judge()


def test_what_came_back_while_another_worker_wrote_waits_for_its_turn(make_world):
    world = make_world()
    world.go.add(bare(2))
    now = world.go.clock.now()
    stages.seal(world.parts, now)
    beside, began, end = SqlStore(world.url), threading.Event(), threading.Event()

    def holds():
        with beside.exclusive():
            began.set()
            end.wait(10)

    other = threading.Thread(target=holds)
    other.start()
    began.wait(10)
    with pytest.raises(StoreBusyError):
        stages.submit(world.parts, now)
    world.go.judge()
    assert not world.parts.store.calls.answered(1), "an answer nobody wrote down is asked for again"
    world.parts.store.patience_s = 10
    threading.Timer(0.3, end.set).start()
    stages.submit(world.parts, now)
    other.join()
    beside.close()
    assert world.parts.store.calls.answered(1) == [world.calendar.url]
    world.go.judge()


def test_a_series_cut_between_signing_and_appending_is_not_appended_to(make_world, monkeypatch):
    world = make_world()
    world.live(world.go)
    world.go.add(bare(1, "late"))
    stages.seal(world.parts, world.go.clock.now())
    stages.submit(world.parts, world.go.clock.now())
    beside, real = SqlStore(world.url), ledger._write
    [open_series] = beside.ledger.open_series()

    def cut_first(parts, draft):
        beside.ledger.split(open_series, ledger._new(
            parts.signer, event.SUBMITTED, {}, 1, None, open_series.stop
        ))  # fmt: skip
        return real(parts, draft)

    monkeypatch.setattr(ledger, "_write", cut_first)
    before = world.parts.store.ledger.head()
    with pytest.raises(TransientError, match="run again"):
        stages.sign(world.parts, world.go.clock.now())
    assert world.parts.store.ledger.head() == before
    beside.close()


def test_workers_side_by_side_sign_each_event_once(make_world):
    world = make_world()
    for n in range(6):
        world.go.add(bare(50, f"batch {n}"))
        stages.seal(world.parts, world.go.clock.now() + n)
    now = world.go.clock.now() + 10
    stores = [SqlStore(world.url, patience_s=20) for _ in range(3)]
    errors = []

    def work(store):
        parts = type(world.parts)(**{
            name: getattr(world.parts, name) for name in world.parts.__struct_fields__
        } | {"store": store})  # fmt: skip
        for _ in range(3):
            for stage in (stages.submit, stages.sign):
                try:
                    stage(parts, now)
                except TransientError as error:
                    errors.append(error)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for store in stores:
        store.close()
    stages.sign(world.parts, now)
    world.go.judge()
    found = rows(world.parts.store)
    assert sorted(found) == sorted(set(found)), "no event twice"
    assert len(found) == 300
    assert all("run again" in str(error) or "works on" in str(error) for error in errors)
