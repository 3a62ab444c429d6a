"""Batches, their leaves, and what calendars and headers said about them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from anchord.adapters.store import adoption, records as record_rows
from anchord.adapters.store.connection import Database
from anchord.adapters.store.schema import (
    batch_pendings,
    batches,
    calendars,
    pendings,
    records,
    series as series_table,
    submissions,
    tiles,
)
from anchord.core.canonical import pith_number
from anchord.core.merkle import TILE, root as merkle_root
from anchord.core.model import (
    Batch,
    BatchState,
    Member,
    NewSeries,
    Pending,
    Submission,
    Tile,
)
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    MakeTile = Callable[[list[bytes]], tuple[bytes, bytes]]
    """Digests in, (nonces, leaves) out."""


class Batches:
    """The batch tables. Every method is one transaction; intent rows come before effects."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ------------------------------------------------------------------ sealing

    def seal(self, now: int, urls: Sequence[str], make_tile: MakeTile) -> Batch | None:
        """Put all waiting records into one new batch, with an intent row per calendar.

        One transaction: after a crash either the whole batch is there or none of it. Memory
        stays flat: one tile of leaves at a time.
        """
        with self._database.reading() as connection:
            if not _waiting(connection, 0, 1):
                return None
        with self._database.writing() as connection:
            row = {
                "kind": "sealed",
                "state": BatchState.SEALED.value,
                "root": bytes(32),
                "size": 0,
                "driving": 0,
                "created_at": now,
            }
            result = connection.execute(sa.insert(batches).values(row))
            batch_id = int(result.inserted_primary_key[0])
            roots, size = _seal_tiles(connection, batch_id, make_tile)
            if not size:
                connection.execute(sa.delete(batches).where(batches.c.id == batch_id))
                return None
            values = {
                "root": merkle_root(b"".join(roots)),
                "tile_roots": b"".join(roots),
                "size": size,
                "driving": size,
            }
            connection.execute(sa.update(batches).where(batches.c.id == batch_id).values(values))
            _intend(connection, batch_id, urls, now, 1)
        return self.get(batch_id)

    def last_sealed_at(self) -> int | None:
        """Return when the newest sealed batch was made."""
        query = sa.select(sa.func.max(batches.c.created_at)).where(batches.c.kind == "sealed")
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def intend(self, urls: Sequence[str], now: int) -> None:
        """Add intent rows for calendars configured since a batch was sealed."""
        query = sa.select(batches.c.id).where(batches.c.state == BatchState.SEALED.value)
        with self._database.reading() as connection:
            missing = [
                (batch_id, url)
                for batch_id in connection.execute(query).scalars().all()
                for url in urls
                if not _has_intent(connection, batch_id, url)
            ]
        if missing:
            with self._database.writing() as connection:
                for batch_id, url in missing:
                    _intend(connection, batch_id, [url], now, 1)

    def resubmit(self, batch_id: int, url: str, now: int) -> None:
        """Intend to hand the same root to a calendar once more."""
        with self._database.writing() as connection:
            query = sa.select(sa.func.max(submissions.c.round)).where(
                submissions.c.batch_id == batch_id, submissions.c.calendar == url
            )
            _intend(connection, batch_id, [url], now, (connection.execute(query).scalar() or 0) + 1)

    # ------------------------------------------------------------------ reading

    def get(self, batch_id: int) -> Batch:
        """Return one batch."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(batches).where(batches.c.id == batch_id)).first()
        if row is None:
            raise FatalError(f"batch {batch_id} is named but not in the store: it is damaged")
        return _batch(row)

    def of_record(self, record_id: int, batch_id: int | None) -> list[Batch]:
        """Return the batch a record stands in, then its adopted proofs."""
        where = batches.c.record_id == record_id
        if batch_id is not None:
            where = sa.or_(where, batches.c.id == batch_id)
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(batches).where(where).order_by(batches.c.id))
            found = [_batch(row) for row in rows]
        return sorted(found, key=lambda batch: batch.id != batch_id)

    def in_state(self, state: BatchState) -> list[Batch]:
        """Return all batches in one state, oldest first, without their leaves."""
        query = sa.select(batches).where(batches.c.state == state.value).order_by(batches.c.id)
        with self._database.reading() as connection:
            return [_batch(row) for row in connection.execute(query)]

    def due_checks(self, now: int, limit: int = 1000) -> list[Batch]:
        """Return batches whose attestations are to be checked against headers now."""
        query = (
            sa.select(batches)
            .where(batches.c.next_check_at <= now)
            .order_by(batches.c.next_check_at, batches.c.id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_batch(row) for row in connection.execute(query)]

    def tiles(self, batch: Batch, start: int, stop: int) -> Iterator[Tile]:
        """Yield the tiles that hold members [start, stop), members cut to that range."""
        if batch.kind == "adopted":
            yield self._adopted_tile(batch)
            return
        for number in range(start // TILE, (stop + TILE - 1) // TILE):
            with self._database.reading() as connection:
                yield _read_tile(connection, batch.id, number, start, stop)

    def index_of(self, batch: Batch, record_id: int) -> int:
        """Return a record's leaf number in a batch."""
        if batch.kind == "adopted":
            return 0
        query = (
            sa.select(tiles.c.tile, tiles.c.record_ids)
            .where(tiles.c.batch_id == batch.id, tiles.c.first_record_id <= record_id)
            .order_by(tiles.c.first_record_id.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        ids = () if row is None else _unpack(row.record_ids)
        if row is None or record_id not in ids:
            raise FatalError(
                f"record {record_id} is not among the leaves of batch {batch.id}: "
                "the store is damaged"
            )
        return int(row.tile) * TILE + ids.index(record_id)

    def _adopted_tile(self, batch: Batch) -> Tile:
        query = sa.select(records.c.id, records.c.digest, records.c.year)
        with self._database.reading() as connection:
            row = connection.execute(query.where(records.c.id == batch.record_id)).one()
        member = Member(0, row.id, row.digest, _number(row.digest, row.year), b"")
        return Tile(0, b"", (member,))

    # ------------------------------------------------------------------ submitting

    def due_submissions(self, now: int) -> list[Submission]:
        """Return the intents whose time has come."""
        query = (
            sa.select(submissions, batches.c.root)
            .join(batches, batches.c.id == submissions.c.batch_id)
            .where(submissions.c.next_attempt_at <= now)
            .order_by(submissions.c.id)
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

    def postpone_submission(self, submission: Submission, now: int, at: int, error: str) -> None:
        """Write down a failed try and when the next one is."""
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

    # ------------------------------------------------------------------ upgrading

    def due_pendings(self, now: int, uris: Sequence[str], limit: int) -> list[Pending]:
        """Return commitments to ask for now, of configured calendars only."""
        query = (
            sa.select(pendings)
            .where(pendings.c.next_attempt_at <= now, pendings.c.uri.in_(list(uris)))
            .order_by(pendings.c.next_attempt_at, pendings.c.id)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return [_pending(row) for row in connection.execute(query)]

    def waiting_for(self, pending_id: int) -> list[Batch]:
        """Return the batches that share a commitment."""
        query = (
            sa.select(batches)
            .join(batch_pendings, batch_pendings.c.batch_id == batches.c.id)
            .where(batch_pendings.c.pending_id == pending_id)
            .order_by(batches.c.id)
        )
        with self._database.reading() as connection:
            return [_batch(row) for row in connection.execute(query)]

    def store_upgrade(
        self,
        pending: Pending,
        url: str,
        raw: bytes,
        now: int,
        proofs: Iterable[tuple[int, bytes]],
    ) -> None:
        """Keep a path to Bitcoin and let every batch that waited for it be checked."""
        with self._database.writing() as connection:
            values = {
                "status": "attested",
                "detail": None,
                "unknown_since": None,
                "attempts": pending.attempts + 1,
                "last_attempt_at": now,
                "next_attempt_at": None,
                "answered_at": now,
                "raw": raw,
            }
            connection.execute(
                sa.update(pendings).where(pendings.c.id == pending.id).values(values)
            )
            for batch_id, proof in proofs:
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
        at: int,
        *,
        status: str,
        detail: str,
        unknown_since: int | None = None,
    ) -> None:
        """Write down "not yet" or a failed try, and when to ask again."""
        with self._database.writing() as connection:
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
            _health(connection, url, now, detail if status == "error" else None)

    # ------------------------------------------------------------------ deciding

    def change(
        self,
        batch_id: int,
        *,
        series: Sequence[NewSeries] = (),
        cut_series: Sequence[int] = (),
        reopen: Sequence[bytes] = (),
        reopen_at: int = 0,
        release: bool = False,
        lead: bool = False,
        **columns: Any,
    ) -> None:
        """Change a batch in one transaction with the intents that follow from it.

        Args:
            batch_id: which one.
            series: events to append later; written now so that no crash can lose them.
            cut_series: series that must not append any further event.
            reopen: commitments to ask for again from `reopen_at` on (their path became void).
            reopen_at: Unix seconds.
            release: let the records that stand here wait for another batch.
            lead: let this adopted batch's record stand here, if where it stands is not anchored.
            columns: columns of the batch row.
        """
        with self._database.writing() as connection:
            for series_id in cut_series:
                connection.execute(
                    sa.update(series_table)
                    .where(series_table.c.id == series_id)
                    .values(stop=series_table.c.next)
                )
            for new in series:
                values = {"batch_id": batch_id, "next": new.start, **msgspec.structs.asdict(new)}
                connection.execute(sa.insert(series_table).values(values))
            if reopen:
                _reopen(connection, batch_id, reopen, reopen_at)
            if release:
                record_rows.release(connection, batch_id)
            if lead:
                _lead(connection, batch_id)
            if columns:
                connection.execute(
                    sa.update(batches).where(batches.c.id == batch_id).values(columns)
                )

    def unpark(self, batch_id: int, now: int) -> None:
        """Bring a parked batch back: every calendar is asked anew, every path is checked."""
        with self._database.writing() as connection:
            mine = sa.select(batch_pendings.c.pending_id).where(
                batch_pendings.c.batch_id == batch_id
            )
            connection.execute(
                sa.update(pendings)
                .where(pendings.c.id.in_(mine))
                .values(next_attempt_at=now, attempts=0, unknown_since=None, status="waiting")
            )
            connection.execute(
                sa.update(submissions)
                .where(submissions.c.batch_id == batch_id, submissions.c.answered_at.is_(None))
                .values(next_attempt_at=now, attempts=0)
            )
            row = connection.execute(sa.select(batches).where(batches.c.id == batch_id)).one()
            state = BatchState.SUBMITTED if row.submitted_at else BatchState.SEALED
            values = {"state": state.value, "note": None, "next_check_at": now}
            connection.execute(sa.update(batches).where(batches.c.id == batch_id).values(values))


# ---------------------------------------------------------------------- rows


def _batch(row: Any) -> Batch:
    values = {name: getattr(row, name) for name in Batch.__struct_fields__}
    values["state"] = BatchState(row.state)
    return Batch(**values)


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


def _number(digest: bytes, year: int | None) -> str | None:
    return None if year is None else pith_number(digest, f"{year:04d}")


def _unpack(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(packed) // 8}q", packed)


def _waiting(connection: sa.Connection, after: int, limit: int) -> list[tuple[int, bytes]]:
    query = (
        sa.select(records.c.id, records.c.digest)
        .where(records.c.batch_id.is_(None), records.c.id > after)
        .order_by(records.c.id)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in connection.execute(query)]


def _seal_tiles(
    connection: sa.Connection, batch_id: int, make_tile: MakeTile
) -> tuple[list[bytes], int]:
    roots: list[bytes] = []
    after, size = 0, 0
    while rows := _waiting(connection, after, TILE):
        ids = [row[0] for row in rows]
        nonces, leaves = make_tile([row[1] for row in rows])
        values = {
            "batch_id": batch_id,
            "tile": len(roots),
            "first_record_id": ids[0],
            "record_ids": struct.pack(f">{len(ids)}q", *ids),
            "nonces": nonces,
            "leaves": leaves,
        }
        connection.execute(sa.insert(tiles).values(values))
        connection.execute(
            sa.update(records)
            .where(records.c.batch_id.is_(None), records.c.id.between(ids[0], ids[-1]))
            .values(batch_id=batch_id)
        )
        roots.append(merkle_root(leaves))
        after, size = ids[-1], size + len(ids)
    return roots, size


def _read_tile(
    connection: sa.Connection, batch_id: int, number: int, start: int, stop: int
) -> Tile:
    where = sa.and_(tiles.c.batch_id == batch_id, tiles.c.tile == number)
    row = connection.execute(sa.select(tiles).where(where)).one()
    ids = _unpack(row.record_ids)
    query = sa.select(records.c.id, records.c.digest, records.c.year)
    near = ids[-1] - ids[0] < 4 * len(ids)
    inside = records.c.id.between(ids[0], ids[-1]) if near else records.c.id.in_(ids)
    known = {found[0]: found for found in connection.execute(query.where(inside))}
    first = number * TILE
    low, high = max(start - first, 0), min(stop - first, len(ids))
    members = []
    for place in range(low, high):
        _, digest, year = known[ids[place]]
        nonce = row.nonces[16 * place : 16 * place + 16]
        number_of = _number(digest, year)
        members.append(Member(first + place, ids[place], digest, number_of, nonce))
    return Tile(number, row.leaves, tuple(members))


def _has_intent(connection: sa.Connection, batch_id: int, url: str) -> bool:
    same = sa.and_(submissions.c.batch_id == batch_id, submissions.c.calendar == url)
    return connection.execute(sa.select(submissions.c.id).where(same)).first() is not None


def _intend(
    connection: sa.Connection, batch_id: int, urls: Sequence[str], now: int, turn: int
) -> None:
    for url in urls:
        row = {
            "batch_id": batch_id,
            "calendar": url,
            "round": turn,
            "attempts": 0,
            "next_attempt_at": now,
        }
        connection.execute(sa.insert(submissions).values(row))


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


def _reopen(
    connection: sa.Connection, batch_id: int, commitments: Sequence[bytes], at: int
) -> None:
    mine = sa.select(batch_pendings.c.pending_id).where(batch_pendings.c.batch_id == batch_id)
    connection.execute(
        sa.update(pendings)
        .where(pendings.c.id.in_(mine), pendings.c.commitment.in_(list(commitments)))
        .values(next_attempt_at=at, status="void", detail="a reorg undid its block")
    )


def _lead(connection: sa.Connection, batch_id: int) -> None:
    """Move an adopted batch's record here when it stands in an unfinished batch."""
    record_id = connection.execute(
        sa.select(batches.c.record_id).where(batches.c.id == batch_id)
    ).scalar_one()
    query = (
        sa.select(records.c.batch_id, batches.c.state)
        .join(batches, batches.c.id == records.c.batch_id, isouter=True)
        .where(records.c.id == record_id)
    )
    row = connection.execute(query).one()
    if row.batch_id == batch_id or row.state == BatchState.ANCHORED.value:
        return
    if row.batch_id is not None:
        connection.execute(
            sa.update(batches)
            .where(batches.c.id == row.batch_id)
            .values(driving=batches.c.driving - 1)
        )
    connection.execute(
        sa.update(records).where(records.c.id == record_id).values(batch_id=batch_id)
    )
    connection.execute(
        sa.update(batches).where(batches.c.id == batch_id).values(driving=batches.c.driving + 1)
    )
