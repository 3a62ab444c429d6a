"""What a list may say of records: only what rows of the ledger say that are as they were appended.

A list renders no event and verifies no signature, for that takes too long for many records; an
audit and each record's own page do. What is quickly told is told here: the chain hash of each row,
and whether the key that its series names was to be believed at that moment.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.connection import one_of
from anchord.adapters.store.ledger import chained, to_row
from anchord.adapters.store.schema import events, series
from anchord.core.event import STORAGE, TARGET, TIMESTAMPS
from anchord.core.keyring import check_permitted
from anchord.errors import LedgerError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anchord.core.keyring import Keyring

_AT_ONCE = 10_000
_SAYS = [series.c[name] for name in ("event_type", "created_at", "key_id", "withdraws")]


def believed(
    connection: sa.Connection, ids: Sequence[int], keyring: Keyring
) -> dict[int, set[str]]:
    """Return the types of the events that stand, of those records that have any.

    Of a record with a damaged row nothing stands: that row may have taken the others back.

    Args:
        connection: within a transaction.
        ids: row ids of records.
        keyring: public keys; what another key signed counts for nothing, as on a record's page.
    """
    permits, found = cache(partial(_is_permitted, keyring)), dict[int, list[Any]]()
    for start in range(0, len(ids), _AT_ONCE):
        some = one_of(connection, events.c.record_id, ids[start : start + _AT_ONCE])
        query = chained().add_columns(*_SAYS).outerjoin(series, series.c.id == events.c.series_id)
        for row in connection.execute(query.where(some)):
            found.setdefault(row.record_id, []).append(row)
    return {
        record: _standing(rows, permits)
        for record, rows in found.items()
        if all(intact(row) and row.event_type is not None for row in rows)
    }


def _standing(rows: Sequence[Any], permits: Callable[[str, int, str], bool]) -> set[str]:
    types = {row.series_id: row.event_type for row in rows}
    # A withdrawal is about the facet of what it takes back.
    counted = [
        row
        for row in rows
        if permits(row.key_id, row.created_at, types.get(row.withdraws, row.event_type))
    ]
    gone = {row.withdraws for row in counted}
    return {
        row.event_type for row in counted if row.withdraws is None and row.series_id not in gone
    }


def _is_permitted(keyring: Keyring, key_id: str, at: int, event_type: str) -> bool:
    key = keyring.get(key_id)
    if key is None:
        return False
    try:
        check_permitted(key, at, TARGET if event_type in TIMESTAMPS else STORAGE)
    except SignatureError:
        return False
    return True


def intact(row: Any) -> bool:
    """Return whether a row that `chained` selected is as it was appended."""
    try:
        to_row(row)
    except LedgerError:
        return False
    return True
