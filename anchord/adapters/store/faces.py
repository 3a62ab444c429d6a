"""What pages about the whole store ask of it, see `anchord.ports.face`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.connection import one_of
from anchord.adapters.store.schema import events, records, series
from anchord.core.event import ANCHORED, CAPTURED, ITEM_STORED, SUBMITTED, event_id
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
    from collections.abc import Iterable, Sequence

    from anchord.adapters.store.connection import Database
    from anchord.core.model import StoredRecord

_LOOKED_AT = 2_000
"""Records that one question for some of them looks at."""
_SECONDS_A_DAY = 86_400


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
    ) -> Listing:
        """Return records, newest first."""
        _check(limit, anchored, stored)
        wanted = (anchored, stored)
        chunk = limit + 1 if wanted == (None, None) else max(limit + 1, 500)
        found: list[Listed] = []
        looked_at = 0
        while looked_at < _LOOKED_AT:
            rows = self._rows_before(before, chunk, source)
            for row in self._with_words(rows):
                if len(found) == limit:
                    return Listing(tuple(found), before)
                before = row.id
                if anchored in (None, row.anchored) and stored in (None, row.stored):
                    found.append(row)
            if len(rows) < chunk:
                return Listing(tuple(found), None)
            looked_at += len(rows)
        return Listing(tuple(found), before)

    def listed(self, ids: Sequence[int]) -> list[Listed]:
        """Return records as a list shows them, in the order asked for."""
        with self._database.reading() as connection:
            rows = connection.execute(
                sa.select(records).where(one_of(connection, records.c.id, list(ids)))
            ).all()
        by_id = {row.id: row for row in self._with_words(rows)}
        return [by_id[one] for one in ids if one in by_id]

    def recent(self, after: int | None, limit: int) -> list[RecentEvent]:
        """Return events of the ledger, newest last."""
        columns = (events.c.seq, series.c.event_type, series.c.created_at, events.c.event_id)
        query = (
            sa.select(*columns, events.c.record_id, records.c.digest, records.c.year)
            .join(series, series.c.id == events.c.series_id)
            .join(records, records.c.id == events.c.record_id)
            .limit(limit)
        )
        if after is None:
            query = query.order_by(events.c.seq.desc())
        else:
            query = query.where(events.c.seq > after).order_by(events.c.seq)
        with self._database.reading() as connection:
            found = [_recent(row) for row in connection.execute(query)]
        return found[::-1] if after is None else found

    def history(self) -> list[Day]:
        """Return the days on which anything changed, oldest first."""
        return []

    def citing(self, records: Sequence[StoredRecord]) -> dict[int, list[int]]:
        """Return which other records came in bundles that say they cite these."""
        del records
        return {}

    def _rows_before(self, before: int | None, limit: int, source: str | None) -> Sequence[Any]:
        query = sa.select(records).order_by(records.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(records.c.id < before)
        if source is not None:
            query = query.where(records.c.source_kind == source)
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _with_words(self, rows: Sequence[Any]) -> list[Listed]:
        standing = self._standing([row.id for row in rows])
        return [_listed(row, standing.get(row.id, frozenset())) for row in rows]

    def _standing(self, ids: list[int]) -> dict[int, set[str]]:
        """Return the types of the events that stand, of those records that have any."""
        query = sa.select(
            events.c.record_id, series.c.id, series.c.event_type, series.c.withdraws
        ).join(series, series.c.id == events.c.series_id)
        with self._database.reading() as connection:
            found = connection.execute(
                query.where(one_of(connection, events.c.record_id, ids))
            ).all()
        gone = {(record, withdraws) for record, _, _, withdraws in found if withdraws is not None}
        standing: dict[int, set[str]] = {}
        for record, number, event_type, withdraws in found:
            if withdraws is None and (record, number) not in gone:
                standing.setdefault(record, set()).add(event_type)
        return standing


def _check(limit: int, anchored: str | None, stored: str | None) -> None:
    if limit < 1:
        raise RefusedError(f"a list of {limit} records: expected 1 or more")
    for word, words in ((anchored, ANCHORED_WORDS), (stored, STORED_WORDS)):
        if word is not None and word not in words:
            raise RefusedError(f"no state is called {word!r:.40}: expected {', '.join(words)}")


def name_of(digest: bytes, year: int | None) -> str:
    """Return what a record is called: its Pith Number where it has one."""
    return record_id(digest) if year is None else pith_number(digest, f"{year:04d}")


def _listed(row: Any, standing: Iterable[str]) -> Listed:
    types = frozenset(standing)
    anchored = "submitted" if SUBMITTED in types else "not anchored"
    return Listed(
        id=row.id,
        name=name_of(row.digest, row.year),
        digest=row.digest,
        source_kind=row.source_kind,
        source_id=row.source_id,
        source_version=row.source_version,
        label=row.label,
        added_at=row.added_at,
        anchored="anchored" if ANCHORED in types else anchored,
        stored="stored" if types & {CAPTURED, ITEM_STORED} else "not stored",
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
