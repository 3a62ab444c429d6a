"""A judge of stores: everything that must hold after every step, derived again from stored bytes.

A verdict is about one moment of a store, whoever writes to it meanwhile: what is read later must
not show what was not there when it began.

Chain, ids, signatures and proofs are recomputed with the standard library, `cryptography` and
`opentimestamps`; of the project's own code only `read_event` is used, which is what is judged.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation

from anchord.adapters.store.batches import Batches
from anchord.adapters.store.connection import Database, reader
from anchord.adapters.store.ledger import Ledger
from anchord.adapters.store.lookup import Lookup
from anchord.adapters.store.reading import _OneMoment
from anchord.adapters.store.records import Records
from anchord.adapters.store.sql import SqlStore
from anchord.adapters.store.storage import Storage
from anchord.core.model import SignedRow
from anchord.engine.event_reader import read_event
from support.check_standings import check_standings
from support.ots_oracle import read_file
from support.parties import FakeChain, FakeSigner

DEFAULT = (FakeSigner(),)


class _Seen:
    """A store as it is at one moment; nothing is held that anybody who writes waits for."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.records, self.batches = Records(database, ()), Batches(database)
        self.ledger, self.lookup = Ledger(database), Lookup(database)
        self.storage = Storage(database)

    def all(self, statement: str) -> Sequence[Any]:
        """Return the rows that a statement selects."""
        with self.database.reading() as connection:
            return connection.execute(sa.text(statement)).all()


@contextlib.contextmanager
def _at_one_moment(store: SqlStore) -> Iterator[_Seen]:
    moment = _OneMoment(reader(store._engine), str(store._engine.url))
    with contextlib.closing(moment):
        yield _Seen(moment)


def check_ledger(
    store: SqlStore,
    chain: FakeChain | None = None,
    *,
    signers: Iterable[FakeSigner] = DEFAULT,
    records: int | None = None,
    step: int = 1,
) -> list[dict[str, Any]]:
    """Judge a store; return the events that were read, in ledger order.

    Args:
        store: what to judge.
        chain: where live anchored events must hold; None while a reorg was not looked at yet.
        signers: whose signatures may be there.
        records: how many records there must be.
        step: read every how many-th event only; all rows are chained anyway.
    """
    with _at_one_moment(store) as seen:
        check_standings(seen.all)
        return _judged(seen, chain, signers, records, step)


def _judged(
    seen: _Seen,
    chain: FakeChain | None,
    signers: Iterable[FakeSigner],
    records: int | None,
    step: int,
) -> list[dict[str, Any]]:
    rows = [row for chunk in seen.ledger.walk() for row in chunk]
    _check_chain(rows)
    digests = _digests(seen)
    assert records is None or len(digests) == records
    keys = {signer.key_id: signer.public_key for signer in signers}
    events = [_read(seen, row, keys, digests) for row in rows[::step]]
    _check_lives(seen, rows)
    _check_standing(seen)
    withdrawn = {(series.withdraws, record_id) for _, _, record_id, series in _rows(seen)}
    for row, event in zip(rows[::step], events, strict=True):
        live = (row.series_id, row.record_id) not in withdrawn
        if chain is not None and live and event["event_type"] == "timestamp_anchored":
            _check_anchor(event, chain)
    return events


def live_anchored(store: SqlStore) -> Counter[int]:
    """Return how many anchored events that nothing withdrew each record has."""
    count: Counter[int] = Counter()
    with _at_one_moment(store) as seen:
        for kind, _, record_id, series in _rows(seen):
            count[record_id] += _anchor_step(seen, kind, series)
    return count


def _anchor_step(seen: _Seen, kind: str, series: Any) -> int:
    """Return what a ledger row adds to the live anchored events."""
    if kind == "facet_withdrawn":
        kind = "withdrawn " + seen.ledger.get_series(series.withdraws).event_type
    return {"timestamp_anchored": 1, "withdrawn timestamp_anchored": -1}.get(kind, 0)


def check_all_anchored(store: SqlStore) -> None:
    """Every record has one live anchored event of the batch it stands in."""
    lives: Counter[tuple[int, int]] = Counter()
    with _at_one_moment(store) as seen:
        for kind, batch_id, record_id, series in _rows(seen):
            lives[record_id, batch_id] += _anchor_step(seen, kind, series)
        standing = seen.all("SELECT id, batch_id FROM records")
    assert standing
    assert {(row.id, row.batch_id): lives[row.id, row.batch_id] for row in standing} == {
        (row.id, row.batch_id): 1 for row in standing
    }


def _check_chain(rows: list[SignedRow]) -> None:
    chain = bytes(32)
    for place, row in enumerate(rows):
        assert row.seq == place + 1, "the ledger has a hole"
        chain = hashlib.sha256(chain + row.event_id + row.signature).digest()
        assert row.chain == chain, f"row {row.seq} does not chain"
    assert len({row.event_id for row in rows}) == len(rows), "an event was appended twice"


def _read(
    seen: _Seen, row: SignedRow, keys: dict[str, bytes], digests: dict[int, bytes]
) -> dict[str, Any]:
    record = seen.records.get(row.record_id)
    assert record is not None, f"row {row.seq} is about no record"
    event = read_event(seen, record, row)
    body = {k: v for k, v in event.items() if k not in ("event_id", "signature_b64")}
    law = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    digest = hashlib.sha256(law).digest()
    assert event["event_id"] == "sha256:" + digest.hex()
    assert row.event_id == digest
    signature = base64.b64decode(event["signature_b64"], validate=True)
    key = keys[event["signer"]["key_id"]]
    Ed25519PublicKey.from_public_bytes(key).verify(signature, digest)
    assert event["signer"]["public_key_fingerprint"] == hashlib.sha256(key).digest()[:16].hex()
    assert event["payload"]["canonical_sha256"] == digests[row.record_id].hex()
    if "proof_b64" in event["payload"]:
        ots = base64.b64decode(event["payload"]["proof_b64"], validate=True)
        assert hashlib.sha256(ots).hexdigest() == event["payload"]["proof_sha256"]
    return event


def _check_anchor(event: dict[str, Any], chain: FakeChain) -> None:
    payload = event["payload"]
    ots = read_file(base64.b64decode(payload["proof_b64"]))
    assert ots.file_digest.hex() == payload["canonical_sha256"]
    height = payload["block_height"]
    raw = chain.headers[height]
    block_hash = hashlib.sha256(hashlib.sha256(raw).digest()).digest()[::-1]
    assert payload["block_hash"] == block_hash.hex()
    root = raw[36:68]
    assert payload["block_merkle_root"] == root[::-1].hex()
    paths = [
        (message, item.height)
        for message, item in ots.timestamp.all_attestations()
        if isinstance(item, BitcoinBlockHeaderAttestation)
    ]
    assert (root, height) in paths, "the proof does not lead to the block that the event names"
    for message, at in paths:
        assert message == chain.headers[at][36:68], f"the proof has a path to no block {at}, too"
    assert payload["confirmations"] >= 1


def _check_lives(seen: _Seen, rows: list[SignedRow]) -> None:
    """At most one live event of a kind for each record and place; withdrawals hit once."""
    submitted: Counter[tuple[int, int]] = Counter()
    live: Counter[tuple[Any, ...]] = Counter()
    hit: Counter[tuple[int, int]] = Counter()
    where: dict[tuple[int, int], tuple[Any, ...]] = {}
    for kind, batch_id, record_id, series in _rows(seen):
        if kind == "timestamp_submitted":
            submitted[record_id, batch_id] += 1
            continue
        if kind == "facet_withdrawn":
            assert (series.withdraws, record_id) in where, "a withdrawal of nothing"
            key = where[series.withdraws, record_id]
            live[key] -= 1
            hit[series.withdraws, record_id] += 1
        else:
            key = where[series.id, record_id] = _place(kind, batch_id, record_id, series)
            live[key] += 1
        assert 0 <= live[key] <= 1, f"{live[key]} live events of {key}"
    assert all(count == 1 for count in submitted.values())
    assert all(count == 1 for count in hit.values())
    counted = seen.all(
        "SELECT id, next - start AS done FROM series WHERE next > start AND next <= stop"
    )
    beyond = seen.all("SELECT id FROM series WHERE next > stop")
    appended = Counter(row.series_id for row in rows)
    assert {row.id: row.done for row in counted} == dict(appended)
    assert not beyond


def _place(kind: str, batch_id: int, record_id: int, series: Any) -> tuple[Any, ...]:
    """Return what there may be one live event of: a batch's anchor, a URL's capture, an item."""
    payload = json.loads(series.payload)
    about = {
        "timestamp_anchored": batch_id,
        "capture_stored": payload.get("original_url"),
        "item_stored": payload.get("archive"),
    }
    return kind, record_id, about[kind]


def _check_standing(seen: _Seen) -> None:
    """A batch drives as many records as stand there; every record waits or stands somewhere."""
    driving = seen.all("SELECT id, driving FROM batches")
    standing = seen.all("SELECT batch_id, COUNT(*) AS n FROM records GROUP BY batch_id")
    counted = {row.batch_id: row.n for row in standing if row.batch_id is not None}
    assert {row.id: row.driving for row in driving if row.driving} == counted


def _digests(seen: _Seen) -> dict[int, bytes]:
    return {row.id: bytes(row.digest) for row in seen.all("SELECT id, digest FROM records")}


def _rows(seen: _Seen) -> Iterator[tuple[str, int, int, Any]]:
    """Yield (event type, batch, record, series) of every ledger row."""
    known = {}
    for chunk in seen.ledger.walk():
        for row in chunk:
            series = known.get(row.series_id) or seen.ledger.get_series(row.series_id)
            known[row.series_id] = series
            yield series.event_type, series.batch_id, row.record_id, series
