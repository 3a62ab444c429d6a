"""Sessions of a PostgreSQL store that idled: found out about without asking each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.passes import bare
from support.serving import eventually
from support.stores import POSTGRES, keep_in, made, server

from anchord.adapters.store import postgres
from anchord.adapters.store.sql import SqlStore

KILL = """SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()"""
LEFT = KILL.replace("count(pg_terminate_backend(pid, 10000))", "count(*)")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    keep_in(POSTGRES)
    opened = SqlStore(made(tmp_path))
    yield opened
    opened.close()
    keep_in(None)


def cut(store: SqlStore) -> None:
    """End all sessions of a store's database, and wait until they are gone."""
    database = str(store._engine.url.database)
    assert server().execute(database, KILL) >= [(1,)]
    eventually(lambda: server().execute(database, LEFT) == [(0,)])


def test_a_session_that_ended_while_it_idled_is_replaced_and_nobody_hears_of_it(
    store: SqlStore,
) -> None:
    for number in range(5):
        assert store.add(bare(1, f"record {number}"), 1).new == 1
        cut(store)
    assert store.records.waiting()[0] == 5


def test_a_session_that_idles_for_long_is_asked_and_one_in_use_is_not(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []
    real = postgres._heard
    monkeypatch.setattr(postgres, "_heard", lambda driver: heard.append(real(driver)) or heard[-1])
    for _ in range(20):
        store.counts.by_state()
    assert heard
    assert not any(heard)
    monkeypatch.setattr(postgres, "_TRUSTED_IDLE_S", 0)
    cut(store)
    assert store.counts.by_state() is not None
