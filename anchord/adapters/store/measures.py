"""What monitoring asks of a store: read at one moment, within a time, written to by nobody.

Most questions are answered from indexes; those that grow with what is under way (captures, files,
batches) are bounded by the time that is given. A reader of SQLite's WAL never stops a writer, so
all that a slow answer can hold up is the next one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import event

from anchord.adapters.store.captures import SOURCE
from anchord.adapters.store.connection import Database
from anchord.adapters.store.counts import Counts, Health
from anchord.adapters.store.database import sqlite_path
from anchord.adapters.store.reading import SqlReadingStore, connect_reading
from anchord.adapters.store.schema import (
    batches,
    captures,
    file_ranges,
    files,
    outlet_rows,
    outlets,
    sources,
)
from anchord.adapters.store.watching import Watch
from anchord.core.storage import CaptureState, FileKind, FileState, Lane, StoredCounts
from anchord.errors import AnchordError, StoreBusyError
from anchord.ports.log import AuthorityHealth

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_STEPS = 10_000
"""Instructions of SQLite's machine between two looks at the clock: well under a millisecond."""
_OPEN_CAPTURES = [
    state.value for state in CaptureState if state not in (CaptureState.STORED, CaptureState.PARKED)
]
_OPEN_FILES = [FileState.PACKED.value, FileState.SENDING.value, FileState.SENT.value]


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A source of records that is looked at again and again."""

    name: str
    next_at: int | None
    last_ok_at: int | None
    failures: int
    taken: int
    refused: int


class OutletRow(msgspec.Struct, frozen=True, kw_only=True):
    """An outlet of receipts."""

    name: str
    seq: int
    """Events up to this one were handed over or set aside."""
    last_ok_at: int | None
    failures: int
    delivered: int
    aside: dict[str, int]
    """Events that were set aside, by state."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A store at one moment. Moments are Unix seconds; None: there is nothing to date."""

    waiting: int
    """Records in no batch yet."""
    waiting_since: int | None
    records: dict[str, int]
    """Records by the state of their batch."""
    batches: dict[str, int]
    unfinished_since: int | None
    """When the oldest batch on its way was made."""
    next_moment: int | None
    """When something for Bitcoin is due next."""
    events: int
    events_due: int
    last_event_at: int | None
    covered: int
    """Events that the newest checkpoint covers."""
    checkpoint_at: int | None
    calendars: tuple[Health, ...]
    authorities: tuple[AuthorityHealth, ...]
    stored: StoredCounts
    captures_since: int | None
    """Since when the oldest capture of a record's own page waits."""
    items_since: int | None
    """Since when the oldest record waits that is in no item yet."""
    parked_files: int
    lanes: tuple[Lane, ...]
    sources: tuple[SourceRow, ...]
    outlets: tuple[OutletRow, ...]


def measure(url: str, known_uris: Collection[str], limit_s: float) -> Measured:
    """Read a store's measures.

    Args:
        url: SQLAlchemy URL of the store.
        known_uris: calendar URIs that are configured: nobody else is ever asked.
        limit_s: seconds after which it is given up.

    Raises:
        ConfigError: absent, foreign, older or newer store.
        StoreBusyError: it took longer.
        FatalError: it cannot be read.
    """
    end = time.monotonic() + limit_s
    store = _MeasuredStore(url, known_uris)
    try:
        store.limit(end)
        return store.measured()
    except AnchordError:
        if time.monotonic() < end:
            raise
        raise StoreBusyError(
            f"the store's measures were not read within {limit_s:g} s: it is busy or very large; "
            "they are tried again at the next question"
        ) from None
    finally:
        store.close()


class Changes:
    """Tells whether a store was written to, for next to nothing. One thread at a time uses it.

    Args:
        url: SQLAlchemy URL of the store.
    """

    def __init__(self, url: str) -> None:
        self._url, self._path = url, sqlite_path(url)
        self._engine: sa.Engine | None = None
        self._watch: Watch | None = None
        self._file = 0

    def mark(self) -> tuple[int, ...]:
        """Return something that differs from what an earlier call returned if there was a commit.

        Raises:
            ConfigError: there is no such store.
            StoreBusyError: the store is locked.
            FatalError: the disk failed.
        """
        file = _number(self._path)
        if self._watch is None or file != self._file:
            # Another file has the name, say a backup that was restored: the open one is nobody's.
            self.close()
            self._engine, self._file = connect_reading(self._url), file
            self._watch = Watch(Database(self._engine, self._url), self._url)
        return (file, *self._watch.mark())

    def close(self) -> None:
        """Let go of the store; may be called twice."""
        watch, engine = self._watch, self._engine
        self._watch = self._engine = None
        if watch is not None and engine is not None:
            watch.close()
            engine.dispose()


def _number(path: Path | None) -> int:
    """Return which file has a name; 0: none, or it is no file."""
    try:
        return 0 if path is None else path.stat().st_ino
    except OSError:
        return 0


class _MeasuredStore(SqlReadingStore):
    def __init__(self, url: str, known_uris: Collection[str]) -> None:
        super().__init__(url)
        self.counts = Counts(self._moment, known_uris)

    def limit(self, end: float) -> None:
        """Have every question given up at a moment of time.monotonic."""
        if self._engine.dialect.name == "sqlite":
            event.listen(self._engine.pool, "checkout", _interrupting(end))
            return
        left = max(int((end - time.monotonic()) * 1000), 1)
        with self._moment.reading() as connection:
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {left}")

    def measured(self) -> Measured:
        waiting, waiting_since = self.records.waiting()
        events, covered = self.log.sizes()
        checkpoint = self.log.last()
        stored = self.storage.counts()
        with self._moment.reading() as connection:
            captures_since = _captures_since(connection, stored)
            items_since = _items_since(connection)
            parked_files = _parked_files(connection)
            found_sources, found_outlets = _sources(connection), _outlets(connection)
        return Measured(
            waiting=waiting,
            waiting_since=waiting_since,
            records=self.counts.by_state(),
            batches=self.counts.batches_by_state(),
            unfinished_since=self.counts.oldest_unfinished(),
            next_moment=self.counts.next_moment(),
            events=events,
            events_due=self.counts.unsigned(),
            last_event_at=self.ledger.last_moment(),
            covered=covered,
            checkpoint_at=None if checkpoint is None else checkpoint.created_at,
            calendars=tuple(self.counts.calendars()),
            authorities=tuple(self.tokens.health()),
            stored=stored,
            captures_since=captures_since,
            items_since=items_since,
            parked_files=parked_files,
            lanes=tuple(self.storage.lanes.all()),
            sources=found_sources,
            outlets=found_outlets,
        )


def _interrupting(end: float) -> Any:
    def late() -> int:
        return time.monotonic() > end  # anything but 0 ends the statement

    def checkout(connection: Any, _record: object, _proxy: object) -> None:
        connection.set_progress_handler(late, _STEPS)

    return checkout


def _captures_since(connection: sa.Connection, stored: StoredCounts) -> int | None:
    going = [state for state in _OPEN_CAPTURES if stored.captures.get(state)]
    if not going:
        return None
    query = sa.select(sa.func.min(captures.c.created_at))
    query = query.where(captures.c.state.in_(going), captures.c.role == SOURCE)
    return connection.execute(query).scalar()


def _items_since(connection: sa.Connection) -> int | None:
    """Return when the oldest batch was made with members that no stored file holds.

    A file that was lost leaves its members to be packed again, below `packed`: those are dated by
    the file that is packed anew.
    """
    oldest = sa.select(sa.func.min(batches.c.created_at))
    packed = (
        oldest.join(file_ranges, file_ranges.c.batch_id == batches.c.id)
        .join(files, files.c.id == file_ranges.c.file_id)
        .where(files.c.kind == FileKind.BUNDLES.value, files.c.state.in_(_OPEN_FILES))
    )
    unpacked = oldest.where(batches.c.packed < batches.c.size)
    moments = [connection.execute(query).scalar() for query in (unpacked, packed)]
    return min((moment for moment in moments if moment is not None), default=None)


def _parked_files(connection: sa.Connection) -> int:
    query = sa.select(sa.func.count()).select_from(files)
    return connection.execute(query.where(files.c.state == FileState.PARKED.value)).scalar_one()


def _sources(connection: sa.Connection) -> tuple[SourceRow, ...]:
    rows = connection.execute(sa.select(sources).order_by(sources.c.name))
    return tuple(
        SourceRow(**{name: getattr(row, name) for name in SourceRow.__struct_fields__})
        for row in rows
    )


def _outlets(connection: sa.Connection) -> tuple[OutletRow, ...]:
    aside: dict[str, dict[str, int]] = {}
    query = sa.select(outlet_rows.c.name, outlet_rows.c.state, sa.func.count())
    for name, state, count in connection.execute(query.group_by(*query.selected_columns[:2])):
        aside.setdefault(name, {})[state] = count
    rows = connection.execute(sa.select(outlets).order_by(outlets.c.name))
    return tuple(
        OutletRow(
            name=row.name,
            seq=row.seq,
            last_ok_at=row.last_ok_at,
            failures=row.failures,
            delivered=row.delivered,
            aside=aside.get(row.name, {}),
        )
        for row in rows
    )
