"""Dying before and after every single effect of a whole life of records, then going on.

The life: add, seal, submit, settle, upgrade, check, append; then a reorg: withdraw, hand in again,
anchor again. Whatever the moment, the passes that follow come to the same end: nothing is lost,
nothing is doubled.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from support.check_ledger import check_all_anchored, check_ledger, live_anchored
from support.killing import Fuse, Killed, die_by_exception, with_fuse
from support.parties import (
    URI_A,
    URI_B,
    FakeCalendar,
    FakeChain,
    FakeClock,
    make_parts,
    open_store,
)
from support.passes import bare

from anchord.adapters.store.sql import SqlStore
from anchord.engine.run import run_pass

RECORDS = 2


class Life:
    """One store and its outside parties; every step can die and is then done again."""

    def __init__(self, folder: Path, fuse: Fuse) -> None:
        self.folder, self.fuse = folder, fuse
        self.store = self._open()
        self.chain = FakeChain(height=10)
        self.calendars = [
            FakeCalendar(),
            FakeCalendar("https://b.pool.example.org", ("https://bob.calendar.example.org",)),
        ]
        self.clock = FakeClock()
        self.deaths = 0

    def go_on(self, seconds: int) -> None:
        """Pass; when it dies, judge with a store that is opened anew, and pass again."""
        try:
            self._pass(self.clock.advance(seconds))
        except Killed:
            self.deaths += 1
            self.fuse.left = 10**9
            self.store.close()
            self.store = self._open()
            check_ledger(self.store, records=RECORDS)
            self._pass(self.clock.advance(1))

    def _open(self) -> SqlStore:
        return SqlStore(f"sqlite:///{self.folder / 'anchord.db'}", [URI_A, URI_B])

    def _pass(self, now: int) -> None:
        parts = make_parts(
            self.folder, store=self.store, calendars=self.calendars, headers=[self.chain]
        )
        run_pass(with_fuse(parts, self.fuse), now)

    def live(self) -> None:
        self.store.add(bare(RECORDS), self.clock.now())
        self.go_on(0)
        self.go_on(60)
        self.calendars[0].mine(self.chain)
        self.chain.grow(5)
        self.go_on(60)
        self.go_on(900)
        self.chain.reorg(7)
        self.go_on(6 * 3600)
        self.go_on(60)
        self.calendars[0].mine(self.chain)
        self.chain.grow(5)
        self.go_on(900)
        self.go_on(900)

    def end(self) -> dict[str, object]:
        """Judge the end; return what must not depend on when it died."""
        store = self.store
        events = check_ledger(store, self.chain, records=RECORDS)
        check_all_anchored(store)
        assert set(live_anchored(store).values()) == {1}
        end = {
            "types": Counter(event["event_type"] for event in events),
            "state": store.counts.batches_by_state(),
            "unsigned": store.counts.unsigned(),
            "waiting": store.records.waiting()[0],
        }
        store.close()
        return end


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    open_store(folder).close()
    return folder / "anchord.db"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("life")
    open_store(folder).close()
    life = Life(folder, Fuse(10**9, die_by_exception))
    life.live()
    return life.fuse.burnt, life.end(), life.fuse.names


def test_the_life_holds_every_kind_of_effect(undisturbed):
    _, end, names = undisturbed
    kinds = {name.split(" ")[1] for name in names}
    assert kinds >= {
        "batches.seal", "batches.change", "calls.store_answer", "calls.store_upgrade",
        "calls.postpone_pending", "ledger.append", "submit", "upgrade", "sign", "refresh",
    }  # fmt: skip
    assert end["types"] == {
        "timestamp_submitted": RECORDS,
        "timestamp_anchored": 2 * RECORDS,
        "facet_withdrawn": RECORDS,
    }


@pytest.mark.parametrize("part", range(8))
def test_dying_at_any_effect_loses_nothing_and_doubles_nothing(undisturbed, empty, tmp_path, part):
    """Every moment of the undisturbed life, in eight parts so that they can run side by side."""
    effects, expected, _ = undisturbed
    for moment in range(1 + part, effects + 1, 8):
        folder = tmp_path / str(moment)
        folder.mkdir()
        shutil.copy(empty, folder / "anchord.db")
        life = Life(folder, Fuse(moment, die_by_exception))
        life.live()
        assert life.deaths == 1
        assert life.end() == expected, f"died at effect {moment}: {life.fuse.names[moment - 1]}"
