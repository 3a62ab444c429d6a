"""Opening a store to be read only: nothing is written, made or migrated, whoever asks.

SQLite in WAL mode keeps two files beside the database (https://www.sqlite.org/wal.html). While they
are there, they are shared with whoever writes. Where they are not there, a connection that might
write, and is forbidden to, makes them and takes them away again when it closes last; one that could
not write would leave them behind. In a folder that cannot be written all of the store is in the one
file, which then is read as immutable.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from anchord.adapters.store.audit_rows import AuditRows
from anchord.adapters.store.batches import Batches
from anchord.adapters.store.calls import Calls
from anchord.adapters.store.connection import Database
from anchord.adapters.store.database import (
    BUSY_TIMEOUT_S,
    check_revision,
    connect,
    mapped_errors,
    sqlite_path,
)
from anchord.adapters.store.exchange import Sources
from anchord.adapters.store.faces import Faces
from anchord.adapters.store.ledger import Ledger
from anchord.adapters.store.log import Log
from anchord.adapters.store.lookup import Lookup
from anchord.adapters.store.outlets import Outlets
from anchord.adapters.store.pulls import Pulls
from anchord.adapters.store.records import Records
from anchord.adapters.store.schema import REVISION
from anchord.adapters.store.storage import Storage
from anchord.adapters.store.tokens import Tokens
from anchord.errors import ConfigError, FatalError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anchord.core.model import Adoption, Document, Record
    from anchord.ports import Added


_CACHE_KIB = 16_000


class SqlReadingStore:
    """An open store that cannot be written.

    Args:
        url: SQLAlchemy URL; the schema must be the one this code needs.
        moment: what `share` returned elsewhere: exactly what is seen there is seen here.
        cache_kib: how much of a SQLite file is kept in memory.

    Raises:
        ConfigError: absent, foreign, older or newer store.
        StoreBusyError: whoever shared the moment has let go of it.
    """

    def __init__(self, url: str, moment: str | None = None, cache_kib: int = _CACHE_KIB) -> None:
        engine = connect_reading(url, cache_kib)
        check_revision(engine, url)
        self._watch = _Watch(engine)
        database = _OneMoment(engine, url)
        self._engine, self._moment = engine, database
        self.records = Records(database, ())
        self.batches = Batches(database)
        self.calls = Calls(database)
        self.pulls = Pulls(database)
        self.ledger = Ledger(database)
        self.lookup = Lookup(database)
        self.storage = Storage(database)
        self.log = Log(database)
        self.tokens = Tokens(database)
        self.sources = Sources(database)
        self.outlets = Outlets(database)
        self.faces = Faces(database)
        self.audit = AuditRows(database)
        if moment is not None:
            self._take(moment)

    def _take(self, moment: str) -> None:
        try:
            self._moment.take(moment)
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Begin a new moment, now.

        Raises:
            ConfigError: the store was migrated since it was opened.
            StoreBusyError: it is locked, or its server away.
        """
        self.let_go()
        with self._moment.reading() as connection:
            asked = connection.exec_driver_sql("SELECT version_num FROM alembic_version")
            if (found := asked.scalar()) != REVISION:
                raise ConfigError(
                    f"the store has schema {found} by now, this anchord needs {REVISION}: install "
                    "the one that migrated it"
                )

    def let_go(self) -> None:
        """Hold no moment; the next question begins one."""
        self._moment.close()

    def share(self) -> str:
        """Let others open the store as it is seen here, until this is closed; PostgreSQL only.

        https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-SNAPSHOT-SYNCHRONIZATION
        """
        with self._moment.reading() as connection:
            return str(connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one())

    def changed(self) -> bool:
        """Tell whether anybody has written to the store since it was opened here."""
        return self._watch.changed()

    def add(self, items: Sequence[Record | Adoption | Document], now: int) -> Added:
        """Refuse, as `exclusive` does.

        Raises:
            FatalError: always.
        """
        del items, now
        raise _bug()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Refuse: what is opened to be read takes no right to write.

        Raises:
            FatalError: always.
        """
        raise _bug()
        yield

    def close(self) -> None:
        """Release connections; may be called twice."""
        self._watch.close()
        self._moment.close()
        self._engine.dispose()


def _bug() -> FatalError:
    return FatalError("a store that was opened to be read was to be written; this is a bug")


_MOMENT = re.compile(r"[0-9A-F]{1,16}-[0-9A-F]{1,16}-[0-9]{1,10}", re.ASCII)
"""How PostgreSQL names a moment that is shared; the statement that takes it has no parameters."""
_MOMENT_OVER = ("22023", "42704", "55000")
"""SQLSTATEs: no such snapshot (until 15, since 16), or the session that has it is ending."""


class _OneMoment(Database):
    """Shows everything as it was at the first question, whatever is written meanwhile.

    Passes go on beside it: a reader never stops a writer (https://www.sqlite.org/wal.html), only
    the file beside the database grows until the reader is done.
    """

    _held: sa.Connection | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give the view that is held."""
        with mapped_errors(self._url):
            if self._held is None:
                self._held = self.engine.connect()
            yield self._held

    def take(self, moment: str) -> None:
        """Show the moment that another session shares; asked before anything else.

        Raises:
            StoreBusyError: it shares nothing any more, or this is no name of a moment.
        """
        over = StoreBusyError(
            f"the moment {moment!r:.80} of the store is seen by nobody any more: whoever looked at "
            "it has ended; look again"
        )
        if _MOMENT.fullmatch(moment) is None:
            raise over
        with self.reading() as connection:
            try:
                connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{moment}'")
            except sa.exc.DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) in _MOMENT_OVER:
                    raise over from error
                raise

    def close(self) -> None:
        """Let go of the view."""
        if self._held is not None:
            self._held.close()
            self._held = None


class _Watch:
    """Sees that somebody else wrote, on a connection that holds no view."""

    def __init__(self, engine: sa.Engine) -> None:
        self._connection = engine.connect()
        self._sqlite = engine.dialect.name == "sqlite"
        self._begun_at = self._state()

    def changed(self) -> bool:
        return bool(self._state() != self._begun_at)

    def close(self) -> None:
        self._connection.close()

    def _state(self) -> Any:
        asked = "PRAGMA data_version"
        if not self._sqlite:
            asked = "SELECT CAST(pg_current_snapshot() AS TEXT)"
        with self._connection.begin():
            return self._connection.exec_driver_sql(asked).scalar()


def connect_reading(url: str, cache_kib: int = _CACHE_KIB) -> sa.Engine:
    """Return an engine that refuses to write; touches nothing yet.

    Raises:
        ConfigError: the URL cannot be understood, or there is no such file.
    """
    path = sqlite_path(url)
    if path is None:
        engine = connect(url)
        return engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")
    if not path.is_file():
        raise ConfigError(f"no store at {path}: make one with `anchord init`")
    engine = sa.create_engine("sqlite://", creator=_opener(path, cache_kib), poolclass=sa.QueuePool)
    event.listen(engine, "begin", _begin)
    return engine


def _opener(path: Path, cache_kib: int) -> Callable[[], sqlite3.Connection]:
    whole = path.resolve()
    mode = _mode(whole)  # once: what the first connection makes is no writer's for the second

    def opened() -> sqlite3.Connection:
        address = f"{whole.as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False
        )
        for pragma in (
            f"busy_timeout={BUSY_TIMEOUT_S * 1000}",
            "query_only=ON",
            f"cache_size=-{cache_kib}",
            "temp_store=MEMORY",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    return opened


def _mode(whole: Path) -> str:
    if Path(f"{whole}-wal").exists():
        return "ro"
    return "rw" if os.access(whole.parent, os.W_OK) and os.access(whole, os.W_OK) else _FROZEN


_FROZEN = "ro&immutable=1"


def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN DEFERRED")
