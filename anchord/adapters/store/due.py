"""Rows that wait for their time: tables with `id`, `version`, `state` and `next_attempt_at`.

Each question is asked state by state, because then the index (state, next_attempt_at, id) answers
in order and stops at the limit, however many rows wait.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


def due(
    connection: sa.Connection,
    query: sa.Select[Any],
    table: sa.Table,
    states: Collection[str],
    now: int,
    limit: int,
) -> list[Any]:
    """Return the rows of `query` in one of the states whose time has come, longest due first."""
    found: list[Any] = []
    query = query.where(table.c.next_attempt_at <= now)
    query = query.order_by(table.c.next_attempt_at, table.c.id).limit(limit)
    for state in _each(states):
        found += connection.execute(query.where(table.c.state == state))
    return sorted(found, key=lambda row: (row.next_attempt_at, row.id))[:limit]


def in_state(
    connection: sa.Connection,
    query: sa.Select[Any],
    table: sa.Table,
    states: Collection[str],
    limit: int,
) -> list[Any]:
    """Return the rows of `query` in one of the states, oldest first."""
    # The numbers come from the index alone; only what is returned is read from the table.
    oldest = sa.select(table.c.id).where(table.c.state.in_(_each(states)))
    oldest = oldest.order_by(table.c.id).limit(limit)
    found = query.where(table.c.id.in_(oldest.scalar_subquery())).order_by(table.c.id)
    return list(connection.execute(found))


def next_moment(connection: sa.Connection, table: sa.Table, states: Collection[str]) -> int | None:
    """Return when the next row in one of the states is due."""
    query = sa.select(table.c.next_attempt_at).where(table.c.next_attempt_at.is_not(None))
    query = query.order_by(table.c.next_attempt_at).limit(1)
    moments = [
        connection.execute(query.where(table.c.state == state)).scalar() for state in _each(states)
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def move_on(
    connection: sa.Connection, table: sa.Table, row: Any, columns: Mapping[str, Any]
) -> bool:
    """Change a row as long as it is what was read; False when it has moved on meanwhile."""
    still = sa.and_(table.c.id == row.id, table.c.version == row.version)
    values = {**plain(columns), "version": row.version + 1}
    return bool(connection.execute(sa.update(table).where(still).values(values)).rowcount)


def plain(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return new values as the database takes them."""
    return {name: _plain(value) for name, value in columns.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return int(value) if isinstance(value, bool) else value


def _each(states: Iterable[str]) -> list[str]:
    return sorted({str(state) for state in states})
