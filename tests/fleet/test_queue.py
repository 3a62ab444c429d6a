"""The queue: its tables, its intervals, and that it neither grows nor keeps what is stalled."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st
from procrastinate.schema import SchemaManager
from support.fleet import workers_of
from support.postgres import Cluster
from support.workplace import run

from anchord.app.fleet import schema
from anchord.app.fleet.address import connection_arguments
from anchord.app.fleet.queue import cron
from anchord.app.fleet.roster import workers
from anchord.errors import ConfigError

SECONDS = st.floats(0.01, 86_400)


@given(SECONDS)
def test_looks_are_never_further_apart_than_they_may_be_nor_much_closer(every_s: float) -> None:
    moments = croniter(cron(every_s), datetime(2026, 3, 1, tzinfo=UTC))
    times = [moments.get_next(float) for _ in range(80)]
    apart = {round(later - earlier) for earlier, later in pairwise(times)}
    assert len(apart) == 1, "every interval divides the next unit"
    assert apart.pop() <= max(every_s, 1) < 2.01 * (times[1] - times[0])


def note(url: str, words: str | None = None) -> str:
    with psycopg.connect(**connection_arguments(url)) as connection:
        if words is not None:
            connection.execute(f"COMMENT ON TABLE procrastinate_jobs IS '{words}'")
        row = connection.execute(
            "SELECT obj_description('procrastinate_jobs'::regclass, 'pg_class')"
        ).fetchone()
    assert row is not None
    return row[0]


def test_tables_are_made_once_and_say_how_far_they_are(cluster: Cluster) -> None:
    url = cluster.empty()
    newest = max(path.name for path in Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    assert schema.install(url)
    assert not schema.install(url)
    assert note(url) == f"anchord: {newest}"


def test_missing_migrations_are_run_in_order_and_noted(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = cluster.empty()
    schema.install(url)
    for number, statement in (
        (2, "INSERT INTO later VALUES (1)"),
        (1, "CREATE TABLE later (n int)"),
    ):
        (tmp_path / f"99.00.00_0{number}_more.sql").write_text(statement, "utf-8")
    monkeypatch.setattr(SchemaManager, "get_migrations_path", lambda: str(tmp_path))
    assert schema.install(url)
    assert not schema.install(url)
    assert note(url) == "anchord: 99.00.00_02_more.sql"
    assert cluster.execute(url.rpartition("/")[2], "SELECT count(*) FROM later") == [(1,)]


def test_tables_that_were_dropped_by_hand_are_made_anew(cluster: Cluster) -> None:
    url = cluster.empty()
    schema.install(url)
    name = url.rpartition("/")[2]
    cluster.execute(name, "CREATE TABLE other (n int)")
    cluster.execute(name, "DROP TABLE procrastinate_jobs CASCADE")
    assert schema.install(url)
    assert workers(url) == []
    assert cluster.execute(name, "SELECT count(*) FROM other") == [(0,)]


def test_tables_of_a_newer_library_are_refused_with_what_to_do(cluster: Cluster) -> None:
    url = cluster.empty()
    schema.install(url)
    note(url, "anchord: 99.00.00_01_later.sql")
    with pytest.raises(ConfigError, match="newer Procrastinate"):
        schema.install(url)


def test_two_stores_in_one_database_have_a_queue_each(cluster: Cluster) -> None:
    first = cluster.empty()
    cluster.execute(first.rpartition("/")[2], "CREATE SCHEMA second")
    second = f"{first}?options=-csearch_path%3Dsecond"
    assert schema.install(first)
    assert schema.install(second)
    with workers_of(second):
        assert len(workers(second)) == 2
        assert workers(first) == []


def test_a_queue_of_somebody_else_is_left_alone(cluster: Cluster) -> None:
    url = cluster.empty()
    schema.install(url)
    note(url, "of the shop")
    with pytest.raises(ConfigError, match="did not make"):
        schema.install(url)


def test_a_sqlite_store_cannot_be_shared(tmp_path: Path) -> None:
    (tmp_path / "anchord.toml").write_text("", "utf-8")
    assert run("init", str(tmp_path)).exit_code == 0
    refused = run("-c", str(tmp_path / "anchord.toml"), "worker")
    assert refused.exit_code == 2
    assert "anchord migrate-store" in refused.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--queue", "nonsense"], "there are receive, seal, submit"),
        (["--concurrency", "1"], "--queue"),
    ],
)
def test_what_cannot_work_is_refused_with_what_can(
    cluster: Cluster, tmp_path: Path, words: list[str], expected: str
) -> None:
    config = tmp_path / "anchord.toml"
    config.write_text(f'[store]\nurl = "{cluster.empty()}"\n', "utf-8")
    assert run("init", str(tmp_path)).exit_code == 0
    refused = run("-c", str(config), "worker", *words)
    assert refused.exit_code == 2
    error = refused.exception
    assert expected in f"{refused.stderr} {getattr(error, 'message', '')}"


def test_the_roster_tells_who_works_and_who_is_gone(cluster: Cluster) -> None:
    url = cluster.empty()
    assert workers(url) == []
    with workers_of(url):
        gone, here = workers(url)
    assert (gone.pid, gone.duties) == (None, [])
    assert here.pid is not None
    assert here.duties == ["seal"]
    assert here.since is not None
    assert abs(time.time() - datetime.fromisoformat(here.since).timestamp()) < 60
