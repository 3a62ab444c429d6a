"""What was fetched from which mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from msgspec.structs import asdict

from anchord.adapters.store.schema import pulls
from anchord.ports.log import Pull

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.adapters.store.connection import Database

_AT_ONCE = 500


class Pulls:
    """The table of pulls."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, mirror: str, names: Sequence[str]) -> dict[str, Pull]:
        """Return what is known of some files of a mirror, by name."""
        found: dict[str, Pull] = {}
        with self._database.reading() as connection:
            for start in range(0, len(names), _AT_ONCE):
                part = list(names[start : start + _AT_ONCE])
                query = sa.select(pulls).where(pulls.c.mirror == mirror, pulls.c.name.in_(part))
                found.update((row.name, _pull(row)) for row in connection.execute(query))
        return found

    def put(self, found: Sequence[Pull]) -> None:
        """Write what became of some files, in one transaction."""
        with self._database.writing() as connection:
            for pull in found:
                mine = sa.and_(pulls.c.mirror == pull.mirror, pulls.c.name == pull.name)
                values = asdict(pull)
                if not connection.execute(sa.update(pulls).where(mine).values(values)).rowcount:
                    connection.execute(sa.insert(pulls).values(values))

    def of_mirror(self, mirror: str) -> Iterator[Pull]:
        """Yield all that is known of a mirror, by name."""
        after = ""
        while True:
            query = sa.select(pulls).where(pulls.c.mirror == mirror, pulls.c.name > after)
            query = query.order_by(pulls.c.name).limit(1024)
            with self._database.reading() as connection:
                found = [_pull(row) for row in connection.execute(query)]
            yield from found
            if not found:
                return
            after = found[-1].name


def _pull(row: Any) -> Pull:
    return Pull(**{name: getattr(row, name) for name in Pull.__struct_fields__})
