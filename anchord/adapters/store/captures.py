"""Captures: which URLs are to be at the Wayback Machine, and how far each has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store import due
from anchord.adapters.store.connection import Database, insert_many, one_of
from anchord.adapters.store.lanes import put as put_lanes
from anchord.adapters.store.ledger import cut_series, insert_series
from anchord.adapters.store.schema import batches
from anchord.adapters.store.schema import captures as table
from anchord.core.event import CAPTURED, WITHDRAWN
from anchord.core.storage import Capture, CaptureChange, CaptureState, Glance, NewCapture
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from anchord.core.storage import Lane

SOURCE = "source"
"""The role of a record's own URL."""
_GIVEN = NewCapture.__struct_fields__
_BEGIN = (
    "version", "state", "attempts", "next_attempt_at", "adopted", "checks", "confirmations",
    "lost", "created_at",
)  # fmt: skip
_MOMENTS = (
    "created_at", "next_attempt_at", "submitted_at", "deadline_at", "reported_at", "stored_at",
)  # fmt: skip
_LOOKUP = 10_000
"""Records per IN list; SQLite takes 32,766 parameters."""


class Captures:
    """The table of captures. Every writing method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unclaimed(self) -> tuple[int, int, int] | None:
        """Return the first batch with members not looked at yet: (batch, claimed so far, size).

        A record is looked at in each batch it is in; a capture is made once.
        """
        query = sa.select(batches.c.id, batches.c.claimed, batches.c.size)
        query = query.where(batches.c.claimed < batches.c.size).order_by(batches.c.id).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row.id, row.claimed, row.size)

    def claim(
        self,
        batch_id: int,
        stop: int,
        captures: Sequence[NewCapture],
        now: int,
        *,
        start: int | None = None,
    ) -> int:
        """Note that members before `stop` were looked at, and the URLs found.

        A record's URL that is there already is left alone. With `start`, a batch that does not
        stand there any more stays where it stands: canonical bytes came for one of its records
        while its members were looked at, so all of them are looked at again.
        """
        moved = sa.update(batches).where(batches.c.id == batch_id)
        if start is not None:
            moved = moved.where(batches.c.claimed == start)
        with self._database.writing() as connection:
            fresh = _fresh(connection, captures)
            begin = (0, CaptureState.WAITING.value, 0, now, 0, 0, 0, 0, now)
            rows = [(*(getattr(new, name) for name in _GIVEN), *begin) for new in fresh]
            insert_many(connection, table, (*_GIVEN, *_BEGIN), rows)
            connection.execute(moved.values(claimed=stop))
        return len(fresh)

    def claim_again(self) -> None:
        """Let all members be looked at once more, because the URL templates changed."""
        with self._database.writing() as connection:
            connection.execute(sa.update(batches).where(batches.c.claimed != 0).values(claimed=0))

    def due(
        self,
        states: Collection[CaptureState],
        now: int,
        limit: int,
        skip_hosts: Collection[str] = (),
    ) -> list[Capture]:
        """Return captures in one of the states whose time has come, the longest due first."""
        query = sa.select(table)
        if skip_hosts:
            query = query.where(table.c.host.not_in(sorted(skip_hosts)))
        with self._database.reading() as connection:
            rows = due.due(connection, query, table, states, now, limit)
        return [to_capture(row) for row in rows]

    def in_state(self, states: Collection[CaptureState], limit: int = 1000) -> list[Capture]:
        """Return captures in some states, due or not, oldest first."""
        with self._database.reading() as connection:
            rows = due.in_state(connection, sa.select(table), table, states, limit)
        return [to_capture(row) for row in rows]

    def get(self, capture_id: int) -> Capture:
        """Return one capture.

        Raises:
            FatalError: there is none of that number.
        """
        query = sa.select(table).where(table.c.id == capture_id)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise FatalError(f"capture {capture_id} is named but not in the store: it is damaged")
        return to_capture(row)

    def of_record(self, record_id: int) -> list[Capture]:
        """Return a record's captures, the one of role "source" first."""
        query = sa.select(table).where(table.c.record_id == record_id)
        query = query.order_by(table.c.role != SOURCE, table.c.id)
        with self._database.reading() as connection:
            return [to_capture(row) for row in connection.execute(query)]

    def of_url(self, url: str) -> list[Capture]:
        """Return the captures of an address, the oldest first. Reads every row: for people only."""
        query = sa.select(table).where(table.c.url == url).order_by(table.c.id)
        with self._database.reading() as connection:
            return [to_capture(row) for row in connection.execute(query)]

    def next_moment(self, states: Collection[CaptureState]) -> int | None:
        """Return when the next capture in one of the states is due."""
        with self._database.reading() as connection:
            return due.next_moment(connection, table, states)

    def glance(self) -> Glance:
        """Return when each state is due next, and whether anything is to be claimed."""
        with self._database.reading() as connection:
            row = connection.execute(_GLANCE).one()
        *moments, in_flight, unclaimed = row
        due_at = zip(CaptureState, moments, strict=True)
        return Glance(
            due={state: at for state, at in due_at if at is not None},
            in_flight=in_flight,
            unclaimed=unclaimed is not None,
        )

    def count(self, state: CaptureState, limit: int | None = None) -> int:
        """Return how many stand in a state (counting no further than `limit`)."""
        some = sa.select(table.c.id).where(table.c.state == state.value).limit(limit)
        query = sa.select(sa.func.count()).select_from(some.subquery())
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one()

    def bring_forward(self, states: Collection[CaptureState], now: int, latest: int) -> int:
        """Heal captures that a clock far ahead put off beyond `latest`; return how many.

        All of their moments are of that clock, so each that lies ahead becomes now. What they look
        back to moves with the submit. One being sent waits for nothing: its submit tells.
        """
        put_off = table.c.state.in_(sorted(states)) & (table.c.next_attempt_at > latest)
        sending = table.c.state == CaptureState.SENDING.value
        late = [put_off]
        if CaptureState.SENDING in states:
            late.append(sending & (table.c.submitted_at > latest))
        ahead = sa.case((table.c.submitted_at > now, table.c.submitted_at - now), else_=0)
        values: dict[str, Any] = {name: _no_later(table.c[name], now) for name in _MOMENTS}
        values |= {"since_at": table.c.since_at - ahead, "version": table.c.version + 1}
        with self._database.reading() as connection:
            found = [connection.execute(sa.select(table.c.id).where(one).limit(1)) for one in late]
            if not any(rows.first() for rows in found):
                return 0
        with self._database.writing() as connection:
            healing = sa.update(table).values(values)
            return sum(connection.execute(healing.where(one)).rowcount for one in late)

    def change(self, changes: Sequence[CaptureChange], lanes: Sequence[Lane] = ()) -> int:
        """Change captures, append intents and keep lanes in one transaction.

        Return how many changes were made; one whose row has moved on meanwhile is left out. What
        the lanes granted was granted anyway, so they are kept in any case.
        """
        with self._database.writing() as connection:
            put_lanes(connection, lanes)
            return sum(_change(connection, item) for item in changes)


def _glance() -> sa.Select[Any]:
    """Return one query for everything; each part of it reads one entry of an index."""
    first = sa.select(table.c.next_attempt_at).where(table.c.next_attempt_at.is_not(None))
    first = first.order_by(table.c.next_attempt_at).limit(1)
    moments = [
        first.where(table.c.state == state.value).scalar_subquery() for state in CaptureState
    ]
    busy = table.c.state.in_([CaptureState.SENDING.value, CaptureState.SUBMITTED.value])
    in_flight = sa.select(sa.func.count()).select_from(table).where(busy).scalar_subquery()
    left = sa.select(batches.c.id).where(batches.c.claimed < batches.c.size).limit(1)
    return sa.select(*moments, in_flight, left.scalar_subquery())


_GLANCE = _glance()


def _change(connection: sa.Connection, item: CaptureChange) -> int:
    before = item.capture
    if not due.move_on(connection, table, before, item.columns):
        return 0
    live = item.columns.get("series_id", before.series_id)
    for series_id in item.cut_series:
        if cut_series(connection, series_id) and series_id == live:
            live = None
    for intent in item.intents:
        made = insert_series(connection, intent.batch_id, intent.series)
        if intent.series.event_type == CAPTURED:
            live = made
        elif intent.series.event_type == WITHDRAWN:
            live = None
    if live != item.columns.get("series_id", before.series_id):
        mine = table.c.id == before.id
        connection.execute(sa.update(table).where(mine).values(series_id=live))
    return 1


def _no_later(moment: sa.Column[Any], now: int) -> sa.Case[Any]:
    return sa.case((moment > now, now), else_=moment)


def _fresh(connection: sa.Connection, found: Sequence[NewCapture]) -> list[NewCapture]:
    """Return the URLs that no row is there for: one a record and role."""
    by_key = {(new.record_id, new.role): new for new in reversed(found)}
    ids = sorted({record_id for record_id, _ in by_key})
    for begin in range(0, len(ids), _LOOKUP):
        part = ids[begin : begin + _LOOKUP]
        query = sa.select(table.c.record_id, table.c.role)
        for key in connection.execute(query.where(one_of(connection, table.c.record_id, part))):
            by_key.pop(tuple(key), None)
    return [new for new in found if by_key.get((new.record_id, new.role)) is new]


def to_capture(row: Any) -> Capture:
    """Return a row of the captures table as a value.

    Raises:
        FatalError: it has a state that there is none of.
    """
    values = {name: getattr(row, name) for name in Capture.__struct_fields__}
    try:
        values["state"] = CaptureState(row.state)
    except ValueError:
        raise FatalError(
            f"capture {row.id} has state {row.state!r:.40}: the store is damaged, restore it from "
            "a backup"
        ) from None
    values["adopted"] = bool(row.adopted)
    return Capture(**values)
