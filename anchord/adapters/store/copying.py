"""A consistent copy of a store as one SQLite file, while passes go on.

Of a SQLite store by SQLite's own backup interface,
https://www.sqlite.org/backup.html: a read transaction that is held on the source fixes one moment,
so the copy may take its time and is never begun anew, whoever writes meanwhile. Copying the file
instead would miss what stands in the write-ahead log. Of a PostgreSQL store row by row, as of one
moment, compared; so every backup is restored, checked and audited in one way, and `anchord
migrate-store` brings it back to a server.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from anchord.adapters.store.database import mapped_errors, sqlite_path
from anchord.adapters.store.moving import move
from anchord.adapters.store.reading import connect_reading
from anchord.errors import DiskError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PAGES_AT_ONCE = 2048


def copy_store(url: str, target: Path, on_progress: Callable[[str, int, int], None]) -> None:
    """Write the store as it is at this moment to one new file, complete in itself.

    Args:
        url: of the store; it is only read.
        target: an empty file, or one that is not there yet.
        on_progress: told (what, pages done, pages in all).

    Raises:
        ConfigError: no store there.
        StoreBusyError: it cannot be read now.
        FatalError: it is damaged.
        DiskError: the copy cannot be written.
    """
    if sqlite_path(url) is None:
        _move_out(url, target, on_progress)
        return
    engine = connect_reading(url)
    try:
        with mapped_errors(url), engine.begin() as connection:
            # The first read fixes the moment; BEGIN alone does not.
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)  # noqa: S101 - what sqlite_path promises
            _fill(source, target, on_progress)
    finally:
        engine.dispose()


def _move_out(url: str, target: Path, on_progress: Callable[[str, int, int], None]) -> None:
    move(url, f"sqlite:///{target}", on_progress)
    with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, and nothing beside it


def _fill(
    source: sqlite3.Connection, target: Path, on_progress: Callable[[str, int, int], None]
) -> None:
    def tell(_status: int, left: int, total: int) -> None:
        on_progress("copy store", total - left, total)

    try:
        with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as copy:
            # Nobody reads the copy before it is whole, and its writer syncs it then.
            copy.execute("PRAGMA synchronous=OFF")
            source.backup(copy, pages=_PAGES_AT_ONCE, progress=tell)
            # The source's header says that a write-ahead log belongs to it; none does to the copy.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise DiskError(
            f"the copy {target} cannot be written: {error}; make room there, or name another disk"
        ) from error
