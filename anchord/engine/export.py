"""What an export writes: each record's `.ots` or bundle, alone or all of them tile by tile.

A record's proof is that of the batch it stands in; where that batch has none yet, the best of the
proofs that were brought for it. All of a batch is joined a tile at a time, so memory stays flat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from anchord.core.bundle import MAX_FOREIGN_BYTES
from anchord.core.bundle_text import render_bundle, whole_event
from anchord.core.canonical import pith_suffix
from anchord.core.event import canonical_body, event_digest
from anchord.core.key_document import to_document
from anchord.core.keyring import Keyring
from anchord.core.model import (
    Batch,
    BatchState,
    Member,
    Record,
    Series,
    SignedRow,
    StoredRecord,
    Tile,
)
from anchord.core.moment import utc
from anchord.engine.event_reader import EventReader
from anchord.engine.inclusion import Placing, inclusion_of
from anchord.engine.proofs import Joiner, check_proof, record_ots
from anchord.engine.rendering import Renderer
from anchord.engine.stored import check_record
from anchord.errors import FatalError, LedgerError

if TYPE_CHECKING:
    from anchord.core.inclusion import Inclusion
    from anchord.ports.store import Store

_RANK = {BatchState.ANCHORED: 0, BatchState.ATTESTED: 1, BatchState.SUBMITTED: 2}


class Item(msgspec.Struct, frozen=True):
    """One file of an export."""

    stem: str
    """File name without extension: the suffix of the Pith Number, or the digest in hex."""
    data: bytes
    anchored: bool
    """False: the proof is pending."""
    moment: int
    """When its batch was made; not part of the data."""
    record: int
    """Row id; not part of the data."""


def stem_of(digest: bytes, *, numbered: bool) -> str:
    """Return what a record's file is called."""
    return pith_suffix(digest) if numbered else digest.hex()


def best_batch(batches: Sequence[Batch], standing: int | None) -> Batch | None:
    """Return the batch whose proof speaks for a record; None when there is no proof yet."""
    known = [batch for batch in batches if batch.proof is not None]
    for batch in known:
        if batch.id == standing:
            return batch
    others = [batch for batch in known if batch.state in _RANK]
    return min(others, key=lambda batch: (_RANK[batch.state], batch.id), default=None)


def ots_of(store: Store, record: StoredRecord) -> Item | None:
    """Return a record's `.ots`, or None when no calendar has answered for it yet."""
    batch = best_batch(store.batches.of_record(record.id, record.batch_id), record.batch_id)
    if batch is None:
        return None
    return _item(record, batch, record_ots(store, batch, record.id))


def bundle_of(store: Store, keyring: Keyring, record: StoredRecord) -> Item | None:
    """Return a record's bundle, or None when no calendar has answered for it yet."""
    batch = best_batch(store.batches.of_record(record.id, record.batch_id), record.batch_id)
    if batch is None:
        return None
    return _item(record, batch, record_bundle(store, keyring, record))


def record_bundle(store: Store, keyring: Keyring, record: StoredRecord) -> bytes:
    """Return the bundle of a record, whatever it holds so far.

    Raises:
        LedgerError: an event does not recompute.
    """
    rows = store.ledger.of_record(record.id)
    reader = EventReader(store, record)
    events = [_single_event(reader, row) for row in rows]
    key_ids = {reader.key_id(row) for row in rows}
    documents = store.records.documents(record.id)
    body = store.records.body(record.id)
    included = inclusion_of(store, rows)
    return _bundle(record, body, events, documents, key_ids, keyring, included)


def _single_event(reader: EventReader, row: SignedRow) -> bytes:
    event = reader.read(row)
    del event["event_id"], event["signature_b64"]
    return whole_event(canonical_body(event), row.event_id, row.signature)


def _bundle(
    record: StoredRecord,
    body: bytes | None,
    events: Sequence[bytes],
    documents: Sequence[bytes],
    key_ids: set[str],
    keyring: Keyring,
    inclusion: Sequence[Inclusion],
) -> bytes:
    check_record(record, body)
    kept = kept_documents(documents)
    whole = Record(
        digest=record.digest,
        scheme=record.scheme,
        canonical=body,
        year=record.year,
        source_kind=record.source_kind,
        source_id=record.source_id,
        source_version=record.source_version,
    )
    signers = [
        to_document(key)
        for key in keyring
        if key.key_id in key_ids or any(f'"{key.key_id}"'.encode() in raw for raw in kept)
    ]
    added_at = utc(record.added_at)
    return render_bundle(whole, added_at, events, signers, kept, inclusion=inclusion)


def kept_documents(documents: Sequence[bytes]) -> list[bytes]:
    """Return the foreign documents that a bundle has room for, the shortest first.

    Which these are follows from the set of them. Whoever wants to crowd others out has to be
    shorter than they are, very often.
    """
    kept, room = [], MAX_FOREIGN_BYTES
    for raw in sorted(documents, key=lambda raw: (len(raw), sha256(raw).digest())):
        room -= len(raw)
        if room < 0:
            break
        kept.append(raw)
    return kept


def _item(record: StoredRecord, batch: Batch, data: bytes) -> Item:
    stem = stem_of(record.digest, numbered=record.year is not None)
    return Item(stem, data, batch.state is BatchState.ANCHORED, batch.created_at, record.id)


# ---------------------------------------------------------------------- all of them


def all_ots(store: Store, *, anchored_only: bool = False) -> Iterator[list[Item]]:
    """Yield the `.ots` of every record that has a proof, a tile at a time."""
    joiner, of = None, None
    for batch, tile, chosen in _tiles(store, anchored_only=anchored_only):
        if joiner is None or of != batch.id:
            check_proof(batch)
            joiner, of = Joiner(batch, batch.proof or b""), batch.id
        anchored = batch.state is BatchState.ANCHORED
        yield [
            Item(_member_stem(member), data, anchored, batch.created_at, member.record_id)
            for member, data in zip(tile.members, joiner.join_tile(tile), strict=True)
            if chosen is None or member.record_id in chosen
        ]


def all_bundles(
    store: Store, keyring: Keyring, *, anchored_only: bool = False
) -> Iterator[list[Item]]:
    """Yield the bundle of every record that has a proof, a tile at a time."""
    placing = Placing(store)
    for batch, tile, chosen in _tiles(store, anchored_only=anchored_only):
        ids = [
            member.record_id
            for member in tile.members
            if chosen is None or member.record_id in chosen
        ]
        yield list(bundles_of_tile(store, keyring, batch, tile, ids, placing))


def _member_stem(member: Member) -> str:
    return member.digest.hex() if member.number is None else member.number.rpartition(":")[2]


def _tiles(
    store: Store, *, anchored_only: bool
) -> Iterator[tuple[Batch, Tile, frozenset[int] | None]]:
    """Yield tiles with the records whose proof is there; None: all of its members."""
    for batch_id in store.lookup.sealed():
        batch = store.batches.get(batch_id)
        if batch.proof is None or not _wanted(batch, anchored_only=anchored_only):
            continue
        for tile in store.batches.tiles(batch, 0, batch.size):
            yield batch, tile, _standing(store, batch, tile)
    for batch_id, record_id in store.lookup.adopted():
        record = store.records.get(record_id)
        if record is None:
            raise FatalError(
                f"batch {batch_id} is of a record that is not there: restore the store"
            )
        best = best_batch(store.batches.of_record(record_id, record.batch_id), record.batch_id)
        if best is None or best.id != batch_id or not _wanted(best, anchored_only=anchored_only):
            continue
        yield best, next(iter(store.batches.tiles(best, 0, 1))), None


def _wanted(batch: Batch, *, anchored_only: bool) -> bool:
    return not anchored_only or batch.state is BatchState.ANCHORED


def _standing(store: Store, batch: Batch, tile: Tile) -> frozenset[int] | None:
    """Return which members stand in this batch; most batches hold all of theirs."""
    if batch.driving == batch.size:
        return None
    records = store.lookup.records([member.record_id for member in tile.members])
    return frozenset(key for key, record in records.items() if record.batch_id == batch.id)


def bundles_of_tile(
    store: Store,
    keyring: Keyring,
    batch: Batch,
    tile: Tile,
    ids: Sequence[int],
    placing: Placing | None = None,
) -> Iterator[Item]:
    """Yield the bundles of some records of a tile, whatever they hold so far, in their order.

    Args:
        store: where they are.
        keyring: public keys, for the documents of the signers.
        batch: the batch the tile is of.
        tile: neighbouring leaves with the records behind them.
        ids: row ids of the records wanted, all of them of the tile.
        placing: where events stand in the log; kept over many tiles by whoever exports them.

    Raises:
        LedgerError: an event does not recompute.
        FatalError: a record and its canonical bytes do not belong together.
    """
    records = store.lookup.records(ids)
    bodies, documents = store.lookup.bodies(ids), store.lookup.documents(ids)
    rows = store.lookup.events(ids)
    texts, signers = _tile_events(store, batch, tile, rows)
    placing = placing or Placing(store)
    for key in ids:
        record = records[key]
        mine = rows.get(key, [])
        events = [
            texts.get(row.seq) or _single_event(EventReader(store, record), row) for row in mine
        ]
        key_ids = {signers[row.series_id] for row in mine}
        body, foreign = bodies.get(key), documents.get(key, ())
        data = _bundle(record, body, events, foreign, key_ids, keyring, placing.of(mine))
        yield _item(record, batch, data)


def _tile_events(
    store: Store, batch: Batch, tile: Tile, rows: dict[int, list[SignedRow]]
) -> tuple[dict[int, bytes], dict[int, str]]:
    """Render the events of a tile that belong to this batch, a series at a time.

    Returns:
        Events by ledger row, and the key id of every series met.
    """
    by_series: dict[int, dict[int, SignedRow]] = {}
    for record_rows in rows.values():
        for row in record_rows:
            by_series.setdefault(row.series_id, {})[row.record_id] = row
    texts: dict[int, bytes] = {}
    signers: dict[int, str] = {}
    for series_id, rows_of in by_series.items():
        series = store.ledger.get_series(series_id)
        signers[series_id] = series.key_id
        if series.batch_id != batch.id:
            continue
        for row, body in _bodies(store, batch, tile, series, rows_of):
            texts[row.seq] = _checked(body, row)
    return texts, signers


def _bodies(
    store: Store, batch: Batch, tile: Tile, series: Series, rows: dict[int, SignedRow]
) -> list[tuple[SignedRow, bytes]]:
    """Render what one series says of a tile's records."""
    renderer = Renderer(store, batch, series)
    if series.proof is None:
        members = [member for member in tile.members if member.record_id in rows]
        found = [rows[member.record_id] for member in members]
        return list(zip(found, renderer.bare(members, [r.numbered for r in found]), strict=True))
    # A series covers neighbours, so what it signed of a tile is one run of members.
    rows = store.ledger.ids_in_series(series.id, [m.record_id for m in tile.members])
    run = tuple(member for member in tile.members if member.record_id in rows)
    found = [rows[member.record_id] for member in run]
    part = Tile(tile.tile, tile.leaves, run)
    return list(zip(found, renderer.bodies(part, [r.numbered for r in found]), strict=True))


def _checked(body: bytes, row: SignedRow) -> bytes:
    if event_digest(body) != row.event_id:
        raise LedgerError(
            f"ledger row {row.seq} does not recompute: record, proof or ledger were changed; "
            "restore the store from a backup"
        )
    return whole_event(body, row.event_id, row.signature)
