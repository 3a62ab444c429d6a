"""What pages about the whole store ask of it, see `anchord.ports.face`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.believed import believed, intact
from anchord.adapters.store.citations import citing
from anchord.adapters.store.connection import one_of
from anchord.adapters.store.finding import anchored_word, find, fitting, stored_word
from anchord.adapters.store.ledger import chained
from anchord.adapters.store.schema import days, events, records, series
from anchord.adapters.store.standings import bits_of
from anchord.core.event import event_id
from anchord.core.number import pith_number, record_id
from anchord.errors import RefusedError
from anchord.ports.face import (
    ANCHORED_WORDS,
    STORED_WORDS,
    Day,
    Listed,
    Listing,
    RecentEvent,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.adapters.store.connection import Database
    from anchord.core.keyring import Keyring
    from anchord.core.model import StoredRecord

_AT_ONCE = 1_000
"""Records looked at at once for one kind of source among those that stand somewhere."""
_ROUNDS = 20
"""How often that is done for one question."""
_LARGEST = 2**62
_COUNTED = ("records", "anchored", "stored", "complete")


class Faces:
    """Read-only questions of pages.

    Args:
        database: where the tables are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self,
        *,
        before: int | None,
        limit: int,
        anchored: str | None = None,
        stored: str | None = None,
        source: str | None = None,
        keyring: Keyring,
    ) -> Listing:
        """Return records, newest first."""
        _check(limit, anchored, stored)
        if anchored is None and stored is None:
            return _cut(self._with_words(self._newest(before, limit + 1, source), keyring), limit)
        fits, found = fitting(anchored, stored), list[Listed]()
        at_once = limit + 1 if source is None else _AT_ONCE
        for _ in range(_ROUNDS):
            with self._database.reading() as connection:
                ids, before = find(connection, before, fits, at_once)
            rows = self._among(ids, source)
            for start in range(0, len(rows), limit + 1):
                # What is shown is what can be believed of the ledger, whatever led here.
                for row in self._with_words(rows[start : start + limit + 1], keyring):
                    if anchored in (None, row.anchored) and stored in (None, row.stored):
                        found.append(row)
                if len(found) > limit:
                    return _cut(found, limit)
            if before is None:
                break
        return Listing(tuple(found), before)

    def listed(self, ids: Sequence[int], keyring: Keyring) -> list[Listed]:
        """Return records as a list shows them, in the order asked for."""
        by_id = {row.id: row for row in self._with_words(self._among(ids, None), keyring)}
        return [by_id[one] for one in ids if one in by_id]

    def recent(self, after: int | None, limit: int) -> list[RecentEvent]:
        """Return events of the ledger, newest last."""
        columns = (series.c.event_type, series.c.created_at, records.c.digest, records.c.year)
        query = (
            chained()
            .add_columns(*columns)
            .join(series, series.c.id == events.c.series_id)
            .join(records, records.c.id == events.c.record_id)
            .limit(limit)
        )
        if after is None:
            query = query.order_by(events.c.seq.desc())
        else:
            query = query.where(events.c.seq > after).order_by(events.c.seq)
        with self._database.reading() as connection:
            found = [_recent(row) for row in connection.execute(query) if intact(row)]
        return found[::-1] if after is None else found

    def history(self) -> list[Day]:
        """Return the days on which anything changed, oldest first."""
        sums = dict.fromkeys(_COUNTED, 0)
        found = []
        with self._database.reading() as connection:
            for row in connection.execute(sa.select(days).order_by(days.c.day)):
                sums = {name: sums[name] + getattr(row, name) for name in _COUNTED}
                found.append(Day(day=row.day, **sums))
        return found

    def citing(self, records: Sequence[StoredRecord]) -> dict[int, list[int]]:
        """Return which other records came in bundles that say they cite these."""
        with self._database.reading() as connection:
            return citing(connection, records)

    def _newest(self, before: int | None, limit: int, source: str | None) -> Sequence[Any]:
        query = sa.select(records).order_by(records.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(records.c.id < min(before, _LARGEST))
        if source is not None:
            query = query.where(records.c.source_kind == source)
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _among(self, ids: Sequence[int], source: str | None) -> Sequence[Any]:
        """Return the rows of some records, of one kind or of all, newest first."""
        query = sa.select(records).order_by(records.c.id.desc())
        if source is not None:
            query = query.where(records.c.source_kind == source)
        with self._database.reading() as connection:
            return connection.execute(query.where(one_of(connection, records.c.id, ids))).all()

    def _with_words(self, rows: Sequence[Any], keyring: Keyring) -> list[Listed]:
        with self._database.reading() as connection:
            types = believed(connection, [row.id for row in rows], keyring)
        return [_listed(row, bits_of(types.get(row.id, ()))) for row in rows]


def _cut(found: Sequence[Listed], limit: int) -> Listing:
    """Return the first rows; there is more behind them when there is one row more."""
    rows = tuple(found[:limit])
    return Listing(rows, rows[-1].id if len(found) > limit else None)


def _check(limit: int, anchored: str | None, stored: str | None) -> None:
    if limit < 1:
        raise RefusedError(f"a list of {limit} records: expected 1 or more")
    for word, words in ((anchored, ANCHORED_WORDS), (stored, STORED_WORDS)):
        if word is not None and word not in words:
            raise RefusedError(f"no state is called {word!r:.40}: expected {', '.join(words)}")


def name_of(digest: bytes, year: int | None) -> str:
    """Return what a record is called: its Pith Number where it has one."""
    return record_id(digest) if year is None else pith_number(digest, f"{year:04d}")


def _listed(row: Any, bits: int) -> Listed:
    return Listed(
        id=row.id,
        name=name_of(row.digest, row.year),
        digest=row.digest,
        source_kind=row.source_kind,
        source_id=row.source_id,
        source_version=row.source_version,
        label=row.label,
        added_at=row.added_at,
        anchored=anchored_word(bits),
        stored=stored_word(bits),
    )


def _recent(row: Any) -> RecentEvent:
    return RecentEvent(
        seq=row.seq,
        event_type=row.event_type,
        created_at=row.created_at,
        event_id=event_id(row.event_id),
        record_id=row.record_id,
        name=name_of(row.digest, row.year),
    )
