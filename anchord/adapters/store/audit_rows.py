"""Rows in bulk, for audits: read as they are, and nothing is believed of them here."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.audit_owners import OWNERS
from anchord.adapters.store.audit_standings import misstated
from anchord.adapters.store.captures import to_capture
from anchord.adapters.store.connection import Database, select_in
from anchord.adapters.store.leaves import to_batch
from anchord.adapters.store.ledger import to_series
from anchord.adapters.store.records import SCHEMES
from anchord.adapters.store.schema import (
    batches,
    bodies,
    captures,
    documents,
    events,
    file_members,
    files,
    items,
    log_nodes,
    records,
    series,
    tiles,
    tokens,
)
from anchord.core.event import ANCHORED, SUBMITTED, WITHDRAWN
from anchord.core.merkle import TILE
from anchord.core.model import StoredRecord
from anchord.core.storage import CaptureState
from anchord.errors import FatalError
from anchord.ports.reading import (
    Alike,
    Chunk,
    Counted,
    LedgerRow,
    PlainFile,
    RawEvent,
    RawTile,
    Span,
)

if TYPE_CHECKING:
    from anchord.core.model import Batch, Series
    from anchord.core.storage import Capture

_AT_ONCE = 10_000
_ROWS = 4_096
_SHOWN = 100
_EVENT = [events.c[name] for name in RawEvent._fields]
_LINK = [events.c[name] for name in ("seq", "event_id", "signature", "chain", "series_id")]
_SCHEMES = {number: scheme for scheme, number in SCHEMES.items()}
_RECORD = [records.c[name] for name in StoredRecord.__struct_fields__]
_TILE = [tiles.c[name] for name in RawTile._fields]
_ALIKE = sa.select(
    records.c.source_kind,
    records.c.added_at,
    records.c.batch_id,
    sa.select(sa.func.aggregate_strings(sa.cast(events.c.series_id, sa.Text), ","))
    .where(events.c.record_id == records.c.id)
    .scalar_subquery()
    .label("series"),
    sa.select(sa.func.max(sa.case((captures.c.state == CaptureState.PARKED.value, 2), else_=1)))
    .where(captures.c.record_id == records.c.id, captures.c.role == "source")
    .scalar_subquery()
    .label("capture"),
)
_ABOUT_TIME = (SUBMITTED, ANCHORED, WITHDRAWN)


class AuditRows:
    """Read-only questions; see `ports.reading.AuditTable`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last_record(self) -> int:
        """Return the highest row id of a record."""
        return self._one(sa.select(sa.func.max(records.c.id))) or 0

    def length(self) -> int:
        """Return the highest sequence number of the ledger."""
        return self._one(sa.select(sa.func.max(events.c.seq))) or 0

    def spans(self) -> list[Span]:
        """Return where the records of every tile lie, by first record."""
        last = sa.func.substr(tiles.c.record_ids, sa.func.length(tiles.c.record_ids) - 7)
        query = sa.select(tiles.c.first_record_id, last, tiles.c.batch_id, tiles.c.tile)
        with self._database.reading() as connection:
            found = [Span(row[0], _number(row[1]), row[2], row[3])
                     for row in connection.execute(query)]  # fmt: skip
        return sorted(found)

    def chunk(self, low: int, high: int, tiles: Sequence[tuple[int, int]]) -> Chunk:
        """Return all about the records [low, high], and the tiles (batch, tile)."""
        with self._database.reading() as connection:
            return _Reading(connection, low, high).chunk(tiles)

    def counted(self, low: int, high: int) -> Counted:
        """Count the records [low, high] by what says where they stand."""
        with self._database.reading() as connection:
            return _Reading(connection, low, high).counted()

    def touched(self, after: int) -> list[int]:
        """Return the records with events after sequence number `after`, ascending."""
        query = sa.select(events.c.record_id).where(events.c.seq > after).distinct()
        with self._database.reading() as connection:
            return sorted(connection.execute(query).scalars())

    def ledger(self, after: int = 0) -> Iterator[list[LedgerRow]]:
        """Yield the ledger in order from sequence number `after` on, in one consistent view."""
        with self._database.reading() as connection:
            while True:
                query = sa.select(*_LINK).where(events.c.seq > after).order_by(events.c.seq)
                found: list[Any] = _plain(connection, query.limit(_ROWS))
                if not found:
                    return
                yield found
                after = found[-1][0]

    def counts_by_series(self, upto: int) -> dict[int, int]:
        """Return how many of the first `upto` rows each series has."""
        query = sa.select(events.c.series_id, sa.func.count()).where(events.c.seq <= upto)
        with self._database.reading() as connection:
            return {
                row[0]: row[1] for row in connection.execute(query.group_by(events.c.series_id))
            }

    def batches(self) -> Iterator[tuple[list[Batch], dict[int, list[Series]]]]:
        """Yield batches, oldest first, with their series about timestamps and withdrawals."""
        after = 0
        while True:
            query = sa.select(batches).where(batches.c.id > after).order_by(batches.c.id)
            with self._database.reading() as connection:
                found = [to_batch(row) for row in connection.execute(query.limit(1_000))]
                ids = [batch.id for batch in found]
                about = sa.select(series).where(
                    series.c.batch_id.in_(ids), series.c.event_type.in_(_ABOUT_TIME)
                )
                by_batch: dict[int, list[Series]] = {}
                for row in connection.execute(about.order_by(series.c.id)):
                    by_batch.setdefault(row.batch_id, []).append(to_series(row))
            if not found:
                return
            yield found, by_batch
            after = ids[-1]

    def tokens(self, first: int, last: int) -> dict[int, dict[str, bytes]]:
        """Return the RFC 3161 tokens of the batches [first, last]: batch -> address -> token."""
        query = sa.select(tokens.c.batch_id, tokens.c.url, tokens.c.raw).where(
            tokens.c.batch_id.between(first, last), tokens.c.raw.is_not(None)
        )
        found: dict[int, dict[str, bytes]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(query):
                found.setdefault(row[0], {})[row[1]] = row[2]
        return found

    def all_series(self) -> Iterator[list[Series]]:
        """Yield all series, oldest first."""
        after = 0
        while True:
            query = sa.select(series).where(series.c.id > after).order_by(series.c.id)
            with self._database.reading() as connection:
                found = [to_series(row) for row in connection.execute(query.limit(1_000))]
            if not found:
                return
            yield found
            after = found[-1].id

    def series_records(self, series_id: int) -> list[int]:
        """Return the records a series has rows for; walks the ledger."""
        query = sa.select(events.c.record_id).where(events.c.series_id == series_id)
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def nodes(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (level, place, hash) of the stored roots of full tiles of the log."""
        query = sa.select(log_nodes.c.level, log_nodes.c.place, log_nodes.c.hash)
        with self._database.reading() as connection:
            for row in connection.execute(query):
                yield row[0], row[1], row[2]

    def digests(self) -> Iterator[tuple[int, bytes]]:
        """Yield (row id, digest) of all records."""
        query = sa.select(records.c.id, records.c.digest)
        with self._database.reading() as connection:
            for row in connection.execute(query):
                yield row[0], row[1]

    def kept(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield (which, SHA-256 it had, bytes) of every foreign bundle and adopted file."""
        for name, query in (
            ("document", sa.select(documents.c.id, documents.c.sha256, documents.c.raw)),
            ("adopted file of batch", _ADOPTED),
        ):
            with self._database.reading() as connection:
                for row in connection.execute(query):
                    yield f"{name} {row[0]}", row[1], row[2]

    def files(self) -> Iterator[PlainFile]:
        """Yield the files of items, with what they hold."""
        own = [files.c[name] for name in PlainFile._fields if name in files.c]
        joined = files.outerjoin(items, items.c.id == files.c.item_id).outerjoin(
            file_members, file_members.c.file_id == files.c.id
        )
        query = sa.select(*own, items.c.identifier, file_members.c.sha256s)
        query = query.select_from(joined).order_by(files.c.id)
        with self._database.reading() as connection:
            for row in connection.execute(query):
                yield PlainFile(**row._asdict())

    def orphans(self) -> list[tuple[str, str]]:
        """Return (table, which row) of rows that belong to nothing, at most 100 a table."""
        found = []
        with self._database.reading() as connection:
            for table, key, column, owner in OWNERS:
                lost = sa.select(key).where(
                    column.is_not(None), ~sa.exists().where(owner == column)
                )
                said = f"whose {column.name} names nothing in {owner.table.name}"
                found += [
                    (table.name, f"{key.name} {row[0]}, {said}")
                    for row in connection.execute(lost.limit(_SHOWN))
                ]
        return found

    def misstated(self) -> list[tuple[str, str]]:
        """Return (which, what is wrong) of what is kept for lists and plots, at most 100."""
        with self._database.reading() as connection:
            return list(islice(misstated(connection), _SHOWN))

    def _one(self, query: sa.Select[Any]) -> Any:
        with self._database.reading() as connection:
            return connection.execute(query).scalar()


_ADOPTED = sa.select(batches.c.id, batches.c.adopted_sha256, batches.c.adopted_raw).where(
    batches.c.kind == "adopted"
)


class _Reading:
    """Reads one chunk within one transaction."""

    def __init__(self, connection: sa.Connection, low: int, high: int) -> None:
        self._connection, self._low, self._high = connection, low, high

    def counted(self) -> Counted:
        one = _ALIKE.where(records.c.id.between(self._low, self._high)).subquery()
        query = sa.select(*one.c, sa.func.count()).group_by(*one.c)
        groups = list(map(Alike._make, self._connection.execute(query)))
        named = {int(number) for group in groups for number in (group.series or "").split(",")
                 if number}  # fmt: skip
        mine = {group.batch_id for group in groups if group.batch_id is not None}
        return Counted(groups, self._series((), (), named), self._batches(mine))

    def chunk(self, wanted: Sequence[tuple[int, int]]) -> Chunk:
        found = tuple(map(_record, self._plain(sa.select(*_RECORD), records.c.id)))
        ledger = list(map(RawEvent._make, self._plain(sa.select(*_EVENT), events.c.record_id)))
        ledger.sort()
        raw = [tile for key in wanted if (tile := self._tile(*key)) is not None]
        known = self._adopted() | self._batches(
            {record.batch_id for record in found if record.batch_id is not None}
            | {tile.batch_id for tile in raw}
        )
        near = [tile for _, tile in wanted] + [0 for one in known.values() if not one.tile_roots]
        lengths = self._series(known, near, {row[2] for row in ledger})
        known |= self._batches({one.batch_id for one in lengths.values()} - known.keys())
        mine = self._captures()
        return Chunk(
            records=found,
            bodies=dict(self._plain(sa.select(bodies), bodies.c.record_id)),
            documents=self._documents(),
            events=tuple(ledger),
            series=lengths,
            batches=known,
            tiles=tuple(raw),
            captures=mine,
        )

    def _rows(self, query: sa.Select[Any], column: sa.Column[Any]) -> Sequence[Any]:
        return self._connection.execute(query.where(column.between(self._low, self._high))).all()

    def _plain(self, query: sa.Select[Any], column: sa.Column[Any]) -> list[Any]:
        return _plain(self._connection, query.where(column.between(self._low, self._high)))

    def _documents(self) -> dict[int, list[bytes]]:
        query = sa.select(documents).order_by(documents.c.id)
        found: dict[int, list[bytes]] = {}
        for row in self._rows(query, documents.c.record_id):
            found.setdefault(row.record_id, []).append(row.raw)
        return found

    def _captures(self) -> dict[int, list[Capture]]:
        found: dict[int, list[Capture]] = {}
        for row in self._rows(sa.select(captures), captures.c.record_id):
            found.setdefault(row.record_id, []).append(to_capture(row))
        return found

    def _series(
        self, mine: Iterable[int], tiles_of: Sequence[int], named: set[int]
    ) -> dict[int, Series]:
        """Return the series about members of some tiles, those named, and those they withdraw."""
        low, high = TILE * min(tiles_of, default=0), TILE * (max(tiles_of, default=0) + 1)
        ids, found = sorted(mine), {}
        for at in range(0, len(ids), _AT_ONCE):
            of_batch = series.c.batch_id.in_(ids[at : at + _AT_ONCE])
            near = sa.select(series).where(of_batch, series.c.start < high, series.c.stop >= low)
            found.update({row.id: to_series(row) for row in self._connection.execute(near)})
        missing = named - found.keys()
        while missing:
            rows = self._many(sa.select(series), series.c.id, sorted(missing))
            found.update({row.id: to_series(row) for row in rows})
            ends = {one.withdraws for one in found.values() if one.withdraws is not None}
            missing = ends - found.keys() if rows else set()
        return found

    def _batches(self, ids: set[int]) -> dict[int, Batch]:
        rows = self._many(sa.select(batches), batches.c.id, sorted(ids))
        return {row.id: to_batch(row) for row in rows}

    def _adopted(self) -> dict[int, Batch]:
        rows = self._rows(sa.select(batches), batches.c.record_id)
        return {row.id: to_batch(row) for row in rows}

    def _tile(self, batch_id: int, tile: int) -> RawTile | None:
        where = sa.and_(tiles.c.batch_id == batch_id, tiles.c.tile == tile)
        row = self._connection.execute(sa.select(*_TILE).where(where)).first()
        return None if row is None else RawTile(*row)

    def _many(self, query: sa.Select[Any], column: sa.Column[Any], ids: list[int]) -> list[Any]:
        found: list[Any] = []
        for at in range(0, len(ids), _AT_ONCE):
            found += select_in(self._connection, query, column, ids[at : at + _AT_ONCE])
        return found


def _record(row: tuple[Any, ...]) -> StoredRecord:
    record_id, digest, scheme, year, kind, source_id, version, label, batch_id, added_at = row
    try:
        return StoredRecord(
            id=record_id,
            digest=digest,
            scheme=_SCHEMES[scheme],
            year=None if year is None else f"{year:04d}",
            source_kind=kind,
            source_id=source_id,
            source_version=version,
            label=label,
            batch_id=batch_id,
            added_at=added_at,
        )
    except (KeyError, ValueError, TypeError) as error:
        raise FatalError(
            f"record {record_id} has columns that cannot be read ({error!r:.80}): the store is "
            "damaged, restore it from a backup"
        ) from None


def _plain(connection: sa.Connection, query: sa.Select[Any]) -> list[Any]:
    """Return rows as the driver gives them: for the two tables that have a row for each event.

    Raises:
        FatalError: the database cannot be read on.
    """
    result = connection.execute(query)
    try:
        return list(result.cursor.fetchall())
    except connection.dialect.loaded_dbapi.Error as error:
        raise FatalError(f"the store cannot be read: {error}; restore it from a backup") from error
    finally:
        result.close()


def _number(packed: bytes) -> int:
    """Return the last of a tile's record ids; 0 when it is cut, which is found with the tile."""
    return int(struct.unpack(">q", packed)[0]) if len(packed) == 8 else 0
