"""The ledger: series of events that are due, and the rows that were signed. Append only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from msgspec.structs import asdict

from anchord.adapters.store.connection import Database, insert_many, insert_one
from anchord.adapters.store.schema import batches, captures, events, series
from anchord.adapters.store.standings import advance
from anchord.core.event import ANCHORED, NO_CHAIN, chain_next
from anchord.core.model import BatchState, NewSeries, Series, SignedRow
from anchord.errors import FatalError, LedgerError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_COLUMNS = ("seq", "record_id", "series_id", "numbered", "event_id", "signature", "chain")
_before = events.alias("before")


class Ledger:
    """The event tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_series(self, limit: int = 1000) -> list[Series]:
        """Return the series with events still to append, oldest first."""
        query = sa.select(series).where(series.c.next < series.c.stop).order_by(series.c.id)
        query = query.limit(limit)
        with self._database.reading() as connection:
            return [to_series(row) for row in connection.execute(query)]

    def series_of(self, batch_id: int, event_types: Collection[str] | None = None) -> list[Series]:
        """Return the series of a batch, of some types or of all, oldest first."""
        query = sa.select(series).where(series.c.batch_id == batch_id).order_by(series.c.id)
        if event_types is not None:
            query = query.where(series.c.event_type.in_(list(event_types)))
        with self._database.reading() as connection:
            return [to_series(row) for row in connection.execute(query)]

    def anchored_payload(self) -> bytes | None:
        """Return what the events of the youngest anchored batch say; None when there is none."""
        anchored = sa.select(batches.c.id).where(batches.c.state == BatchState.ANCHORED.value)
        youngest = anchored.order_by(batches.c.id.desc()).limit(1).scalar_subquery()
        query = sa.select(series.c.payload).where(
            series.c.batch_id == youngest, series.c.event_type == ANCHORED
        )
        with self._database.reading() as connection:
            return connection.execute(query.order_by(series.c.id.desc()).limit(1)).scalar()

    def get_series(self, series_id: int) -> Series:
        """Return one series."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(series).where(series.c.id == series_id)).first()
        if row is None:
            raise FatalError(f"series {series_id} is named but not in the store: it is damaged")
        return to_series(row)

    def split(self, found: Series, key: NewSeries) -> None:
        """Let what is left of a series be signed by another key, as a series of its own.

        A capture whose event that is names the new series: when its memento is lost, it is the
        event of that one that must be withdrawn.
        """
        with self._database.writing() as connection:
            # Its end counts, too: what a reorg cut off must not come back as a series of its own.
            still = sa.and_(
                series.c.id == found.id, series.c.next == found.next, series.c.stop == found.stop
            )
            if not connection.execute(
                sa.update(series).where(still).values(stop=found.next)
            ).rowcount:
                raise StoreBusyError(
                    "a series moved while it was handed over: another worker was here; run again"
                )
            made = insert_series(connection, found.batch_id, key)
            moved = {"series_id": made, "version": captures.c.version + 1}
            mine = captures.c.series_id == found.id
            connection.execute(sa.update(captures).where(mine).values(moved))

    def head(self) -> tuple[int, bytes]:
        """Return the last sequence number and its chain hash; (0, 32 zero bytes) when empty."""
        with self._database.reading() as connection:
            return _head(connection)

    def last_moment(self) -> int | None:
        """Return when the newest event was decided, as it states; None when there is none."""
        query = (
            sa.select(series.c.created_at)
            .join(events, events.c.series_id == series.c.id)
            .order_by(events.c.seq.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def append(self, moves: Sequence[tuple[Series, int]], rows: Sequence[SignedRow]) -> None:
        """Append signed rows and move each series to its new place, in one durable transaction.

        Raises:
            StoreBusyError: a series moved since the rows were made: another worker signed it, or
                it was cut.
            FatalError: the ledger moved, and appending would break the chain.
        """
        with self._database.writing() as connection:
            moved = sum(_move(connection, found, stop) for found, stop in moves)
            seq, _ = _head(connection)
            if rows and rows[0].seq != seq + 1:
                raise FatalError(
                    "the ledger moved while events were signed: two passes wrote at once; "
                    "nothing was appended, run again"
                )
            if moved != len(moves):
                raise StoreBusyError(
                    "a series moved while its events were signed: another worker was here; "
                    "nothing was appended, run again"
                )
            values = [
                (r.seq, r.record_id, r.series_id, int(r.numbered), r.event_id, r.signature, r.chain)
                for r in rows
            ]
            insert_many(connection, events, _COLUMNS, values)
            advance(connection, values, [found for found, _ in moves])

    def of_record(self, record_id: int) -> list[SignedRow]:
        """Return a record's rows in ledger order."""
        query = chained().where(events.c.record_id == record_id).order_by(events.c.seq)
        with self._database.reading() as connection:
            return [to_row(row) for row in connection.execute(query)]

    def ids_in_series(self, series_id: int, record_ids: Sequence[int]) -> dict[int, SignedRow]:
        """Return the rows one series wrote for some records, by record."""
        query = chained().where(
            events.c.record_id.in_(list(record_ids)), events.c.series_id == series_id
        )
        with self._database.reading() as connection:
            return {row.record_id: to_row(row) for row in connection.execute(query)}

    def walk(self, after: int = 0, chunk: int = 1024) -> Iterator[list[SignedRow]]:
        """Yield the whole ledger in order, in chunks."""
        while True:
            query = chained().where(events.c.seq > after).order_by(events.c.seq)
            with self._database.reading() as connection:
                found = [to_row(row) for row in connection.execute(query.limit(chunk))]
            if not found:
                return
            yield found
            after = found[-1].seq


def insert_series(connection: sa.Connection, batch_id: int, new: NewSeries) -> int:
    """Write the intent of events for members of a batch; return its number."""
    return insert_one(connection, series, batch_id=batch_id, next=new.start, **asdict(new))


def cut_series(connection: sa.Connection, series_id: int) -> bool:
    """Let a series append no further event; False when there is none left to append."""
    rest = sa.and_(series.c.id == series_id, series.c.next < series.c.stop)
    cut = sa.update(series).where(rest).values(stop=series.c.next)
    return bool(connection.execute(cut).rowcount)


def _move(connection: sa.Connection, found: Series, stop: int) -> int:
    """Move a series on from where it was read; 0 when it is not there any more."""
    still = sa.and_(series.c.id == found.id, series.c.next == found.next, series.c.stop >= stop)
    return connection.execute(sa.update(series).where(still).values(next=stop)).rowcount


def _head(connection: sa.Connection) -> tuple[int, bytes]:
    row = connection.execute(chained().order_by(events.c.seq.desc()).limit(1)).first()
    if row is None:
        return 0, NO_CHAIN
    try:
        last = to_row(row)
    except LedgerError as error:
        raise FatalError(f"nothing is appended: {error}") from None
    return last.seq, last.chain


def to_series(row: Any) -> Series:
    """Return a row of the series table as a value."""
    return Series(**{name: getattr(row, name) for name in Series.__struct_fields__})


def chained() -> sa.Select[Any]:
    """Select rows of the ledger together with the chain hash before each, for `to_row`."""
    query = sa.select(events, _before.c.chain.label("chain_before"))
    return query.outerjoin_from(events, _before, _before.c.seq == events.c.seq - 1)


def to_row(row: Any) -> SignedRow:
    """Return a row that `chained` selected as a value.

    Raises:
        LedgerError: id or signature are not those that were appended.
    """
    before = NO_CHAIN if row.seq == 1 else row.chain_before
    if before is None or chain_next(before, row.event_id, row.signature) != row.chain:
        raise LedgerError(
            f"ledger row {row.seq} or the one before it is not what was appended: its chain hash "
            "does not recompute; restore the store from a backup"
        )
    return SignedRow(
        row.seq,
        row.record_id,
        row.series_id,
        bool(row.numbered),
        row.event_id,
        row.signature,
        row.chain,
    )
