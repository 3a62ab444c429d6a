"""Many rows at once, by record: what reading a whole tile of records needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.connection import one_of
from anchord.adapters.store.ledger import chained, to_row
from anchord.adapters.store.records import to_record
from anchord.adapters.store.schema import (
    batches,
    bodies,
    documents,
    events,
    record_urls,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.adapters.store.connection import Database
    from anchord.core.model import SignedRow, StoredRecord

_AT_ONCE = 10_000
"""Ids per IN list; SQLite takes 32,766 parameters."""


class Lookup:
    """Read-only questions about a list of records."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def records(self, ids: Sequence[int]) -> dict[int, StoredRecord]:
        """Return the records, by row id."""
        return {row.id: to_record(row) for row in self._rows(sa.select(records), records.c.id, ids)}

    def bodies(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the canonical bytes of those that have them."""
        rows = self._rows(sa.select(bodies), bodies.c.record_id, ids)
        return {row.record_id: row.canonical for row in rows}

    def urls(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the pages of those that came with one of their own."""
        rows = self._rows(sa.select(record_urls), record_urls.c.record_id, ids)
        return {row.record_id: row.url for row in rows}

    def documents(self, ids: Sequence[int]) -> dict[int, list[bytes]]:
        """Return the foreign bundles, oldest first, of those that came in one."""
        found: dict[int, list[bytes]] = {}
        for row in self._rows(sa.select(documents), documents.c.record_id, ids, documents.c.id):
            found.setdefault(row.record_id, []).append(row.raw)
        return found

    def events(self, ids: Sequence[int]) -> dict[int, list[SignedRow]]:
        """Return the ledger's rows, in ledger order, of those that have any."""
        found: dict[int, list[SignedRow]] = {}
        for row in self._rows(chained(), events.c.record_id, ids, events.c.seq):
            found.setdefault(row.record_id, []).append(to_row(row))
        return found

    def adopted(self) -> Iterator[tuple[int, int]]:
        """Yield (batch, record) of every adopted proof, in chunks read one after another."""
        after = 0
        while True:
            query = (
                sa.select(batches.c.id, batches.c.record_id)
                .where(batches.c.id > after, batches.c.kind == "adopted")
                .order_by(batches.c.id)
                .limit(_AT_ONCE)
            )
            with self._database.reading() as connection:
                rows = list(connection.execute(query))
            if not rows:
                return
            yield from ((row.id, row.record_id) for row in rows)
            after = rows[-1].id

    def sealed(self) -> list[int]:
        """Return the ids of anchord's own batches, oldest first."""
        query = sa.select(batches.c.id).where(batches.c.kind == "sealed").order_by(batches.c.id)
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def _rows(
        self,
        select: sa.Select[Any],
        column: sa.Column[Any],
        ids: Sequence[int],
        order: sa.Column[Any] | None = None,
    ) -> Iterator[Any]:
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            with self._database.reading() as connection:
                query = select.where(one_of(connection, column, some))
                if order is not None:
                    query = query.order_by(order)
                rows = list(connection.execute(query))
            yield from rows
