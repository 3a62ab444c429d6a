"""The page of a record's own, where its source named one: what is captured of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from anchord.adapters.store.connection import insert_many, select_in
from anchord.adapters.store.schema import batches, record_urls, records

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_AT_ONCE = 10_000
"""Ids per IN list; SQLite takes 32,766 parameters."""


def keep_urls(connection: sa.Connection, urls: Mapping[int, str], fresh: Collection[int]) -> None:
    """Keep the URLs of records that have none yet; the first one stays.

    Args:
        connection: within the transaction the records come in.
        urls: by record.
        fresh: records that are new, which nobody has looked at for URLs.
    """
    ids = list(urls)
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        query = sa.select(record_urls.c.record_id)
        there = {row[0] for row in select_in(connection, query, record_urls.c.record_id, part)}
        new = [(one, urls[one]) for one in part if one not in there]
        insert_many(connection, record_urls, ("record_id", "url"), new)
        late = [one for one, _ in new if one not in fresh]
        if late:
            # The members of their batches were looked at without it: they are looked at again.
            stand_in = sa.select(records.c.batch_id).where(records.c.id.in_(late))
            mine = batches.c.id.in_(stand_in.scalar_subquery())
            again = sa.update(batches).where(mine, batches.c.claimed != 0)
            connection.execute(again.values(claimed=0))
