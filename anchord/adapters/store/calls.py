"""What calendars were asked and what they said: submissions and pending commitments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store import adoption
from anchord.adapters.store.connection import Database
from anchord.adapters.store.leaves import to_batch
from anchord.adapters.store.parked import is_asked_for, of_live_batch
from anchord.adapters.store.schema import (
    batch_pendings,
    batches,
    calendars,
    pendings,
    submissions,
)
from anchord.adapters.store.wanted import MAX_DOUBLINGS, behind, gone_from, is_too_far, put_off
from anchord.core.model import Batch, BatchState, Pending, Submission

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


class Calls:
    """The tables of calls to calendars. Every method is one transaction; intents come first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def intend(self, urls: Sequence[str], now: int) -> None:
        """Let intents follow the configuration.

        A calendar configured since a batch was sealed gets the root, too, while the batch is not
        attested. One that is configured no more is not waited for; its answers stay.
        """
        with self._database.reading() as connection:
            if not (any(behind(connection, urls)) or gone_from(connection, urls)):
                return
        with self._database.writing() as connection:
            missing, back = behind(connection, urls)
            gone = gone_from(connection, urls)
            for batch_id, url in missing:
                intend(connection, batch_id, [url], now, 1)
            for ids, moment in ((gone, None), (back, now)):
                for row_id in ids:
                    where = submissions.c.id == row_id
                    change = sa.update(submissions).where(where).values(next_attempt_at=moment)
                    connection.execute(change)

    def bring_forward(self, now: int, latest: int) -> int:
        """Make due at once what is put off beyond `latest`; writes nothing when nothing is.

        From its second round on, a submission may wait twice as long each time; see `repeat`.
        """
        late = put_off(latest)
        with self._database.reading() as connection:
            far = connection.execute(late[0]).all()
            others = any(connection.execute(query.limit(1)).first() for query in late[1:])
        if not (others or any(is_too_far(row, now, latest) for row in far)):
            return 0
        with self._database.writing() as connection:
            # Read again: what was answered since waits for nothing.
            far = connection.execute(late[0]).all()
            ids = [row.id for row in far if is_too_far(row, now, latest)]
            for row_id in ids:
                where = submissions.c.id == row_id
                connection.execute(sa.update(submissions).where(where).values(next_attempt_at=now))
            asked = sa.update(pendings).where(pendings.c.next_attempt_at > latest)
            checked = sa.update(batches).where(batches.c.next_check_at > latest)
            return (
                len(ids)
                + connection.execute(asked.values(next_attempt_at=now)).rowcount
                + connection.execute(checked.values(next_check_at=now)).rowcount
            )

    def resubmit(self, batch_id: int, url: str, now: int, quiet_s: int) -> None:
        """Intend to hand a root to a calendar once more; see `repeat`."""
        with self._database.writing() as connection:
            repeat(connection, batch_id, url, now, quiet_s)

    def due_submissions(self, now: int) -> list[Submission]:
        """Return the intents whose time has come; none of parked batches."""
        query = (
            sa.select(submissions, batches.c.root)
            .join(batches, batches.c.id == submissions.c.batch_id)
            .where(submissions.c.next_attempt_at <= now, of_live_batch(submissions.c.batch_id))
            .order_by(submissions.c.next_attempt_at, submissions.c.id)
        )
        with self._database.reading() as connection:
            return [
                Submission(
                    id=row.id,
                    batch_id=row.batch_id,
                    calendar=row.calendar,
                    attempts=row.attempts,
                    root=row.root,
                )
                for row in connection.execute(query)
            ]

    def still(self, call: Submission | Pending) -> bool:
        """Tell whether nothing was written about a call since it was read; it may be kept then."""
        table = submissions if isinstance(call, Submission) else pendings
        same = sa.and_(table.c.id == call.id, table.c.attempts == call.attempts)
        if isinstance(call, Submission):
            same = sa.and_(same, submissions.c.answered_at.is_(None))
        else:
            same = sa.and_(same, pendings.c.status == call.status)
        with self._database.reading() as connection:
            return connection.execute(sa.select(table.c.id).where(same)).first() is not None

    def answered(self, batch_id: int) -> list[str]:
        """Return the calendars that hold a batch's root, in order of their answers."""
        query = (
            sa.select(submissions.c.calendar)
            .where(submissions.c.batch_id == batch_id, submissions.c.answered_at.is_not(None))
            .order_by(submissions.c.answered_at, submissions.c.id)
        )
        with self._database.reading() as connection:
            return list(dict.fromkeys(connection.execute(query).scalars()))

    def store_answer(
        self,
        submission: Submission,
        raw: bytes,
        points: Iterable[tuple[str, bytes]],
        proof: bytes,
        now: int,
        ask_at: int,
    ) -> None:
        """Keep a calendar's answer: raw bytes, merged proof, and what to ask for later."""
        with self._database.writing() as connection:
            values = {
                "answered_at": now,
                "last_attempt_at": now,
                "next_attempt_at": None,
                "attempts": submission.attempts + 1,
                "last_error": None,
                "raw": raw,
            }
            connection.execute(
                sa.update(submissions).where(submissions.c.id == submission.id).values(values)
            )
            adoption.link(connection, [submission.batch_id], points, ask_at)
            connection.execute(
                sa.update(batches).where(batches.c.id == submission.batch_id).values(proof=proof)
            )
            _health(connection, submission.calendar, now, None)

    def postpone_submission(
        self, submission: Submission, now: int, at: int | None, error: str
    ) -> None:
        """Write down a failed try and when the next one is, if any."""
        with self._database.writing() as connection:
            values = {
                "attempts": submission.attempts + 1,
                "last_attempt_at": now,
                "next_attempt_at": at,
                "last_error": error,
            }
            connection.execute(
                sa.update(submissions).where(submissions.c.id == submission.id).values(values)
            )
            _health(connection, submission.calendar, now, error)

    def due_pendings(self, now: int, uris: Sequence[str], limit: int) -> list[Pending]:
        """Return commitments to ask for now: of configured calendars, for batches not parked."""
        query = (
            sa.select(pendings)
            .where(pendings.c.next_attempt_at <= now, is_asked_for(uris))
            .order_by(pendings.c.next_attempt_at, pendings.c.id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_pending(row) for row in connection.execute(query)]

    def orphaned(self, now: int, uris: Sequence[str]) -> list[int]:
        """Return adopted batches whose record waits for calendars nobody configures any more.

        Commitments of strangers are due for ever, which is how they are found by index.
        """
        asked = (
            sa.select(batch_pendings.c.batch_id)
            .join(pendings, pendings.c.id == batch_pendings.c.pending_id)
            .where(batch_pendings.c.batch_id == batches.c.id, pendings.c.uri.in_(list(uris)))
            .correlate(batches)
        )
        stranger = sa.and_(pendings.c.next_attempt_at <= now, pendings.c.uri.not_in(list(uris)))
        stuck = sa.and_(
            batches.c.kind == "adopted",
            batches.c.state == BatchState.SUBMITTED.value,
            batches.c.driving > 0,
            batches.c.next_check_at.is_(None),
        )
        query = (
            sa.select(batches.c.id)
            .distinct()
            .join(batch_pendings, batch_pendings.c.batch_id == batches.c.id)
            .join(pendings, pendings.c.id == batch_pendings.c.pending_id)
            .where(stranger, stuck, ~asked.exists())
            .order_by(batches.c.id)
        )
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def waiting_for(self, pending_id: int) -> list[Batch]:
        """Return the batches that share a commitment."""
        query = (
            sa.select(batches)
            .join(batch_pendings, batch_pendings.c.batch_id == batches.c.id)
            .where(batch_pendings.c.pending_id == pending_id)
            .order_by(batches.c.id)
        )
        with self._database.reading() as connection:
            return [to_batch(row) for row in connection.execute(query)]

    def store_upgrade(
        self,
        pending: Pending,
        url: str,
        raw: bytes,
        now: int,
        proofs: Mapping[int, bytes | None],
    ) -> None:
        """Keep a path to Bitcoin and let every batch that waited for it be checked.

        A batch that came since they were looked at asks again.
        """
        with self._database.writing() as connection:
            values = {
                "status": "attested",
                "detail": None,
                "unknown_since": None,
                "attempts": pending.attempts + 1,
                "last_attempt_at": now,
                "next_attempt_at": _unless_joined(connection, pending.id, proofs, now),
                "answered_at": now,
                "raw": raw,
            }
            connection.execute(
                sa.update(pendings).where(pendings.c.id == pending.id).values(values)
            )
            for batch_id, proof in proofs.items():
                if proof is None:
                    continue
                connection.execute(
                    sa.update(batches)
                    .where(batches.c.id == batch_id)
                    .values(proof=proof, next_check_at=now)
                )
            _health(connection, url, now, None)

    def postpone_pending(
        self,
        pending: Pending,
        url: str,
        now: int,
        at: int | None,
        *,
        status: str,
        detail: str,
        unknown_since: int | None = None,
        failed: bool = False,
    ) -> None:
        """Write down "not yet" or a failed try, and when to ask again.

        With `at` None it is asked for no more, unless a batch that is not final waits for it.
        """
        with self._database.writing() as connection:
            if at is None:
                at = _unless_final(connection, pending.id, now)
            values = {
                "status": status,
                "detail": detail,
                "unknown_since": unknown_since,
                "attempts": pending.attempts + 1,
                "last_attempt_at": now,
                "next_attempt_at": at,
            }
            connection.execute(
                sa.update(pendings).where(pendings.c.id == pending.id).values(values)
            )
            _health(connection, url, now, detail if failed else None)


def _unless_final(connection: sa.Connection, pending_id: int, now: int) -> int | None:
    """Return when to ask again: at once, when a batch that is not final came meanwhile."""
    joined = sa.select(batches.c.id).join(batch_pendings, batch_pendings.c.batch_id == batches.c.id)
    waits = sa.and_(batch_pendings.c.pending_id == pending_id, batches.c.final_at.is_(None))
    return None if connection.execute(joined.where(waits).limit(1)).first() is None else now


def _unless_joined(
    connection: sa.Connection, pending_id: int, seen: Collection[int], now: int
) -> int | None:
    """Return when to ask again: at once, when a batch that nobody looked at waits, too."""
    mine = batch_pendings.c.pending_id == pending_id
    found = connection.execute(sa.select(batch_pendings.c.batch_id).where(mine)).scalars()
    return now if set(found) - set(seen) else None


def _pending(row: Any) -> Pending:
    return Pending(
        id=row.id,
        uri=row.uri,
        commitment=row.commitment,
        attempts=row.attempts,
        status=row.status,
        unknown_since=row.unknown_since,
        raw=row.raw,
    )


def intend(
    connection: sa.Connection, batch_id: int, urls: Sequence[str], now: int, turn: int
) -> None:
    """Write intent rows: these calendars are to get the batch's root, for the `turn`-th time."""
    for url in urls:
        row = {
            "batch_id": batch_id,
            "calendar": url,
            "round": turn,
            "attempts": 0,
            "next_attempt_at": now,
        }
        connection.execute(sa.insert(submissions).values(row))


def repeat(connection: sa.Connection, batch_id: int, url: str, now: int, quiet_s: int) -> None:
    """Intend to hand a root to a calendar once more.

    Not when that is intended already: several lost commitments of one root lead to one new
    submission. The second time at once; then the last answer must be older than `quiet_s`,
    doubled each time, so that a calendar that loses everything gets little to lose.
    """
    query = (
        sa.select(submissions.c.round, submissions.c.answered_at)
        .where(submissions.c.batch_id == batch_id, submissions.c.calendar == url)
        .order_by(submissions.c.round.desc())
        .limit(1)
    )
    last = connection.execute(query).first()
    if last is None:
        intend(connection, batch_id, [url], now, 1)
        return
    if last.answered_at is None:
        return
    quiet_s = quiet_s << min(last.round - 2, MAX_DOUBLINGS) if last.round > 1 else 0
    if last.answered_at <= now - quiet_s:
        intend(connection, batch_id, [url], now, last.round + 1)


def _health(connection: sa.Connection, url: str, now: int, error: str | None) -> None:
    if error is None:
        values: dict[str, Any] = {"last_ok_at": now, "failures": 0}
    else:
        values = {
            "last_error_at": now,
            "last_error": error,
            "failures": calendars.c.failures + 1,
        }
    where = calendars.c.url == url
    if not connection.execute(sa.update(calendars).where(where).values(values)).rowcount:
        values["failures"] = 0 if error is None else 1
        connection.execute(sa.insert(calendars).values(url=url, **values))
