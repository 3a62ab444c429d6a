"""Everything of one store into another, empty one: every table, compared row by row, or nothing.

The source is read as it is at one moment. The target is written in one transaction that ends only
when what the target gives back is what the source gave: a move that is cut off leaves the target
empty, and is begun anew.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from anchord.adapters.store.connection import Database, insert_many
from anchord.adapters.store.database import check_revision, connect, create, mapped_errors
from anchord.adapters.store.postgres import REPLACED
from anchord.adapters.store.reading import connect_reading
from anchord.adapters.store.schema import audit_shards, metadata
from anchord.errors import ConfigError, FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Progress = Callable[[str, int, int], None]

_TABLES = tuple(
    sorted(
        (table for table in metadata.tables.values() if table is not audit_shards),
        key=lambda table: table.name,
    )
)
"""All but the shards of audits, which are of the moment: the copy has none."""
_ROWS_AT_ONCE = 512
_BYTES_AT_ONCE = 4 << 20


class MovedTable(msgspec.Struct, frozen=True):
    """One table, the same on either side."""

    rows: int
    sha256: str
    """Of all its rows in the order of their keys, each in MessagePack."""


def move(source: str, target: str, on_progress: Progress) -> dict[str, MovedTable]:
    """Copy every table of a store into an empty one, and compare; return what each holds.

    A target that holds exactly the source's rows is left as it is: the end of an earlier move was
    not heard of, and this one tells what became of it.

    Args:
        source: URL of a store with this code's schema; it is only read. Nobody may write to it
            meanwhile, and the caller sees to that.
        target: URL of an empty database, or of a store nothing is in; its schema is made.
        on_progress: told (what, rows done, rows in all).

    Raises:
        ConfigError: no store there, or something is in the target.
        FatalError: the target does not give back what it was given; nothing is kept.
        StoreBusyError: a database is away or locked; nothing is kept, unless the target got all.
        DiskError: there is no room.
    """
    reading = connect_reading(source)
    try:
        check_revision(reading, source)
        create(target)
        writing = connect(target)
        try:
            with mapped_errors(source), reading.begin() as given:
                return _move(given, Database(writing, target), on_progress)
        except (TypeError, ValueError, OverflowError) as error:
            raise FatalError(
                f"a row of the store cannot be moved: {error!r:.200}; the store is damaged: run "
                "`anchord audit`, and restore a backup"
            ) from error
        finally:
            writing.dispose()
    finally:
        reading.dispose()


def _move(given: sa.Connection, target: Database, on_progress: Progress) -> dict[str, MovedTable]:
    counts = _counts(given)
    with target.writing() as taken:
        there = _counts(taken)
        is_empty = not any(there.values())
        if not is_empty and there != counts:
            raise _not_empty(target, there)
        moved = {
            table.name: _send(given, taken if is_empty else None, table, counts, on_progress)
            for table in _TABLES
        }
        for table in _TABLES:
            found = _digest(taken, table, counts, on_progress)
            if found != moved[table.name]:
                raise (
                    _lost(table, moved[table.name], found)
                    if is_empty
                    else _not_empty(target, there)
                )
        if is_empty and taken.dialect.name == "postgresql":
            _make_ready(taken)
    return moved


def _send(
    given: sa.Connection,
    taken: sa.Connection | None,
    table: sa.Table,
    counts: dict[str, int],
    on_progress: Progress,
) -> MovedTable:
    """Copy one table, or only hash it when nothing is to be written."""
    digest, done = hashlib.sha256(), 0
    names = [column.name for column in table.columns]
    for rows in _chunks(given, table):
        _add(digest, rows)
        if taken is not None:
            insert_many(taken, table, names, rows)
        done += len(rows)
        on_progress(f"move {table.name}", done, counts[table.name])
    return MovedTable(done, digest.hexdigest())


def _digest(
    connection: sa.Connection, table: sa.Table, counts: dict[str, int], on_progress: Progress
) -> MovedTable:
    digest, done = hashlib.sha256(), 0
    for chunk in _chunks(connection, table):
        _add(digest, chunk)
        done += len(chunk)
        on_progress(f"compare {table.name}", done, counts[table.name])
    return MovedTable(done, digest.hexdigest())


def _chunks(connection: sa.Connection, table: sa.Table) -> Iterator[list[tuple[Any, ...]]]:
    """Yield a table's rows in the order of its key, some at a time; memory stays flat."""
    query = sa.select(table).order_by(*table.primary_key.columns)
    chunk: list[tuple[Any, ...]] = []
    size = 0
    for row in connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)):
        chunk.append(tuple(row))
        size += sum(len(value) for value in row if isinstance(value, bytes))
        if size >= _BYTES_AT_ONCE or len(chunk) == _ROWS_AT_ONCE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


_encode = msgspec.msgpack.Encoder().encode


def _add(digest: Any, rows: list[tuple[Any, ...]]) -> None:
    """Hash rows; PostgreSQL keeps a visible character for a NUL, which is no difference here."""
    for row in rows:
        digest.update(
            _encode([v.replace("\0", REPLACED) if isinstance(v, str) else v for v in row])
        )


def _counts(connection: sa.Connection) -> dict[str, int]:
    count = sa.select(sa.func.count())
    return {t.name: connection.execute(count.select_from(t)).scalar_one() for t in _TABLES}


def _make_ready(connection: sa.Connection) -> None:
    """Let PostgreSQL number new rows after the old ones, and know what it holds."""
    for table in _TABLES:
        column = table.autoincrement_column
        if column is not None:
            last = connection.execute(sa.select(sa.func.max(column))).scalar()
            if last is not None:
                sequence = sa.func.pg_get_serial_sequence(table.name, column.name)
                connection.execute(sa.select(sa.func.setval(sequence, last)))
        connection.exec_driver_sql(f"ANALYZE {table.name}")


def _not_empty(target: Database, there: dict[str, int]) -> ConfigError:
    found = ", ".join(f"{rows:,} {name}" for name, rows in there.items() if rows)
    return ConfigError(
        f"expected an empty store at {target.shown}, found other rows than those to move: {found}; "
        "name an empty database"
    )


def _lost(table: sa.Table, given: MovedTable, found: MovedTable) -> FatalError:
    return FatalError(
        f"expected {given} in the table {table.name} of the target, got {found}: it does not give "
        "back what it was given; nothing was kept there"
    )
