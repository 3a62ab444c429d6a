"""Transactions and bulk statements on one store."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.database import mapped_errors
from anchord.adapters.store.postgres_bulk import among, copy_in
from anchord.errors import FatalError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Database:
    """Hands out transactions. Reading never blocks writing; one thread writes.

    Args:
        engine: made by `database.connect`.
        url: for messages; passwords are hidden.
    """

    def __init__(self, engine: sa.Engine, url: str) -> None:
        self.engine = engine
        self._url = url
        self._writer = engine.execution_options(writes=True)
        self._reader = reader(engine)
        self._through: tuple[int, sa.Connection] | None = None

    @property
    def shown(self) -> str:
        """The store's address without its password."""
        return sa.make_url(self._url).render_as_string(hide_password=True)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Give a consistent view for the length of the block."""
        with mapped_errors(self._url), self._reader.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Give one transaction: all of the block is durable at its end, or nothing is.

        Writers follow each other: what a block read is still so when it writes.

        Raises:
            StoreBusyError: the session that held the right to write was lost.
        """
        with mapped_errors(self._url):
            held = self._held_here()
            if held is None:
                with self._writer.begin() as connection:
                    yield connection
                return
            with held.begin():
                yield held

    @contextlib.contextmanager
    def writing_through(self, connection: sa.Connection) -> Iterator[None]:
        """Let this thread write through one session only, while the block lasts."""
        self._through = (threading.get_ident(), connection.execution_options(writes=True))
        try:
            yield
        finally:
            self._through = None

    def _held_here(self) -> sa.Connection | None:
        if self._through is None or self._through[0] != threading.get_ident():
            return None
        held = self._through[1]
        # Used again, it would open another session, without the right this one had.
        if held.invalidated:
            raise StoreBusyError(
                "the connection that held the right to work on the store was lost, and with it the "
                "right; what was committed is kept, run again"
            )
        return held


def reader(engine: sa.Engine) -> sa.Engine:
    """Return an engine whose transactions show one moment each."""
    if engine.dialect.name == "sqlite":
        return engine  # its transactions always do
    return engine.execution_options(isolation_level="REPEATABLE READ")


def insert_many(
    connection: sa.Connection,
    table: sa.Table,
    names: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Insert tuples in the order of `names`: one statement, no object per row."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        copy_in(connection, table, names, rows)
        return
    statement = sa.insert(table).values({name: sa.bindparam(name) for name in names})
    compiled = statement.compile(dialect=connection.dialect)
    order = getattr(compiled, "positiontup", None) or names
    if list(order) != list(names):
        places = [list(names).index(name) for name in order]
        rows = [tuple(row[place] for place in places) for row in rows]
    connection.exec_driver_sql(str(compiled), list(rows))


def select_in(
    connection: sa.Connection, query: sa.Select[Any], column: sa.Column[Any], values: Sequence[Any]
) -> Sequence[Any]:
    """Return the rows of `query` whose `column` is one of many values.

    The values go to the driver as they are: SQLAlchemy's own IN looks at each of them, which costs
    more than finding the row.
    """
    if connection.dialect.name == "postgresql":
        return connection.execute(query.where(among(column, values))).all()
    text = str(query.compile(dialect=connection.dialect))
    marks = ",".join("?" * len(values))
    where = f"{text} WHERE {column.table.name}.{column.name} IN ({marks})"
    return connection.exec_driver_sql(where, tuple(values)).all()


def one_of(
    connection: sa.Connection, column: sa.Column[Any], values: Sequence[Any]
) -> sa.ColumnElement[bool]:
    """Return the condition that a column is one of many values."""
    if connection.dialect.name == "postgresql":
        return among(column, values)
    return column.in_(list(values))


def insert_one(connection: sa.Connection, table: sa.Table, **values: Any) -> int:
    """Insert one row and return the number the database gave it."""
    key = connection.execute(sa.insert(table).values(values)).inserted_primary_key
    if key is None:
        raise FatalError(f"the database gave no key for a row of {table.name}")
    return int(key[0])
