"""Records: taking them in, and finding them again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store import adoption
from anchord.adapters.store.citations import keep_citations
from anchord.adapters.store.connection import Database, insert_many, select_in
from anchord.adapters.store.schema import batches, bodies, documents, records
from anchord.adapters.store.standings import came_in
from anchord.adapters.store.urls import keep_urls
from anchord.core.model import Adoption, Document, Record, Scheme, StoredRecord
from anchord.core.reference import prefix_range
from anchord.ports import Added

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from anchord.core.reference import Reference

SCHEMES = {Scheme.PITH_JSON_V1: 1, Scheme.RFC8785: 2, Scheme.SHA256: 3}
"""How schemes are stored; numbers are never reused."""
_NAMES = {number: scheme for scheme, number in SCHEMES.items()}
_LOOKUP = 10_000
"""Digests per IN list; SQLite takes 32,766 parameters."""


class Records:
    """The record tables.

    Args:
        database: where they are.
        known_uris: calendar URIs that are configured: a record whose adopted proof waits only
            for others also goes into a batch of our own.
    """

    def __init__(self, database: Database, known_uris: Collection[str]) -> None:
        self._database = database
        self._known_uris = frozenset(known_uris)

    def add(self, items: Sequence[Record | Adoption | Document], now: int) -> Added:
        """Take in a chunk in one durable transaction; adding again changes nothing."""
        by_digest: dict[bytes, Record] = {}
        for item in items:
            record = item if isinstance(item, Record) else item.record
            before = by_digest.get(record.digest)
            if before is None or (before.canonical is None and record.canonical is not None):
                by_digest[record.digest] = record
        with self._database.writing() as connection:
            ids, incomplete = _known(connection, list(by_digest))
            fresh = [record for digest, record in by_digest.items() if digest not in ids]
            _complete(connection, [(ids[d], by_digest[d]) for d in incomplete])
            ids.update(_insert(connection, fresh, now))
            came_in(connection, len(fresh), now)
            urls = _urls(items)
            if urls:
                new = {ids[record.digest] for record in fresh}
                keep_urls(connection, {ids[one]: url for one, url in urls.items()}, new)
            adopted = 0
            for item in items:
                if isinstance(item, Adoption):
                    record_id = ids[item.record.digest]
                    adopted += adoption.adopt(connection, record_id, item, now, self._known_uris)
                elif isinstance(item, Document):
                    _keep_document(connection, ids[item.record.digest], item.raw, now)
        return Added(new=len(fresh), known=len(items) - len(fresh), adopted=adopted)

    def get(self, record_id: int) -> StoredRecord | None:
        """Return one record by its row id."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(records).where(records.c.id == record_id)).first()
        return None if row is None else to_record(row)

    def find(self, reference: Reference, limit: int = 20) -> list[StoredRecord]:
        """Return every record a reference may mean, oldest first, at most `limit`."""
        wheres = _conditions(reference)
        found: dict[int, StoredRecord] = {}
        with self._database.reading() as connection:
            for where in wheres:
                query = sa.select(records).where(where).order_by(records.c.id).limit(limit)
                found.update({row.id: to_record(row) for row in connection.execute(query)})
        return [found[key] for key in sorted(found)][:limit]

    def body(self, record_id: int) -> bytes | None:
        """Return the canonical bytes, where the record has them."""
        with self._database.reading() as connection:
            query = sa.select(bodies.c.canonical).where(bodies.c.record_id == record_id)
            return connection.execute(query).scalar()

    def documents(self, record_id: int) -> list[bytes]:
        """Return the foreign bundles the record came in, as they came, oldest first."""
        with self._database.reading() as connection:
            query = sa.select(documents.c.raw).where(documents.c.record_id == record_id)
            return list(connection.execute(query.order_by(documents.c.id)).scalars())

    def walk(self, after: int = 0, chunk: int = 1024) -> Iterator[list[StoredRecord]]:
        """Yield all records by row id in chunks; memory stays flat."""
        while True:
            query = (
                sa.select(records).where(records.c.id > after).order_by(records.c.id).limit(chunk)
            )
            with self._database.reading() as connection:
                found = [to_record(row) for row in connection.execute(query)]
            if not found:
                return
            yield found
            after = found[-1].id

    def waiting(self) -> tuple[int, int | None]:
        """Return how many records wait for a batch, and since when the oldest does."""
        where = records.c.batch_id.is_(None)
        with self._database.reading() as connection:
            count = connection.execute(
                sa.select(sa.func.count()).select_from(records).where(where)
            ).scalar_one()
            query = sa.select(records.c.added_at).where(where).order_by(records.c.id).limit(1)
            return count, connection.execute(query).scalar()


def _urls(items: Sequence[Record | Adoption | Document]) -> dict[bytes, str]:
    """Return the pages that records came with, by digest; the first of each."""
    found: dict[bytes, str] = {}
    for item in items:
        record = item if isinstance(item, Record) else item.record
        if record.url is not None:
            found.setdefault(record.digest, record.url)
    return found


def to_record(row: Any) -> StoredRecord:
    """Return a row of the records table as a value."""
    return StoredRecord(
        id=row.id,
        digest=row.digest,
        scheme=_NAMES[row.scheme],
        year=None if row.year is None else f"{row.year:04d}",
        source_kind=row.source_kind,
        source_id=row.source_id,
        source_version=row.source_version,
        label=row.label,
        batch_id=row.batch_id,
        added_at=row.added_at,
    )


def _conditions(reference: Reference) -> list[sa.ColumnElement[bool]]:
    wheres: list[sa.ColumnElement[bool]] = []
    if reference.digest is not None:
        wheres.append(records.c.digest == reference.digest)
    if reference.prefix is not None:
        low, high = prefix_range(reference.prefix)
        where: sa.ColumnElement[bool] = records.c.digest.between(low, high)
        if reference.year is not None:
            where = sa.and_(where, records.c.year == int(reference.year))
        wheres.append(where)
    if reference.source_id is not None:
        where = sa.and_(records.c.source_id == reference.source_id)
        if reference.source_version is not None:
            where = sa.and_(where, records.c.source_version == reference.source_version)
        wheres.append(where)
    return wheres


def _known(connection: sa.Connection, digests: list[bytes]) -> tuple[dict[bytes, int], list[bytes]]:
    """Return ids of digests that are there, and which of them are hash-only."""
    ids: dict[bytes, int] = {}
    bare: list[bytes] = []
    bare_scheme = SCHEMES[Scheme.SHA256]
    for start in range(0, len(digests), _LOOKUP):
        part = digests[start : start + _LOOKUP]
        query = sa.select(records.c.id, records.c.digest, records.c.scheme)
        for row_id, digest, scheme in select_in(connection, query, records.c.digest, part):
            ids[digest] = row_id
            if scheme == bare_scheme:
                bare.append(digest)
    return ids, bare


_COLUMNS = (
    "id", "digest", "scheme", "year", "source_kind", "source_id", "source_version", "label",
    "batch_id", "added_at",
)  # fmt: skip


def _insert(connection: sa.Connection, fresh: list[Record], now: int) -> dict[bytes, int]:
    """Insert new records; ids are taken in order, which only the one writer does."""
    if not fresh:
        return {}
    top = connection.execute(sa.select(sa.func.max(records.c.id))).scalar() or 0
    ids = {record.digest: top + 1 + place for place, record in enumerate(fresh)}
    rows = [
        (
            ids[r.digest],
            r.digest,
            SCHEMES[r.scheme],
            None if r.year is None else int(r.year),
            r.source_kind,
            r.source_id,
            r.source_version,
            r.label,
            None,
            now,
        )
        for r in fresh
    ]
    insert_many(connection, records, _COLUMNS, rows)
    texts = [(ids[r.digest], r.canonical) for r in fresh if r.canonical is not None]
    insert_many(connection, bodies, ("record_id", "canonical"), texts)
    return ids


def _complete(connection: sa.Connection, known: list[tuple[int, Record]]) -> None:
    """Give hash-only records the canonical bytes that have come for them since.

    Events signed before keep their subject: each ledger row says which one it used.
    """
    for record_id, record in known:
        if record.canonical is None:
            continue
        insert_many(connection, bodies, ("record_id", "canonical"), [(record_id, record.canonical)])
        values = {
            "scheme": SCHEMES[record.scheme],
            "year": None if record.year is None else int(record.year),
            "source_kind": record.source_kind,
            "source_id": record.source_id,
            "source_version": record.source_version,
        }
        connection.execute(sa.update(records).where(records.c.id == record_id).values(values))
        # Its members were looked at for URLs when this one had none: they are looked at again.
        stands_in = sa.select(records.c.batch_id).where(records.c.id == record_id)
        again = sa.update(batches).where(
            batches.c.id == stands_in.scalar_subquery(), batches.c.claimed != 0
        )
        connection.execute(again.values(claimed=0))


def _keep_document(connection: sa.Connection, record_id: int, raw: bytes, now: int) -> None:
    digest = hashlib.sha256(raw).digest()
    same = sa.and_(documents.c.record_id == record_id, documents.c.sha256 == digest)
    if connection.execute(sa.select(documents.c.id).where(same)).first() is None:
        row = {"record_id": record_id, "sha256": digest, "raw": raw, "added_at": now}
        connection.execute(sa.insert(documents).values(row))
        keep_citations(connection, record_id, raw)


def release(connection: sa.Connection, batch_id: int) -> None:
    """Let the records of a batch wait for another one."""
    where = records.c.batch_id == batch_id
    connection.execute(sa.update(records).where(where).values(batch_id=None))
    connection.execute(sa.update(batches).where(batches.c.id == batch_id).values(driving=0))
