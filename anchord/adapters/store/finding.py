"""Finding records that stand somewhere, newest first, without looking at those that do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from anchord.adapters.store.schema import records, standings
from anchord.adapters.store.standings import CHUNK, IS_ANCHORED, IS_STORED, IS_SUBMITTED

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 64
"""Rows of 4,096 records each."""
_MOST = 512
"""Rows that are looked at for one answer: two million records."""
_NOTHING = bytes(CHUNK)


def fitting(anchored: str | None, stored: str | None) -> bytes:
    """Return for every byte of a standing whether it has these words, 1 or 0."""
    return bytes(
        anchored in (None, anchored_word(byte)) and stored in (None, stored_word(byte))
        for byte in range(256)
    )


def anchored_word(bits: int) -> str:
    """Return what a standing says of the facet `anchored`, as a record's page has it."""
    if bits & IS_ANCHORED:
        return "anchored"
    return "submitted" if bits & IS_SUBMITTED else "not anchored"


def stored_word(bits: int) -> str:
    """Return what a standing says of the facet `stored`."""
    return "stored" if bits & IS_STORED else "not stored"


def find(
    connection: sa.Connection, before: int | None, fits: bytes, count: int
) -> tuple[list[int], int | None]:
    """Return row ids of records that fit, newest first, and where to go on.

    Ids may be among them that no record has.

    Args:
        connection: within a transaction.
        before: only ids below; None: all.
        fits: see `fitting`.
        count: how many at most.

    Returns:
        The ids, and what to give as `before` for more of them; None: there are no more.
    """
    end = (connection.execute(sa.select(sa.func.max(records.c.id))).scalar() or 0) + 1
    end = end if before is None else max(min(before, end), 0)
    found: list[int] = []
    last = max((end - 1) // CHUNK - _MOST + 1, 0)
    for chunk, states in _downwards(connection, (end - 1) // CHUNK, last):
        marks, stop = states.translate(fits), min(end - chunk * CHUNK, CHUNK)
        while (place := marks.rfind(1, 0, stop)) >= 0:
            found.append(chunk * CHUNK + place)
            if len(found) == count:
                return found, found[-1]
            stop = place
    return found, last * CHUNK or None


def _downwards(connection: sa.Connection, high: int, low: int) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of `standings` from `high` down to `low`, those that are not there too."""
    for top in range(high, low - 1, -_AT_ONCE):
        bottom = max(top - _AT_ONCE + 1, low)
        query = sa.select(standings.c.chunk, standings.c.states)
        rows = connection.execute(query.where(standings.c.chunk.between(bottom, top)))
        there = {chunk: bytes(states) for chunk, states in rows}
        for chunk in range(top, bottom - 1, -1):
            yield chunk, there.get(chunk, _NOTHING)
