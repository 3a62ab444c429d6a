"""What an audit asks of a store: rows in bulk, read as they are and believed in nothing.

Every method reads one consistent view and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from anchord.ports.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.model import Batch, Series, StoredRecord
    from anchord.core.storage import Capture


class Span(NamedTuple):
    """Where the records of a tile lie; ids in between need not be in it."""

    first: int
    last: int
    batch_id: int
    tile: int


class RawTile(NamedTuple):
    """A row of the tiles table."""

    batch_id: int
    tile: int
    record_ids: bytes
    nonces: bytes
    leaves: bytes


class RawEvent(NamedTuple):
    """A row of the ledger without its chain hash."""

    seq: int
    record_id: int
    series_id: int
    numbered: int
    event_id: bytes
    signature: bytes


LedgerRow = tuple[int, bytes, bytes, bytes, int]
"""What chain and log are recomputed from: sequence number, event id, signature, chain, series."""


class PlainFile(NamedTuple):
    """A file of bundles, and the item it is in."""

    id: int
    identifier: str | None
    name: str
    kind: str
    state: str
    size: int
    md5: bytes
    sha1: bytes
    sha256: bytes
    members: int
    sha256s: bytes | None


class Alike(NamedTuple):
    """Records that are alike in everything that says where they stand."""

    source_kind: str | None
    added_at: int
    batch_id: int | None
    series: str | None
    """Numbers of the series they have events of, with commas."""
    capture: int | None
    """Of captures of their source: 2 when one is parked, 1 when there are others."""
    records: int
    """How many."""


class Counted(NamedTuple):
    """A stretch of records that are only counted, and what their numbers stand for."""

    groups: list[Alike]
    series: dict[int, Series]
    """Those named, and those they withdraw."""
    batches: dict[int, Batch]


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """All there is about the records of a stretch of row ids, in one consistent view."""

    records: tuple[StoredRecord, ...]
    bodies: dict[int, bytes]
    documents: dict[int, list[bytes]]
    events: tuple[RawEvent, ...]
    """In ledger order."""
    series: dict[int, Series]
    """Those about members of the tiles, those the events name, and those these withdraw."""
    batches: dict[int, Batch]
    """Those that records, tiles or series name; adopted ones of the records."""
    tiles: tuple[RawTile, ...]
    captures: dict[int, list[Capture]]


class AuditTable(Protocol):
    """Bulk reading for audits."""

    def last_record(self) -> int:
        """Return the highest row id of a record."""
        ...

    def length(self) -> int:
        """Return the highest sequence number of the ledger."""
        ...

    def spans(self) -> list[Span]:
        """Return where the records of every tile lie, by first record."""
        ...

    def chunk(self, low: int, high: int, tiles: Sequence[tuple[int, int]]) -> Chunk:
        """Return all about the records [low, high], and the tiles (batch, tile)."""
        ...

    def counted(self, low: int, high: int) -> Counted:
        """Count the records [low, high] by what says where they stand."""
        ...

    def touched(self, after: int) -> list[int]:
        """Return the records with events after sequence number `after`, ascending."""
        ...

    def ledger(self, after: int = 0) -> Iterator[list[LedgerRow]]:
        """Yield the ledger in order from sequence number `after` on, in one consistent view."""
        ...

    def counts_by_series(self, upto: int) -> dict[int, int]:
        """Return how many of the first `upto` rows each series has."""
        ...

    def batches(self) -> Iterator[tuple[list[Batch], dict[int, list[Series]]]]:
        """Yield batches, oldest first, with their series about timestamps and withdrawals."""
        ...

    def tokens(self, first: int, last: int) -> dict[int, dict[str, bytes]]:
        """Return the RFC 3161 tokens of the batches [first, last]: batch -> address -> token."""
        ...

    def all_series(self) -> Iterator[list[Series]]:
        """Yield all series, oldest first."""
        ...

    def series_records(self, series_id: int) -> list[int]:
        """Return the records a series has rows for; walks the ledger."""
        ...

    def nodes(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (level, place, hash) of the stored roots of full tiles of the log."""
        ...

    def digests(self) -> Iterator[tuple[int, bytes]]:
        """Yield (row id, digest) of all records."""
        ...

    def kept(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield (which, SHA-256 it had, bytes) of every foreign bundle and adopted file."""
        ...

    def files(self) -> Iterator[PlainFile]:
        """Yield the files of items, with what they hold."""
        ...

    def orphans(self) -> list[tuple[str, str]]:
        """Return (table, which row) of rows that belong to nothing, at most 100 a table."""
        ...

    def misstated(self) -> list[tuple[str, str]]:
        """Return (which, what is wrong) of what is kept for lists and plots, at most 100."""
        ...


class ReadingStore(Store, Protocol):
    """A store opened to be read only: all of it as it was at the first question."""

    @property
    def audit(self) -> AuditTable:
        """Bulk reading."""
        ...

    def changed(self) -> bool:
        """Tell whether anybody has written to the store since it was opened here."""
        ...

    def close(self) -> None:
        """Release connections; may be called twice."""
        ...
