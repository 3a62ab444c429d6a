"""Workers that are killed, stopped and cut off: nothing is lost, doubled, false or stuck."""

from __future__ import annotations

import hashlib
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.check_ledger import check_all_anchored, check_ledger
from support.fleet import LEASE_S, Fleet, Stretch, eventually, shared
from support.postgres import Cluster
from support.running import anchord

from anchord.app.wiring import open_app
from anchord.core.model import Record, Scheme
from anchord.sandbox.run import Sandbox

NOISE_S = 6.0
"""What a machine under load adds: without a lease it would be half a minute and more."""


def records(count: int, name: object) -> list[Record]:
    return [
        Record(digest=hashlib.sha256(f"{name} {n}".encode()).digest(), scheme=Scheme.SHA256)
        for n in range(count)
    ]


def add(config: Path, count: int, name: object) -> int:
    with open_app(str(config)) as app:
        return app.store.add(records(count, name), int(time.time())).new


def state(config: Path) -> tuple[int, int]:
    """Return how many records are anchored, and how many events are to be signed."""
    with open_app(str(config)) as app:
        return app.store.counts.by_state().get("anchored", 0), app.store.counts.unsigned()


def judged(config: Path, *, whole: bool = False) -> None:
    """Judge the store's ledger, as a stranger would."""
    with open_app(str(config)) as app:
        check_ledger(app.store, signers=[app.signer], step=1 if whole else 7)  # type: ignore[list-item]
        if whole:
            check_all_anchored(app.store)
    if whole:
        ran = anchord("ledger", "check", config=config)
        assert ran.code == 0, ran.err


def all_done(config: Path, sandbox: Sandbox, count: int) -> None:
    """Wait until every record is anchored and signed for."""

    def done() -> bool:
        sandbox.mine(1)
        return state(config) == (count, 0)

    eventually(done, 90)


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def test_workers_killed_at_random_lose_double_and_share_nothing(
    sandbox: Sandbox, config: Path
) -> None:
    dice, count = random.Random(2026), 0
    with Fleet(config, 4) as fleet:
        for turn in range(4):
            count += add(config, 40 + turn, turn)
            time.sleep(dice.uniform(0, 0.8))
            sandbox.mine(dice.randrange(8))
            fleet.kill_one(dice)
            judged(config)
        all_done(config, sandbox, count)
        assert fleet.stop() == [0, 0, 0, 0]
    judged(config, whole=True)
    assert fleet.meetings() == []
    assert fleet.handed_twice() == []


def test_a_server_that_restarts_under_them_costs_a_pause(
    tmp_path: Path, own_cluster: Cluster
) -> None:
    with Sandbox(tmp_path, tick_s=0.05, archive=False, authority=False) as sandbox:
        config = sandbox.write_config()
        shared(own_cluster, config)
        count = 0
        with Fleet(config, 2) as fleet:
            for turn, how in enumerate((signal.SIGINT, signal.SIGQUIT)):
                count += add(config, 60, turn)
                time.sleep(0.3 * turn)
                own_cluster.restart(how)
                sandbox.mine(3)
                judged(config)
            all_done(config, sandbox, count)
            assert fleet.stop() == [0, 0]
        judged(config, whole=True)


def slow(config: Path, seconds: int) -> None:
    """Let a calendar take its time, so that a worker is in the middle of handing it a root."""
    words = "sandbox", "fault", "calendar-1", "slow", "--delay", str(seconds)
    assert anchord(*words, config=config).code == 0


def healed(config: Path) -> None:
    assert anchord("sandbox", "fault", "--clear", config=config).code == 0


def in_hand(fleet: Fleet, stage: str) -> int | None:
    """Return the process that runs a stage now; one that slept is among them, once it woke up."""
    found = [one for one in fleet.stretches() if one.stage == stage and one.ended is None]
    alive = (one for one in found if one.began > fleet.deaths.get(one.pid, 0.0))
    return next((one.pid for one in alive if handing(fleet, one)), None)


def handing(fleet: Fleet, stretch: Stretch) -> bool:
    """Tell whether calendars are being called: a stage that only begins may find nothing to do."""
    calls = [call for calls in fleet.handed().values() for call in calls]
    return any(pid == stretch.pid and at > stretch.began for pid, at in calls)


def caught(fleet: Fleet, stage: str) -> int:
    """Wait for a worker that runs a stage; return its place among them."""
    found: list[int | None] = []

    def is_one() -> bool:
        found.append(in_hand(fleet, stage))
        return found[-1] is not None

    eventually(is_one, 30)
    return next(n for n, worker in enumerate(fleet.workers) if worker.pid == found[-1])


def again_s(fleet: Fleet, stage: str, since: float) -> float:
    """Return after how many seconds a stage was begun again."""
    moments: list[float] = []

    def begun() -> bool:
        moments[:] = [
            one.began for one in fleet.stretches() if one.stage == stage and one.began > since
        ]
        return bool(moments)

    eventually(begun, 30)
    return min(moments) - since


def test_a_worker_killed_or_asleep_costs_at_most_its_lease_and_wakes_up_without_its_rights(
    sandbox: Sandbox, config: Path
) -> None:
    with Fleet(config, 2) as fleet:
        slow(config, 4)
        add(config, 10, "slow")
        sleeper = fleet.workers[caught(fleet, "submit")]
        moment = time.monotonic()
        sleeper.send(signal.SIGSTOP)
        fleet.deaths[sleeper.pid] = moment
        try:
            assert again_s(fleet, "submit", moment) < LEASE_S + NOISE_S
            healed(config)
            all_done(config, sandbox, 10)
        finally:
            sleeper.send(signal.SIGCONT)
        sleeper.until("recovered")
        told = [line["pid"] for line in fleet.log() if line["event"] == "silent"]
        assert sleeper.pid in told
        assert fleet.handed_twice() == []
        slow(config, 9)
        add(config, 10, "slow again")
        killed = fleet.workers[caught(fleet, "submit")]
        moment = time.monotonic()
        killed.kill()
        fleet.deaths[killed.pid] = moment
        assert again_s(fleet, "submit", moment) < LEASE_S + NOISE_S
        healed(config)
        all_done(config, sandbox, 20)
        assert [one.stopped() for one in fleet.workers if one is not killed] == [0]
    judged(config, whole=True)
    assert fleet.handed_twice() == []
