"""A real process, really killed at spread moments of a whole life, against the sandbox."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.check_ledger import check_all_anchored, check_ledger
from support.passes import bare, numbered
from support.running import anchord

from anchord.app.wiring import open_app
from anchord.core.model import BatchChange
from anchord.sandbox.run import Sandbox

CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from anchord.app.wiring import open_app
from anchord.engine.run import run_pass
from support.killing import Fuse, with_fuse

fuse = Fuse(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL))
with open_app(sys.argv[1]) as app:
    parts = app.parts(lambda *_: None)
    run_pass(with_fuse(parts, fuse), app.clock.now())
"""
TESTS = Path(__file__).resolve().parents[1]
NEVER = 10**9
RECORDS = 12


class World:
    """A sandbox, a store, and passes in processes of their own."""

    def __init__(self, sandbox: Sandbox, config: Path) -> None:
        self.sandbox, self.config = sandbox, config
        self.deaths = 0

    def spawn(self, fuse: int) -> int:
        """Let one process make one pass; return how it ended."""
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(self.config), str(fuse), str(TESTS)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode

    def suffer(self, *fuses: int) -> None:
        """Be killed at each of these moments, judge, and at last get through."""
        for fuse in fuses:
            self.deaths += self.spawn(fuse) == -signal.SIGKILL
            self.judge()
        assert self.spawn(NEVER) == 0
        self.judge()

    def judge(self, *, chain: bool = False) -> list[str]:
        with open_app(str(self.config)) as app:
            blocks = SimpleNamespace(headers=self.sandbox.chain.headers()) if chain else None
            events = check_ledger(app.store, blocks, signers=[app.signer], records=RECORDS)
            if chain:
                check_all_anchored(app.store)
        return [event["event_type"] for event in events]

    def look_now(self) -> None:
        """Let the time of all next looks come."""
        with open_app(str(self.config)) as app:
            app.store.batches.change([BatchChange(batch_id=1, columns={"next_check_at": 0})])


@pytest.fixture
def world(tmp_path):
    with Sandbox(tmp_path, tick_s=0.05, calendars=2, peers=1) as sandbox:
        sandbox.write_config()
        assert anchord("init", tmp_path).code == 0
        with open_app(str(tmp_path / "anchord.toml")) as app:
            app.store.add([*bare(RECORDS - 2), *numbered(2)], app.clock.now())
        yield World(sandbox, tmp_path / "anchord.toml")


def test_killed_again_and_again_every_record_is_anchored_once(world):
    world.suffer(1, 3, 6, 9, 14)
    world.sandbox.mine(7)
    world.suffer(2, 4, 7, 11, 16)
    world.sandbox.reorg(7, drop=True)
    world.look_now()
    world.suffer(3, 5, 8)
    assert world.judge().count("facet_withdrawn") == RECORDS
    world.suffer(4)
    world.sandbox.mine(7)
    ran = anchord("run-once", "--wait", "--deadline", "30", "-q", config=world.config)
    assert ran.code == 0
    types = world.judge(chain=True)
    assert world.deaths >= 10
    assert types.count("timestamp_submitted") == RECORDS
    assert types.count("timestamp_anchored") == 2 * RECORDS
