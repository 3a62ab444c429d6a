"""Reading a foreign database: read only where it can be made so, streaming, within a time.

Read only means: PostgreSQL, MySQL and MariaDB are told that the transaction is, SQLite that the
connection is. Elsewhere nothing is ever committed; give anchord a user that may only read.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy import exc

from anchord.adapters.hangup import Line
from anchord.errors import AnchordError, ConfigError, ProtocolError, TransientError

Row = Mapping[str, Any]
_FETCH_ROWS = 200
"""Rows that are asked for at once, at most."""
_FETCH_BYTES = 4 * 1024 * 1024
"""What they should weigh together: rows may be megabytes each."""
_FIRST_ROWS = 4
_LATE_S = 2.0
"""The database's own limit comes first, and says more."""
_CONNECT_S = 10
_PERSON = ("no such", "syntax", "unable to open", "not a database", "token", "readonly")
"""What SQLite, which has one error for all, says when a person must act."""
_MESSAGE_CHARACTERS = 300
_PROGRESS_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""


class Reader:
    """Opens one database, for one look at a time.

    Args:
        url: SQLAlchemy's address, without a password.
        password: read when a connection is made; None: there is none.
        timeout_s: for one statement, and for each batch of its rows.
    """

    def __init__(self, url: str, password: Callable[[], str] | None, timeout_s: float) -> None:
        self._url, self._password = url, password
        self._timeout_s = timeout_s
        self._secret: str | None = None
        self._ends_at = float("inf")
        self._line: Line | None = None

    def check(self) -> None:
        """Make everything ready for a connection, and make none.

        Raises:
            ConfigError: no such driver or file, or the password cannot be read.
        """
        with self._mapped():
            self._engine().dispose()

    @contextlib.contextmanager
    def opened(self) -> Iterator[sa.Connection]:
        """Give one transaction that reads, and end it whatever happens.

        Raises:
            TransientError: it cannot be reached, or is too slow.
            ConfigError: a person must act.
            ProtocolError: the driver could not make sense of what came.
        """
        with self._mapped():
            engine = self._engine()
            self._line = Line(engine)
            with self._line.watched(), engine.connect() as connection:
                try:
                    self._hurry()
                    self._settle(connection)
                    yield connection
                finally:
                    self._hurry()  # even the end of the transaction is a question
                    connection.rollback()

    def rows(
        self, connection: sa.Connection, statement: sa.Executable, values: Mapping[str, Any]
    ) -> Iterator[Row]:
        """Yield rows as they come; the database keeps those that were not asked for yet."""
        self._hurry()
        options = {"stream_results": True, "max_row_buffer": _FIRST_ROWS}
        result = connection.execute(statement, dict(values), execution_options=options)
        try:
            rows, count = result.mappings(), _FIRST_ROWS
            while part := cast("Sequence[Row]", rows.fetchmany(count)):
                self._rest()
                longest = max(map(_weight, part))
                yield from part
                self._hurry()
                count = max(min(_FETCH_BYTES // longest, _FETCH_ROWS), 1)
        finally:
            self._hurry()
            result.close()

    def columns(self, connection: sa.Connection, table: str, schema: str | None) -> set[str]:
        """Return the names of a table's columns.

        Raises:
            ConfigError: there is no such table.
        """
        try:
            found = sa.inspect(connection).get_columns(table, schema)
        except exc.NoSuchTableError:
            raise ConfigError(
                f"the database has no table or view {table!r:.100}; correct `table`"
            ) from None
        return {str(one["name"]) for one in found}

    def _engine(self) -> sa.Engine:
        url = sa.make_url(self._url)
        if url.drivername == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
            raise ConfigError(f"there is no file {url.database!r}")
        if self._password is not None:
            self._secret = self._password()
            url = url.set(password=self._secret)
        more: dict[str, Any] = {}
        if url.get_backend_name() == "postgresql":
            # Records are read from their text, so that what is odd in them is seen.
            more["json_deserializer"] = _as_it_is
        if url.get_backend_name() in ("postgresql", "mysql", "mariadb"):
            more["connect_args"] = {"connect_timeout": _CONNECT_S}
        return sa.create_engine(url, poolclass=sa.pool.NullPool, **more)

    def _settle(self, connection: sa.Connection) -> None:
        """Let the session read only, and not for ever."""
        kind, limit_ms = connection.dialect.name, max(int(self._timeout_s * 1000), 1)
        said: list[str] = []
        if kind == "sqlite":
            driver: Any = connection.connection.dbapi_connection
            driver.text_factory = _text
            driver.set_progress_handler(self._late, _PROGRESS_STEPS)
            said = ["PRAGMA query_only=ON"]
        elif kind == "postgresql":
            said = ["SET TRANSACTION READ ONLY", f"SET LOCAL statement_timeout = {limit_ms}"]
        elif kind in ("mysql", "mariadb"):
            maria = getattr(connection.dialect, "is_mariadb", False)
            slow = f"max_statement_time = {self._timeout_s:g}"
            said = [
                f"SET SESSION {slow if maria else f'max_execution_time = {limit_ms}'}",
                "START TRANSACTION READ ONLY",
            ]
        for one in said:
            connection.exec_driver_sql(one)

    def _hurry(self) -> None:
        """The database is asked: it has so long to answer."""
        self._ends_at = time.monotonic() + self._timeout_s
        if self._line is not None:
            self._line.answer_within(self._timeout_s + _LATE_S)

    def _rest(self) -> None:
        """Nobody waits for the database while its rows are taken in."""
        self._ends_at = float("inf")
        if self._line is not None:
            self._line.answer_within(float("inf"))

    def _late(self) -> bool:
        return time.monotonic() > self._ends_at

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        """Let out only anchord's errors."""
        try:
            yield
        except exc.DBAPIError as error:
            raise self._meaning(error) from None
        except (exc.SQLAlchemyError, ImportError, TypeError) as error:
            raise ConfigError(
                f"the database cannot be asked like this: "
                f"{self._clean(error)}; correct `url`, `query` or `table`, or install its driver"
                " (for PostgreSQL: pip install 'anchord[fleet]')"
            ) from None
        except (OSError, ValueError, ArithmeticError) as error:
            raise ProtocolError(
                f"the database gave what its driver cannot read: {self._clean(error)}"
            ) from None

    def _meaning(self, error: exc.DBAPIError) -> AnchordError:
        words = self._clean(error.orig)
        ours = isinstance(error, exc.ProgrammingError | exc.NotSupportedError)
        if ours or (self._url.startswith("sqlite") and any(one in words for one in _PERSON)):
            return ConfigError(
                f"the database refuses what it is asked: {words}; correct "
                "`query` or `table`, or give its user the right to read"
            )
        return TransientError(
            f"the database cannot be read now: {words}; it is asked again "
            "later. If it goes on, check `url`, the password file and `timeout_s`"
        )

    def _clean(self, error: BaseException | None) -> str:
        words = " ".join(str(error).split()) or type(error).__name__
        if self._secret:
            words = words.replace(self._secret, "***")
        words = "".join(letter if letter.isprintable() else "\ufffd" for letter in words)
        return words[:_MESSAGE_CHARACTERS]


def _weight(row: Row) -> int:
    """Return roughly how many bytes a row holds; never 0."""
    long = (one for one in row.values() if isinstance(one, str | bytes | bytearray | memoryview))
    return 64 + sum(map(len, long))


def _as_it_is(text: Any) -> Any:
    return bytes(text) if isinstance(text, memoryview) else text


def _text(raw: bytes) -> str | bytes:
    """SQLite keeps any bytes as text; those that are none must not end the look."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw
