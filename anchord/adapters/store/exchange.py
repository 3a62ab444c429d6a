"""How far each source was read, and how its looks went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.schema import sources
from anchord.ports.source import SourceRow

if TYPE_CHECKING:
    from anchord.adapters.store.connection import Database

_ERROR_CHARACTERS = 500


class Sources:
    """The table of sources."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> SourceRow | None:
        """Return one source; None: it was never looked at."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(sources).where(sources.c.name == name)).first()
        return None if row is None else _row(row)

    def all(self) -> list[SourceRow]:
        """Return all that were ever looked at, by name."""
        with self._database.reading() as connection:
            return [_row(row) for row in connection.execute(sa.select(sources).order_by("name"))]

    def begin(self, name: str, kind: str, now: int) -> SourceRow:
        """Write down that a look begins; a source of another kind begins anew."""
        with self._database.writing() as connection:
            mine = sources.c.name == name
            found = connection.execute(sa.select(sources).where(mine)).first()
            row = _row(found) if found is not None else None
            if row is None:
                row = SourceRow(name=name, kind=kind, looked_at=now)
                new = {key: getattr(row, key) for key in SourceRow.__struct_fields__}
                connection.execute(sa.insert(sources).values(new))
                return row
            cursor = row.cursor if row.kind == kind else None
            values = {"kind": kind, "cursor": cursor, "looked_at": now}
            connection.execute(sa.update(sources).where(mine).values(values))
            return SourceRow(**{**_values(found), **values})

    def advance(self, before: SourceRow, cursor: bytes | None, taken: int, refused: int) -> bool:
        """Add to the counts and move the cursor; False: it is not where `before` has it.

        `cursor` None leaves it where it is.
        """
        same = sources.c.cursor.is_not_distinct_from(before.cursor)
        values: dict[str, Any] = {
            "taken": sources.c.taken + taken,
            "refused": sources.c.refused + refused,
        }
        if cursor is not None:
            values["cursor"] = cursor
        here = sa.and_(sources.c.name == before.name, sources.c.kind == before.kind, same)
        with self._database.writing() as connection:
            return bool(connection.execute(sa.update(sources).where(here).values(values)).rowcount)

    def ended(self, name: str, now: int, next_at: int) -> None:
        """Write down that a look went well."""
        self._update(name, next_at=next_at, last_ok_at=now, failures=0)

    def failed(self, name: str, now: int, next_at: int, error: str) -> None:
        """Write down why a look did not."""
        self._update(
            name,
            next_at=next_at,
            last_error_at=now,
            last_error=error[:_ERROR_CHARACTERS],
            failures=sources.c.failures + 1,
        )

    def forget(self, name: str) -> None:
        """Let a source be read from the beginning, at once; its counts stay."""
        self._update(name, cursor=None, next_at=None)

    def _update(self, name: str, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(sa.update(sources).where(sources.c.name == name).values(values))


def _values(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in SourceRow.__struct_fields__}


def _row(row: Any) -> SourceRow:
    return SourceRow(**_values(row))
