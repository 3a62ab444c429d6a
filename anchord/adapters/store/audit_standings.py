"""What is kept beside the ledger for lists and plots, held against what the ledger says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from anchord.adapters.store.schema import days, standings
from anchord.adapters.store.standings import CHUNK, COLUMNS, derived
from anchord.core.moment import utc
from anchord.core.standing import DAY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.adapters.store.standings import States

_NOTHING = bytes(CHUNK)


def misstated(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    """Yield (which row, what is wrong with it) of rows that do not follow from the ledger.

    Args:
        connection: within a transaction, so that all is of one moment.
    """
    found = derived(connection)
    yield from _chunks(connection, found)
    yield from _days(connection, found)


def _chunks(connection: sa.Connection, found: States) -> Iterator[tuple[str, str]]:
    kept = {row.chunk: bytes(row.states) for row in connection.execute(sa.select(standings))}
    for chunk in sorted(kept.keys() | found.chunks.keys()):
        said, true = kept.get(chunk, _NOTHING), bytes(found.chunks.get(chunk, _NOTHING))
        if said != true:
            wrong = sum(one != other for one, other in zip(said, true, strict=False))
            first, last = chunk * CHUNK, (chunk + 1) * CHUNK - 1
            yield (
                f"standings of records {first} to {last}",
                f"of {wrong + abs(len(said) - len(true))} they say what the ledger does not",
            )


def _days(connection: sa.Connection, found: States) -> Iterator[tuple[str, str]]:
    kept = {row.day: row for row in connection.execute(sa.select(days))}
    for day in sorted(kept.keys() | found.days.keys()):
        for name in COLUMNS:
            said = getattr(kept[day], name) if day in kept else 0
            true = found.days[day][name] if day in found.days else 0
            if said != true:
                yield (
                    f"numbers of {utc(day * DAY_S)[:10]}",
                    f"{name} grew by {said} as it is kept, by {true} as the ledger has it",
                )
