"""Everything the facet `stored` keeps: captures, items, lanes, and what they add up to."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from anchord.adapters.store.captures import SOURCE, Captures
from anchord.adapters.store.connection import Database
from anchord.adapters.store.items import Items
from anchord.adapters.store.lanes import Lanes
from anchord.adapters.store.schema import batches, captures, file_ranges, files
from anchord.core.storage import CaptureState, FileKind, FileState, StoredCounts


class Storage:
    """The tables of the facet `stored`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.lanes = Lanes(database)
        self.captures = Captures(database)
        self.items = Items(database)

    def counts(self) -> StoredCounts:
        """Count how the facet stands; the work grows with captures and files, not with records."""
        with self._database.reading() as connection:
            sources, extras = _captures(connection)
            packed = _files(connection)
            by_capture = sources.get(CaptureState.STORED.value, 0)
            by_item = packed.get(FileState.STORED.value, 0)
            return StoredCounts(
                captures=sources,
                extras=extras,
                unclaimed=_left(connection, batches.c.claimed),
                files=packed,
                unpacked=_left(connection, batches.c.packed),
                by_capture=by_capture,
                by_item=by_item,
                by_both=_both(connection) if by_capture and by_item else 0,
            )


def _captures(connection: sa.Connection) -> tuple[dict[str, int], dict[str, int]]:
    """Count captures by state: those of role "source", and the others."""
    own = captures.c.role == SOURCE
    query = sa.select(captures.c.state, sa.func.count(), sa.func.count(sa.case((own, 1))))
    rows = connection.execute(query.group_by(captures.c.state)).all()
    sources = {state: mine for state, _, mine in rows if mine}
    return sources, {state: both - mine for state, both, mine in rows if both > mine}


def _files(connection: sa.Connection) -> dict[str, int]:
    """Count the members of files of bundles by the file's state."""
    query = sa.select(files.c.state, sa.func.sum(files.c.members))
    query = query.where(files.c.kind == FileKind.BUNDLES.value).group_by(files.c.state)
    return {state: int(members) for state, members in connection.execute(query)}


def _left(connection: sa.Connection, done: sa.Column[Any]) -> int:
    query = sa.select(sa.func.sum(batches.c.size - done)).where(done < batches.c.size)
    return int(connection.execute(query).scalar() or 0)


def _both(connection: sa.Connection) -> int:
    """Count records with a stored capture of their own URL that are in a stored file.

    Stored files share no member, so only the nearest stretch at or below a place may hold it.
    """
    nearest = (
        sa.select(file_ranges.c.stop)
        .join(files, files.c.id == file_ranges.c.file_id)
        .where(
            file_ranges.c.batch_id == captures.c.batch_id,
            file_ranges.c.start <= captures.c.place,
            files.c.state == FileState.STORED.value,
        )
        .order_by(file_ranges.c.start.desc())
        .limit(1)
        .correlate(captures)
        .scalar_subquery()
    )
    query = sa.select(sa.func.count()).where(
        captures.c.state == CaptureState.STORED.value,
        captures.c.role == SOURCE,
        nearest > captures.c.place,
    )
    return connection.execute(query).scalar_one()
