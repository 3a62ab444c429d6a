"""Holding what the store says against what follows from bytes and from what was signed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.model import BatchState, Scheme
from anchord.core.moment import utc
from anchord.engine.ledger import live_anchored
from anchord.engine.proofs import check_proof
from anchord.errors import FatalError

if TYPE_CHECKING:
    from anchord.core.model import Batch, StoredRecord
    from anchord.ports.store import Store


class _Body(msgspec.Struct):
    source: Any = None


def check_record(record: StoredRecord, body: bytes | None) -> None:
    """Hold digest and names of a record against its canonical bytes.

    Args:
        record: the row.
        body: its canonical bytes, where it has them.

    Raises:
        FatalError: they do not belong together.
    """
    if body is None:
        if record.scheme is not Scheme.SHA256:
            raise _damaged(record, "has lost its canonical bytes")
        return
    if hashlib.sha256(body).digest() != record.digest:
        raise _damaged(record, "has canonical bytes with another digest")
    stated = {
        "kind": record.source_kind,
        "id": record.source_id,
        "version": record.source_version,
    }
    source = _source(body)
    for name, value in stated.items():
        if value is not None and source.get(name) != value:
            raise _damaged(record, f"says {name} {value!r:.80}, its bytes {source.get(name)!r:.80}")


def check_block(store: Store, batch: Batch) -> None:
    """Hold the block an anchored batch is shown with against its proof and its signed events.

    Raises:
        FatalError: the proof does not lead there, or no live event names that block.
    """
    check_proof(batch)
    if batch.state is not BatchState.ANCHORED:
        return
    shown = (
        batch.block_height,
        (batch.block_hash or b"").hex(),
        (batch.block_merkle_root or b"").hex(),
        utc(batch.block_time or 0),
    )
    names = ("block_height", "block_hash", "block_merkle_root", "block_time")
    signed = [json.loads(series.payload) for series in live_anchored(store, batch.id)]
    if not signed or any(tuple(item.get(name) for name in names) != shown for item in signed):
        raise FatalError(
            f"batch {batch.id} is stored as anchored in block {batch.block_height}, and its signed "
            "events do not say so: the store is damaged, restore it from a backup"
        )


def _source(body: bytes) -> dict[str, Any]:
    try:
        source = msgspec.json.decode(body, type=_Body).source
    except msgspec.MsgspecError:  # integers beyond 64 bits and the like: valid, not for msgspec
        value = json.loads(body)
        source = value.get("source") if isinstance(value, dict) else None
    return source if isinstance(source, dict) else {}


def _damaged(record: StoredRecord, what: str) -> FatalError:
    return FatalError(
        f"record sha256:{record.digest.hex()} {what}: the store is damaged, restore it from a "
        "backup"
    )
