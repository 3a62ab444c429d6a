"""Lanes: the pace of each way to a service, and why it pauses."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from msgspec.structs import asdict

from anchord.adapters.store.schema import lanes
from anchord.core.storage import Lane
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anchord.adapters.store.connection import Database

_MOMENT = 8


class Lanes:
    """The table of lanes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> Lane:
        """Return a lane; a fresh one when it was never used."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(lanes).where(lanes.c.name == name)).first()
        return Lane(name=name) if row is None else _lane(row)

    def all(self) -> list[Lane]:
        """Return every lane that was used, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(lanes).order_by(lanes.c.name))
            return [_lane(row) for row in rows]

    def put(self, *found: Lane) -> None:
        """Keep lanes as they are now."""
        if not found:
            return
        with self._database.writing() as connection:
            put(connection, found)


def put(connection: sa.Connection, found: Iterable[Lane]) -> None:
    """Keep lanes as they are now, as part of a transaction."""
    for lane in found:
        values = asdict(lane)
        values["grants"] = struct.pack(f">{len(lane.grants)}q", *lane.grants)
        values["stopped"] = int(lane.stopped)
        where = lanes.c.name == lane.name
        if not connection.execute(sa.update(lanes).where(where).values(values)).rowcount:
            connection.execute(sa.insert(lanes).values(values))


def _lane(row: Any) -> Lane:
    if len(row.grants) % _MOMENT:
        raise FatalError(
            f"the grants of lane {row.name!r:.80} are cut: the store is damaged, restore it from "
            "a backup"
        )
    values = {name: getattr(row, name) for name in Lane.__struct_fields__}
    values["grants"] = struct.unpack(f">{len(row.grants) // _MOMENT}q", row.grants)
    values["stopped"] = bool(row.stopped)
    return Lane(**values)
