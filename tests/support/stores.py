"""Where tests keep their stores: in SQLite files, or in databases of one PostgreSQL server.

A test marked `both_stores` runs once on each. Tests name folders; which database is behind a
folder's store is decided here. `TEST_STORE=postgres` puts every other test on PostgreSQL, too.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from anchord.adapters.store.database import create
from anchord.adapters.store.schema import metadata
from anchord.adapters.store.sql import SqlStore
from support.postgres import Cluster

SQLITE, POSTGRES = "sqlite", "postgres"
_ZEROBLOB = """CREATE FUNCTION zeroblob(n integer) RETURNS bytea LANGUAGE sql IMMUTABLE
    AS $$ SELECT decode(repeat('00', n), 'hex') $$"""
"""SQLite's word for so many zero bytes: what tests damage stores with is the same SQL on both."""
_open: list[SqlStore] = []
_addresses: dict[Path, str] = {}
_kept_in = [os.environ.get("TEST_STORE", SQLITE)]


def keep_in(kind: str | None) -> str:
    """Let stores be kept in SQLite or PostgreSQL from now on; None: as the suite was told."""
    _kept_in[0] = kind or os.environ.get("TEST_STORE", SQLITE)
    return _kept_in[0]


def worded(store: SqlStore, statement: str) -> str:
    """Return SQL that tests damage a store with, written for SQLite, in its database's words."""
    if store._engine.dialect.name == "sqlite":
        return statement
    return statement.replace("x'FF'", r"'\xff'::bytea").replace("AS BLOB)", "AS bytea)")


def dumped(store: SqlStore) -> list[tuple[Any, ...]]:
    """Return every row of a store."""
    with store._engine.connect() as connection:
        return [
            (name, *row)
            for name, table in sorted(metadata.tables.items())
            for row in connection.execute(table.select().order_by(*table.primary_key))
        ]


def kept(store: SqlStore) -> SqlStore:
    """Note an open store, for `close_all`."""
    _open.append(store)
    return store


def close_all() -> None:
    """Close every store that was noted; one that goes on opens its connections anew."""
    while _open:
        _open.pop().close()


@cache
def server() -> Cluster:
    """Return the server that all tests share; it is started when the first one asks."""
    cluster = Cluster()
    atexit.register(cluster.close)
    cluster.start()
    cluster.execute("template1", _ZEROBLOB)
    return cluster


def address(folder: Path, name: str = "anchord.db") -> str:
    """Return the URL of a folder's store, whether it is made or not."""
    path = folder / name
    if _kept_in[0] == SQLITE:
        return f"sqlite:///{path}"
    if path not in _addresses:
        _addresses[path] = server().empty()
    return _addresses[path]


def made(folder: Path, name: str = "anchord.db") -> str:
    """Return the URL of a folder's store, which is made in no time when it is not there yet."""
    path = folder / name
    if _kept_in[0] == SQLITE:
        if not path.exists():
            shutil.copy(_first_file(), path)
    elif path not in _addresses:
        _addresses[path] = server().empty(_first_database())
    return address(folder, name)


@cache
def _first_file() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="anchord-first-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    create(f"sqlite:///{folder / 'anchord.db'}")
    return folder / "anchord.db"


@cache
def _first_database() -> str:
    url = server().empty()
    create(url)
    return str(sa.make_url(url).database)
