"""Random lives: records, blocks, reorgs, faults and deaths in any order, judged after each step."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.check_ledger import check_all_anchored, check_ledger
from support.killing import Fuse, Killed, die_by_exception, with_fuse
from support.parties import URI_A, URI_B, URL_B, FakeCalendar, FakeChain, FakeClock, make_parts
from support.passes import bare

from anchord.engine.run import run_pass
from anchord.errors import NetworkError, ProtocolError

steps = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 3)),
    st.tuples(st.just("pass"), st.sampled_from([1, 60, 900, 21_600, 90_000])),
    st.tuples(st.just("die"), st.integers(1, 25)),
    st.tuples(st.just("mine"), st.integers(0, 1)),
    st.tuples(st.just("grow"), st.sampled_from([1, 3, 6, 20])),
    st.tuples(st.just("reorg"), st.integers(1, 9)),
    st.tuples(st.just("fault"), st.integers(0, 1)),
    st.tuples(st.just("heal"), st.just(0)),
    st.tuples(st.just("forget"), st.integers(0, 1)),
    st.tuples(st.just("lie"), st.integers(0, 1)),
    st.tuples(st.just("blind"), st.just(0)),
)


class World:
    def __init__(self, folder: Path) -> None:
        self.chain = FakeChain(height=20)
        self.calendars = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))]
        self.clock = FakeClock()
        self.parts = make_parts(
            folder, calendars=self.calendars, headers=[self.chain], min_answers=1
        )
        self.records = 0
        assert self.calendars[0].uris == (URI_A,)

    def do(self, what: str, n: int) -> None:
        getattr(self, f"do_{what}")(n)
        check_ledger(self.parts.store, records=self.records)

    def do_add(self, n: int) -> None:
        self.parts.store.add(bare(self.records + n)[self.records :], self.clock.now())
        self.records += n

    def do_pass(self, seconds: int) -> None:
        run_pass(self.parts, self.clock.advance(seconds))

    def do_die(self, moment: int) -> None:
        fuse = Fuse(moment, die_by_exception)
        with contextlib.suppress(Killed):
            run_pass(with_fuse(self.parts, fuse), self.clock.advance(60))

    def do_mine(self, n: int) -> None:
        if self.calendars[n].waiting(self.chain):
            self.calendars[n].mine(self.chain)

    def do_grow(self, n: int) -> None:
        self.chain.grow(n)

    def do_reorg(self, n: int) -> None:
        self.chain.reorg(n)

    def do_fault(self, n: int) -> None:
        self.calendars[n].fail_with = [NetworkError("away"), ProtocolError("garbage")][n]

    def do_forget(self, n: int) -> None:
        self.calendars[n].forgets = True

    def do_lie(self, n: int) -> None:
        self.calendars[n].lie(7)

    def do_blind(self, _n: int) -> None:
        self.chain.fail_with = NetworkError("no headers")

    def do_heal(self, _n: int) -> None:
        self.chain.fail_with = None
        for calendar in self.calendars:
            calendar.fail_with, calendar.forgets = None, False

    def come_to_an_end(self) -> None:
        """When all is well again, everything gets anchored, however bad it was before."""
        self.do_heal(0)
        for _ in range(8):
            self.do_pass(90_000)
            for n in (0, 1):
                self.do_mine(n)
            self.do_grow(7)
        self.do_grow(120)
        self.do_pass(90_000)
        self.do_pass(90_000)
        check_ledger(self.parts.store, self.chain, records=self.records)
        if self.records:
            check_all_anchored(self.parts.store)


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(steps, min_size=5, max_size=25))
def test_whatever_happens_nothing_is_lost_or_doubled_and_all_gets_anchored(life):
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.do_add(1)
        for what, n in life:
            world.do(what, n)
        world.come_to_an_end()
        world.parts.store.close()
