"""The store's database, and what can happen to it: SQLite beside us, or a PostgreSQL server."""

from __future__ import annotations

import signal
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.soak.machine import Machine

_NO_ROOM = """
CREATE OR REPLACE FUNCTION soak_no_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device'
   USING ERRCODE = 'disk_full'; END $$
"""
_TABLES = ("records", "batches", "events", "captures", "files")


class Place(Protocol):
    """A database that can be made to fail."""

    url: str
    """Of `store.url`."""

    def full(self, machine: Machine, *, on: bool) -> None:
        """Let there be no room on the disk, or room again."""
        ...

    def read_only(self, machine: Machine, *, on: bool) -> None:
        """Let nothing be written, or all again."""
        ...

    def again(self, machine: Machine) -> None:
        """Tell a service that was just started what its disk is like."""
        ...

    def hold(self, seconds: float) -> None:
        """Hold a lock that keeps every writer out, for real seconds."""
        ...

    def restart(self, *, crash: bool) -> None:
        """Restart the server, if there is one."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


class SqlitePlace:
    """A file; its faults happen in the service's own connections.

    Args:
        folder: where the store is.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "anchord.db"
        self.url = "sqlite:///anchord.db"
        self._full = self._read_only = False

    def again(self, machine: Machine) -> None:
        """See `Place`."""
        machine.ask("disk", full=self._full, read_only=self._read_only)

    def full(self, machine: Machine, *, on: bool) -> None:
        """See `Place`."""
        self._full = on
        self.again(machine)

    def read_only(self, machine: Machine, *, on: bool) -> None:
        """See `Place`."""
        self._read_only = on
        self.again(machine)

    def hold(self, seconds: float) -> None:
        """See `Place`."""
        with sqlite3.connect(self._file, isolation_level=None, timeout=5) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")
        connection.close()

    def restart(self, *, crash: bool) -> None:
        """There is no server."""

    def close(self) -> None:
        """Nothing was started."""


class PostgresPlace:
    """A server of our own, with one database."""

    def __init__(self) -> None:
        # Of the tests, which start servers as well: `make soak` puts them on the path.
        from support.postgres import Cluster  # type: ignore[import-not-found]

        self._cluster: Any = Cluster()
        self._cluster.start()
        self.url = self._cluster.empty()
        self._name = self.url.rpartition("/")[2]

    def _run(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self._cluster.address(self._name), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            for statement in statements:
                connection.execute(statement)

    def again(self, machine: Machine) -> None:
        """The server knows."""

    def full(self, machine: Machine, *, on: bool) -> None:
        """See `Place`."""
        del machine
        drop = [f"DROP TRIGGER IF EXISTS soak_no_room ON {table}" for table in _TABLES]
        make = [
            f"CREATE TRIGGER soak_no_room BEFORE INSERT OR UPDATE ON {table} "
            "EXECUTE FUNCTION soak_no_room()"
            for table in _TABLES
        ]
        self._run(*drop, *([_NO_ROOM, *make] if on else []))

    def read_only(self, machine: Machine, *, on: bool) -> None:
        """See `Place`."""
        del machine
        word = "on" if on else "off"
        self._run(
            f"ALTER SYSTEM SET default_transaction_read_only = {word}", "SELECT pg_reload_conf()"
        )

    def hold(self, seconds: float) -> None:
        """See `Place`."""
        import psycopg

        with psycopg.connect(self._cluster.address(self._name)) as connection:
            connection.execute("LOCK TABLE events, captures IN EXCLUSIVE MODE")
            time.sleep(seconds)
            connection.rollback()

    def restart(self, *, crash: bool) -> None:
        """See `Place`."""
        self._cluster.restart(signal.SIGQUIT if crash else signal.SIGINT)

    def close(self) -> None:
        """See `Place`."""
        self._cluster.close()
