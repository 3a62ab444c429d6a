"""Workers in processes of their own, what they wrote down, and a store they share."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from anchord.app.fleet.address import connection_arguments
from anchord.app.fleet.schema import install
from anchord.app.fleet.tending import WORKERS
from support.postgres import Cluster
from support.running import anchord

LEASE_S = 6.0
"""As short as a machine with two busy cores can keep."""
FLEET = """
[service]
pass_every_s = 1.0
storing_every_s = 0.2

[fleet]
lease_s = {lease}
shift_s = 3.0
"""


@contextlib.contextmanager
def workers_of(url: str) -> Iterator[None]:
    """Let the queue know two workers, of which one has a session and something in hand."""
    import psycopg

    install(url)
    with psycopg.connect(**connection_arguments(url), autocommit=True) as connection:
        for _ in range(2):
            row = connection.execute("SELECT procrastinate_register_worker_v1()").fetchone()
        assert row is not None
        connection.execute(f"SELECT pg_advisory_lock_shared({WORKERS}, %s::int)", row)
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, status, worker_id)"
            " VALUES ('seal', 'anchord.seal', 'doing', %s)",
            row,
        )
        yield


class Stretch(NamedTuple):
    """One time a stage ran, from its beginning to its end, or to its process's."""

    stage: str
    pid: int
    began: float
    ended: float | None
    """None: it never ended by itself."""


class Worker:
    """One `anchord worker` that writes down when its stages run; its log is read as it comes."""

    def __init__(self, config: Path, journal: Path, *words: str, **environment: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.fleet_worker", str(journal), "-c", str(config),
             "worker", "--log-format", "json", *words],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
                 **environment},
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, event: str, timeout_s: float = 30) -> Self:
        """Wait for a line of the log."""
        end = time.monotonic() + timeout_s
        while not any(line["event"] == event for line in self.log):
            assert time.monotonic() < end, self.lines
            assert self.process.poll() is None, self.lines
            time.sleep(0.02)
        return self

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill -9, and read what is left of its log."""
        if self.process.poll() is None:
            self.process.kill()
        self.ended()

    def ended(self, timeout_s: float = 30) -> int:
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def stopped(self) -> int:
        self.send(signal.SIGTERM)
        return self.ended()


class Fleet:
    """Some workers of one store; a context manager that kills what is left of them.

    Args:
        config: of the store.
        count: how many workers there are.
    """

    def __init__(self, config: Path, count: int) -> None:
        self.config, self.journal = config, config.parent / "journal"
        self.deaths: dict[int, float] = {}
        """When a process was killed or stopped, by pid."""
        self.workers = [self._new() for _ in range(count)]
        self.gone: list[Worker] = []

    def __enter__(self) -> Self:
        for worker in self.workers:
            worker.until("started")
        return self

    def __exit__(self, *_exception: object) -> None:
        for worker in self.workers:
            worker.kill()

    def _new(self) -> Worker:
        return Worker(self.config, self.journal)

    def kill_one(self, dice: random.Random) -> None:
        """Kill one at random, and start another in its place."""
        place = dice.randrange(len(self.workers))
        worker = self.workers[place]
        worker.kill()
        self.deaths[worker.pid] = time.monotonic()
        self.gone.append(worker)
        self.workers[place] = self._new()

    def stop(self) -> list[int]:
        """Stop all, and return how they ended."""
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        return [worker.ended() for worker in self.workers]

    def stretches(self) -> list[Stretch]:
        """Return when which stage ran, in order of their beginning."""
        open_: dict[tuple[int, int], tuple[str, float]] = {}
        found = []
        for line in self.journal.read_text("utf-8").splitlines():
            what, stage, pid, thread, moment = line.split()
            key = int(pid), int(thread)
            if what == "hand":
                continue
            if what == "begin":
                assert key not in open_
                open_[key] = stage, float(moment)
            else:
                stage, began = open_.pop(key)
                found.append(Stretch(stage, key[0], began, float(moment)))
        found += [Stretch(stage, pid, at, None) for (pid, _), (stage, at) in open_.items()]
        return sorted(found, key=lambda one: one.began)

    def handed(self) -> dict[str, list[tuple[int, float]]]:
        """Return who handed in what when, by calendar and root."""
        found: dict[str, list[tuple[int, float]]] = {}
        for line in self.journal.read_text("utf-8").splitlines():
            what, about, pid, _, moment = line.split()
            if what == "hand":
                found.setdefault(about, []).append((int(pid), float(moment)))
        return found

    def handed_twice(self) -> list[tuple[str, list[int]]]:
        """Return roots that workers handed in more than once of whom nobody was killed.

        One that slept may have been about to, and do so when it wakes up: a call, not an event.
        """
        gone = self.deaths.keys() | self._cut_off()
        pids = {about: [pid for pid, _ in calls] for about, calls in self.handed().items()}
        return [(about, by) for about, by in pids.items() if sum(pid not in gone for pid in by) > 1]

    def _cut_off(self) -> set[int]:
        """Return workers whose sessions the others ended: a machine under load is late, too."""
        return {line["pid"] for line in self.log() if line["event"] == "silent"}

    def log(self) -> list[dict[str, Any]]:
        """Return what all of them logged."""
        return [line for worker in (*self.workers, *self.gone) for line in worker.log]

    def meetings(self) -> list[tuple[Stretch, Stretch]]:
        """Return stages that ran twice at once: two workers had one claim."""
        running: dict[str, Stretch] = {}
        found = []
        for one in self.stretches():
            before = running.get(one.stage)
            met = before is not None and self._end(before) > one.began
            if met and before is not None and before.pid not in self._cut_off():
                found.append((before, one))
            if before is None or self._end(one) > self._end(before):
                running[one.stage] = one
        return found

    def _end(self, one: Stretch) -> float:
        """Return when a stage was over, or its process could do nothing more."""
        ended = float("inf") if one.ended is None else one.ended
        return min(ended, self.deaths.get(one.pid, float("inf")))


def shared(cluster: Cluster, config: Path, lease_s: float = LEASE_S) -> str:
    """Let a sandbox's configuration name a new store of a server; return its URL."""
    url = cluster.empty()
    text = f'{config.read_text("utf-8")}{FLEET.format(lease=lease_s)}\n[store]\nurl = "{url}"\n'
    config.write_text(text, "utf-8")
    assert anchord("init", config.parent).code == 0
    return url


def eventually(question: Callable[[], bool], timeout_s: float = 60) -> float:
    """Wait until a question is answered with yes; return how long that took, seconds."""
    began = time.monotonic()
    while not question():
        assert time.monotonic() < began + timeout_s
        time.sleep(0.1)
    return time.monotonic() - began
