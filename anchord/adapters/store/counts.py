"""Counts and waits for `anchord status`: cheap, whatever the number of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from anchord.adapters.store.parked import is_asked_for, of_live_batch
from anchord.adapters.store.schema import (
    batch_pendings,
    batches,
    calendars,
    events,
    pendings,
    records,
    series,
    submissions,
    tokens,
)
from anchord.core.model import BatchState

if TYPE_CHECKING:
    from collections.abc import Collection

    from anchord.adapters.store.connection import Database


class Health(msgspec.Struct, frozen=True):
    """One calendar as it behaved so far."""

    url: str
    last_ok_at: int | None
    last_error_at: int | None
    last_error: str | None
    failures: int


class Wait(msgspec.Struct, frozen=True):
    """One thing that waits: what for, since when, and when it is tried next."""

    batch_id: int
    what: str
    """"submit" or "upgrade"."""
    where: str
    """The calendar, or its URI."""
    status: str
    detail: str | None
    attempts: int
    next_attempt_at: int | None


class Stranger(msgspec.Struct, frozen=True):
    """A calendar that proofs wait for, and that is asked for nothing: it is not configured."""

    uri: str
    commitments: int
    """How many answers of it are missing."""


class Counts:
    """Read-only questions over all tables.

    Args:
        database: where they are.
        known_uris: calendar URIs that are configured: nobody else is ever asked. None: all.
    """

    def __init__(self, database: Database, known_uris: Collection[str] | None = None) -> None:
        self._database = database
        self._known_uris = known_uris

    def _asked(self) -> sa.ColumnElement[bool]:
        """Return the condition for commitments that somebody is asked for."""
        if self._known_uris is None:
            return sa.true()
        return pendings.c.uri.in_(list(self._known_uris))

    def by_state(self) -> dict[str, int]:
        """Return how many records stand in each batch state."""
        query = sa.select(batches.c.state, sa.func.sum(batches.c.driving)).group_by(batches.c.state)
        with self._database.reading() as connection:
            return {state: int(count or 0) for state, count in connection.execute(query)}

    def batches_by_state(self) -> dict[str, int]:
        """Return how many batches there are in each state."""
        query = sa.select(batches.c.state, sa.func.count()).group_by(batches.c.state)
        with self._database.reading() as connection:
            return {state: int(count) for state, count in connection.execute(query)}

    def events(self) -> int:
        """Return the length of the ledger."""
        with self._database.reading() as connection:
            return connection.execute(sa.select(sa.func.max(events.c.seq))).scalar() or 0

    def unsigned(self) -> int:
        """Return how many decided events are not appended yet."""
        query = sa.select(sa.func.sum(series.c.stop - series.c.next)).where(
            series.c.next < series.c.stop
        )
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def calendars(self) -> list[Health]:
        """Return every calendar's health."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(calendars).order_by(calendars.c.url))
            return [
                Health(r.url, r.last_ok_at, r.last_error_at, r.last_error, r.failures) for r in rows
            ]

    def oldest_unfinished(self) -> int | None:
        """Return when the oldest batch that is not anchored was made."""
        query = sa.select(sa.func.min(batches.c.created_at)).where(
            batches.c.state.not_in(["anchored", "parked"])
        )
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def moments(self) -> dict[str, int | None]:
        """Return the earliest time at which each stage that asks somebody has something to ask.

        By the stage's name; None: nothing. What is parked is never due.
        """
        live = batches.c.state != BatchState.PARKED.value
        queries = {
            "submit": _first(submissions.c.next_attempt_at, of_live_batch(submissions.c.batch_id)),
            "stamp": _first(tokens.c.next_attempt_at, of_live_batch(tokens.c.batch_id)),
            "upgrade": _first(pendings.c.next_attempt_at, is_asked_for(self._known_uris)),
            "check": _first(batches.c.next_check_at, live),
        }
        with self._database.reading() as connection:
            return {stage: connection.execute(query).scalar() for stage, query in queries.items()}

    def next_moment(self) -> int | None:
        """Return the earliest time at which anybody is to be asked; what is parked is never due."""
        return min(
            (moment for moment in self.moments().values() if moment is not None), default=None
        )

    def any_waiting(self) -> bool:
        """Tell whether a record waits for a batch; none is counted."""
        query = sa.select(records.c.id).where(records.c.batch_id.is_(None))
        with self._database.reading() as connection:
            found = connection.execute(query.order_by(records.c.id).limit(1)).first()
        return found is not None

    def any_unsettled(self, min_answers: int) -> bool:
        """Tell whether a sealed batch has so many calendars' answers and is not submitted yet."""
        answered = (
            sa.select(sa.func.count(submissions.c.calendar.distinct()))
            .where(submissions.c.batch_id == batches.c.id, submissions.c.answered_at.is_not(None))
            .correlate(batches)
            .scalar_subquery()
        )
        query = sa.select(batches.c.id).where(
            batches.c.state == BatchState.SEALED.value, answered >= min_answers
        )
        with self._database.reading() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def waits(self, limit: int = 20, batch_id: int | None = None) -> list[Wait]:
        """Return what is waited for, soonest first: of one batch, or of all.

        Of all, only what somebody is asked for, nothing parked; of one batch, also the others,
        with the status "stranger" and no next attempt.
        """
        submit = sa.select(submissions).where(submissions.c.next_attempt_at.is_not(None))
        upgrade = (
            sa.select(pendings, batch_pendings.c.batch_id)
            .join(batch_pendings, batch_pendings.c.pending_id == pendings.c.id)
            .where(pendings.c.next_attempt_at.is_not(None))
        )
        if batch_id is None:
            submit = submit.where(of_live_batch(submissions.c.batch_id))
            upgrade = upgrade.where(self._asked(), of_live_batch(batch_pendings.c.batch_id))
        else:
            submit = submit.where(submissions.c.batch_id == batch_id)
            upgrade = upgrade.where(batch_pendings.c.batch_id == batch_id)
        submit = submit.order_by(submissions.c.next_attempt_at).limit(limit)
        upgrade = upgrade.order_by(pendings.c.next_attempt_at).limit(limit)
        with self._database.reading() as connection:
            found = [_submission(row) for row in connection.execute(submit)]
            found += [self._upgrade(row) for row in connection.execute(upgrade)]
        return sorted(found, key=_soonest)[:limit]

    def strangers(self) -> list[Stranger]:
        """Return calendars that adopted proofs wait for and that nobody configured."""
        if self._known_uris is None:
            return []
        query = (
            sa.select(pendings.c.uri, sa.func.count().label("commitments"))
            .where(pendings.c.next_attempt_at.is_not(None), sa.not_(self._asked()))
            .group_by(pendings.c.uri)
            .order_by(sa.func.count().desc(), pendings.c.uri)
        )
        with self._database.reading() as connection:
            return [Stranger(row.uri, row.commitments) for row in connection.execute(query)]

    def _upgrade(self, row: Any) -> Wait:
        if self._known_uris is not None and row.uri not in self._known_uris:
            return Wait(row.batch_id, "upgrade", row.uri, "stranger", None, row.attempts, None)
        return Wait(
            row.batch_id, "upgrade", row.uri, row.status, row.detail, row.attempts,
            row.next_attempt_at,
        )  # fmt: skip


def _first(moment: sa.Column[Any], where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Return the query for the earliest moment; its index is read in order, up to the first hit."""
    query = sa.select(moment).where(moment.is_not(None), where)
    return query.order_by(moment).limit(1)


def _submission(row: Any) -> Wait:
    status = "error" if row.last_error else "due"
    return Wait(
        row.batch_id, "submit", row.calendar, status, row.last_error, row.attempts,
        row.next_attempt_at,
    )  # fmt: skip


def _soonest(wait: Wait) -> tuple[bool, int]:
    """Sort by the next attempt; what is never tried comes last."""
    return wait.next_attempt_at is None, wait.next_attempt_at or 0
