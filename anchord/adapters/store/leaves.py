"""The leaves of a batch, tile by tile: writing them when it is sealed, reading them back."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from anchord.adapters.store.schema import records, tiles
from anchord.core.canonical import pith_number
from anchord.core.merkle import NODE, NONCE, TILE
from anchord.core.merkle import root as merkle_root
from anchord.core.model import Batch, BatchState, Member, Tile
from anchord.errors import FatalError

MakeTile = Callable[[list[bytes]], tuple[bytes, bytes]]
"""Digests in, (nonces, leaves) out."""


def to_batch(row: Any) -> Batch:
    """Return a row of the batches table as a value."""
    values = {name: getattr(row, name) for name in Batch.__struct_fields__}
    try:
        values["state"] = BatchState(row.state)
    except ValueError:
        raise _no_batch(row.id, f"state {row.state!r:.40}") from None
    if row.kind not in ("sealed", "adopted"):
        raise _no_batch(row.id, f"kind {row.kind!r:.40}")
    return Batch(**values)


def _no_batch(batch_id: int, what: str) -> FatalError:
    return FatalError(
        f"batch {batch_id} has {what}: the store is damaged, restore it from a backup"
    )


def number_of(digest: bytes, year: int | None) -> str | None:
    """Return the Pith Number, where the record has one."""
    return None if year is None else pith_number(digest, f"{year:04d}")


def unpack_ids(packed: bytes) -> tuple[int, ...]:
    """Return the record ids of a tile."""
    if len(packed) % 8:
        raise FatalError("a tile's record ids are cut: the store is damaged, restore it")
    return struct.unpack(f">{len(packed) // 8}q", packed)


def waiting(connection: sa.Connection, after: int, limit: int) -> list[tuple[int, bytes]]:
    """Return (id, digest) of records that wait for a batch, from row `after` on."""
    query = (
        sa.select(records.c.id, records.c.digest)
        .where(records.c.batch_id.is_(None), records.c.id > after)
        .order_by(records.c.id)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in connection.execute(query).all()]


def seal_tiles(
    connection: sa.Connection, batch_id: int, make_tile: MakeTile
) -> tuple[list[bytes], int]:
    """Move all waiting records into tiles; return the tiles' roots and the number of leaves."""
    roots: list[bytes] = []
    after, size = 0, 0
    while rows := waiting(connection, after, TILE):
        ids = [row[0] for row in rows]
        nonces, leaves = make_tile([row[1] for row in rows])
        values = {
            "batch_id": batch_id,
            "tile": len(roots),
            "first_record_id": ids[0],
            "record_ids": struct.pack(f">{len(ids)}q", *ids),
            "nonces": nonces,
            "leaves": leaves,
        }
        connection.execute(sa.insert(tiles).values(values))
        connection.execute(
            sa.update(records)
            .where(records.c.batch_id.is_(None), records.c.id.between(ids[0], ids[-1]))
            .values(batch_id=batch_id)
        )
        roots.append(merkle_root(leaves))
        after, size = ids[-1], size + len(ids)
    return roots, size


def read_tile(connection: sa.Connection, batch_id: int, number: int, start: int, stop: int) -> Tile:
    """Return one tile with its members cut to [start, stop)."""
    where = sa.and_(tiles.c.batch_id == batch_id, tiles.c.tile == number)
    row = connection.execute(sa.select(tiles).where(where)).first()
    if row is None:
        raise _damaged(batch_id, number, "it is missing")
    ids = unpack_ids(row.record_ids)
    if not len(row.nonces) // NONCE == len(row.leaves) // NODE == len(ids) > 0:
        raise _damaged(batch_id, number, "records, nonces and leaves differ in number")
    first = number * TILE
    places = range(max(start - first, 0), min(stop - first, len(ids)))
    known = _digests(connection, ids[places.start : places.stop]) if places else {}
    if len(known) != len(places):
        raise _damaged(batch_id, number, "a record of it is missing")
    members = [
        Member(
            first + place,
            ids[place],
            *known[ids[place]],
            row.nonces[NONCE * place : NONCE * place + NONCE],
        )
        for place in places
    ]
    if not members:
        raise _damaged(batch_id, number, f"it has no members {start} to {stop}")
    return Tile(number, row.leaves, tuple(members))


def _digests(connection: sa.Connection, ids: Sequence[int]) -> dict[int, tuple[bytes, str | None]]:
    """Return digest and Pith Number of records, by row id."""
    query = sa.select(records.c.id, records.c.digest, records.c.year)
    near = ids[-1] - ids[0] < 4 * len(ids)
    inside = records.c.id.between(ids[0], ids[-1]) if near else records.c.id.in_(ids)
    wanted = set(ids)
    return {
        found[0]: (found[1], number_of(found[1], found[2]))
        for found in connection.execute(query.where(inside))
        if found[0] in wanted
    }


def _damaged(batch_id: int, number: int, why: str) -> FatalError:
    return FatalError(
        f"batch {batch_id}, tile {number}: {why}: the store is damaged, restore it from a backup"
    )
