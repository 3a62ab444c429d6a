"""Existing `.ots` files become batches of one record (docs/adr/0004)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.connection import insert_one
from anchord.adapters.store.schema import batch_pendings, batches, pendings, records
from anchord.core.model import Adoption, BatchState
from anchord.core.proof import DETACHED_HEADER, attestations, parse_detached
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def adopt(
    connection: sa.Connection,
    record_id: int,
    item: Adoption,
    now: int,
    known_uris: Collection[str],
) -> int:
    """Take over one file; return 1, or 0 when these very bytes are there already.

    The record's own waiting state moves to the adopted proof only when a configured calendar
    or a block header can finish it; otherwise the proof is kept and the record also waits for
    a batch of our own.
    """
    digest = hashlib.sha256(item.ots).digest()
    same = sa.and_(batches.c.record_id == record_id, batches.c.adopted_sha256 == digest)
    if connection.execute(sa.select(batches.c.id).where(same)).first() is not None:
        return 0
    timestamp = parse_detached(item.ots).timestamp
    found = attestations(timestamp)
    waits = [(f.attestation.uri or "", f.message) for f in found if f.attestation.kind == "pending"]
    attested = any(f.attestation.kind == "bitcoin" for f in found)
    batch_id = _insert(connection, record_id, item, now, check=attested)
    link(connection, [batch_id], waits, now)
    if attested or any(uri in known_uris for uri, _ in waits):
        drive(connection, record_id, batch_id)
    return 1


def _insert(
    connection: sa.Connection, record_id: int, item: Adoption, now: int, *, check: bool
) -> int:
    head = DETACHED_HEADER + item.record.digest
    if not item.ots.startswith(head):
        raise RefusedError("expected a proof of the record it came with, got one of another digest")
    row: dict[str, Any] = {
        "kind": "adopted",
        "state": BatchState.SUBMITTED.value,
        "root": item.record.digest,
        "size": 1,
        "driving": 0,
        "created_at": now,
        "submitted_at": now,
        "record_id": record_id,
        "adopted_raw": item.ots,
        "adopted_sha256": hashlib.sha256(item.ots).digest(),
        "proof": item.ots[len(head) :],
        "next_check_at": now if check else None,
    }
    return insert_one(connection, batches, **row)


def drive(connection: sa.Connection, record_id: int, batch_id: int) -> None:
    """Let a record stand where `batch_id` stands, unless it stands somewhere already."""
    where = sa.and_(records.c.id == record_id, records.c.batch_id.is_(None))
    moved = connection.execute(sa.update(records).where(where).values(batch_id=batch_id)).rowcount
    if moved:
        connection.execute(
            sa.update(batches)
            .where(batches.c.id == batch_id)
            .values(driving=batches.c.driving + moved)
        )


def link(
    connection: sa.Connection,
    batch_ids: Iterable[int],
    points: Iterable[tuple[str, bytes]],
    now: int,
) -> None:
    """Let batches wait for commitments; one row a commitment, however many batches share it."""
    for uri, commitment in points:
        pending_id = _pending(connection, uri, commitment, now)
        for batch_id in batch_ids:
            pair = sa.and_(
                batch_pendings.c.batch_id == batch_id, batch_pendings.c.pending_id == pending_id
            )
            if connection.execute(sa.select(batch_pendings.c.batch_id).where(pair)).first() is None:
                row = {"batch_id": batch_id, "pending_id": pending_id}
                connection.execute(sa.insert(batch_pendings).values(row))


def _pending(connection: sa.Connection, uri: str, commitment: bytes, now: int) -> int:
    same = sa.and_(pendings.c.uri == uri, pendings.c.commitment == commitment)
    if connection.dialect.name == "postgresql":
        # Its index holds the hash: a key in an index is short there, a commitment need not be.
        hashed = sa.func.sha256(pendings.c.commitment) == hashlib.sha256(commitment).digest()
        same = sa.and_(same, hashed)
    row = connection.execute(sa.select(pendings.c.id).where(same)).first()
    if row is not None:
        # Asked and answered before this batch came: ask again, the answer is cached there.
        connection.execute(
            sa.update(pendings)
            .where(pendings.c.id == row.id, pendings.c.next_attempt_at.is_(None))
            .values(next_attempt_at=now)
        )
        return int(row.id)
    values: dict[str, Any] = {
        "uri": uri,
        "commitment": commitment,
        "created_at": now,
        "attempts": 0,
        "next_attempt_at": now,
        "status": "waiting",
    }
    return insert_one(connection, pendings, **values)
