"""A store of any older schema becomes one of today and keeps everything it had."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from support.running import anchord
from support.stored_rows import NOW, bundles, new_capture, url_of

from anchord.adapters.store import database
from anchord.adapters.store.schema import metadata
from anchord.adapters.store.sql import SqlStore
from anchord.core.model import Scheme
from anchord.errors import ConfigError, FatalError

FOLDER = Path(database.__file__).parent / "migrations"
BLOB = bytes(range(32))
VALUES = {"INTEGER": 7, "BIGINT": 2**33, "SMALLINT": 1, "TEXT": "text", "BLOB": BLOB}


def at_first_schema(path, revision="0001"):
    """Make a store as an older anchord did, with a row in every table; return its rows."""
    engine = database.connect(url_of(path))
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    with engine.execution_options(writes=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        old = sa.MetaData()
        old.reflect(connection)
        for table in old.tables.values():
            if table.name != "alembic_version":
                for number in (1, 2):
                    connection.execute(sa.insert(table).values(filled(table, number)))
    engine.dispose()
    return contents(path)


def filled(table, number):
    values = {column.name: VALUES[str(column.type)] for column in table.columns}
    for column in table.columns:
        if column.name in {"id", "seq", "record_id", "batch_id", "tile", "file_id", "day"}:
            values[column.name] = number
        if column.name in {"url", "uri", "calendar", "identifier", "name"}:
            values[column.name] = f"https://{number}.example.org"
    known = {"scheme": 3, "kind": "sealed", "state": "anchored", "size": 9, "year": None}
    values |= {name: value for name, value in known.items() if name in values}
    if table.name == "records":
        values["digest"] = bytes([number]) * 32
    return values


def contents(path):
    """Return all rows of all tables, each as a mapping."""
    engine = database.connect(url_of(path))
    found = sa.MetaData()
    with engine.connect() as connection:
        found.reflect(connection)
        rows = {
            name: [dict(row._mapping) for row in connection.execute(sa.select(table))]
            for name, table in found.tables.items()
        }
    engine.dispose()
    return rows


def schema_of(path):
    """Return tables with columns, keys and constraints, and the text of every index."""
    engine = database.connect(url_of(path))
    found = sa.inspect(engine)
    tables = {
        name: (
            [{**column, "type": repr(column["type"])} for column in found.get_columns(name)],
            found.get_pk_constraint(name),
            sorted(found.get_unique_constraints(name), key=lambda each: each["name"]),
        )
        for name in found.get_table_names()
        if name != "alembic_version"
    }
    with engine.connect() as connection:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        rows = connection.exec_driver_sql(query)
        indexes = {name: re.sub(r"\s+", " ", text) for name, text in rows}
    engine.dispose()
    return tables, indexes


NEW = {
    "0001": {
        "batches": {"packed": 0, "claimed": 0, "trailer": None, "not_before_height": None},
        "series": {"file_id": None},
    },
    "0002": {"batches": {"trailer": None, "not_before_height": None}},
}
"""By revision a store is brought up from: the columns it gets, and what stands in them."""


@pytest.mark.parametrize("revision", NEW)
def test_every_row_is_kept_and_what_is_new_begins_at_nothing(tmp_path, revision):
    path = tmp_path / "anchord.db"
    before = at_first_schema(path, revision)
    assert all(before.values()), "every table has rows"
    assert database.create(url_of(path)) is True
    after = contents(path)
    new = NEW[revision]
    for name, rows in before.items():
        if name != "alembic_version":
            assert after[name] == [{**row, **new.get(name, {})} for row in rows], name
    made = {"days"}  # of what was there
    assert {name for name in after if not after[name]} == set(after) - set(before) - made
    assert database.create(url_of(path)) is False, "once"


def test_a_migrated_store_has_the_schema_of_a_new_one_and_of_the_code(tmp_path):
    migrated, made, direct = (tmp_path / name for name in ("old.db", "new.db", "code.db"))
    at_first_schema(migrated)
    for path in (migrated, made):
        database.create(url_of(path))
    engine = database.connect(url_of(direct))
    with engine.begin() as connection:
        metadata.create_all(connection)
    engine.dispose()
    assert schema_of(migrated) == schema_of(made)
    tables, indexes = schema_of(migrated)
    expected_tables, expected_indexes = schema_of(direct)
    assert indexes == expected_indexes
    assert tables == expected_tables


def test_alembic_sees_no_difference_between_the_migrations_and_the_code(tmp_path):
    path = tmp_path / "anchord.db"
    at_first_schema(path)
    database.create(url_of(path))
    engine = database.connect(url_of(path))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_the_migrated_store_works(tmp_path):
    path = tmp_path / "anchord.db"
    at_first_schema(path)
    with pytest.raises(ConfigError, match="make a backup, then run `anchord db upgrade`"):
        SqlStore(url_of(path))
    database.create(url_of(path))
    store = SqlStore(url_of(path))
    try:
        record = store.records.get(1)
        assert (record.digest, record.scheme) == (bytes([1]) * 32, Scheme.SHA256)
        assert [series.file_id for series in store.ledger.series_of(1)] == [None]
        assert store.storage.captures.unclaimed() == (1, 0, 9)
        store.storage.captures.claim(1, 9, [new_capture(1)], NOW)
        item = store.storage.items.add_item("demo", 1, 1, NOW)
        store.storage.items.add_files(item, [bundles("a.zip", (1, 0, 9))], NOW)
        counts = store.storage.counts()
        assert (counts.unclaimed, counts.unpacked, counts.captures) == (9, 9, {"waiting": 1})
    finally:
        store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(tmp_path):
    path = tmp_path / "anchord.db"
    at_first_schema(path)
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE lanes (theirs)")
    other.close()
    before = schema_of(path), contents(path)
    with pytest.raises(FatalError, match="lanes"):
        database.create(url_of(path))
    assert (schema_of(path), contents(path)) == before


def test_init_migrates_an_older_store_and_says_which(tmp_path):
    assert anchord("init", tmp_path).code == 0
    path = tmp_path / "anchord.db"
    path.unlink()
    at_first_schema(path)
    refused = anchord("status", config=tmp_path / "anchord.toml")
    assert refused.code != 0
    assert "schema 0001" in refused.err
    ran = anchord("init", tmp_path, "--json")
    assert (ran.code, ran.json["made"], ran.json["migrated"]) == (0, [], [str(path)])
    assert anchord("status", config=tmp_path / "anchord.toml").code == 0
