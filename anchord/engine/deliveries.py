"""Rows of the ledger as what outlets are handed: whole signed events, or bundles as they are now.

Neighbours are rendered together, tile by tile; every event is held against its id before it leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.bundle_text import whole_event
from anchord.core.canonical import pith_number
from anchord.core.event import CAPTURED, ITEM_STORED, WITHDRAWN, event_digest, event_id
from anchord.engine.export import bundles_of_tile
from anchord.engine.inclusion import Placing
from anchord.engine.rendering import Renderer
from anchord.errors import LedgerError
from anchord.ports.outlet import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anchord.core.keyring import Keyring
    from anchord.core.model import Series, SignedRow, StoredRecord, Tile
    from anchord.ports.outlet import Wants
    from anchord.ports.store import Store


TOGETHER_BYTES = 32 << 20
"""Documents are made until they are this long together: bundles can be megabytes each."""


class Desk:
    """Makes deliveries of rows; what neighbours share is read once a call.

    Args:
        store: where the events are.
        keyring: gives public keys; asked for bundles only.
        wants: whole events, or bundles.
    """

    def __init__(self, store: Store, keyring: Callable[[], Keyring], wants: Wants) -> None:
        self._store, self._keyring, self._wants = store, keyring, wants

    def prepare(self, rows: Sequence[SignedRow]) -> dict[int, Delivery]:
        """Return deliveries by row: of all rows, or of as many of the first as are not too long.

        Args:
            rows: in ledger order.

        Raises:
            LedgerError: an event does not recompute.
            FatalError: record, batch or proof do not belong together.
        """
        records = self._store.lookup.records(list({row.record_id for row in rows}))
        found: dict[int, Delivery] = {}
        size = 0
        for run in _runs(rows):
            series = self._store.ledger.get_series(run[0].series_id)
            facet = self._facet(series)
            for row, document in self._documents(series, run):
                record = records[row.record_id]
                found[row.seq] = _delivery(record, series, row, facet, document)
                size += len(document)
                if size > TOGETHER_BYTES:
                    return found
        return found

    def _facet(self, series: Series) -> str:
        kind = series.event_type
        if kind == WITHDRAWN and series.withdraws is not None:
            kind = self._store.ledger.get_series(series.withdraws).event_type
        return "stored" if kind in (CAPTURED, ITEM_STORED) else "anchored"

    def _documents(
        self, series: Series, run: Sequence[SignedRow]
    ) -> Iterator[tuple[SignedRow, bytes]]:
        store, batch = self._store, self._store.batches.get(series.batch_id)
        single = series.stop - series.start == 1
        first = series.start if single else store.batches.index_of(batch, run[0].record_id)
        renderer, placing = Renderer(store, batch, series), Placing(store)
        bundles = self._wants == "bundle"
        left = list(run)
        for tile in store.batches.tiles(batch, first, first + len(run)):
            rows, left = left[: len(tile.members)], left[len(tile.members) :]
            if not bundles:
                yield from zip(rows, _events(series, renderer, tile, rows), strict=True)
                continue
            ids = [row.record_id for row in rows]
            items = bundles_of_tile(store, self._keyring(), batch, tile, ids, placing)
            yield from ((row, item.data) for row, item in zip(rows, items, strict=True))


def _runs(rows: Sequence[SignedRow]) -> Iterator[list[SignedRow]]:
    """Group neighbours of one series: their records are neighbours in its batch, too."""
    run: list[SignedRow] = []
    for row in rows:
        if run and (row.series_id, row.seq) != (run[-1].series_id, run[-1].seq + 1):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _events(
    series: Series, renderer: Renderer, tile: Tile, rows: Sequence[SignedRow]
) -> Iterator[bytes]:
    numbered = [row.numbered for row in rows]
    if series.proof is None:
        bodies = renderer.bare(tile.members, numbered)
    else:
        bodies = renderer.bodies(tile, numbered)
    for row, body in zip(rows, bodies, strict=True):
        if event_digest(body) != row.event_id:
            raise LedgerError(
                f"ledger row {row.seq} does not recompute: record, proof or ledger were changed, "
                "and nothing is handed over; restore the store from a backup"
            )
        yield whole_event(body, row.event_id, row.signature)


def _delivery(
    record: StoredRecord, series: Series, row: SignedRow, facet: str, document: bytes
) -> Delivery:
    return Delivery(
        seq=row.seq,
        record=record,
        number=None if record.year is None else pith_number(record.digest, record.year),
        event_id=event_id(row.event_id),
        event_type=series.event_type,
        facet=facet,
        created_at=series.created_at,
        document=document,
    )
