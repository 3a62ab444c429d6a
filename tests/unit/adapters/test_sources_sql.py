"""Records in a database: every good row comes in, whatever others are, and nothing is written."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.http_server import dead_port
from support.parties import make_parts
from support.postgres import Cluster
from support.sourcing import PAPERS, Database, digests, record_text, sha, to_the_end
from support.stores import server

from anchord.adapters.sources import held, sql
from anchord.adapters.sources.sql import SqlOptions, SqlSource
from anchord.core.model import Document, Record, Rejection
from anchord.engine import receiving
from anchord.errors import ConfigError, TransientError

NOW = 2_000_000_000
DAY = 86_400
ONWARD = "SELECT id, canonical_sha256 FROM papers WHERE id > :cursor ORDER BY id"


@pytest.fixture(params=["sqlite", "postgres"])
def papers(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    url = f"sqlite:///{tmp_path / 'papers.db'}" if request.param == "sqlite" else server().empty()
    found = Database(url.replace("postgresql:", "postgresql+psycopg:"))
    found.run(PAPERS)
    return found


@pytest.fixture
def small(tmp_path: Path) -> Database:
    found = Database(f"sqlite:///{tmp_path / 'small.db'}")
    found.run(PAPERS)
    return found


@pytest.fixture
def parts(tmp_path: Path):
    found = make_parts(tmp_path)
    yield found
    found.store.close()


def items(source: SqlSource, cursor: bytes | None = None, now: int = NOW) -> list:
    return [item for step in source.look(cursor, now) for item in step.items]


def wanted(numbers) -> set[str]:
    return {sha(record_text(one)) for one in numbers}


# ---------------------------------------------------------------------- what comes in


@pytest.mark.parametrize(
    "options",
    [{}, {"query": ONWARD}, {"query": f"{ONWARD} LIMIT 7"},
     {"query": "SELECT id, canonical_sha256 FROM papers"}],
    ids=["table", "cursor", "pages", "whole"],
)  # fmt: skip
def test_every_row_comes_in_and_later_only_what_is_new(papers, parts, options):
    papers.fill(range(1, 31))
    source = papers.source(**options)
    assert to_the_end(parts, source, NOW) == []
    assert digests(parts) == wanted(range(1, 31))
    papers.fill([40, 41])
    assert receiving.look(parts, source, NOW + 60).received.new == 2
    assert receiving.look(parts, source, NOW + 120).received.new == 0
    assert parts.store.sources.get("registry").taken == 32


def test_what_was_read_is_not_read_again_before_it_is_time(papers, parts):
    papers.fill(range(1, 11))
    source = papers.source(again_every_s=DAY)
    to_the_end(parts, source, NOW)
    assert receiving.look(parts, source, NOW + DAY - 1).received.known == 0
    assert receiving.look(parts, source, NOW + DAY).received.known == 10


def test_a_row_that_came_in_below_the_cursor_is_found_the_next_day(papers, parts):
    """Its number was drawn first, and its transaction ended last."""
    papers.fill([1, 2, 9])
    source = papers.source(query=ONWARD)
    to_the_end(parts, source, NOW)
    papers.fill([5])
    assert receiving.look(parts, source, NOW + 60).received.new == 0
    assert receiving.look(parts, source, NOW + DAY).received.new == 1
    assert digests(parts) == wanted([1, 2, 5, 9])


def test_another_query_begins_from_the_beginning(papers, parts):
    papers.fill([1, 2])
    to_the_end(parts, papers.source(query=ONWARD), NOW)
    papers.run("UPDATE papers SET canonical_sha256 = :sha WHERE id = 1", {"sha": sha("other")})
    to_the_end(parts, papers.source(query=f"{ONWARD} LIMIT 5"), NOW)
    assert sha("other") in digests(parts)


def test_rows_come_as_records_with_names_for_people(papers):
    text = json.dumps({"metadata": {"submitted_at": "2026-01-01T00:00:00Z"}, "n": 1.5})
    row = {"id": 7, "record": text, "sha": None, "url": None}
    papers.run("INSERT INTO papers VALUES (:id, :sha, :record, :url)", row)
    (record,) = items(papers.source())
    assert (record.label, record.year, json.loads(record.canonical)["n"]) == ("7", "2026", 1.5)


def test_json_columns_are_read_as_they_are_written(tmp_path):
    """What a driver makes of JSON hides a key that stands twice."""
    papers = Database(server().empty().replace("postgresql:", "postgresql+psycopg:"))
    papers.run("CREATE TABLE papers (id INTEGER PRIMARY KEY, record JSON)")
    papers.run("""INSERT INTO papers VALUES (1, '{"a": 1, "a": 2}'), (2, '{"n": 1e16}')""")
    refused, record = items(papers.source())
    assert isinstance(refused, Rejection)
    assert record.canonical == b'{"n":1e+16}'


@pytest.mark.parametrize(
    ("flags", "taken"),
    [((True, False), True), ((False, True), True), ((False, False), False), ((None, None), False),
     (("no", "0"), False), (("yes", ""), True)],
)  # fmt: skip
def test_flags_say_what_is_to_be_done(small, flags, taken):
    small.run("CREATE TABLE flagged (id INTEGER, canonical_sha256 TEXT, not_anchored, not_stored)")
    row = {"sha": sha("x"), "a": flags[0], "b": flags[1]}
    small.run("INSERT INTO flagged VALUES (1, :sha, :a, :b)", row)
    assert bool(items(small.source(table="flagged"))) == taken


@pytest.mark.parametrize("key", ["TEXT", "REAL", "TIMESTAMP", "BLOB", "NUMERIC"])
def test_keys_may_be_of_any_type_that_only_grows(small, parts, key):
    values = {"TEXT": ["a'); --", "b", "c"], "BLOB": [b"\x00", b"\x01", b"\xff"]}
    rows = values.get(key, [1, 2, 3])
    small.run(f"CREATE TABLE keyed (k {key} PRIMARY KEY, canonical_sha256 TEXT)")
    named = [{"k": one, "sha": sha(str(number))} for number, one in enumerate(rows)]
    small.run("INSERT INTO keyed VALUES (:k, :sha)", *named[:2])
    source = small.source(table="keyed", key="k")
    to_the_end(parts, source, NOW)
    small.run("INSERT INTO keyed VALUES (:k, :sha)", named[2])
    assert receiving.look(parts, source, NOW + 60).received.new == 1
    assert len(digests(parts)) == 3


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("TIMESTAMPTZ", ["2026-01-01 00:00:00+02", "2026-01-01 00:00:00+00"]),
        ("UUID", ["00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000000"]),
        ("NUMERIC", ["1.5", "123456789012345678901234567890"]),
        ("BIGINT", ["1", "9223372036854775807"]),
        ("DATE", ["2026-01-01", "2026-02-01"]),
    ],
)
def test_types_of_postgresql_are_kept_as_cursors(parts, column, values):
    papers = Database(server().empty().replace("postgresql:", "postgresql+psycopg:"))
    papers.run(f"CREATE TABLE keyed (k {column} PRIMARY KEY, canonical_sha256 TEXT)")
    for number, one in enumerate(values):
        statement = f"INSERT INTO keyed VALUES (CAST(:k AS {column}), :sha)"  # noqa: S608
        papers.run(statement, {"k": one, "sha": sha(str(number))})
        source = papers.source(table="keyed", key="k")
        assert receiving.look(parts, source, NOW + number).received.new == 1


# ---------------------------------------------------------------------- what is refused


BAD = [
    {"record": "{"}, {"record": '{"a":1,"a":2}'}, {"record": "[1]"}, {"record": "7"},
    {"record": b"\xff\xfe"}, {"sha": "zz"}, {"sha": None}, {"sha": "ab" * 33},
    {"record": '{"n":1}', "sha": sha("another")}, {"sha": b"\x00" * 31},
    {"sha": sha("x"), "url": "https://elsewhere.example.org/x"},
    {"sha": sha("x"), "url": "file:///etc/passwd"}, {"sha": sha("x"), "url": "https://u@h/"},
    {"sha": sha("x"), "url": "https://registry.example.org/../up"},
]  # fmt: skip


def test_a_bad_row_is_refused_by_itself_and_told(small, parts):
    small.fill([1, 100])
    for number, row in enumerate(BAD, 2):
        full = {"id": number, "record": None, "sha": None, "url": None, **row}
        small.run("INSERT INTO papers VALUES (:id, :sha, :record, :url)", full)
    refused = to_the_end(parts, small.source(url_hosts=frozenset(["registry.example.org"])), NOW)
    assert [one.where for one in refused] == [f"registry, id {n}" for n in range(2, len(BAD) + 2)]
    assert digests(parts) == wanted([1, 100])
    assert parts.store.sources.get("registry").refused == len(BAD)


def test_text_that_is_no_utf8_never_ends_a_look(tmp_path, parts):
    path = tmp_path / "bytes.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE papers (id INTEGER PRIMARY KEY, canonical_sha256, record)")
        connection.execute("INSERT INTO papers VALUES (1, NULL, CAST(x'7bff7d' AS TEXT))")
        connection.execute("INSERT INTO papers VALUES (2, ?, NULL)", (sha(record_text(2)),))
    connection.close()
    refused = to_the_end(parts, Database(f"sqlite:///{path}").source(), NOW)
    assert len(refused) == 1
    assert digests(parts) == wanted([2])


@settings(max_examples=60, deadline=None)
@given(
    st.none() | st.text(max_size=30) | st.binary(max_size=40) | st.integers(-(2**60), 2**60),
    st.none() | st.text(max_size=50) | st.binary(max_size=50) | st.floats(),
)
def test_whatever_a_row_holds_it_is_a_record_or_a_refusal_that_can_be_printed(key, text):
    from anchord.adapters.sources.sql_rows import Rows
    from anchord.core.model import Scheme

    rows = Rows("registry", Scheme.PITH_JSON_V1, frozenset())
    for row in ({"id": key, "record": text}, {"id": key, "canonical_sha256": text}, {"url": text}):
        found = rows.read(row)
        assert isinstance(found, Record | Document | Rejection)
        if isinstance(found, Rejection):
            assert found.where.isprintable()
        elif isinstance(found, Record):
            assert found.label is None or found.label.isprintable()


def test_a_page_of_its_own_comes_with_a_record(small):
    row = {"sha": sha("x"), "url": "https://registry.example.org/p?id=1&v=%20"}
    small.run("INSERT INTO papers VALUES (1, :sha, NULL, :url)", row)
    (record,) = items(small.source(url_hosts=frozenset(["registry.example.org"])))
    assert record.url == row["url"]


# ---------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    "query", ["DELETE FROM papers RETURNING id", "UPDATE papers SET record = 'x' RETURNING id"]
)
def test_nothing_is_ever_written(papers, parts, query):
    papers.fill([1, 2])
    looked = receiving.look(parts, papers.source(query=query), NOW)
    assert isinstance(looked.error, ConfigError | TransientError)
    assert len(items(papers.source())) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"query": "SELECT nonsense"}, "refuses what it is asked"),
        ({"query": "SELEKT"}, "refuses what it is asked"),
        ({"table": "none"}, "no table or view"),
        ({"table": "papers", "key": "none"}, "none"),
        ({"query": "SELECT canonical_sha256 FROM papers WHERE id > :cursor"}, "a column 'id'"),
        ({"query": f"{ONWARD} DESC"}, "ORDER BY"),
        ({"query": "SELECT NULL AS id FROM papers WHERE id > :cursor"}, "only grow"),
    ],
)
def test_what_cannot_be_asked_is_for_a_person(papers, parts, options, words):
    papers.fill([1, 2, 3])
    looked = receiving.look(parts, papers.source(**options), NOW)
    assert isinstance(looked.error, ConfigError)
    assert words in str(looked.error)


def test_a_database_that_is_away_is_asked_later(tmp_path, parts):
    secret = "t0p-secret"
    url = f"postgresql://reader@127.0.0.1:{dead_port()}/papers"
    source = SqlSource("registry", 60, url, lambda: secret, SqlOptions(table="papers"))
    looked = receiving.look(parts, source, NOW)
    assert isinstance(looked.error, TransientError)
    assert secret not in str(looked.error) + repr(source) + repr(vars(source))
    with pytest.raises(ConfigError, match="no file"):
        list(Database(f"sqlite:///{tmp_path / 'none.db'}").source().look(None, NOW))
    assert not (tmp_path / "none.db").exists()


def test_a_statement_that_takes_too_long_is_given_up(papers):
    endless = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT max(i) AS id FROM n",
        "postgresql": "SELECT pg_sleep(30) AS id",
    }[sa.make_url(papers.url).get_backend_name()]
    began = time.monotonic()
    with pytest.raises(TransientError, match="cannot be read now"):
        list(papers.source(query=endless, timeout_s=0.2).look(None, NOW))
    assert time.monotonic() - began < 10


# ---------------------------------------------------------------------- pauses and memory


def test_a_long_reading_is_taken_in_by_parts(small, parts, monkeypatch):
    monkeypatch.setattr(sql, "STEP_ROWS", 10)
    monkeypatch.setattr(sql, "LOOK_ROWS", 30)
    small.fill(range(1, 101))
    for options in ({}, {"query": f"{ONWARD} LIMIT 8"}):
        source = small.source(name=f"s{len(options)}", **options)
        counts, paused = [], True
        while paused:
            looked = receiving.look(parts, source, NOW)
            counts.append(looked.received.new + looked.received.known)
            paused = looked.paused
        assert sum(counts) == 100
        assert len(counts) >= 4
        assert max(counts) <= 40


def test_a_step_never_holds_much(small):
    long = json.dumps({"x": "y" * 1_000_000})
    rows = [{"id": n, "record": long.replace("y", str(n % 10))} for n in range(30)]
    small.run("INSERT INTO papers (id, record) VALUES (:id, :record)", *rows)
    steps = small.source().look(None, NOW)
    sizes = [sum(len(one.canonical) for one in step.items) for step in steps]
    assert sum(sizes) > 29_000_000
    assert max(sizes) < sql.STEP_BYTES + 1_100_000


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sets(st.integers(1, 60), max_size=8), st.integers(0, 4)), max_size=6),
    st.sampled_from([{}, {"query": ONWARD}, {"query": f"{ONWARD} LIMIT 3"}]),
)
def test_whatever_comes_whenever_reading_is_cut_off_all_of_it_is_taken_in_the_end(
    tmp_path_factory, rounds, options
):
    folder = tmp_path_factory.mktemp("rounds")
    papers = Database(f"sqlite:///{folder / 'papers.db'}")
    papers.run(PAPERS)
    source, cursor, there, taken = papers.source(**options), None, set(), set()
    for number, (new, steps) in enumerate(rounds):
        papers.fill(new - there)
        there |= new
        look = source.look(cursor, NOW + number)
        for step, _ in zip(look, range(steps), strict=False):
            taken |= {item.digest.hex() for item in step.items}
            cursor = step.cursor or cursor
        look.close()
    for again in range(3):
        for step in source.look(cursor, NOW + DAY * (again + 1)):
            taken |= {item.digest.hex() for item in step.items}
            cursor = step.cursor or cursor
    assert taken == wanted(there)


def test_a_server_that_goes_away_in_the_middle_costs_reading_on(parts, monkeypatch):
    monkeypatch.setattr(sql, "STEP_ROWS", 10)
    with Cluster() as cluster:
        papers = Database(cluster.empty().replace("postgresql:", "postgresql+psycopg:"))
        papers.run(PAPERS)
        papers.fill(range(1, 1001))
        source, restarted = papers.source(), []

        def restart(_stage, done, _total):
            if done >= 100 and not restarted:
                restarted.append(done)
                cluster.restart(signal.SIGQUIT)

        looked = receiving.look(replace(parts, on_progress=restart), source, NOW)
        assert isinstance(looked.error, TransientError)
        assert 100 <= looked.received.new < 1000
        to_the_end(parts, source, NOW + 60)
    assert digests(parts) == wanted(range(1, 1001))


def test_a_slow_database_gives_way_to_the_rest_of_a_pass(small, parts, monkeypatch):
    monkeypatch.setattr(held, "STEP_S", -1.0)
    monkeypatch.setattr(held, "LOOK_S", -1.0)
    small.fill([1, 2, 3])
    source, looks = small.source(), []
    for _ in range(5):
        looked = receiving.look(parts, source, NOW)
        looks.append((looked.received.new, looked.paused))
    assert looks == [(1, True), (1, True), (1, True), (0, False), (0, False)]
