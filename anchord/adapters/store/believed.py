"""What a list may say of records: only what rows of the ledger say that are as they were appended.

A list renders no event and verifies no signature, for that takes too long for many records; an
audit and each record's own page do. What is quickly told is told here: the chain hash of each row,
and whether the key that its series names was to be believed at that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.connection import one_of
from anchord.adapters.store.ledger import chained, to_row
from anchord.adapters.store.schema import events, series
from anchord.core.event import STORAGE, TARGET, TIMESTAMPS
from anchord.core.keyring import check_permitted
from anchord.errors import LedgerError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from anchord.core.keyring import Keyring

_AT_ONCE = 10_000
_SAYS = [series.c[name] for name in ("id", "event_type", "created_at", "key_id", "withdraws")]


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
    numbers: dict[int, set[int]] = {}
    damaged = set()
    for start in range(0, len(ids), _AT_ONCE):
        some = one_of(connection, events.c.record_id, ids[start : start + _AT_ONCE])
        for row in connection.execute(chained().where(some)):
            numbers.setdefault(row.record_id, set()).add(row.series_id)
            if not intact(row):
                damaged.add(row.record_id)
    says = _says(connection, set().union(*numbers.values()))
    counted = {number for number in says if _is_permitted(keyring, says, number)}
    return {
        record: _standing([says[number] for number in mine & counted])
        for record, mine in numbers.items()
        if record not in damaged and mine <= says.keys()
    }


def _says(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, Any]:
    query = sa.select(*_SAYS).where(one_of(connection, series.c.id, sorted(numbers)))
    return {row.id: row for row in connection.execute(query)}


def _standing(said: Sequence[Any]) -> set[str]:
    gone = {one.withdraws for one in said}
    return {one.event_type for one in said if one.withdraws is None and one.id not in gone}


def _is_permitted(keyring: Keyring, says: Mapping[int, Any], number: int) -> bool:
    one = says[number]
    # A withdrawal is about the facet of what it takes back, and of the same records.
    about = says.get(one.withdraws, one).event_type
    key = keyring.get(one.key_id)
    if key is None:
        return False
    try:
        check_permitted(key, one.created_at, TARGET if about in TIMESTAMPS else STORAGE)
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
