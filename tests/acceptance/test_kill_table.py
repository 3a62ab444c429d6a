"""Dying before and after every single effect of a whole life of records, then going on.

The life: add, seal, submit, settle, upgrade, check, append; then a reorg: withdraw, hand in again,
anchor again. Whatever the moment, the passes that follow come to the same end: nothing is lost,
nothing is doubled.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from support.authorities import FakeAuthority, LocalAuthority
from support.check_ledger import check_all_anchored, check_ledger, live_anchored
from support.check_log import check_log
from support.killing import Fuse, Killed, die_by_exception, with_fuse
from support.parties import (
    URI_A,
    URI_B,
    FakeCalendar,
    FakeChain,
    FakeClock,
    FakeSigner,
    make_parts,
    open_store,
)
from support.passes import bare

from anchord.adapters.store.sql import SqlStore
from anchord.core.tsa import Token
from anchord.engine.header_view import HeaderView
from anchord.engine.ledger_check import LedgerCheck
from anchord.engine.run import run_pass

RECORDS = 2
MORE = 1
SIGNER = FakeSigner()


class Remembering(FakeAuthority):
    """An authority that makes one token for one root, however many lives ask for it."""

    tokens: ClassVar[dict[bytes, Token]] = {}

    def stamp(self, digest: bytes) -> Token:
        if digest not in self.tokens:
            self.tokens[digest] = super().stamp(digest)
        return self.tokens[digest]


class Life:
    """One store and its outside parties; every step can die and is then done again."""

    def __init__(self, folder: Path, fuse: Fuse, authority: FakeAuthority) -> None:
        self.folder, self.fuse, self.authority = folder, fuse, authority
        self.records = RECORDS
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
            check_ledger(self.store, records=self.records)
            check_log(self.store, SIGNER.public_key)
            self._pass(self.clock.advance(1))

    def _open(self) -> SqlStore:
        return SqlStore(f"sqlite:///{self.folder / 'anchord.db'}", [URI_A, URI_B])

    def _pass(self, now: int) -> None:
        parts = make_parts(
            self.folder, store=self.store, calendars=self.calendars, headers=[self.chain],
            not_before=True, authorities=(self.authority.url,),
        )  # fmt: skip
        parts = msgspec.structs.replace(parts, authorities=(self.authority,))
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
        self.store.add(bare(MORE, "more"), self.clock.now())
        self.records += MORE
        self.go_on(900)
        self.calendars[0].mine(self.chain)
        self.chain.grow(5)
        self.go_on(900)

    def end(self) -> dict[str, object]:
        """Judge the end; return what must not depend on when it died."""
        store = self.store
        events = check_ledger(store, self.chain, records=RECORDS + MORE)
        check_all_anchored(store)
        assert set(live_anchored(store).values()) == {1}
        end = {
            "types": Counter(event["event_type"] for event in events),
            "state": store.counts.batches_by_state(),
            "unsigned": store.counts.unsigned(),
            "waiting": store.records.waiting()[0],
            "tokens": [one.raw is not None for b in (1, 2) for one in store.tokens.of_batch(b)],
        }
        assert check_log(store, SIGNER.public_key) >= 3
        assert store.log.sizes()[0] == store.log.sizes()[1]
        view = HeaderView([self.chain], "bitcoin-regtest", 6)
        report = LedgerCheck(store, SIGNER.keyring(), view, lambda *_: None).run()
        assert (report.faults, report.problems, report.unconfirmed) == (0, (), 0), report.findings
        store.close()
        return end


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty")
    open_store(folder).close()
    return folder / "anchord.db"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Remembering(LocalAuthority(tmp_path_factory.mktemp("authority")))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, authority):
    folder = tmp_path_factory.mktemp("life")
    open_store(folder).close()
    life = Life(folder, Fuse(10**9, die_by_exception), authority)
    life.live()
    return life.fuse.burnt, life.end(), life.fuse.names


def test_the_life_holds_every_kind_of_effect(undisturbed):
    _, end, names = undisturbed
    kinds = {name.split(" ")[1] for name in names}
    assert kinds >= {
        "batches.seal", "batches.change", "calls.store_answer", "calls.store_upgrade",
        "calls.postpone_pending", "ledger.append", "submit", "upgrade", "sign", "refresh",
        "log.add", "sign_note", "stamp", "tokens.store",
    }  # fmt: skip
    assert end["types"] == {
        "timestamp_submitted": RECORDS + MORE,
        "timestamp_anchored": 2 * RECORDS + MORE,
        "facet_withdrawn": RECORDS,
    }


@pytest.mark.parametrize("part", range(8))
def test_dying_at_any_effect_loses_nothing_and_doubles_nothing(
    undisturbed, empty, authority, tmp_path, part
):
    """Every moment of the undisturbed life, in eight parts so that they can run side by side."""
    effects, expected, _ = undisturbed
    for moment in range(1 + part, effects + 1, 8):
        folder = tmp_path / str(moment)
        folder.mkdir()
        shutil.copy(empty, folder / "anchord.db")
        life = Life(folder, Fuse(moment, die_by_exception), authority)
        life.live()
        assert life.deaths == 1
        assert life.end() == expected, f"died at effect {moment}: {life.fuse.names[moment - 1]}"
