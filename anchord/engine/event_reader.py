"""Reading events back: rendered from the store, and proved to be what was signed."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from anchord.core import event
from anchord.core.canonical import pith_number
from anchord.core.model import Member, Tile
from anchord.engine.rendering import Renderer
from anchord.errors import LedgerError

if TYPE_CHECKING:
    from anchord.core.model import SignedRow, StoredRecord
    from anchord.ports.store import Store


def read_event(store: Store, record: StoredRecord, row: SignedRow) -> dict[str, Any]:
    """Return one whole signed event; its id proves that it was rendered exactly.

    Raises:
        LedgerError: the rendered body has another id than the ledger: record, proof or ledger
            were changed.
    """
    return EventReader(store, record).read(row)


class EventReader:
    """Reads the events of one record; what they share is read once.

    Args:
        store: where they are.
        record: the row.
    """

    def __init__(self, store: Store, record: StoredRecord) -> None:
        self._store, self._record = store, record
        self._series = cache(store.ledger.get_series)
        self._batch = cache(store.batches.get)
        self._index, self._tile = cache(self._find), cache(self._read_tile)

    def key_id(self, row: SignedRow) -> str:
        """Return the name of the key that signed a row."""
        return self._series(row.series_id).key_id

    def read(self, row: SignedRow) -> dict[str, Any]:
        """Return one whole event.

        Raises:
            LedgerError: as `read_event`.
        """
        series = self._series(row.series_id)
        renderer = Renderer(self._store, self._batch(series.batch_id), series)
        if series.proof is not None:
            body = renderer.bodies(self._tile(series.batch_id), [row.numbered])[0]
        else:
            single = series.stop - series.start == 1
            index = series.start if single else self._index(series.batch_id)
            body = renderer.bare([_member(self._record, index)], [row.numbered])[0]
        if event.event_digest(body) != row.event_id:
            raise LedgerError(
                f"event {event.event_id(row.event_id)} (ledger row {row.seq}) does not recompute: "
                "record, proof or ledger were changed; restore the store from a backup"
            )
        return {
            **json.loads(body),
            "event_id": event.event_id(row.event_id),
            "signature_b64": base64.b64encode(row.signature).decode("ascii"),
        }

    def _find(self, batch_id: int) -> int:
        """Return the record's leaf number in a batch."""
        return self._store.batches.index_of(self._batch(batch_id), self._record.id)

    def _read_tile(self, batch_id: int) -> Tile:
        index = self._index(batch_id)
        return next(iter(self._store.batches.tiles(self._batch(batch_id), index, index + 1)))


def _member(record: StoredRecord, index: int) -> Member:
    """Return a record as the member of a batch, without its leaf."""
    number = None if record.year is None else pith_number(record.digest, record.year)
    return Member(index, record.id, record.digest, number, b"")
