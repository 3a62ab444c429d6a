"""Who may run passes on a store, and who serves it, on files and on a real PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from support.passes import bare
from support.postgres import Cluster

from anchord.adapters.store.database import create
from anchord.adapters.store.sql import SqlStore
from anchord.errors import ConfigError, StoreBusyError


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        found = f"sqlite:///{tmp_path / 'anchord.db'}"
    else:
        found = request.getfixturevalue("cluster").empty()
    create(found)
    return found


@pytest.fixture
def fleet_url(cluster):
    found = cluster.empty()
    create(found)
    return found


@pytest.fixture
def stores():
    made = []

    def open_store(url, **arguments):
        made.append(SqlStore(url, **arguments))
        return made[-1]

    yield open_store
    for store in made:
        store.close()


CUT_ALL = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
HOLD = """
import sys
from anchord.adapters.store.sql import SqlStore
store = SqlStore(sys.argv[1])
with store.exclusive() if sys.argv[2] == "exclusive" else store.serving(1, shared=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(url, what="exclusive"):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, url, what], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"held\n"
    return process


def end(process, how=signal.SIGKILL):
    process.send_signal(how)
    process.wait(10)
    process.stdin.close()
    process.stdout.close()


def test_the_right_to_pass_is_one_processs_and_ends_with_it(url, stores):
    other, store = holder(url), stores(url)
    with pytest.raises(StoreBusyError, match="another anchord"), store.exclusive():
        pass
    assert store.add(bare(1), 1).new == 1, "adding goes on meanwhile"
    end(other)
    store.patience_s = 5
    with store.exclusive():
        pass


def test_who_is_patient_gets_the_right_when_it_comes_free(url, stores):
    other, store = holder(url), stores(url, patience_s=20)
    freed = threading.Event()

    def free() -> None:
        freed.set()
        end(other)

    freeing = threading.Timer(0.3, free)
    freeing.start()
    with store.exclusive():
        assert freed.is_set()
    freeing.join()


def test_patience_ends(url, stores):
    other, store = holder(url), stores(url, patience_s=0.3)
    began = time.monotonic()
    with pytest.raises(StoreBusyError), store.exclusive():
        pass
    assert 0.3 <= time.monotonic() - began < 10
    end(other)


def test_a_thread_that_has_the_right_may_take_it_again_and_keeps_it(url, stores):
    store, beside = stores(url), stores(url)
    with store.exclusive():
        with store.exclusive():
            assert store.add(bare(1), 1).new == 1
        with pytest.raises(StoreBusyError), beside.exclusive():
            pass
        assert store.add(bare(2), 1).new == 1
    with beside.exclusive():
        pass


def test_another_thread_of_the_same_process_does_not_have_the_right(url, stores):
    store, seen = stores(url), []

    def other():
        try:
            with store.exclusive():
                seen.append("taken")
        except StoreBusyError:
            seen.append("busy")

    with store.exclusive():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == ["busy"]


def test_the_right_is_given_back_after_a_failure(url, stores):
    store, beside = stores(url), stores(url)
    with pytest.raises(RuntimeError), store.exclusive():
        raise RuntimeError
    with beside.exclusive():
        pass


def test_two_services_exclude_each_other_and_the_second_is_told_whose_it_is(url, stores):
    store, beside = stores(url), stores(url)
    assert store.service() is None
    with store.serving(1):
        assert beside.service() is not None
        with pytest.raises(StoreBusyError, match="runs since"), beside.serving(2):
            pass
    assert beside.service() is None
    with beside.serving(3):
        pass


def test_a_file_is_not_shared_by_workers(tmp_path, stores):
    found = f"sqlite:///{tmp_path / 'anchord.db'}"
    create(found)
    with pytest.raises(ConfigError, match="migrate-store"), stores(found).serving(1, shared=True):
        pass


def test_workers_share_a_server_and_a_daemon_does_not_come_between(fleet_url, stores):
    a, b, daemon = stores(fleet_url), stores(fleet_url), stores(fleet_url)
    with (
        a.serving(1, shared=True),
        b.serving(1, shared=True),
        pytest.raises(StoreBusyError, match="anchord worker"),
        daemon.serving(1),
    ):
        pass
    with (
        daemon.serving(1),
        pytest.raises(StoreBusyError, match="anchord run"),
        a.serving(1, shared=True),
    ):
        pass


def test_a_worker_that_dies_is_no_service_any_more(fleet_url, stores):
    other, store = holder(fleet_url, "shared"), stores(fleet_url)
    assert store.service().pid == other.pid
    end(other)
    deadline = time.monotonic() + 10
    while store.service() is not None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert store.service() is None


def test_who_lost_its_connection_lost_the_right_and_cannot_write(cluster, fleet_url, stores):
    store, beside = stores(fleet_url), stores(fleet_url)
    with store.exclusive():
        store.add(bare(1), 1)
        database = fleet_url.rsplit("/", 1)[1]
        cluster.execute(database, CUT_ALL)
        with beside.exclusive():
            for _ in range(3):
                with pytest.raises(StoreBusyError):
                    store.add(bare(2), 1)
            assert beside.add(bare(3), 1).new == 2
        with pytest.raises(StoreBusyError):
            store.add(bare(4), 1)
    with store.exclusive():
        assert store.add(bare(4), 1).new == 1


def test_a_server_that_restarts_is_a_store_that_is_busy(cluster, fleet_url, stores):
    store = stores(fleet_url)
    store.add(bare(1), 1)
    cluster.restart(signal.SIGQUIT)
    for _ in range(5):
        try:
            added = store.add(bare(1), 1)
        except StoreBusyError:
            continue
        break
    assert added.known == 1


def test_a_writer_that_stops_in_the_middle_holds_up_others_for_a_while_only(
    fleet_url, stores, monkeypatch
):
    from anchord.adapters.store import postgres

    quick = postgres._BEGIN_WRITING.replace("'60s'", "'300ms'")
    assert quick != postgres._BEGIN_WRITING
    monkeypatch.setattr(postgres, "_BEGIN_WRITING", quick)
    stopped, store = stores(fleet_url), stores(fleet_url)
    with pytest.raises(StoreBusyError), stopped.records._database.writing():
        assert store.add(bare(1), 1).new == 1, "the server let go of the one that stopped"


def test_a_password_that_is_wrong_wants_a_person_and_is_not_shown(cluster):
    address = cluster.url("nowhere").replace("@", ":very-secret@")
    with pytest.raises(ConfigError) as caught:
        SqlStore(address)
    assert "very-secret" not in str(caught.value)


def test_a_process_is_known_by_more_than_its_number_and_machine():
    from anchord.adapters.store.postgres import application_name, process_named

    name = application_name()
    assert process_named(name[:63])[0] == os.getpid()
    assert process_named("anchord 12 x my long host") == (12, "my long host")
    for other in (None, "", "psql", "anchord", "anchord x y z", "anchord 12"):
        assert process_named(other) == (None, None)
    told = subprocess.run(
        [sys.executable, "-c", "from anchord.adapters.store import postgres as p; print(p._TOKEN)"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    assert told
    assert told not in name
