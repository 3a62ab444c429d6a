"""What the ledger says of each record, a byte each, kept as the ledger grows.

The bytes follow from the ledger: `rebuild` makes them from it, `advance` keeps them within the
transaction that appends. Of many neighbours, as a batch has them, one row is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from anchord.adapters.store.connection import one_of
from anchord.adapters.store.schema import days, events, records, series, standings
from anchord.core.event import ANCHORED, CAPTURED, ITEM_STORED, SUBMITTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from anchord.core.model import Series

CHUNK = 4096
"""Records a row."""
IS_SUBMITTED, IS_ANCHORED, IS_STORED = 1, 2, 4
_BITS = {
    SUBMITTED: IS_SUBMITTED,
    ANCHORED: IS_ANCHORED,
    CAPTURED: IS_STORED,
    ITEM_STORED: IS_STORED,
}
_WITH = {bit: bytes(byte | bit for byte in range(256)) for bit in (0, *_BITS.values())}
"""By bit: what each byte is with it."""
_COUNTED = {
    name: bytes(byte & bits == bits for byte in range(256))
    for name, bits in (
        ("anchored", IS_ANCHORED),
        ("stored", IS_STORED),
        ("complete", IS_ANCHORED | IS_STORED),
    )
}
"""By number that is kept of days: whether each byte counts in it, 1 or 0."""
_OF_DAYS = bytes(byte & (IS_ANCHORED | IS_STORED) for byte in range(256))
"""What is left of each byte where days are counted."""
_DAY_S = 86_400
_AT_ONCE = 10_000

Row = Sequence[Any]
"""Sequence number, record and series of a row of the ledger; what else is there is not read."""


class _Kind(NamedTuple):
    """What the rows of a series say."""

    bit: int
    day: int
    withdraws: bool


def advance(connection: sa.Connection, rows: Sequence[Row], known: Iterable[Series] = ()) -> None:
    """Note what rows say that were just appended, in their order.

    Args:
        connection: within the transaction that appended them.
        rows: of the ledger.
        known: series that need not be looked up.
    """
    kinds = {one.id: _kind(one.event_type, one.created_at, one.withdraws) for one in known}
    states = States()
    states.load(connection, {row[1] // CHUNK for row in rows})
    _advance(connection, states, rows, kinds)
    states.write(connection)


def _advance(
    connection: sa.Connection, states: States, rows: Sequence[Row], known: dict[int, _Kind]
) -> None:
    runs = [(number, list(run)) for number, run in groupby(rows, itemgetter(2))]
    kinds = known | _kinds(connection, {number for number, _ in runs} - known.keys())
    for number, run in runs:
        kind = kinds.get(number)
        if kind is None:
            continue  # damaged: an audit tells of it
        if kind.withdraws:
            _withdraw(connection, states, run, kind)
        else:
            states.add([row[1] for row in run], kind)


def came_in(connection: sa.Connection, count: int, now: int) -> None:
    """Note that new records came."""
    if count:
        _add_days(connection, {now // _DAY_S: Counter(records=count)})


def rebuild(connection: sa.Connection) -> None:
    """Make all of it anew from records and ledger: some seconds for a million records."""
    connection.execute(sa.delete(standings))
    connection.execute(sa.delete(days))
    derived(connection).write(connection)


def derived(connection: sa.Connection) -> States:
    """Return what follows from records and ledger, whatever is kept; nothing is written."""
    states = States()
    day = sa.cast(records.c.added_at - records.c.added_at % _DAY_S, sa.BigInteger)
    came = sa.select(day, sa.func.count()).group_by(day)
    for moment, count in connection.execute(came):
        states.days[moment // _DAY_S] = Counter(records=count)
    for rows in _ledger(connection):
        _advance(connection, states, rows, {})
    return states


def bits_of(types: Iterable[str]) -> int:
    """Return the byte for types of events that stand."""
    found = 0
    for event_type in types:
        found |= _BITS.get(event_type, 0)
    return found


def standing(
    connection: sa.Connection, ids: Sequence[int], upto: int | None = None
) -> dict[int, set[str]]:
    """Return the types of the events that stand, of those records that have any.

    Args:
        connection: within a transaction.
        ids: row ids of records.
        upto: the last row of the ledger that counts; None: all do.
    """
    query = sa.select(
        events.c.record_id, series.c.id, series.c.event_type, series.c.withdraws
    ).join(series, series.c.id == events.c.series_id)
    if upto is not None:
        query = query.where(events.c.seq <= upto)
    found: list[Any] = []
    for start in range(0, len(ids), _AT_ONCE):
        some = one_of(connection, events.c.record_id, ids[start : start + _AT_ONCE])
        found += connection.execute(query.where(some)).all()
    gone = {(record, withdraws) for record, _, _, withdraws in found if withdraws is not None}
    stand: dict[int, set[str]] = {}
    for record, number, event_type, withdraws in found:
        if withdraws is None and (record, number) not in gone:
            stand.setdefault(record, set()).add(event_type)
    return stand


class States:
    """The bytes of some chunks, and how they and the numbers of days change."""

    def __init__(self) -> None:
        self.chunks: dict[int, bytearray] = {}
        self.days: dict[int, Counter[str]] = {}
        self._changed: set[int] = set()

    def load(self, connection: sa.Connection, chunks: Iterable[int]) -> None:
        """Begin with what is kept."""
        query = sa.select(standings.c.chunk, standings.c.states)
        rows = connection.execute(
            query.where(one_of(connection, standings.c.chunk, sorted(chunks)))
        )
        self.chunks.update({chunk: bytearray(states) for chunk, states in rows})

    def add(self, ids: Sequence[int], kind: _Kind) -> None:
        """Let records stand where a series says, too."""
        if ids[-1] - ids[0] == len(ids) - 1 and ids == list(range(ids[0], ids[-1] + 1)):
            for chunk in range(ids[0] // CHUNK, ids[-1] // CHUNK + 1):
                first = max(ids[0] - chunk * CHUNK, 0)
                stop = min(ids[-1] + 1 - chunk * CHUNK, CHUNK)
                part = bytes(self._chunk(chunk)[first:stop]).translate(_WITH[kind.bit])
                self._put(chunk, first, part, kind.day)
            return
        for record in ids:
            self.put(record, self._chunk(record // CHUNK)[record % CHUNK] | kind.bit, kind.day)

    def put(self, record: int, new: int, day: int) -> None:
        """Let one record stand somewhere."""
        self._put(record // CHUNK, record % CHUNK, bytes([new]), day)

    def _put(self, chunk: int, first: int, new: bytes, day: int) -> None:
        states = self._chunk(chunk)
        old = bytes(states[first : first + len(new)])
        if new == old:
            return
        states[first : first + len(new)] = new
        self._changed.add(chunk)
        if new.translate(_OF_DAYS) == old.translate(_OF_DAYS):
            return
        change = self.days.setdefault(day, Counter())
        for name, table in _COUNTED.items():
            change[name] += new.translate(table).count(1) - old.translate(table).count(1)

    def write(self, connection: sa.Connection) -> None:
        """Keep it."""
        changed = [
            {"chunk": chunk, "states": bytes(self.chunks[chunk])} for chunk in sorted(self._changed)
        ]
        if changed:
            connection.execute(_PUT_STATES, changed)
        _add_days(connection, self.days)

    def _chunk(self, number: int) -> bytearray:
        found = self.chunks.get(number)
        if found is None:
            found = self.chunks[number] = bytearray(CHUNK)
        return found


def _withdraw(connection: sa.Connection, states: States, rows: Sequence[Row], kind: _Kind) -> None:
    """Look what is left of records that something was taken back of."""
    ids = [row[1] for row in rows]
    left = standing(connection, sorted(set(ids)), rows[-1][0])
    for record in ids:
        states.put(record, bits_of(left.get(record, ())), kind.day)


def _kinds(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, _Kind]:
    wanted, found = sorted(numbers), {}
    query = sa.select(series.c.id, series.c.event_type, series.c.created_at, series.c.withdraws)
    for start in range(0, len(wanted), _AT_ONCE):
        some = one_of(connection, series.c.id, wanted[start : start + _AT_ONCE])
        for number, *said in connection.execute(query.where(some)):
            found[number] = _kind(*said)
    return found


def _kind(event_type: str, created_at: int, withdraws: int | None) -> _Kind:
    return _Kind(_BITS.get(event_type, 0), created_at // _DAY_S, withdraws is not None)


def _add_days(connection: sa.Connection, changes: dict[int, Counter[str]]) -> None:
    rows = [
        {"day": day, **{column: change[column] for column in COLUMNS}}
        for day, change in sorted(changes.items())
    ]
    if rows:
        connection.execute(_ADD_DAYS, rows)


COLUMNS = ("records", "anchored", "stored", "complete")
# Both databases understand it: https://www.sqlite.org/lang_upsert.html.
_PUT_STATES = sa.text(
    "INSERT INTO standings (chunk, states) VALUES (:chunk, :states) "
    "ON CONFLICT (chunk) DO UPDATE SET states = excluded.states"
)
_ADD_DAYS = sa.text(
    "INSERT INTO days (day, records, anchored, stored, complete) "
    "VALUES (:day, :records, :anchored, :stored, :complete) ON CONFLICT (day) DO UPDATE SET "
    "records = days.records + excluded.records, anchored = days.anchored + excluded.anchored, "
    "stored = days.stored + excluded.stored, complete = days.complete + excluded.complete"
)


def _ledger(connection: sa.Connection) -> Iterator[Sequence[Row]]:
    after = 0
    query = sa.select(events.c.seq, events.c.record_id, events.c.series_id).order_by(events.c.seq)
    while True:
        found = connection.execute(query.where(events.c.seq > after).limit(_AT_ONCE)).all()
        if not found:
            return
        yield found
        after = found[-1][0]
