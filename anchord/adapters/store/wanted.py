"""What is asked for and ought not to be, or ought to be and is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.schema import batches, pendings, submissions
from anchord.core.model import BatchState

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_DOUBLINGS = 16
"""Of a wait that doubles with each round."""


def behind(
    connection: sa.Connection, urls: Sequence[str]
) -> tuple[list[tuple[int, str]], list[int]]:
    """Return what batches without a block lack.

    That is (batch, calendar) without an intent, and the intents of calendars that were taken out
    of the configuration and have come back.
    """
    unattested = [BatchState.SEALED.value, BatchState.SUBMITTED.value]
    query = (
        sa.select(
            batches.c.id.label("batch_id"),
            submissions.c.id,
            submissions.c.calendar,
            submissions.c.next_attempt_at,
            submissions.c.answered_at,
        )
        .join(submissions, submissions.c.batch_id == batches.c.id, isouter=True)
        .where(batches.c.kind == "sealed", batches.c.state.in_(unattested))
    )
    known: dict[int, set[str]] = {}
    back: list[int] = []
    for row in connection.execute(query):
        known.setdefault(row.batch_id, set()).add(row.calendar)
        idle = row.next_attempt_at is None and row.answered_at is None
        if idle and row.calendar in urls:
            back.append(row.id)
    missing = [(key, url) for key in sorted(known) for url in urls if url not in known[key]]
    return missing, back


def gone_from(connection: sa.Connection, urls: Sequence[str]) -> list[int]:
    """Return intents of calendars that are not configured any more."""
    query = sa.select(submissions.c.id).where(
        submissions.c.next_attempt_at >= 0, submissions.c.calendar.not_in(list(urls))
    )
    return list(connection.execute(query).scalars())


def put_off(latest: int) -> list[sa.Select[Any]]:
    """Return queries for what is due after `latest`: submissions first."""
    return [
        sa.select(submissions).where(submissions.c.next_attempt_at > latest),
        sa.select(pendings.c.id).where(pendings.c.next_attempt_at > latest),
        sa.select(batches.c.id).where(batches.c.next_check_at > latest),
    ]


def is_too_far(row: Any, now: int, latest: int) -> bool:
    """Tell whether a submission is put off for longer than its round allows."""
    doublings = min(max(row.round - 1, 0), MAX_DOUBLINGS)
    return bool(row.next_attempt_at > now + (latest - now) * 2**doublings)
