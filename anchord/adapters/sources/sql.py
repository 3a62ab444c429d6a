"""Records in a database: any that SQLAlchemy knows, read only, row by row.

The statement is the operator's, or is made of a table's name by SQLAlchemy; what comes out of the
database goes into no statement. Rows are read in the order of a key that only grows. A row whose
transaction ended after later keys were read is behind the key when it appears; so everything is
read again from the start now and then, which changes nothing for rows that were taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import sqlalchemy as sa

from anchord.adapters.sources.held import Held
from anchord.adapters.sources.sql_cursor import Place, read_place, words
from anchord.adapters.sources.sql_reader import Reader, Row
from anchord.adapters.sources.sql_rows import COLUMNS, Rows
from anchord.core.model import Rejection, Scheme
from anchord.errors import ConfigError
from anchord.ports.source import Step

STEP_ROWS = 5_000
"""Rows taken in at once."""
STEP_BYTES = 8 * 1024 * 1024
LOOK_ROWS = 200_000
"""Rows after which a pass goes on; the next one reads further."""
_PAGE_ROWS = 50_000
"""Rows of a whole table that one statement asks for."""


class SqlOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a database; either `query`, or `table` and `key`."""

    query: str = ""
    """A SELECT; with :cursor in it, it gives rows after that key, in the order of the key."""
    table: str = ""
    """Name of a table or view, with its schema before a dot where it needs one."""
    key: str = "id"
    """The column that only grows."""
    start: int | str = 0
    """What :cursor is at the start."""
    scheme: Scheme = Scheme.PITH_JSON_V1
    url_hosts: frozenset[str] = frozenset()
    again_every_s: int = 86_400
    """Seconds after which everything is read again from the start; 0: never."""
    timeout_s: float = 30.0
    """For one statement, and for each batch of its rows, seconds."""


class SqlSource:
    """One database that is looked at.

    Args:
        name: the source's.
        every_s: seconds between two looks.
        url: SQLAlchemy's address of the database, without a password.
        password: read when a connection is made; None: there is none.
        options: what is asked for.
    """

    kind = "sql"

    def __init__(
        self,
        name: str,
        every_s: int,
        url: str,
        password: Callable[[], str] | None,
        options: SqlOptions,
    ) -> None:
        self.name, self.every_s = name, every_s
        self._options = options
        self._reader = Reader(url, password, options.timeout_s)
        self._rows = Rows(name, options.scheme, options.url_hosts)
        what = [url, options.query, options.table, options.key, str(options.start)]
        self._of = hashlib.sha256("\0".join(what).encode()).hexdigest()[:16]

    def check(self) -> None:
        """See that address, driver and password can be used, without a connection.

        Raises:
            ConfigError: they cannot.
        """
        self._reader.check()

    def place(self, cursor: bytes | None) -> str:
        """Return what a cursor means, in words for people."""
        return words(cursor)

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        """Yield rows after the cursor, and all again from the start when it is time."""
        found = read_place(cursor, self._of)
        again = self._options.again_every_s
        if found is None or (found.ended and again and found.since + again <= now):
            found = Place(self._of, now)
        with self._reader.opened() as connection:
            if self._options.query and ":cursor" not in self._options.query:
                yield from self._whole(connection)
            else:
                yield from self._onward(connection, found)

    def _whole(self, connection: sa.Connection) -> Iterator[Step]:
        """Read a query that knows no cursor: its rows are all that there is to do."""
        held = Held(STEP_ROWS, STEP_BYTES)
        for row in self._reader.rows(connection, sa.text(self._options.query), {}):
            self._hold(row, held)
            if held.full:
                yield Step(items=held.taken())
        yield Step(items=held.taken())

    def _onward(self, connection: sa.Connection, place: Place) -> Iterator[Step]:
        """Ask for rows after the last key, until there are none."""
        first, held = place, Held(STEP_ROWS, STEP_BYTES)
        if not place.type:
            yield from self._keyless(connection)
        last = None
        while (place.type, place.value) != last:
            last = (place.type, place.value)
            for row in self._after(connection, place):
                place = place.at(self._key_of(row))
                self._hold(row, held)
                if held.full:
                    yield Step(items=held.taken(), cursor=_kept(place), pause=_enough(held))
            pause = _enough(held) and (place.type, place.value) != last
            yield Step(items=held.taken(), cursor=_kept(place), pause=pause)
        place = msgspec.structs.replace(place, ended=True)
        if place != first:
            yield Step(cursor=_kept(place))

    def _hold(self, row: Row, held: Held) -> None:
        item = self._rows.read(row)
        if item is not None:
            held.put(item)
        held.count()

    def _key_of(self, row: Row) -> Any:
        if self._options.key not in row:
            raise ConfigError(
                f"expected a column {self._options.key!r} in what the query "
                "gives, as `key` says; name it there, or set `key`"
            )
        return row[self._options.key]

    def _after(self, connection: sa.Connection, place: Place) -> Iterator[Row]:
        """Yield rows after a place, in the order of their keys."""
        key = place.key()
        if not self._options.query:
            return self._reader.rows(connection, self._page(connection, key), {})
        # Without a type of ours the database takes the value for what it is compared with.
        cursor = sa.bindparam("cursor", type_=sa.types.NullType())
        statement = sa.text(self._options.query).bindparams(cursor)
        value = self._options.start if key is None else key
        return self._reader.rows(connection, statement, {"cursor": value})

    def _keyless(self, connection: sa.Connection) -> Iterator[Step]:
        """Refuse rows of a whole table that have no key: where some of them stand, none follows."""
        if self._options.query:
            return
        there = self._table(connection)
        count = sa.select(sa.func.count().label("count")).select_from(there)
        by: sa.ColumnElement[Any] = sa.column(self._options.key, _selectable=there)
        for row in self._reader.rows(connection, count.where(by.is_(None)), {}):
            if row["count"]:
                reason = f"{row['count']:,} rows have no {self._options.key}: they are not read"
                yield Step(items=[Rejection(where=self.name, line=None, reason=reason)])

    def _page(self, connection: sa.Connection, key: Any) -> sa.Select[Any]:
        """Return the statement for the next rows of a whole table."""
        table = self._table(connection)
        by: sa.ColumnElement[Any] = sa.column(self._options.key, _selectable=table)
        statement = sa.select(*table.c).order_by(by).limit(_PAGE_ROWS)
        if key is None:
            return statement.where(by.is_not(None))
        return statement.where(by > sa.bindparam("after", key, sa.types.NullType()))

    def _table(self, connection: sa.Connection) -> sa.TableClause:
        """Return the table, with those of its columns that say something."""
        schema, _, name = self._options.table.rpartition(".")
        there = self._reader.columns(connection, name, schema or None)
        wanted = dict.fromkeys((self._options.key, *COLUMNS))
        columns: list[sa.ColumnClause[Any]] = [sa.column(one) for one in wanted if one in there]
        return sa.table(name, *columns, schema=schema or None)


def _kept(place: Place) -> bytes:
    return msgspec.json.encode(place)


def _enough(held: Held) -> bool:
    return held.pieces >= LOOK_ROWS or held.late
