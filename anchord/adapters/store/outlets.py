"""How far each outlet is, and the events that were set aside on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from msgspec.structs import asdict

from anchord.adapters.store.connection import insert_many
from anchord.adapters.store.schema_exchange import outlet_rows, outlets
from anchord.errors import StoreBusyError
from anchord.ports.outlet import PARKED, WAITING, OutletState, SetAside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.adapters.store.connection import Database
    from anchord.ports.outlet import Progress

_AT_ONCE = 500
_BEHIND = ("name", "seq", "record_id", "state", "attempts")


class Outlets:
    """The tables `outlets` and `outlet_rows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> OutletState | None:
        """Return where an outlet is; None before its first turn."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(outlets).where(outlets.c.name == name)).first()
        return None if row is None else _state(row)

    def all(self) -> list[OutletState]:
        """Return all outlets there ever were, by name."""
        with self._database.reading() as connection:
            return [_state(row) for row in connection.execute(sa.select(outlets).order_by("name"))]

    def begin(self, name: str, kind: str, seq: int, now: int) -> OutletState:
        """Write down a new outlet; one that is there stays as it is."""
        mine = sa.select(outlets).where(outlets.c.name == name)
        with self._database.writing() as connection:
            row = connection.execute(mine).first()
            if row is None:
                values = {"name": name, "kind": kind, "seq": seq, "next_attempt_at": now}
                connection.execute(sa.insert(outlets).values(**values, failures=0, delivered=0))
                row = connection.execute(mine).one()
        return _state(row)

    def due(self, name: str, now: int, limit: int) -> list[SetAside]:
        """Return events that were set aside and whose time has come, at most one a record."""
        query = _rows(name, WAITING).where(outlet_rows.c.next_attempt_at <= now)
        query = query.order_by(outlet_rows.c.next_attempt_at, outlet_rows.c.seq).limit(limit)
        return self._many(query)

    def held(self, name: str, record_ids: Sequence[int]) -> set[int]:
        """Return which of these records have events set aside."""
        found: set[int] = set()
        query = sa.select(outlet_rows.c.record_id).where(outlet_rows.c.name == name)
        with self._database.reading() as connection:
            for start in range(0, len(record_ids), _AT_ONCE):
                part = list(record_ids[start : start + _AT_ONCE])
                found.update(
                    connection.execute(query.where(outlet_rows.c.record_id.in_(part))).scalars()
                )
        return found

    def advance(self, name: str, progress: Progress, now: int) -> None:
        """Write down what was handed over, in one transaction.

        Raises:
            StoreBusyError: somebody else moved the outlet meanwhile; nothing was written.
        """
        values: dict[str, Any] = {"seq": progress.seq}
        if progress.delivered:
            values |= {"delivered": outlets.c.delivered + progress.delivered, "failures": 0}
            values |= {"last_ok_at": now, "next_attempt_at": now}
        still = sa.and_(outlets.c.name == name, outlets.c.seq == progress.before)
        with self._database.writing() as connection:
            if not connection.execute(sa.update(outlets).where(still).values(values)).rowcount:
                raise StoreBusyError(
                    f"the outlet {name!r} moved while events were handed over: another worker was "
                    "here; what both handed over arrived twice, run again"
                )
            for one in progress.aside:
                _set_aside(connection, name, one)
            waiting = [(name, seq, record, WAITING, 0) for seq, record in progress.behind]
            insert_many(connection, outlet_rows, _BEHIND, waiting)
            for seq, record_id in progress.done:
                _done(connection, name, seq, record_id, now)

    def fail(self, name: str, now: int, at: int | None, words: str) -> None:
        """Write down that nothing could be handed over; `at` None: stopped."""
        values = {"failures": outlets.c.failures + 1, "next_attempt_at": at}
        said = {"last_error": words, "last_error_at": now}
        with self._database.writing() as connection:
            change = sa.update(outlets).where(outlets.c.name == name)
            connection.execute(change.values(**values, **said))

    def next_moment(self, name: str) -> int | None:
        """Return when the next event that was set aside is due."""
        waits = outlet_rows.c.next_attempt_at.is_not(None)
        query = sa.select(sa.func.min(outlet_rows.c.next_attempt_at))
        with self._database.reading() as connection:
            return connection.execute(query.where(outlet_rows.c.name == name, waits)).scalar()

    def rows(self, name: str, state: str, limit: int) -> list[SetAside]:
        """Return events that were set aside, oldest first."""
        return self._many(_rows(name, state).order_by(outlet_rows.c.seq).limit(limit))

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many events are set aside, by outlet and state."""
        by = (outlet_rows.c.name, outlet_rows.c.state)
        with self._database.reading() as connection:
            found = connection.execute(sa.select(*by, sa.func.count()).group_by(*by))
            return {(name, state): int(count) for name, state, count in found}

    def revive(self, name: str, now: int) -> int:
        """Let parked events be tried now, and the outlet go on; return how many events."""
        parked = sa.and_(outlet_rows.c.name == name, outlet_rows.c.state == PARKED)
        again = {"state": WAITING, "attempts": 0, "next_attempt_at": now}
        with self._database.writing() as connection:
            change = sa.update(outlets).where(outlets.c.name == name)
            connection.execute(change.values(next_attempt_at=now, failures=0))
            return connection.execute(sa.update(outlet_rows).where(parked).values(again)).rowcount

    def _many(self, query: sa.Select[Any]) -> list[SetAside]:
        with self._database.reading() as connection:
            return [
                SetAside(**{n: getattr(row, n) for n in SetAside.__struct_fields__})
                for row in connection.execute(query)
            ]


def _rows(name: str, state: str) -> sa.Select[Any]:
    return sa.select(outlet_rows).where(outlet_rows.c.name == name, outlet_rows.c.state == state)


def _set_aside(connection: sa.Connection, name: str, one: SetAside) -> None:
    """Write a refusal, the first or one more."""
    mine = sa.and_(outlet_rows.c.name == name, outlet_rows.c.seq == one.seq)
    values = asdict(one)
    if not connection.execute(sa.update(outlet_rows).where(mine).values(values)).rowcount:
        connection.execute(sa.insert(outlet_rows).values(name=name, **values))


def _done(connection: sa.Connection, name: str, seq: int, record_id: int, now: int) -> None:
    """Forget an event that arrived; the next one of its record is due now."""
    of_record = sa.and_(outlet_rows.c.name == name, outlet_rows.c.record_id == record_id)
    connection.execute(sa.delete(outlet_rows).where(of_record, outlet_rows.c.seq == seq))
    first = sa.select(sa.func.min(outlet_rows.c.seq)).where(of_record)
    after = connection.execute(first).scalar()
    if after is not None:
        change = sa.update(outlet_rows).where(of_record, outlet_rows.c.seq == after)
        connection.execute(change.values(next_attempt_at=now))


def _state(row: Any) -> OutletState:
    return OutletState(**{name: getattr(row, name) for name in OutletState.__struct_fields__})
