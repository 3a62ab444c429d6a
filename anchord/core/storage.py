"""The values of the facet `stored`: captures, items and their files, and the lanes they go by.

A capture is one URL of one record at the Wayback Machine; an item is a container at archive.org,
its files are ZIPs of bundles with their manifests. Both name records as members of batches
(batch, leaf number), so that one series of events serves a whole file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from anchord.core.model import NewSeries


class StoredWhen(StrEnum):
    """Which receipts earn the word "stored"."""

    EITHER = "either"
    CAPTURE = "capture"
    ITEM = "item"
    BOTH = "both"


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A service said no, or nothing usable. A value: the rules say what follows from the code."""

    code: str
    """Without "error:": the service's own code, or one of ours ("http-429", "offline",
    "connection-refused", "no-answer", "unknown-answer", ...)."""
    message: str
    """The service's words, cleaned, at most 300 characters."""
    retry_after_s: float | None = None
    """What the service asked for."""


# ---------------------------------------------------------------------- captures


class CaptureState(StrEnum):
    """What is known of a capture, and so what is done with it next."""

    WAITING = "waiting"
    """To be submitted, not before `next_attempt_at`."""
    SENDING = "sending"
    """The intent to submit. Found so by a new process: it may have happened, so look first."""
    SUBMITTED = "submitted"
    """A job is known: read its status until `deadline_at`."""
    LOOKING = "looking"
    """A capture may exist that nobody told us of: ask the index before another submit."""
    REPORTED = "reported"
    """The service reported success, or the index listed a capture that is adopted."""
    INDEXED = "indexed"
    """The index lists the memento: replay it."""
    STORED = "stored"
    """Replayed: `capture_stored` is in the ledger or due. Confirmations follow."""
    PARKED = "parked"
    """Needs a person; `anchord retry --archive` brings it back."""


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """One URL of one record, and how far its capture has come."""

    id: int
    version: int
    """Counts changes: a change of a row that has moved on meanwhile is not made."""
    record_id: int
    batch_id: int
    place: int
    """The record's leaf number in that batch."""
    role: str
    """"source" (what the record is about; earns the facet) or "extra-N" (opted in)."""
    url: str
    host: str
    contains: str | None
    """Text the replayed bytes must hold, so that an error page is never taken for the record."""
    state: CaptureState
    attempts: int
    """Failed tries that count."""
    next_attempt_at: int | None
    """When something is to be done next; None: nothing is."""
    job_id: str | None = None
    submitted_at: int | None = None
    """When the last submit was made; a job id is no key for an attempt, this is."""
    deadline_at: int | None = None
    """When an unfinished job is given up and the index is asked. Of one that is looked for: when it
    is submitted again, if nothing is found; None: it is parked then."""
    since_at: int | None = None
    """A capture counts from this moment on: the submit, or the age that may be adopted."""
    timestamp: str | None = None
    """14 digits, UTC: which memento."""
    final_url: str | None = None
    http_status: int | None = None
    adopted: bool = False
    """The memento was there already, ours or somebody else's."""
    checks: int = 0
    """Looks at index or replay since the report, that did not find it yet."""
    reported_at: int | None = None
    sha256: bytes | None = None
    """Of the bytes the raw replay (`id_`) gave."""
    size: int | None = None
    x_archive_src: str | None = None
    series_id: int | None = None
    """The live `capture_stored` series."""
    stored_at: int | None = None
    confirmed_at: int | None = None
    confirmations: int = 0
    """Later replays that gave the same bytes (after a day, after a month)."""
    lost: int = 0
    """How many mementos of this URL were lost after they had been signed for."""
    code: str | None = None
    """Why it waits: the code of the last refusal."""
    note: str | None = None
    created_at: int = 0


class NewCapture(msgspec.Struct, frozen=True, kw_only=True):
    """A URL to be captured for a record."""

    record_id: int
    batch_id: int
    place: int
    role: str
    url: str
    host: str
    contains: str | None = None


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Events to be appended for members of a batch."""

    batch_id: int
    series: NewSeries


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the captures tells of all of them."""

    due: dict[CaptureState, int]
    """When the next one is due, of the states in which one is."""
    in_flight: int
    """How many are being submitted, or have a job."""
    unclaimed: bool
    """Whether members of batches were not looked at yet."""


class CaptureChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a capture becomes, with the events that follow: all of it or nothing.

    A series of type `capture_stored` becomes the capture's `series_id`; a `facet_withdrawn` clears
    it.
    """

    capture: Capture
    """As it was read; when its version has moved on, the change is not made."""
    columns: dict[str, Any]
    """New values, by field name of `Capture`."""
    intents: tuple[Intent, ...] = ()
    cut_series: tuple[int, ...] = ()
    """Series that must not append any further event."""


# ---------------------------------------------------------------------- lanes


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One way to a service: its pace, its day, and why it pauses. Kept in the store.

    Names: "spn" (the Save Page Now account), "host:<host>" (a captured host), "index" (CDX),
    "replay", "items" (the archive.org account), "metadata".
    """

    name: str
    grants: tuple[int, ...] = ()
    """Moments of the last calls that its bucket still remembers, oldest first."""
    day: int = 0
    """UTC day number `used` counts for."""
    used: int = 0
    """Calls granted on that day."""
    until: int | None = None
    """No call before this moment."""
    strikes: int = 0
    """Refusals in a row; what doubles waits."""
    code: str | None = None
    note: str | None = None
    stopped: bool = False
    """A person must act: nothing more is sent until `anchord retry --archive`."""
    alert: str | None = None
    """A line for `anchord status`; stays until the lane works again."""
    seen: bytes | None = None
    """What the service last said of itself, as JSON."""
    changed_at: int = 0


# ---------------------------------------------------------------------- items


class FileState(StrEnum):
    """Where a file of an item stands."""

    PACKED = "packed"
    """In the spool with its hashes; not sent."""
    SENDING = "sending"
    """The intent to send. Found so by a new process: it may be there, so read metadata first."""
    SENT = "sent"
    """Accepted into the service's queue, which proves nothing yet."""
    STORED = "stored"
    """The item's metadata lists it with our size, md5 and sha1; confirmations follow."""
    PARKED = "parked"
    """Needs a person; `anchord retry --archive` brings it back."""
    GONE = "gone"
    """Lost or taken down after it was stored: withdrawn, its members are packed again."""


class FileKind(StrEnum):
    """What a file of an item is."""

    BUNDLES = "bundles"
    MANIFEST = "manifest"
    """JSON Lines beside a ZIP of bundles."""
    DAY = "day"
    """The signed manifest of a whole day."""


class Range(msgspec.Struct, frozen=True):
    """Members [start, stop) of a batch, as one stretch of a file."""

    batch_id: int
    start: int
    stop: int
    place: int
    """Where in the file's order of members the stretch begins."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A container at archive.org, for one UTC day."""

    id: int
    identifier: str
    day: int
    """UTC day number (days since 1970-01-01)."""
    part: int
    """1, 2, ... within the day."""
    state: str
    """"open" (takes files), "closed" (its day manifest is packed), "dark" (taken down), "foreign"
    (the identifier belongs to somebody else)."""
    created_at: int
    seen_at: int | None = None
    """When its metadata first showed it: until then one upload at a time."""
    note: str | None = None


class ItemFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an item."""

    id: int
    version: int
    item_id: int
    identifier: str
    """Of its item."""
    name: str
    kind: FileKind
    beside: int | None
    """For a manifest: the id of its ZIP."""
    size: int
    md5: bytes
    sha1: bytes
    sha256: bytes
    members: int
    state: FileState
    attempts: int
    next_attempt_at: int | None
    checks: int = 0
    """Metadata reads that did not list it yet, since it was sent."""
    created_at: int = 0
    sent_at: int | None = None
    stored_at: int | None = None
    confirmed_at: int | None = None
    confirmations: int = 0
    code: str | None = None
    note: str | None = None


class NewFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that lies in the spool, about to be noted."""

    name: str
    kind: FileKind
    size: int
    md5: bytes
    sha1: bytes
    sha256: bytes
    members: int = 0
    ranges: tuple[Range, ...] = ()
    member_sha256s: bytes = b""
    """32 bytes a member, in the order of the ranges."""


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a file becomes, with the events that follow: all of it or nothing."""

    file: ItemFile
    """As it was read; when its version has moved on, the change is not made."""
    columns: dict[str, Any]
    intents: tuple[Intent, ...] = ()
    cut_series: tuple[int, ...] = ()
    """Series that must not append any further event: the file was lost before all were signed."""


class StoredCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How the facet `stored` stands, in records and rows."""

    captures: dict[str, int]
    """Captures of role "source" by state."""
    extras: dict[str, int]
    """Captures of other roles by state."""
    unclaimed: int
    """Members of batches that were not yet looked at for a URL to capture."""
    files: dict[str, int]
    """Files of bundles by state, counted in their members."""
    unpacked: int
    """Members of batches that are not yet in any file."""
    by_capture: int
    """Records stored by a capture."""
    by_item: int
    """Records stored by an item."""
    by_both: int
