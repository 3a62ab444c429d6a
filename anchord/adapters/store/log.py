"""The log over all events: leaf hashes from the ledger's rows, full tiles, checkpoints."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from msgspec.structs import asdict

from anchord.adapters.store.connection import Database, insert_many, insert_one
from anchord.adapters.store.schema import checkpoints, events, log_nodes
from anchord.errors import FatalError
from anchord.ports.log import StoredCheckpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LEAF = b"\x00"
"""RFC 6962, 2.1: what a leaf's hash begins with."""
_WIDTH = 256
"""Hashes in a full tile."""
_TILES_KEPT = 64


class Log:
    """The tables of the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._full: dict[tuple[int, int], bytes] = {}

    def sizes(self) -> tuple[int, int]:
        """Return how many events the ledger has, and how many the newest checkpoint covers."""
        with self._database.reading() as connection:
            return _sizes(connection)

    def place_of(self, event_id: bytes) -> int | None:
        """Return the place of an event by its 32-byte digest; walks the ledger."""
        query = sa.select(events.c.seq).where(events.c.event_id == event_id).limit(1)
        with self._database.reading() as connection:
            seq = connection.execute(query).scalar()
        return None if seq is None else int(seq) - 1

    def leaf_hashes(self, start: int, stop: int) -> bytes:
        """Return the leaf hashes of places [start, stop), 32 bytes each."""
        return b"".join([sha256(_LEAF + entry).digest() for entry in self.entries(start, stop)])

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Return the entries of places [start, stop): digest, then signature.

        Raises:
            FatalError: a row is missing.
        """
        query = sa.select(events.c.event_id, events.c.signature).order_by(events.c.seq)
        query = query.where(events.c.seq > start, events.c.seq <= stop)
        with self._database.reading() as connection:
            found = [row[0] + row[1] for row in connection.execute(query)]
        if len(found) != stop - start:
            raise FatalError(
                f"the ledger has {len(found)} of the rows {start + 1} to {stop}: rows were "
                "removed; restore the store from a backup"
            )
        return found

    def nodes(self, level: int, start: int, stop: int) -> bytes:
        """Return the roots of full tiles [start, stop) of a level, 32 bytes each.

        Those of a whole tile above never change, and all proofs lead through few of them: the last
        ones read are kept.

        Raises:
            FatalError: one is missing.
        """
        if stop - start != _WIDTH:
            return self._nodes(level, start, stop)
        found = self._full.get((level, start))
        if found is None:
            found = self._nodes(level, start, stop)
            if len(self._full) >= _TILES_KEPT:
                self._full = {}
            self._full[level, start] = found
        return found

    def _nodes(self, level: int, start: int, stop: int) -> bytes:
        query = sa.select(log_nodes.c.hash).order_by(log_nodes.c.place)
        query = query.where(log_nodes.c.level == level, log_nodes.c.place.between(start, stop - 1))
        with self._database.reading() as connection:
            found = connection.execute(query).scalars().all() if stop > start else []
        if len(found) != stop - start:
            raise FatalError(
                f"the log lacks tiles of level {level} between {start} and {stop}: the store is "
                "damaged, restore it from a backup"
            )
        return b"".join(found)

    def add(self, checkpoint: StoredCheckpoint, nodes: Iterable[tuple[int, int, bytes]]) -> None:
        """Write a checkpoint and the tiles that became full, in one transaction.

        Raises:
            FatalError: the ledger is shorter, or there is a checkpoint that covers as much.
        """
        with self._database.writing() as connection:
            length, newest = _sizes(connection)
            if not newest < checkpoint.size <= length:
                raise FatalError(
                    f"a checkpoint of {checkpoint.size} events was to follow one of {newest} in a "
                    f"ledger of {length}: two passes wrote at once; nothing was written, run again"
                )
            insert_many(connection, log_nodes, ("level", "place", "hash"), list(nodes))
            insert_one(connection, checkpoints, **asdict(checkpoint))

    def last(self) -> StoredCheckpoint | None:
        """Return the newest checkpoint."""
        return self._first(_all().order_by(checkpoints.c.size.desc()))

    def covering(self, size: int) -> StoredCheckpoint | None:
        """Return the oldest checkpoint that covers at least `size` events."""
        return self._first(_all().where(checkpoints.c.size >= size).order_by(checkpoints.c.size))

    def checkpoints(self) -> Iterator[StoredCheckpoint]:
        """Yield all checkpoints, oldest first."""
        after = 0
        while found := self._many(_all().where(checkpoints.c.size > after).limit(1024)):
            yield from found
            after = found[-1].size

    def waiting(self) -> list[StoredCheckpoint]:
        """Return the checkpoints no batch carries yet, oldest first."""
        return self._many(_all().where(checkpoints.c.batch_id.is_(None)))

    def carried(self, batch_id: int) -> list[StoredCheckpoint]:
        """Return the checkpoints a batch carries, oldest first."""
        return self._many(_all().where(checkpoints.c.batch_id == batch_id))

    def _many(self, query: sa.Select[Any]) -> list[StoredCheckpoint]:
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(checkpoints.c.size))
            return [_checkpoint(row) for row in rows]

    def _first(self, query: sa.Select[Any]) -> StoredCheckpoint | None:
        with self._database.reading() as connection:
            row = connection.execute(query.limit(1)).first()
        return None if row is None else _checkpoint(row)


def _sizes(connection: sa.Connection) -> tuple[int, int]:
    length = connection.execute(sa.select(sa.func.max(events.c.seq))).scalar()
    covered = connection.execute(sa.select(sa.func.max(checkpoints.c.size))).scalar()
    return length or 0, covered or 0


def _all() -> sa.Select[Any]:
    return sa.select(checkpoints)


def _checkpoint(row: Any) -> StoredCheckpoint:
    if not (isinstance(row.note, bytes) and isinstance(row.root, bytes)):
        raise FatalError(
            f"the checkpoint of {row.size} is not stored as bytes: the store was changed, restore "
            "it from a backup"
        )
    return StoredCheckpoint(**{n: getattr(row, n) for n in StoredCheckpoint.__struct_fields__})
