"""What is not due would do nothing, and doing only what is due does everything."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpSHA256
from opentimestamps.core.timestamp import Timestamp
from support.check_ledger import check_all_anchored, check_ledger
from support.handing_over import FakeOutlet
from support.killing import Fuse, Killed, die_by_exception, with_fuse
from support.ots_oracle import written_file
from support.parties import (
    URI_B,
    URL_B,
    FakeCalendar,
    FakeChain,
    FakeClock,
    FakeSigner,
    make_parts,
)
from support.passes import adoption, bare
from support.sourcing import ListSource

from anchord.core.model import BatchState
from anchord.engine import delivering, due, receiving, stages
from anchord.errors import NetworkError, ProtocolError

STRANGER = "https://stranger.calendar.example.org"
WORK = {
    "receive": receiving.receive,
    **{stage.name: stage.work for stage in stages.STAGES},
    "deliver": delivering.deliver,
}
ROUNDS = 25
"""More than any chain of stages that set off each other is long."""


class NoAuthority:
    """An authority that is away."""

    url = "https://tsa.example.org/tsr"

    def __init__(self) -> None:
        self.asked = 0

    def stamp(self, _digest: bytes) -> None:
        self.asked += 1
        raise NetworkError("away")


class World:
    """One store with all that a pass meets, worked on by single stages."""

    def __init__(self, folder: Path, **numbers: int) -> None:
        self.chain, self.clock, self.folder = FakeChain(height=20), FakeClock(), folder
        self.calendars = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))]
        self.source, self.outlet = ListSource(), FakeOutlet(at_once=3)
        self.authority = NoAuthority()
        parts = make_parts(
            folder,
            calendars=self.calendars,
            headers=[self.chain],
            authorities=(self.authority.url,),
            **numbers,
        )
        self.parts = msgspec.structs.replace(
            parts,
            sources=[self.source],
            outlets=[self.outlet],
            authorities=[self.authority],
            keyring=FakeSigner().keyring,
        )
        self.records = 0

    def due(self) -> dict[str, int | None]:
        return due.moments(self.parts, self.parts.store.counts, self.clock.now())

    def due_now(self) -> list[str]:
        now = self.clock.now()
        return [name for name, at in self.due().items() if at is not None and at <= now]

    def state(self) -> object:
        """Return what is another thing once a stage wrote anything, or asked anybody."""
        asked = [len(one.log) for one in self.calendars], self.authority.asked
        return asked, len(self.source.looks), self.outlet.calls, self.parts.store.watch.mark()

    def judge(self) -> None:
        """What is not due changes nothing and asks nobody."""
        moments, now = self.due(), self.clock.now()
        before = self.state()
        for name, at in moments.items():
            if at is None or at > now:
                WORK[name](self.parts, now)
                assert self.state() == before, f"{name} was not due"
        check_ledger(self.parts.store)

    def work(self) -> list[str]:
        """Do what is due until nothing is; return what was done."""
        done: list[str] = []
        for _ in range(ROUNDS):
            names = self.due_now()
            if not names:
                return done
            for name in names:
                WORK[name](self.parts, self.clock.now())
            done += names
        raise AssertionError(f"never done: {self.due_now()}")

    # ------------------------------------------------------------------ what happens

    def do_add(self, n: int) -> None:
        self.parts.store.add(bare(self.records + n)[self.records :], self.clock.now())
        self.records += n

    def do_send(self, n: int) -> None:
        self.source.items += bare(n, f"source {len(self.source.items)}")

    def do_adopt(self, kind: int) -> None:
        """Bring a proof: a lie, one that also a stranger promised, one that a calendar has."""
        self.records += 1
        digest = hashlib.sha256(b"adopted %d" % self.records).digest()
        proof = Timestamp(digest)
        if kind < 2:
            proof.ops.add(OpSHA256()).attestations.add(BitcoinBlockHeaderAttestation(5))
        if kind == 1:
            proof.ops.add(OpAppend(b"x")).attestations.add(PendingAttestation(STRANGER))
        if kind == 2:
            proof.ops.add(OpAppend(b"x")).attestations.add(PendingAttestation(URI_B))
        self.parts.store.add([adoption(written_file(proof), digest)], self.clock.now())

    def do_wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    def do_stage(self, place: int) -> None:
        list(WORK.values())[place](self.parts, self.clock.now())

    def do_work(self, _n: int) -> None:
        self.work()

    def do_die(self, moment: int) -> None:
        fuse = Fuse(moment, die_by_exception)
        parts = with_fuse(self.parts, fuse)
        with contextlib.suppress(Killed):
            for work in WORK.values():
                work(parts, self.clock.now())

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

    def do_refuse(self, _n: int) -> None:
        self.outlet.refuses = lambda one: one.seq % 2 == 0

    def do_heal(self, _n: int) -> None:
        self.chain.fail_with = None
        self.outlet.refuses = lambda _one: False
        for calendar in self.calendars:
            calendar.fail_with, calendar.forgets = None, False

    def come_to_an_end(self) -> None:
        """When all is well again, what is due is enough for everything to come to its end."""
        self.do_heal(0)
        for _ in range(8):
            self.clock.advance(90_000)
            self.work()
            for n in (0, 1):
                self.do_mine(n)
            self.do_grow(7)
        for _ in range(2):
            self.clock.advance(90_000)
            self.work()
        check_ledger(self.parts.store, self.chain)
        check_all_anchored(self.parts.store)


steps = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 3)),
    st.tuples(st.just("send"), st.integers(1, 3)),
    st.tuples(st.just("adopt"), st.integers(0, 2)),
    st.tuples(st.just("wait"), st.sampled_from([1, 60, 900, 21_600, 90_000])),
    st.tuples(st.just("stage"), st.integers(0, len(WORK) - 1)),
    st.tuples(st.just("stage"), st.integers(0, len(WORK) - 1)),
    st.tuples(st.just("work"), st.just(0)),
    st.tuples(st.just("work"), st.just(0)),
    st.tuples(st.just("die"), st.integers(1, 40)),
    st.tuples(st.just("mine"), st.integers(0, 1)),
    st.tuples(st.just("grow"), st.sampled_from([1, 3, 6, 20])),
    st.tuples(st.just("reorg"), st.integers(1, 9)),
    st.tuples(st.just("fault"), st.integers(0, 1)),
    st.tuples(st.just("heal"), st.just(0)),
    st.tuples(st.just("forget"), st.integers(0, 1)),
    st.tuples(st.just("lie"), st.integers(0, 1)),
    st.tuples(st.just("blind"), st.just(0)),
    st.tuples(st.just("refuse"), st.just(0)),
)


@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.lists(steps, min_size=5, max_size=25),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 300]),
    st.sampled_from([0, 600]),
)
def test_what_is_not_due_does_nothing_and_what_is_due_is_enough(life, answers, batch_s, log_s):
    with tempfile.TemporaryDirectory() as folder:
        world = World(
            Path(folder),
            min_answers=answers,
            min_batch_interval_s=batch_s,
            checkpoint_every_s=log_s,
        )
        try:
            world.do_add(1)
            world.judge()
            for what, n in life:
                getattr(world, f"do_{what}")(n)
                world.judge()
            world.come_to_an_end()
        finally:
            world.parts.store.close()


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path, min_answers=2)
    yield made
    made.parts.store.close()


def test_killed_between_the_last_answer_and_settling_is_due_although_nobody_is_to_be_asked(
    world, monkeypatch
):
    world.do_add(2)
    stages.seal(world.parts, world.clock.now())
    monkeypatch.setattr(world.parts.store.batches, "change", lambda _changes: die_by_exception())
    with pytest.raises(Killed):
        stages.submit(world.parts, world.clock.now())
    monkeypatch.undo()
    assert world.parts.store.batches.get(1).state is BatchState.SEALED
    assert world.parts.store.counts.moments()["submit"] is None
    assert world.due()["submit"] == world.clock.now()
    asked = [len(calendar.log) for calendar in world.calendars]
    assert "submit" in world.work()
    assert world.parts.store.batches.get(1).state is BatchState.SUBMITTED
    assert [len(calendar.log) for calendar in world.calendars] == asked


def test_records_wait_for_the_interval_between_batches(tmp_path):
    world = World(tmp_path, min_batch_interval_s=300)
    world.do_add(1)
    world.work()
    world.do_add(1)
    assert world.due()["seal"] == world.clock.now() + 300
    world.do_wait(300)
    assert world.due()["seal"] == world.clock.now()
    world.parts.store.close()
