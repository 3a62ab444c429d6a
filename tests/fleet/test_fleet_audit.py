"""An audit by workers finds what one process does, whatever happens to workers, table and store."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.fleet import Fleet, Worker, eventually, shared
from support.postgres import Cluster
from support.running import Ran, anchord, start

from anchord.app.fleet import asking
from anchord.app.fleet.address import connection_arguments
from anchord.app.wiring import open_app
from anchord.core.model import Record, Scheme
from anchord.errors import FatalError
from anchord.sandbox.run import Sandbox

LEASE_S = 8.0
COUNT = 8
NOTED = "audited-by-workers"
"""The one finding that only an audit by workers has."""
HELD = """
    CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END $$;
    CREATE TRIGGER held BEFORE UPDATE ON audit_shards FOR EACH ROW EXECUTE FUNCTION held();
"""
"""Lets a test hold up answers: they wait while another session has the lock 4711."""


class Place:
    """A store with anchored records on a server, and its sandbox."""

    def __init__(self, sandbox: Sandbox, config: Path, url: str) -> None:
        self.sandbox, self.config, self.url = sandbox, config, url
        self.alone: Ran
        self.sessions = contextlib.ExitStack()

    def session(self) -> psycopg.Connection[Any]:
        return self.sessions.enter_context(
            psycopg.connect(**connection_arguments(self.url), autocommit=True)
        )

    def run(self, statement: Any, values: Any = ()) -> list[tuple[Any, ...]]:
        with psycopg.connect(**connection_arguments(self.url), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def anchor(self, name: str) -> None:
        records = [
            Record(digest=hashlib.sha256(f"{name} {n}".encode()).digest(), scheme=Scheme.SHA256)
            for n in range(COUNT)
        ]
        with open_app(str(self.config)) as app:
            app.store.add(records, int(time.time()))

        def done() -> bool:
            assert anchord("run-once", config=self.config).code == 0
            self.sandbox.mine(1)
            with open_app(str(self.config)) as app:
                waits = app.store.counts.by_state().keys() - {"anchored"}
                return not waits and not app.store.counts.unsigned()

        eventually(done)

    def audit(self, *words: str) -> Ran:
        return anchord("audit", "--json", *words, config=self.config)

    def left(self) -> int:
        """Return how many rows and tasks are left of audits."""
        rows = "SELECT (SELECT count(*) FROM audit_shards) + (SELECT count(*)"
        tasks = " FROM procrastinate_jobs WHERE queue_name = 'audit' AND status = 'todo')"
        return int(self.run(rows + tasks)[0][0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("whole")
    with Sandbox(folder, tick_s=0.05, archive=False, authority=False) as sandbox:
        config = sandbox.write_config()
        place = Place(sandbox, config, shared(cluster, config, LEASE_S))
        for name in ("first", "second"):
            place.anchor(name)
        place.alone = place.audit("--jobs", "1")
        assert place.alone.json["result"] == "sound", place.alone.out
        yield place


@pytest.fixture
def place(whole: Place, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A copy of the store, to be damaged; its shards are small and many."""
    monkeypatch.setattr(asking, "STRETCHES", 1)
    monkeypatch.setattr("anchord.engine.audit.store_plan.LONGEST", 4)
    url = cluster.empty(like=whole.url.rpartition("/")[2])
    config = whole.config.with_name("copy.toml")
    config.write_text(whole.config.read_text("utf-8").replace(whole.url, url), "utf-8")
    found = Place(whole.sandbox, config, url)
    found.alone = whole.alone
    with found.sessions:
        yield found


def same(by_workers: Ran, alone: Ran) -> dict[str, Any]:
    """Hold two reports against each other; return the note that only one of them has."""
    reports = by_workers.json, alone.json
    for report in reports:
        for name in ("created_at", "seconds", "source", "completeness"):
            del report[name]
    notes = [one for one in reports[0]["findings"] if one["code"] == NOTED]
    reports[0]["findings"] = [one for one in reports[0]["findings"] if one["code"] != NOTED]
    assert reports[0]["counts"].pop(NOTED) == len(notes) == 1
    assert reports[0] == reports[1]
    assert by_workers.code == alone.code
    return notes[0]


DAMAGE = (
    "UPDATE events SET signature = decode(repeat('00', 64), 'hex') WHERE seq % 5 = 0",
    "UPDATE tiles SET nonces = decode('00', 'hex') WHERE batch_id = 2",
)


def test_workers_find_what_one_process_finds(place: Place) -> None:
    with Fleet(place.config, 2):
        note = same(place.audit("--fleet"), place.alone)
        assert note["severity"] == "note"
        assert "worker" in note["what"]
        for statement in DAMAGE:
            place.run(statement)
        alone = place.audit("--jobs", "1")
        assert alone.json["counts"].keys() > {"signature-wrong", "tile-damaged"}
        same(place.audit("--fleet"), alone)
        assert place.left() == 0


@contextlib.contextmanager
def beside(work: Any) -> Iterator[list[Any]]:
    """Do something on a thread meanwhile; what it returned is there at the end."""
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    try:
        yield done
    finally:
        thread.join(120)
        assert not thread.is_alive()


def answering(place: Place) -> list[int]:
    """Return the processes that wait to write an answer down."""
    rows = place.run(
        "SELECT split_part(application_name, ' ', 2)::int FROM pg_stat_activity JOIN pg_locks"
        " USING (pid) WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted"
    )
    return [row[0] for row in rows]


def test_a_worker_killed_in_the_middle_costs_its_lease(place: Place) -> None:
    place.run(HELD)
    with Fleet(place.config, 2) as fleet:
        holder = place.session()
        holder.execute("SELECT pg_advisory_lock(4711)")
        with beside(lambda: place.audit("--fleet")) as done:
            eventually(lambda: len(answering(place)) == 2, 150)
            victim = fleet.workers[0]
            assert victim.pid in answering(place)
            victim.kill()
            killed = time.monotonic()
            ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            place.run(
                ended + " WHERE starts_with(application_name, %s)", (f"anchord {victim.pid} ",)
            )
            holder.execute("SELECT pg_advisory_unlock(4711)")
        assert time.monotonic() - killed < LEASE_S + 20
        same(done[0], place.alone)
    assert place.left() == 0


def test_without_workers_or_a_server_it_says_what_to_do(place: Place, tmp_path: Path) -> None:
    refused = place.audit("--fleet")
    assert refused.code == 2
    assert "start `anchord worker`" in refused.err
    assert place.audit("--fleet", "--jobs", "2").code == 2
    (tmp_path / "anchord.toml").write_text("", "utf-8")
    assert anchord("init", tmp_path).code == 0
    refused = anchord("audit", "--fleet", config=tmp_path / "anchord.toml")
    assert refused.code == 2
    assert "--jobs" in refused.err


def test_workers_that_do_other_things_are_not_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", -2 * LEASE_S)
    with Worker(place.config, place.config.parent / "journal", "--queue", "seal") as worker:
        worker.until("started")
        gave_up = place.audit("--fleet")
    assert gave_up.code == 3
    assert "--queue audit" in gave_up.err
    assert place.left() == 0


GARBAGE = {
    "SET spec = 'no shard' WHERE shard = 2": "begun 3 times",
    "SET spec = 'no frame' WHERE shard = 0": "begun 3 times",
    r"SET result = '\x636f730a', done_at = 1, worker = 'me' WHERE shard = 1": "audit_shards",
}
"""What somebody may write into the table, and what the audit says then."""
WRITES = """
    CREATE OR REPLACE FUNCTION garbage() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN IF NEW.shard = 2 THEN UPDATE audit_shards {}; END IF; RETURN NULL; END $$;
    CREATE OR REPLACE TRIGGER garbage AFTER INSERT ON audit_shards
    FOR EACH ROW EXECUTE FUNCTION garbage();
"""


def test_garbage_in_the_table_ends_the_audit_and_no_worker(place: Place) -> None:
    with Fleet(place.config, 1) as fleet:
        for garbage, words in GARBAGE.items():
            place.run(WRITES.format(garbage))
            failed = place.audit("--fleet")
            assert failed.code == FatalError.exit_code
            assert words in failed.err
        place.run("DROP TRIGGER garbage ON audit_shards")
        same(place.audit("--fleet"), place.alone)
        assert [one.process.poll() for one in fleet.workers] == [None]
        refusals = [line for line in fleet.workers[0].log if line["event"] == "retry"]
        assert len(refusals) >= 6
        # A shard may also be begun just after its audit has ended, and then sees nothing.
        others = [line for line in refusals if not line["message"].startswith("shard ")]
        assert others == []
    assert place.left() == 0


def test_two_audits_at_once_do_not_meet(place: Place) -> None:
    place.run(HELD)
    holder = place.session()
    holder.execute("SELECT pg_advisory_lock(4711)")
    with Fleet(place.config, 2), anchord_process(place) as other:
        eventually(lambda: place.run("SELECT count(DISTINCT audit) FROM audit_shards")[0][0] == 1)
        with beside(lambda: place.audit("--fleet")) as done:
            two = "SELECT count(DISTINCT audit) FROM audit_shards"
            eventually(lambda: place.run(two)[0][0] == 2)
            holder.execute("SELECT pg_advisory_unlock(4711)")
        out, err = other.communicate(timeout=60)
        same(done[0], place.alone)
        assert other.returncode == 0, err
        assert json.loads(out)["coverage"] == place.alone.json["coverage"]
    assert place.left() == 0


@contextlib.contextmanager
def anchord_process(place: Place) -> Iterator[Any]:
    process = start("audit", "--json", "--fleet", config=place.config)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_ctrl_c_takes_everything_away(place: Place) -> None:
    place.run(HELD)
    holder = place.session()
    holder.execute("SELECT pg_advisory_lock(4711)")
    with Fleet(place.config, 1), anchord_process(place) as process:
        eventually(lambda: bool(answering(place)))
        process.send_signal(signal.SIGINT)
        holder.execute("SELECT pg_advisory_unlock(4711)")
        _, err = process.communicate(timeout=30)
        assert process.returncode not in (0, None)
        assert "Traceback" not in err
        assert place.left() == 0


def test_whatever_is_written_meanwhile_the_audit_is_of_one_moment(place: Place) -> None:
    place.run(HELD)
    holder = place.session()
    holder.execute("SELECT pg_advisory_lock(4711)")
    with Fleet(place.config, 2):
        with beside(lambda: place.audit("--fleet")) as done:
            eventually(lambda: bool(answering(place)))
            for statement in DAMAGE:
                place.run(statement)
            holder.execute("SELECT pg_advisory_unlock(4711)")
        same(done[0], place.alone)
        assert place.audit("--fleet").json["result"] == "broken"


def test_what_an_audit_left_that_died_goes_with_a_later_one(place: Place) -> None:
    day = int(time.time()) - 90_000
    for name, at in (("old", day), ("new", day + 80_000)):
        values = "INSERT INTO audit_shards VALUES (%s, 0, '', NULL, NULL, %s, NULL)"
        place.run(values, (name, at))
    with Fleet(place.config, 1):
        assert place.audit("--fleet").code == 0
    assert place.run("SELECT audit FROM audit_shards") == [("new",)]
