"""Noticing that a store was written to, for next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.adapters.store.database import mapped_errors

if TYPE_CHECKING:
    import sqlalchemy as sa

    from anchord.adapters.store.connection import Database


class Watch:
    """Looks whether anything was committed. One thread uses it.

    On SQLite it keeps a connection of its own and asks it for `PRAGMA data_version`, which changes
    with every commit of any other connection (https://sqlite.org/pragma.html#pragma_data_version);
    no page of a table is read. PostgreSQL is asked which transactions are over
    (https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT): that
    changes with every commit in any database of the server, so a server with much to do wakes us
    too often, and no commit is missed.

    Args:
        database: of the store.
        url: for messages.
    """

    def __init__(self, database: Database, url: str) -> None:
        self._database, self._url = database, url
        self._connection: sa.Connection | None = None
        self._is_sqlite = database.engine.dialect.name == "sqlite"

    def mark(self) -> tuple[int, ...]:
        """Return something that differs from what an earlier call returned if there was a commit.

        Raises:
            StoreBusyError: the store is locked, or its server away.
            FatalError: the disk failed.
        """
        if not self._is_sqlite:
            return self._snapshot()
        with mapped_errors(self._url):
            if self._connection is None:
                self._connection = self._database.engine.connect()
            driver = self._connection.connection.driver_connection
            if driver is None:
                return ()
            # By the driver itself: a transaction, which SQLAlchemy would begin, shows one moment.
            return (int(driver.execute("PRAGMA data_version").fetchone()[0]),)

    def close(self) -> None:
        """Let go of the connection; may be called twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _snapshot(self) -> tuple[int, ...]:
        """Return xmin, xmax, and the transactions between them that are not over."""
        with self._database.reading() as connection:
            found = connection.exec_driver_sql("SELECT CAST(pg_current_snapshot() AS text)")
            return tuple(map(int, filter(None, found.scalar_one().replace(":", ",").split(","))))
