"""The values that move between the layers: frozen, without behaviour.

Digests are 32 raw bytes here and hex only at the borders. Moments end in `_at` and are
whole Unix seconds (UTC); durations end in `_s`.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Scheme(StrEnum):
    """How a record's canonical bytes come about."""

    PITH_JSON_V1 = "pith-json-v1"
    """The registry's rule (docs/protocol.md, 1): the default for JSON records."""
    RFC8785 = "rfc8785"
    """JSON Canonicalization Scheme, for other people's records."""
    SHA256 = "sha256"
    """A bare digest: a file or a line of a checksum list; there are no canonical bytes."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
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
