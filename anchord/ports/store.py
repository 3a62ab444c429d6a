"""What the engine asks of a store. Every writing method is one durable transaction.

One thread of one process writes (`exclusive`); reading is allowed from anywhere at any time. What
a method wrote is durable when it returns. Methods raise StoreBusyError when another process holds
the database, FatalError when its contents contradict themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from anchord.ports.log import StoredCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from anchord.core.model import (
        Adoption,
        Batch,
        BatchChange,
        BatchState,
        Document,
        NewSeries,
        Pending,
        Record,
        Series,
        SignedRow,
        StoredRecord,
        Submission,
        Tile,
    )
    from anchord.core.reference import Reference
    from anchord.ports import Added
    from anchord.ports.face import FaceTable
    from anchord.ports.log import LogTable, PullTable, TokenTable
    from anchord.ports.outlet import OutletTable
    from anchord.ports.source import SourceTable
    from anchord.ports.storage import StorageTables


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch that is being sealed takes along beside its records."""

    checkpoints: Sequence[StoredCheckpoint] = ()
    """Those that wait, oldest first."""
    block: tuple[int, bytes] | None = None
    """Height and hash (in the order Bitcoin hashes it) of a recent block."""
    authorities: Sequence[str] = ()
    """Addresses of the time-stamping authorities to ask for a token."""


class RecordTable(Protocol):
    """Records, to read."""

    def get(self, record_id: int) -> StoredRecord | None:
        """Return one record by its row id."""
        ...

    def find(self, reference: Reference, limit: int = 20) -> list[StoredRecord]:
        """Return every record a reference may mean."""
        ...

    def body(self, record_id: int) -> bytes | None:
        """Return the canonical bytes, where there are any."""
        ...

    def documents(self, record_id: int) -> list[bytes]:
        """Return foreign bundles as they came."""
        ...

    def walk(self, after: int = 0, chunk: int = 1024) -> Iterator[list[StoredRecord]]:
        """Yield all records in chunks."""
        ...

    def waiting(self) -> tuple[int, int | None]:
        """Return how many wait for a batch, and since when the oldest does."""
        ...


class BatchTable(Protocol):
    """Batches and their leaves."""

    def seal(
        self,
        now: int,
        urls: Sequence[str],
        make_tile: Callable[[list[bytes]], tuple[bytes, bytes]],
        carried: Carried | None = None,
    ) -> Batch | None:
        """Put all waiting records into one batch; None when none waits."""
        ...

    def last_sealed_at(self) -> int | None:
        """Return when the newest sealed batch was made."""
        ...

    def get(self, batch_id: int) -> Batch:
        """Return one batch."""
        ...

    def of_record(self, record_id: int, batch_id: int | None) -> list[Batch]:
        """Return the batches that hold proofs of a record, the one it stands in first."""
        ...

    def in_state(self, state: BatchState) -> list[Batch]:
        """Return all batches in one state."""
        ...

    def due_checks(self, now: int, limit: int = 1000) -> list[Batch]:
        """Return batches to check against headers now."""
        ...

    def tiles(self, batch: Batch, start: int, stop: int) -> Iterator[Tile]:
        """Yield the tiles that hold members [start, stop)."""
        ...

    def index_of(self, batch: Batch, record_id: int) -> int:
        """Return a record's leaf number."""
        ...

    def change(self, changes: Sequence[BatchChange]) -> None:
        """Change batches together with the intents that follow, all or nothing."""
        ...

    def unpark(self, batch_id: int, now: int) -> None:
        """Bring a parked batch back."""
        ...


class CallTable(Protocol):
    """Calls to calendars: intents, answers, and when to try again."""

    def intend(self, urls: Sequence[str], now: int) -> None:
        """Let intents follow the configuration: new calendars in, removed ones out."""
        ...

    def bring_forward(self, now: int, latest: int) -> int:
        """Make due at once what is put off beyond `latest`; return how much that was."""
        ...

    def resubmit(self, batch_id: int, url: str, now: int, quiet_s: int) -> None:
        """Intend to hand a root to a calendar once more.

        Not when that is intended already, or, from the third time on, its last answer is younger
        than `quiet_s` (doubled each time).
        """
        ...

    def due_submissions(self, now: int) -> list[Submission]:
        """Return intents whose time has come."""
        ...

    def still(self, call: Submission | Pending) -> bool:
        """Tell whether nothing was written about a call since it was read."""
        ...

    def answered(self, batch_id: int) -> list[str]:
        """Return the calendars that hold a batch's root."""
        ...

    def store_answer(
        self,
        submission: Submission,
        raw: bytes,
        points: Iterable[tuple[str, bytes]],
        proof: bytes,
        now: int,
        ask_at: int,
    ) -> None:
        """Keep a calendar's answer."""
        ...

    def postpone_submission(
        self, submission: Submission, now: int, at: int | None, error: str
    ) -> None:
        """Write down a failed try; `at` None: it is the last one."""
        ...

    def due_pendings(self, now: int, uris: Sequence[str], limit: int) -> list[Pending]:
        """Return commitments to ask for now."""
        ...

    def orphaned(self, now: int, uris: Sequence[str]) -> list[int]:
        """Return adopted batches that drive a record and wait for other URIs only."""
        ...

    def waiting_for(self, pending_id: int) -> list[Batch]:
        """Return the batches that share a commitment."""
        ...

    def store_upgrade(
        self,
        pending: Pending,
        url: str,
        raw: bytes,
        now: int,
        proofs: Mapping[int, bytes | None],
    ) -> None:
        """Keep a path to Bitcoin; the batches that get a new proof by it are due for a check.

        `proofs` names every batch that was looked at; one that came since asks again.
        """
        ...

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
        """Write down "not yet" or a failed try, which `failed` charges to the calendar.

        With `at` None it is asked for no more, unless a batch that is not final waits for it.
        """
        ...


class LedgerTable(Protocol):
    """Series of events, and the signed rows."""

    def open_series(self, limit: int = 1000) -> list[Series]:
        """Return series with events still to append."""
        ...

    def series_of(self, batch_id: int, event_types: Collection[str] | None = None) -> list[Series]:
        """Return the series of a batch, of some types or of all."""
        ...

    def anchored_payload(self) -> bytes | None:
        """Return what the events of the youngest anchored batch say."""
        ...

    def get_series(self, series_id: int) -> Series:
        """Return one series."""
        ...

    def split(self, found: Series, key: NewSeries) -> None:
        """Let what is left of a series become a series of its own."""
        ...

    def head(self) -> tuple[int, bytes]:
        """Return the last sequence number and chain hash."""
        ...

    def last_moment(self) -> int | None:
        """Return when the newest event was decided, as it states."""
        ...

    def append(self, moves: Sequence[tuple[Series, int]], rows: Sequence[SignedRow]) -> None:
        """Append signed rows and move each series to its new place, all or nothing.

        Appends nothing, and raises StoreBusyError when a series moved meanwhile, FatalError when
        the ledger did.
        """
        ...

    def of_record(self, record_id: int) -> list[SignedRow]:
        """Return a record's rows."""
        ...

    def ids_in_series(self, series_id: int, record_ids: Sequence[int]) -> dict[int, SignedRow]:
        """Return the rows one series wrote for some records."""
        ...

    def walk(self, after: int = 0, chunk: int = 1024) -> Iterator[list[SignedRow]]:
        """Yield the whole ledger in order."""
        ...


class LookupTable(Protocol):
    """Many rows at once, by record; only reads."""

    def records(self, ids: Sequence[int]) -> dict[int, StoredRecord]:
        """Return the records, by row id."""
        ...

    def bodies(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Return the canonical bytes of those that have them."""
        ...

    def urls(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the pages of those that came with one of their own."""
        ...

    def documents(self, ids: Sequence[int]) -> dict[int, list[bytes]]:
        """Return the foreign bundles, oldest first, of those that came in one."""
        ...

    def events(self, ids: Sequence[int]) -> dict[int, list[SignedRow]]:
        """Return the ledger's rows, in ledger order, of those that have any."""
        ...

    def sealed(self) -> list[int]:
        """Return the ids of anchord's own batches, oldest first."""
        ...

    def adopted(self) -> Iterator[tuple[int, int]]:
        """Yield (batch, record) of every adopted proof."""
        ...


class Store(Protocol):
    """An open store."""

    @property
    def records(self) -> RecordTable:
        """The records."""
        ...

    @property
    def batches(self) -> BatchTable:
        """The batches."""
        ...

    @property
    def calls(self) -> CallTable:
        """The calls to calendars."""
        ...

    @property
    def ledger(self) -> LedgerTable:
        """The ledger."""
        ...

    @property
    def lookup(self) -> LookupTable:
        """Many rows at once."""
        ...

    @property
    def storage(self) -> StorageTables:
        """Captures, items, and the lanes they go by."""
        ...

    @property
    def log(self) -> LogTable:
        """The log over all events."""
        ...

    @property
    def tokens(self) -> TokenTable:
        """RFC 3161 tokens."""
        ...

    @property
    def pulls(self) -> PullTable:
        """What was fetched from mirrors."""
        ...

    @property
    def sources(self) -> SourceTable:
        """How far each source was read."""
        ...

    @property
    def outlets(self) -> OutletTable:
        """How far each outlet is."""
        ...

    @property
    def faces(self) -> FaceTable:
        """Lists, what is new, who cites whom."""
        ...

    def add(self, items: Sequence[Record | Adoption | Document], now: int) -> Added:
        """Take in a chunk of records; adding again changes nothing."""
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the right to run passes; StoreBusyError when another process has it.

        A thread that holds it may take it again, and still holds it afterwards.
        """
        ...
