"""How a store is doing: size, schema, integrity, newest moment, and who works on it.

Everything but the lock of `alone` is read only, so a store that a pass works on, or that lies on a
read-only disk, can be looked at.
"""

from __future__ import annotations

import contextlib
import fcntl
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from anchord.adapters.store.connection import Database
from anchord.adapters.store.counts import Counts
from anchord.adapters.store.database import (
    connect,
    current_revision,
    mapped_errors,
    sqlite_path,
)
from anchord.adapters.store.exchange import Sources
from anchord.adapters.store.outlets import Outlets
from anchord.adapters.store.reading import SqlReadingStore, connect_reading
from anchord.adapters.store.rights_postgres import SessionRights
from anchord.adapters.store.schema import batches, checkpoints, metadata, records, series
from anchord.adapters.store.serving import owner_of
from anchord.errors import StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCKS = Path("/proc/locks")
_MAX_FAULTS = 20


class ExaminedStore(SqlReadingStore):
    """A store that is looked at: as an audit reads it, with the counts beside.

    Args:
        url: SQLAlchemy URL; the schema must be the one this code needs.

    Raises:
        ConfigError: absent, foreign, older or newer store.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.counts = Counts(self._moment)
        self.sources = Sources(self._moment)
        self.outlets = Outlets(self._moment)

    def newest_moment(self) -> int | None:
        """Return the latest time at which anything was written, as the clock was then."""
        last = sa.select(records.c.added_at).order_by(records.c.id.desc()).limit(1)
        queries = [
            last,
            sa.select(sa.func.max(batches.c.created_at)),
            sa.select(sa.func.max(series.c.created_at)),
            sa.select(sa.func.max(checkpoints.c.created_at)),
        ]
        with self._moment.reading() as connection:
            moments = [connection.execute(query).scalar() for query in queries]
        return max((moment for moment in moments if moment is not None), default=None)

    def rows(self) -> dict[str, int]:
        """Return how many rows each table has."""
        with self._moment.reading() as connection:
            return {
                name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for name, table in sorted(metadata.tables.items())
            }


def revision_of(url: str) -> str | None:
    """Return the schema revision a store states; None when it is no store of ours.

    Raises:
        ConfigError: there is none, or it cannot be opened.
    """
    with _engine(url) as engine:
        return current_revision(engine, url)


def integrity(url: str) -> list[str]:
    """Let SQLite look at every page and row; return what is wrong, nothing when all is well.

    `PRAGMA quick_check` (https://www.sqlite.org/pragma.html#pragma_quick_check) leaves out only
    that indexes hold what tables hold. Another database looks after itself.

    Raises:
        FatalError: it is so damaged that it cannot be read.
    """
    if sqlite_path(url) is None:
        return []
    with _engine(url) as engine, mapped_errors(url), engine.connect() as connection:
        said = connection.exec_driver_sql(f"PRAGMA quick_check({_MAX_FAULTS})").scalars().all()
    return [] if said == ["ok"] else list(map(str, said))


def sizes(url: str) -> tuple[int, int] | None:
    """Return the bytes of a store's file and of the write-ahead log beside it; None: no file.

    Of a PostgreSQL store: the bytes of its tables with their indexes, and nothing beside.
    """
    path = sqlite_path(url)
    if path is None:
        return _table_bytes(url), 0
    if not path.is_file():
        return None
    beside = path.with_name(path.name + "-wal")
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size, beside.stat().st_size
    return path.stat().st_size, 0


def _table_bytes(url: str) -> int:
    each = [sa.func.pg_total_relation_size(sa.func.to_regclass(name)) for name in metadata.tables]
    with _engine(url) as engine, mapped_errors(url), engine.connect() as connection:
        return sum(size or 0 for size in connection.execute(sa.select(*each)).one())


def server(url: str) -> dict[str, str]:
    """Return the settings of a PostgreSQL server that receipts depend on; nothing for SQLite."""
    if sqlite_path(url) is not None:
        return {}
    names = ("server_version", "server_encoding", "fsync", "full_page_writes", "data_checksums")
    each = [sa.func.current_setting(name).label(name) for name in names]
    with _engine(url) as engine, mapped_errors(url), engine.connect() as connection:
        return dict(connection.execute(sa.select(*each)).mappings().one())


def holder(url: str) -> str | None:
    """Return who serves a store or runs a pass on it now, as well as it can be told; None: nobody.

    No lock is tried: a pass that begins at that moment would find it taken.
    """
    path = sqlite_path(url)
    if path is None:
        with _rights(url) as rights:
            return rights.holder()
    owner = owner_of(path)
    if owner is not None:
        return f"`anchord run` ({owner})"
    with contextlib.suppress(OSError):
        inode = _pass_lock(path).stat().st_ino
        for line in _LOCKS.read_text("ascii", "replace").splitlines():
            words = line.split()
            if len(words) >= 6 and words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                return f"a pass of process {words[4]}"
    return None


@contextlib.contextmanager
def alone(url: str) -> Iterator[None]:
    """Keep services and passes away from a store within the block, whatever schema it has.

    Raises:
        StoreBusyError: one is running.
    """
    path = sqlite_path(url)
    if path is None:
        with _rights(url) as rights, rights.passing(0), rights.serving(0, shared=False):
            yield
        return
    with _pass_lock(path).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreBusyError(f"a pass works on {path}: wait for its end") from None
        owner = owner_of(path)
        if owner is not None:
            raise StoreBusyError(f"`anchord run` serves {path} ({owner}): stop it first")
        yield


@contextlib.contextmanager
def still(url: str) -> Iterator[None]:
    """Keep services, passes and everybody else from writing to a store within the block.

    Raises:
        StoreBusyError: somebody works on it.
    """
    if sqlite_path(url) is None:
        with _rights(url) as rights, rights.still():
            yield
        return
    engine = connect(url)
    try:
        with alone(url), mapped_errors(url), engine.execution_options(writes=True).begin():
            yield
    finally:
        engine.dispose()


@contextlib.contextmanager
def _rights(url: str) -> Iterator[SessionRights]:
    engine = connect(url)
    try:
        yield SessionRights(Database(engine, url), url)
    finally:
        engine.dispose()


def _pass_lock(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


@contextlib.contextmanager
def _engine(url: str) -> Iterator[sa.Engine]:
    engine = connect_reading(url)
    try:
        yield engine
    finally:
        engine.dispose()
