"""The plug points. Each docstring is a contract; `anchord.errors` are all that may come out.

Not pluggable on purpose: canonicalisation, the Merkle rule, the event format, the scheduler, HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.model import Adoption, Document, Incoming, Record


class Clock(Protocol):
    """The only way time comes in. `now` is whole Unix seconds, UTC."""

    def now(self) -> int:
        """Return the present moment; never goes backwards within a process."""
        ...


class Signer(Protocol):
    """Signs 32-byte digests and checkpoints with one Ed25519 key; nothing else is ever signed.

    Safe to call from several threads.
    """

    @property
    def key_id(self) -> str:
        """Name of the key, as events state it."""
        ...

    @property
    def public_key(self) -> bytes:
        """Return the 32 raw bytes of the public key."""
        ...

    @property
    def signer_id(self) -> str:
        """Who signs, e.g. a host name."""
        ...

    def sign(self, digest: bytes) -> bytes:
        """Sign 32 raw bytes; deterministic, 64 bytes come back."""
        ...

    def sign_note(self, text: bytes) -> bytes:
        """Sign the text of a checkpoint of the log; deterministic, 64 bytes come back."""
        ...


@runtime_checkable
class BulkSigner(Signer, Protocol):
    """A signer with a quicker way to sign many digests. Two threads may call it at once."""

    def sign_many(self, digests: list[bytes]) -> list[bytes]:
        """Return what `sign` would for each, in order."""
        ...

    def close(self) -> None:
        """Release what bulk signing took; may be called twice."""
        ...


class Added(msgspec.Struct, frozen=True):
    """What became of a chunk of input."""

    new: int
    known: int
    """Already there: nothing was changed."""
    adopted: int
    """New proofs taken over from `.ots` files, whether or not their record was new."""


class RecordStore(Protocol):
    """Where records go. One thread writes."""

    def add(self, items: Sequence[Record | Adoption | Document], now: int) -> Added:
        """Take in a chunk in one durable transaction; adding again changes nothing."""
        ...


class RecordSource(Protocol):
    """Where records come from. Iterating twice gives the same records again.

    A bad piece of input is yielded as a `Rejection`, it never ends the iteration.
    """

    def __iter__(self) -> Iterator[Incoming]:
        """Yield what is there, in order, streaming: memory does not grow with the input."""
        ...


class PendingPoint(msgspec.Struct, frozen=True):
    """One pending attestation in a calendar's answer: ask `uri` for `commitment` later."""

    uri: str
    commitment: bytes


class Submitted(msgspec.Struct, frozen=True):
    """A calendar took a digest."""

    raw: bytes
    """The serialised timestamp as it came, starting at the digest (stored byte for byte)."""
    pendings: tuple[PendingPoint, ...]
    """At least one; the URIs are the ones configured for that calendar."""


class Upgraded(msgspec.Struct, frozen=True):
    """A calendar has the path to Bitcoin."""

    raw: bytes
    """The serialised timestamp as it came, starting at the commitment; holds no pending attestation
    and at least one Bitcoin attestation."""


class NotYet(msgspec.Struct, frozen=True):
    """A calendar does not have the path yet: normal for hours. A value, not an error."""

    status: str
    """One of "journal" (waiting in the calendar), "transaction" (in a transaction, waiting for
    confirmations), "unknown" (the calendar does not know the commitment)."""
    detail: str
    """The calendar's words, cleaned, at most 160 characters."""


class Calendar(Protocol):
    """One OpenTimestamps calendar. Threads may share it.

    The caller retries and keeps the time of the next try; an implementation tries once. Submitting
    the same digest twice is harmless (the calendar makes a second commitment).

    Raises (both methods):
        TransientError: unreachable, slow, silent, 5xx, 429, connection reset.
        ProtocolError: any answer that breaks A1/G4: another commitment, too long, redirect,
            foreign pending URI, pending attestation in an upgrade answer, garbage.
    """

    @property
    def url(self) -> str:
        """Where digests are submitted; the calendar's name in the store."""
        ...

    @property
    def uris(self) -> tuple[str, ...]:
        """The pending URIs it may answer with and is asked under; exact match."""
        ...

    def submit(self, digest: bytes) -> Submitted:
        """POST one 32-byte digest."""
        ...

    def upgrade(self, uri: str, commitment: bytes) -> Upgraded | NotYet:
        """GET the path of one commitment from `uri`, which MUST be one of `uris`."""
        ...


class Tip(msgspec.Struct, frozen=True):
    """The end of the best chain a source knows."""

    height: int
    hash: bytes
    """32 bytes, display order."""
    time: int


class HeaderSource(Protocol):
    """Block headers of the best chain, from one kind of witness. Threads may share it.

    Every header returned has been checked by the source as far as it can: the own header file
    checks work, linkage and retarget of all; explorers must agree with each other; a node is
    trusted by whoever configured it. Callers re-hash what they get.

    Raises:
        TransientError: cannot be reached now, or still syncing.
        ProtocolError: it answered nonsense, or its servers disagree.
    """

    @property
    def name(self) -> str:
        """What `checked_with` says: "own headers", "bitcoin node" or "explorers"."""
        ...

    def refresh(self) -> None:
        """Catch up with the network, for sources that keep a copy; others do nothing.

        Called once per pass, and only when something waits for a header. What was caught up
        before a failure is kept.
        """
        ...

    def tip(self) -> Tip:
        """Return the best chain's end."""
        ...

    def header(self, height: int) -> bytes | None:
        """Return the 80 bytes at `height` on the best chain; None when the chain is shorter."""
        ...

    def close(self) -> None:
        """Release sockets and files; may be called twice."""
        ...
