"""A real process, really killed while records are stored, against the sandbox's archive."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.check_ledger import check_ledger
from support.json_documents import record
from support.running import anchord, start

from anchord.app.wiring import open_app
from anchord.sandbox.run import Sandbox

CHILD = """
import os, signal, sys, time
ahead, real = int(sys.argv[4]), time.time
time.time = lambda: real() + ahead  # before anything takes it as it is
sys.path.insert(0, sys.argv[3])
from anchord.adapters.archives.item import ArchiveOrg
from anchord.adapters.archives.item_child import Child
from anchord.adapters.archives.spool import FolderSpool
from anchord.adapters.archives.wayback import Wayback
from anchord.adapters.store.captures import Captures
from anchord.adapters.store.items import Items
from anchord.adapters.store.lanes import Lanes
from anchord.adapters.store.ledger import Ledger
from anchord.app.cli.main import cli
from support.killing import Fuse

EFFECTS = {
    Wayback: ("submit", "statuses", "account", "index", "replay"),
    ArchiveOrg: ("headroom", "upload", "describe", "fetch"),
    FolderSpool: ("pack", "write", "remove"),
    Child: ("__init__",),
    Captures: ("claim", "change"),
    Items: ("add_item", "add_files", "change", "change_item"),
    Lanes: ("put",),
    Ledger: ("append",),
}
fuse = Fuse(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL))
for kind, names in EFFECTS.items():
    for name in names:
        setattr(kind, name, fuse.guard(f"{kind.__name__}.{name}", getattr(kind, name)))
words = ["-c", sys.argv[1], "run-once", "--wait", "--deadline", sys.argv[5], "-q"]
cli(words, standalone_mode=False)
"""
TESTS = Path(__file__).resolve().parents[1]
NEVER = 10**9
RECORDS = 3


class World:
    """A sandbox, a store, and processes that store at the archive until they are killed."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.config = sandbox, sandbox.directory / "anchord.toml"
        self.deaths, self.ahead_s = 0, 0

    def advance(self, seconds: int) -> None:
        """Let time go by, for the archive and for the processes to come."""
        self.sandbox.advance(seconds)
        self.ahead_s += seconds

    def live(self, fuse: int, deadline_s: float = 40) -> int:
        """Let one process live until its fuse has burnt down; return how it ended."""
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                CHILD,
                str(self.config),
                str(fuse),
                str(TESTS),
                str(self.ahead_s),
                str(deadline_s),
            ],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        self.deaths += done.returncode == -signal.SIGKILL
        return done.returncode

    def live_until_stored(self) -> None:
        """Let processes live, hours apart, until everything is stored, and was confirmed."""
        for _ in range(6):
            assert self.live(NEVER, deadline_s=2) == 0
            self.advance(2_500)
            done = self.judge()
            if done["capture_stored"] == done["item_stored"] == RECORDS:
                break
        self.live(NEVER, deadline_s=2)
        done = self.judge()
        assert (done["capture_stored"], done["item_stored"]) == (RECORDS, RECORDS)

    def kill_when(self, come: Callable[[], bool]) -> None:
        """Kill a process at a moment that its services see."""
        process = start("run-once", "--wait", "-q", config=self.config)
        wait_for(come, lambda: process.poll() is not None)
        process.kill()
        process.communicate(timeout=10)
        self.deaths += process.returncode == -signal.SIGKILL

    def asked(self, service: str, route: str) -> int:
        return self.sandbox.requests.get(service, {}).get(route, 0)

    def judge(self) -> Counter[str]:
        """Judge the ledger and what the archive was asked; return the events by type."""
        with open_app(str(self.config)) as app:
            events = check_ledger(app.store, signers=[app.signer], records=RECORDS)
        counts = self.sandbox.status().archive_counts
        for name in ("captured_twice", "live_twice", "rate_429", "firewall_events"):
            assert counts["wayback"][name] == 0, name
        for name in ("put_twice", "overwrites"):
            assert counts["items"][name] == 0, name
        self._nothing_false(events)
        return Counter(event["event_type"] for event in events)

    def _nothing_false(self, events: list[dict]) -> None:
        there = {one.timestamp for one in self.sandbox.wayback.service.mementos() if one.replays}
        for event in events:
            if event["event_type"] == "capture_stored":
                captured_at = event["payload"]["captured_at"]
                assert "".join(filter(str.isdigit, captured_at)) in there


def wait_for(come: Callable[[], bool], over: Callable[[], bool] = lambda: False) -> None:
    """Wait for a moment; `over` tells that it cannot come any more."""
    end = time.monotonic() + 30
    while not come() and not over():
        assert time.monotonic() < end, "the moment never came"
        time.sleep(0.005)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Sandbox(tmp_path, tick_s=0.05, calendars=2, explorers=1, peers=1) as sandbox:
        sandbox.write_config()
        assert anchord("init", tmp_path).code == 0
        lines = "".join(json.dumps(record(number, 1)) + "\n" for number in range(1, RECORDS + 1))
        (tmp_path / "records.jsonl").write_text(lines, "utf-8")
        config = tmp_path / "anchord.toml"
        assert anchord("add", tmp_path / "records.jsonl", config=config).code == 0
        assert anchord("run-once", "-q", config=config).code in (0, 3)
        sandbox.mine(7)
        yield World(sandbox)


def test_killed_again_and_again_every_record_is_stored_once(world):
    for fuse in (2, 5, 9, 14, 20, 26, 7, 33):
        world.live(fuse, deadline_s=1)
        world.judge()
        world.advance(700)
    assert world.deaths >= 6
    world.live_until_stored()
    there = world.sandbox.archive.reports()["wayback"]
    assert there["captures_made"] == RECORDS


@pytest.mark.parametrize(
    ("service", "route", "count"),
    [("wayback", "save", "accepted"), ("ias3", "put", "puts_accepted")],
)
def test_what_was_done_when_the_answer_was_not_heard_is_not_done_again(
    world, service, route, count
):
    counts = "items" if service == "ias3" else service
    world.sandbox.fault(service, "slow", None, on=route, delay_s=3)
    world.kill_when(lambda: world.sandbox.archive.reports()[counts][count] > 0)
    world.sandbox.clear_faults()
    assert world.deaths == 1
    world.advance(700)
    world.live_until_stored()


_SOON_S = 40


@pytest.mark.parametrize(
    ("signal_", "code", "service", "route"),
    [
        (signal.SIGTERM, 3, "ias3", "put"),
        (signal.SIGINT, 130, "wayback", "cdx"),
        (signal.SIGKILL, -signal.SIGKILL, "ias3", "put"),
    ],
)
def test_a_signal_ends_it_soon_whatever_is_in_flight(world, signal_, code, service, route):
    world.sandbox.fault(service, "silent", None, on=route)
    process = start("run-once", "--wait", "-q", config=world.config)
    wait_for(lambda: world.asked(service, route) > 0)
    children = children_of(process.pid)
    process.send_signal(signal_)
    try:
        # Far below the 90 s that the call in flight may take; seconds on an idle machine.
        _, err = process.communicate(timeout=_SOON_S)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert children
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
    world.judge()


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in listed for child in file.read_text().split()]
