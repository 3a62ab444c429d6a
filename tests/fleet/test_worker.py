"""`anchord worker` as processes: they share all work, keep the daemon out, and hand over."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import time
from pathlib import Path

import psycopg
from support.fleet import Fleet, Worker, eventually, shared
from support.manager import ManagerSocket
from support.postgres import Cluster
from support.registry import SEED
from support.running import anchord

from anchord.app.wiring import open_app
from anchord.core.model import Record, Scheme
from anchord.sandbox.run import Sandbox


def stored(config: Path) -> int:
    with open_app(str(config)) as app:
        return app.store.storage.counts().by_capture


def open_events(config: Path) -> int:
    with open_app(str(config)) as app:
        return app.store.counts.unsigned()


def jobs(cluster: Cluster, url: str) -> int:
    found = cluster.execute(url.rpartition("/")[2], "SELECT count(*) FROM procrastinate_jobs")
    return int(found[0][0])


NEVER_ENDED = """
    INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, status, worker_id)
    SELECT 'seal', 'anchord.seal', 'seal', 'seal', 'doing', max(id) FROM procrastinate_workers
"""
"""A task whose end the queue was not told, because the connection broke just then."""


def edit(cluster: Cluster, url: str, statement: str) -> None:
    """Change the queue's tables by hand; a task that is done just now is waited for."""

    def done() -> bool:
        with contextlib.suppress(psycopg.errors.UniqueViolation):
            cluster.execute(url.rpartition("/")[2], statement)
            return True
        return False

    eventually(done)


def goes_on(config: Path) -> None:
    """Add a record and wait until it is sealed: the queue is well, and no duty is stuck."""
    with open_app(str(config)) as app:
        number = app.store.counts.unsigned()
        digest = hashlib.sha256(f"{number} {time.time()}".encode()).digest()
        app.store.add([Record(digest=digest, scheme=Scheme.SHA256)], int(time.time()))
        eventually(lambda: app.store.records.waiting()[0] == 0)


def test_a_shift_is_taken_over_when_its_worker_is_killed_and_no_page_is_captured_twice(
    tmp_path: Path, cluster: Cluster
) -> None:
    with Sandbox(tmp_path, tick_s=0.05, mine_every_s=0.5, authority=False) as sandbox:
        config = sandbox.write_config()
        shared(cluster, config)
        with Fleet(config, 2) as fleet:
            assert anchord("add", SEED, config=config).code == 0
            eventually(lambda: on_shift(config) is not None)
            worker = next(one for one in fleet.workers if one.pid == on_shift(config))
            worker.kill()
            eventually(lambda: stored(config) == 4 and open_events(config) == 0, 90)
            left = next(one for one in fleet.workers if one is not worker)
            assert left.stopped() == 0
        assert sandbox.archive is not None
        assert sandbox.wayback.requests["save"] == 4
        assert anchord("ledger", "check", config=config).code == 0


def on_shift(config: Path) -> int | None:
    document = anchord("status", "--json", config=config).json
    found = [one["pid"] for one in document["workers"] if "storing" in one["duties"]]
    return found[0] if found else None


def test_a_daemon_and_workers_keep_each_other_out(config: Path) -> None:
    with Fleet(config, 1) as fleet:
        refused = anchord("run", config=config)
        assert refused.code == 3
        assert f"pid {fleet.workers[0].pid} on host" in refused.err
        (row,) = anchord("status", "--json", config=config).json["workers"]
        assert row["pid"] == fleet.workers[0].pid
        assert fleet.stop() == [0]
    with open_app(str(config)) as app, app.store.serving(int(time.time())):
        refused = anchord("worker", config=config)
    assert refused.code == 3
    assert "is served already" in refused.err


def test_the_queue_does_not_grow_and_the_service_manager_is_told(
    config: Path, cluster: Cluster, tmp_path: Path
) -> None:
    told = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "2000000"}
    with (
        contextlib.closing(ManagerSocket(tmp_path / "notify")) as manager,
        Worker(config, tmp_path / "journal", **told) as worker,
    ):
        worker.until("started")
        manager.until(lambda message: "READY" in message)
        manager.until(lambda message: "WATCHDOG" in message)
        with open_app(str(config)) as app:
            url = app.config.store.url
        edit(cluster, url, NEVER_ENDED)
        goes_on(config)
        assert jobs(cluster, url) < 20
        edit(cluster, url, "TRUNCATE procrastinate_workers, procrastinate_jobs CASCADE")
        goes_on(config)
        config.write_text(config.read_text("utf-8").replace("shift_s = 3.0", "shift_s = 4.0"))
        manager.take(0.5)  # a socket that nobody reads takes ten messages, and no more
        worker.send(signal.SIGHUP)
        worker.until("reload")
        assert "fleet.shift_s" in str(worker.log)
        assert worker.stopped() == 0
        manager.until(lambda message: "STOPPING" in message)
    assert jobs(cluster, url) < 20
