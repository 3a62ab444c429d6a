"""Write-back into somebody's own database: run again it comes to the same, and text stays text."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import stores
from support.handing_over import Exchange
from support.silence import mute
from support.workplace import sample

from anchord.adapters.outlets import sql
from anchord.adapters.outlets.sql import BINDS, SqlOutlet, values_of
from anchord.core.model import Scheme, StoredRecord
from anchord.engine.delivering import deliver
from anchord.errors import ConfigError, TransientError
from anchord.ports.outlet import Delivery

ANCHORED = "UPDATE papers SET anchored_at = :anchored_at, event = :event_id WHERE sha256 = :digest"
STATEMENTS = {
    "timestamp_anchored": ANCHORED,
    "facet_withdrawn": "UPDATE papers SET anchored_at = NULL, event = :event_id, "
    "note = :facet || ': ' || :reason WHERE sha256 = :digest",
}
TABLE = """CREATE TABLE papers (
    sha256 VARCHAR(64) PRIMARY KEY, id TEXT, anchored_at TEXT, event TEXT, note TEXT,
    writes INTEGER DEFAULT 0, small VARCHAR(5), CHECK (note IS NULL OR note <> 'no'))"""


@pytest.fixture(params=["sqlite", "postgres"])
def theirs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sa.Engine]:
    """The operator's database, with a table of papers."""
    url = f"sqlite:///{tmp_path / 'theirs.db'}"
    if request.param == "postgres":
        url = stores.server().empty()
    driver = sa.make_url(url)
    if driver.drivername == "postgresql":
        driver = driver.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(driver)
    with engine.begin() as connection:
        connection.exec_driver_sql(TABLE)
    yield engine
    engine.dispose()


def url_of(engine: sa.Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def rows(engine: sa.Engine) -> dict[str, Any]:
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT * FROM papers").mappings()
        return {row["sha256"]: row for row in found}


def insert(engine: sa.Engine, *digests: str) -> None:
    with engine.begin() as connection:
        for digest in digests:
            connection.execute(
                sa.text("INSERT INTO papers (sha256) VALUES (:digest)"), {"digest": digest}
            )


def delivery(number: int, payload: Any = None, **names: Any) -> Delivery:
    record = StoredRecord(
        **{
            "id": number, "digest": bytes([number]) * 32, "scheme": Scheme.SHA256, "year": None,
            "source_kind": None, "source_id": None, "source_version": None, "label": None,
            "batch_id": None, "added_at": 0, **names,
        }
    )  # fmt: skip
    return Delivery(
        seq=number, record=record, number=None, event_id=f"sha256:{number:064x}",
        event_type="timestamp_anchored", facet="anchored", created_at=0,
        document=json.dumps({"payload": payload or {"block_time": "2024-08-01T12:00:00Z"}}).encode()
    )  # fmt: skip


def run(engine: sa.Engine, statement: str, *some: Delivery, **options: Any) -> Any:
    outlet = SqlOutlet("db", url_of(engine), {"timestamp_anchored": statement}, **options)
    try:
        return outlet.hand_over(some)
    finally:
        outlet.close()


def test_facets_are_written_back_and_taken_back(theirs: sa.Engine, tmp_path: Path) -> None:
    records = [sample(n) for n in range(3)]
    insert(theirs, *(record.digest.hex() for record in records), "f" * 64)
    go = Exchange(tmp_path, SqlOutlet("db", url_of(theirs), STATEMENTS))
    go.add(records)
    go()
    assert {row["event"] for row in rows(theirs).values()} == {None}
    go.anchor()
    found = rows(theirs)
    for record in records:
        row = found[record.digest.hex()]
        assert row["anchored_at"].endswith("Z")
        assert row["event"].startswith("sha256:")
    assert found["f" * 64]["event"] is None
    go.chain.reorg(6)
    go.parts.calendars[0].mine(go.chain)
    go(6 * 3_600)
    for record in records:
        row = rows(theirs)[record.digest.hex()]
        assert row["anchored_at"] is None
        assert row["note"].startswith("anchored: ")
    go.parts.outlets[0].close()
    go.parts.store.close()


def test_running_it_again_comes_to_the_same(theirs: sa.Engine) -> None:
    insert(theirs, "01" * 32, "02" * 32)
    some = [delivery(1), delivery(2)]
    assert run(theirs, ANCHORED, *some) == {}
    before = rows(theirs)
    assert run(theirs, ANCHORED, *some) == {}
    assert rows(theirs) == before


def test_a_row_the_database_refuses_is_refused_alone(theirs: sa.Engine) -> None:
    insert(theirs, *(f"{n:02x}" * 32 for n in range(1, 6)))
    some = [delivery(n, {"reason": "no" if n == 3 else "yes"}) for n in range(1, 6)]
    refused = run(theirs, "UPDATE papers SET note = :reason WHERE sha256 = :digest", *some)
    assert list(refused) == [3]
    assert "refused it" in refused[3]
    assert refused[3].isprintable()
    noted = {row["sha256"][:2]: row["note"] for row in rows(theirs).values()}
    assert noted == {"01": "yes", "02": "yes", "03": None, "04": "yes", "05": "yes"}


def test_rows_that_are_refused_slowly_hold_up_nobody(
    theirs: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "CALL_S", -1.0)
    some = [delivery(n, {"reason": "no"}) for n in range(1, 4)]
    insert(theirs, *(one.record.digest.hex() for one in some))
    answer = run(theirs, "UPDATE papers SET note = :reason WHERE sha256 = :digest", *some)
    assert (list(answer.refused), answer.rest) == ([1], 2)


def test_a_number_that_the_driver_cannot_send_refuses_its_row_alone(theirs: sa.Engine) -> None:
    insert(theirs, "01" * 32, "02" * 32)
    some = [delivery(1, {"block_height": 1 << 70}), delivery(2, {"block_height": 2})]
    written = "UPDATE papers SET writes = :block_height WHERE sha256 = :digest"
    assert list(run(theirs, written, *some)) == [1]
    assert rows(theirs)["02" * 32]["writes"] == 2


@pytest.mark.parametrize(
    "statement",
    ["UPDATE nowhere SET x = :id", "UPDATE papers SET nothing = :id", "UPDATE papers SAT x"],
)
def test_a_wrong_statement_wants_a_person(theirs: sa.Engine, statement: str) -> None:
    with pytest.raises(ConfigError, match=r"outlets \(db\)") as caught:
        run(theirs, statement, delivery(1))
    assert str(caught.value).isprintable()


HOSTILE = st.text(max_size=40) | st.sampled_from(
    ["'; DROP TABLE papers; --", "%(id)s :digest ?", "$1", "\\", "\x00", "\x1b[31m", "\ud7ff", "☃"]
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(HOSTILE, HOSTILE)
def test_text_of_records_is_a_value_and_never_sql(theirs: sa.Engine, name: str, url: str) -> None:
    with theirs.begin() as connection:
        connection.exec_driver_sql("DELETE FROM papers")
    insert(theirs, "01" * 32, "02" * 32)
    statement = "UPDATE papers SET id = :id, note = :original_url WHERE sha256 = :digest"
    one = delivery(1, {"original_url": url}, source_id=name)
    refused = run(theirs, statement, one)
    found = rows(theirs)
    assert found["02" * 32]["id"] is None
    if refused:
        assert "\x00" in name + url or url == "no"
    else:
        assert (found["01" * 32]["id"], found["01" * 32]["note"]) == (name, url)


def test_an_event_has_every_value_that_a_statement_may_name() -> None:
    found = values_of(delivery(1, source_id="2507.1", source_kind="arxiv", source_version=2))
    assert tuple(found) == BINDS
    assert (found["id"], found["kind"], found["version"]) == ("2507.1", "arxiv", 2)
    assert found["anchored_at"] == "2024-08-01T12:00:00Z"
    assert (found["created_at"], found["item"]) == ("1970-01-01T00:00:00Z", None)


def test_an_unknown_name_is_refused_before_anything_is_run() -> None:
    with pytest.raises(ConfigError, match=r"names :ident; what there is: :id, "):
        SqlOutlet("db", "sqlite:///x.db", {"timestamp_anchored": "UPDATE t SET a = :ident"})


def test_casts_are_no_names() -> None:
    SqlOutlet("db", "sqlite:///x.db", {"timestamp_anchored": "UPDATE t SET a = :id::text"}).close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://me:secretword@db.example.org/x", "holds a password"),
        ("nonsense", "no SQLAlchemy URL"),
        ("nosuchdialect://db.example.org/x", "no SQLAlchemy URL"),
        ("sqlite+nosuchdriver:///x", "no SQLAlchemy URL|driver is missing"),
    ],
)
def test_a_url_that_cannot_be_used_is_told_without_its_password(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        SqlOutlet("db", url, STATEMENTS)
    assert "secretword" not in str(caught.value)


def test_a_locked_database_is_tried_again_later(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    other = sqlite3.connect(file, isolation_level=None)
    other.execute(TABLE)
    other.execute("BEGIN IMMEDIATE")
    engine = sa.create_engine(f"sqlite:///{file}")
    with pytest.raises(TransientError, match="locked"):
        run(engine, ANCHORED, delivery(1), timeout_s=0.1)
    other.close()
    assert run(engine, ANCHORED, delivery(1)) == {}
    engine.dispose()


def test_a_statement_that_waits_too_long_is_ended_by_the_server(theirs: sa.Engine) -> None:
    if theirs.dialect.name == "sqlite":
        return  # the test before
    insert(theirs, "01" * 32)
    with theirs.connect() as other:
        other.exec_driver_sql("LOCK TABLE papers IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(TransientError, match="timeout"):
            run(theirs, ANCHORED, delivery(1), timeout_s=1.0)
    assert run(theirs, ANCHORED, delivery(1)) == {}


def test_a_server_that_says_nothing_any_more_is_hung_up_on() -> None:
    engine = sa.create_engine(stores.server().empty().replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(TABLE)
    insert(engine, "01" * 32)
    slowly = "UPDATE papers SET id = :id WHERE pg_sleep(0.5) IS NOT NULL"
    outlet = SqlOutlet("db", url_of(engine), {"timestamp_anchored": slowly}, timeout_s=1)
    with mute(url_of(engine)) as stopped:
        started = time.monotonic()
        with pytest.raises(TransientError, match="tried again later"):
            outlet.hand_over([delivery(1)])
        assert stopped
        assert time.monotonic() - started < 20
        assert outlet.hand_over([delivery(1)]) == {}  # by a connection that is new
    outlet.close()
    engine.dispose()


def test_a_server_that_is_away_is_tried_again_later() -> None:
    url = "postgresql://anchord@127.0.0.1:1/x"
    outlet = SqlOutlet("db", url, STATEMENTS, timeout_s=1.0)
    with pytest.raises(TransientError, match="tried again"):
        outlet.hand_over([delivery(1)])
    outlet.close()


def test_a_session_that_the_server_ended_is_replaced(theirs: sa.Engine) -> None:
    if theirs.dialect.name == "sqlite":
        return  # has no sessions
    insert(theirs, "01" * 32)
    outlet = SqlOutlet("db", url_of(theirs), {"timestamp_anchored": ANCHORED})
    outlet.hand_over([delivery(1)])
    with theirs.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE application_name = 'anchord outlet' AND datname = current_database()"
        )
    assert outlet.hand_over([delivery(1)]) == {}
    outlet.close()


def test_the_password_is_read_from_its_file_at_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("first\n", "utf-8")
    file.chmod(0o600)
    url = "postgresql://anchord@127.0.0.1:1/x"
    outlet = SqlOutlet("db", url, STATEMENTS, password_file=file, timeout_s=1.0)
    given_to: list[Any] = []
    sa.event.listen(
        outlet._engine, "do_connect", lambda _d, _r, _a, given: given_to.append(dict(given))
    )
    for password in ("first", "second"):
        file.write_text(f"{password}\n", "utf-8")
        with pytest.raises(TransientError) as caught:
            outlet.hand_over([delivery(1)])
        assert given_to[-1]["password"] == password
        assert password not in str(caught.value)
    file.chmod(0o604)
    with pytest.raises(ConfigError, match="open to everybody"):
        outlet.hand_over([delivery(1)])
    outlet.close()


def test_deliveries_go_on_where_the_database_came_back(tmp_path: Path) -> None:
    """The whole way: no table at first, then one; nothing is lost and nothing was set aside."""
    file = tmp_path / "theirs.db"
    url, statements = f"sqlite:///{file}", {"timestamp_submitted": ANCHORED}
    go = Exchange(tmp_path, SqlOutlet("db", url, statements))
    go.add([sample(1), sample(2)])
    assert "no such table" in go().delivered.problems["db"]
    with sqlite3.connect(file) as other:
        other.execute(TABLE)
        digests = [(sample(n).digest.hex(),) for n in (1, 2)]
        other.executemany("INSERT INTO papers (sha256) VALUES (?)", digests)
    other.close()
    assert deliver(go.parts, go.clock.advance(60)).events == 2
    engine = sa.create_engine(url)
    assert all(row["event"] for row in rows(engine).values())
    engine.dispose()
    go.parts.outlets[0].close()
    go.parts.store.close()
