"""Batches: sealing, reading, and changing them together with what follows from it."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store import records as record_rows
from anchord.adapters.store.calls import intend, repeat
from anchord.adapters.store.connection import Database, insert_one
from anchord.adapters.store.leaves import (
    MakeTile,
    number_of,
    read_tile,
    seal_tiles,
    to_batch,
    unpack_ids,
    waiting,
)
from anchord.adapters.store.ledger import cut_series, insert_series
from anchord.adapters.store.schema import (
    batch_pendings,
    batches,
    checkpoints,
    pendings,
    records,
    submissions,
    tiles,
)
from anchord.adapters.store.tokens import intend_tokens
from anchord.core.merkle import TILE
from anchord.core.merkle import root as merkle_root
from anchord.core.model import Batch, BatchChange, BatchState, Member, Tile
from anchord.core.trailer import root_of, trailer
from anchord.errors import FatalError
from anchord.ports.store import Carried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Batches:
    """The batch tables. Every writing method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def seal(
        self,
        now: int,
        urls: Sequence[str],
        make_tile: MakeTile,
        carried: Carried | None = None,
    ) -> Batch | None:
        """Put all waiting records into one new batch, with an intent row per calendar.

        One transaction: after a crash either the whole batch is there or none of it. Memory
        stays flat: one tile of leaves at a time.
        """
        with self._database.reading() as connection:
            if not waiting(connection, 0, 1):
                return None
        with self._database.writing() as connection:
            batch_id = insert_one(
                connection,
                batches,
                kind="sealed",
                state=BatchState.SEALED.value,
                root=bytes(32),
                size=0,
                driving=0,
                created_at=now,
            )
            roots, size = seal_tiles(connection, batch_id, make_tile)
            if not size:
                connection.execute(sa.delete(batches).where(batches.c.id == batch_id))
                return None
            beside = _carry(connection, batch_id, carried or Carried(), now)
            values = {
                "root": root_of(merkle_root(b"".join(roots)), beside["trailer"]),
                "tile_roots": b"".join(roots),
                "size": size,
                "driving": size,
                **beside,
            }
            connection.execute(sa.update(batches).where(batches.c.id == batch_id).values(values))
            intend(connection, batch_id, urls, now, 1)
        return self.get(batch_id)

    def last_sealed_at(self) -> int | None:
        """Return when the newest sealed batch was made."""
        query = sa.select(sa.func.max(batches.c.created_at)).where(batches.c.kind == "sealed")
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def get(self, batch_id: int) -> Batch:
        """Return one batch."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(batches).where(batches.c.id == batch_id)).first()
        if row is None:
            raise FatalError(f"batch {batch_id} is named but not in the store: it is damaged")
        return to_batch(row)

    def of_record(self, record_id: int, batch_id: int | None) -> list[Batch]:
        """Return the batch a record stands in, then its adopted proofs."""
        where = batches.c.record_id == record_id
        if batch_id is not None:
            where = sa.or_(where, batches.c.id == batch_id)
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(batches).where(where).order_by(batches.c.id))
            found = [to_batch(row) for row in rows]
        return sorted(found, key=lambda batch: batch.id != batch_id)

    def in_state(self, state: BatchState, limit: int | None = None) -> list[Batch]:
        """Return the batches in one state, oldest first, without their leaves; None: all."""
        query = sa.select(batches).where(batches.c.state == state.value).order_by(batches.c.id)
        query = query.limit(limit)
        with self._database.reading() as connection:
            return [to_batch(row) for row in connection.execute(query)]

    def due_checks(self, now: int, limit: int = 1000) -> list[Batch]:
        """Return batches whose attestations are to be checked against headers now; none parked."""
        query = (
            sa.select(batches)
            .where(batches.c.next_check_at <= now, batches.c.state != BatchState.PARKED.value)
            .order_by(batches.c.next_check_at, batches.c.id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [to_batch(row) for row in connection.execute(query)]

    def tiles(self, batch: Batch, start: int, stop: int) -> Iterator[Tile]:
        """Yield the tiles that hold members [start, stop), members cut to that range."""
        if batch.kind == "adopted":
            yield self._adopted_tile(batch)
            return
        for number in range(start // TILE, (stop + TILE - 1) // TILE):
            with self._database.reading() as connection:
                yield read_tile(connection, batch.id, number, start, stop)

    def index_of(self, batch: Batch, record_id: int) -> int:
        """Return a record's leaf number in a batch."""
        if batch.kind == "adopted":
            return 0
        query = (
            sa.select(tiles.c.tile, tiles.c.record_ids)
            .where(tiles.c.batch_id == batch.id, tiles.c.first_record_id <= record_id)
            .order_by(tiles.c.first_record_id.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        ids = () if row is None else unpack_ids(row.record_ids)
        if row is None or record_id not in ids:
            raise FatalError(
                f"record {record_id} is not among the leaves of batch {batch.id}: "
                "the store is damaged"
            )
        return int(row.tile) * TILE + ids.index(record_id)

    def _adopted_tile(self, batch: Batch) -> Tile:
        query = sa.select(records.c.id, records.c.digest, records.c.year)
        with self._database.reading() as connection:
            row = connection.execute(query.where(records.c.id == batch.record_id)).first()
        if row is None:
            raise FatalError(f"the record of adopted batch {batch.id} is missing: store damaged")
        member = Member(0, row.id, row.digest, number_of(row.digest, row.year), b"")
        return Tile(0, b"", (member,))

    def change(self, changes: Sequence[BatchChange]) -> None:
        """Change batches in one transaction, with the intents that follow."""
        with self._database.writing() as connection:
            for item in changes:
                _change(connection, item)

    def unpark(self, batch_id: int, now: int) -> None:
        """Bring a parked batch back: every calendar is asked anew, every path is checked."""
        with self._database.writing() as connection:
            mine = sa.select(batch_pendings.c.pending_id).where(
                batch_pendings.c.batch_id == batch_id
            )
            connection.execute(
                sa.update(pendings)
                .where(pendings.c.id.in_(mine))
                .values(next_attempt_at=now, attempts=0, unknown_since=None, status="waiting")
            )
            connection.execute(
                sa.update(submissions)
                .where(submissions.c.batch_id == batch_id, submissions.c.answered_at.is_(None))
                .values(next_attempt_at=now, attempts=0)
            )
            row = connection.execute(sa.select(batches).where(batches.c.id == batch_id)).one()
            state = BatchState.SUBMITTED if row.submitted_at else BatchState.SEALED
            values = {"state": state.value, "note": None, "next_check_at": now}
            connection.execute(sa.update(batches).where(batches.c.id == batch_id).values(values))


def _carry(connection: sa.Connection, batch_id: int, carried: Carried, now: int) -> dict[str, Any]:
    """Let a batch take along what waits beside its records; return the columns that say so."""
    sizes = [checkpoint.size for checkpoint in carried.checkpoints]
    taken = sa.update(checkpoints).where(
        checkpoints.c.size.in_(sizes), checkpoints.c.batch_id.is_(None)
    )
    if connection.execute(taken.values(batch_id=batch_id)).rowcount != len(sizes):
        raise FatalError("a checkpoint went into another batch meanwhile: two passes wrote at once")
    intend_tokens(connection, batch_id, carried.authorities, now)
    height, block_hash = carried.block or (None, None)
    digests = [sha256(checkpoint.note).digest() for checkpoint in carried.checkpoints]
    return {"trailer": trailer(digests, block_hash), "not_before_height": height}


def _change(connection: sa.Connection, item: BatchChange) -> None:
    for series_id in item.cut_series:
        cut_series(connection, series_id)
    for new in item.series:
        insert_series(connection, item.batch_id, new)
    if item.reopen:
        _reopen(connection, item)
    for url in item.resubmit:
        repeat(connection, item.batch_id, url, item.resubmit_at, item.resubmit_quiet_s)
    if item.release:
        record_rows.release(connection, item.batch_id)
    if item.lead:
        _lead(connection, item.batch_id)
    if item.columns:
        where = batches.c.id == item.batch_id
        connection.execute(sa.update(batches).where(where).values(item.columns))


def _reopen(connection: sa.Connection, item: BatchChange) -> None:
    mine = sa.select(batch_pendings.c.pending_id).where(batch_pendings.c.batch_id == item.batch_id)
    connection.execute(
        sa.update(pendings)
        .where(pendings.c.id.in_(mine), pendings.c.commitment.in_(item.reopen))
        .values(next_attempt_at=item.reopen_at, status="void", detail="a reorg undid its block")
    )


def _lead(connection: sa.Connection, batch_id: int) -> None:
    """Move an adopted batch's record here when it stands in an unfinished batch."""
    record_id = connection.execute(
        sa.select(batches.c.record_id).where(batches.c.id == batch_id)
    ).scalar_one()
    query = (
        sa.select(records.c.batch_id, batches.c.state)
        .join(batches, batches.c.id == records.c.batch_id, isouter=True)
        .where(records.c.id == record_id)
    )
    row = connection.execute(query).one()
    if row.batch_id == batch_id or row.state == BatchState.ANCHORED.value:
        return
    if row.batch_id is not None:
        connection.execute(
            sa.update(batches)
            .where(batches.c.id == row.batch_id)
            .values(driving=batches.c.driving - 1)
        )
    connection.execute(
        sa.update(records).where(records.c.id == record_id).values(batch_id=batch_id)
    )
    connection.execute(
        sa.update(batches).where(batches.c.id == batch_id).values(driving=batches.c.driving + 1)
    )
