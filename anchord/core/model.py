"""The values that move between the layers: frozen, without behaviour.

Digests are 32 raw bytes here and hex only at the borders. Moments end in `_at` and are
whole Unix seconds (UTC); durations end in `_s`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Scheme(StrEnum):
    """How a record's canonical bytes come about."""

    PITH_JSON_V1 = "pith-json-v1"
    """The registry's rule (docs/protocol.md, 1): the default for JSON records."""
    RFC8785 = "rfc8785"
    """JSON Canonicalization Scheme, for other people's records."""
    SHA256 = "sha256"
    """A bare digest: a file or a line of a checksum list; there are no canonical bytes."""


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record as it enters the store."""

    digest: bytes
    """SHA-256 of the canonical bytes, 32 raw bytes."""
    scheme: Scheme
    canonical: bytes | None = None
    """The canonical bytes; None for scheme sha256."""
    year: str | None = None
    """First four characters of `metadata.submitted_at`; only then is there a Pith Number."""
    source_kind: str | None = None
    source_id: str | None = None
    source_version: int | None = None
    label: str | None = None
    """What people call it: a file name. Never part of anything signed."""
    url: str | None = None
    """Its own page, to be captured; None: what is captured follows from the configuration."""


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """An existing `.ots` file: a record and the proof somebody else began for it."""

    record: Record
    ots: bytes
    """The file as it came, byte for byte."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign bundle a record came in: kept byte for byte beside the record."""

    record: Record
    raw: bytes


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of input that was refused, and why; the rest goes in."""

    where: str
    """File name, or "-" for standard input."""
    line: int | None
    """1-based line number where the input has lines."""
    reason: str


Incoming = Record | Adoption | Document | Rejection


class BatchState(StrEnum):
    """Where a batch stands; a record stands where its batch stands."""

    SEALED = "sealed"
    """Root fixed; fewer than m calendars have answered."""
    SUBMITTED = "submitted"
    """At least m calendars hold the root."""
    ATTESTED = "attested"
    """A block header on the best chain carries a path of it; confirmations are missing."""
    ANCHORED = "anchored"
    """Enough confirmations; the signed events are in the ledger or being appended."""
    PARKED = "parked"
    """Needs a person; `anchord retry` brings it back."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """What a checked header says about one attestation."""

    height: int
    hash: bytes
    """32 bytes in display order (as explorers print it)."""
    merkle_root: bytes
    """32 bytes in display order."""
    time: int
    """nTime of the header, Unix seconds: good to hours, never an exact moment."""
    confirmations: int
    checked_with: tuple[str, ...]
    """Names of the header sources that agreed."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """One Merkle root, or one adopted `.ots` file, and where it stands."""

    id: int
    kind: str
    """"sealed" (anchord's own, with nonces and tiles) or "adopted" (one record, no nonce)."""
    state: BatchState
    root: bytes
    """Where `proof` starts: the Merkle root together with the trailer, or the record's digest when
    adopted."""
    size: int
    driving: int
    """How many records stand where this batch stands."""
    created_at: int
    tile_roots: bytes | None = None
    record_id: int | None = None
    adopted_raw: bytes | None = None
    proof: bytes | None = None
    block_height: int | None = None
    block_hash: bytes | None = None
    block_merkle_root: bytes | None = None
    block_time: int | None = None
    next_check_at: int | None = None
    submitted_at: int | None = None
    attested_at: int | None = None
    anchored_at: int | None = None
    final_at: int | None = None
    note: str | None = None
    trailer: bytes | None = None
    """What the root carries beside the tree; see `anchord.core.trailer`."""
    not_before_height: int | None = None
    """Height of the block whose hash the trailer ends with."""


class Member(msgspec.Struct, frozen=True, gc=False):
    """One record within a batch."""

    index: int
    record_id: int
    digest: bytes
    number: str | None
    """The Pith Number, where the record has one."""
    nonce: bytes
    """16 bytes, or empty in an adopted batch."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The intent to hand one root to one calendar."""

    id: int
    batch_id: int
    calendar: str
    attempts: int
    root: bytes


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """One commitment a calendar is asked for."""

    id: int
    uri: str
    commitment: bytes
    attempts: int
    status: str
    unknown_since: int | None
    raw: bytes | None
    """The last path that came, as it came."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one type for members [start, stop) of a batch, decided at one moment."""

    id: int
    batch_id: int
    event_type: str
    created_at: int
    payload: bytes
    """JSON object: the fields common to all events."""
    proof: bytes | None
    """Serialised timestamp from the batch's root at that moment; None where none is stated."""
    signer: bytes
    """JSON object: the events' `signer`."""
    key_id: str
    withdraws: int | None
    file_id: int | None
    """The file that the members of an `item_stored` series are in."""
    start: int
    stop: int
    next: int


class SignedRow(msgspec.Struct, frozen=True, gc=False):
    """One row of the ledger."""

    seq: int
    record_id: int
    series_id: int
    numbered: bool
    event_id: bytes
    signature: bytes
    chain: bytes


class Tile(msgspec.Struct, frozen=True):
    """Up to 1,024 neighbouring leaves of a batch, and the records behind them."""

    tile: int
    leaves: bytes
    """32 bytes each; empty in an adopted batch."""
    members: tuple[Member, ...]


class NewSeries(msgspec.Struct, frozen=True, kw_only=True):
    """A series about to be written as the intent of its events."""

    event_type: str
    created_at: int
    payload: bytes
    proof: bytes | None
    signer: bytes
    key_id: str
    withdraws: int | None = None
    file_id: int | None = None
    start: int = 0
    stop: int


class BatchChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch becomes, together with the intents that follow from it."""

    batch_id: int
    columns: dict[str, Any] = {}
    """New values of the batch's own fields."""
    series: tuple[NewSeries, ...] = ()
    """Events to append later; written with the change so that no crash can lose them."""
    cut_series: tuple[int, ...] = ()
    """Series that must not append any further event."""
    reopen: tuple[bytes, ...] = ()
    """Commitments to ask for again: a reorg undid their path."""
    reopen_at: int = 0
    resubmit: tuple[str, ...] = ()
    """Calendars that are to get the root once more."""
    resubmit_at: int = 0
    resubmit_quiet_s: int = 0
    """Least age of a calendar's last answer before it gets the root a third time."""
    release: bool = False
    """Let the records that stand here wait for another batch."""
    lead: bool = False
    """Let this adopted batch's record stand here, if where it stands is not anchored."""


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One record as the store has it."""

    id: int
    digest: bytes
    scheme: Scheme
    year: str | None
    source_kind: str | None
    source_id: str | None
    source_version: int | None
    label: str | None
    batch_id: int | None
    added_at: int
