"""What the engine asks of a store about its log, tokens of batches, and pulls from mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class StoredCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A signed head of the log."""

    size: int
    """It covers the events 1 to `size` of the ledger; their places in the log are 0 to size - 1."""
    root: bytes
    note: bytes
    """The signed note, byte for byte as it is published."""
    key_id: str
    created_at: int
    batch_id: int | None
    """The batch that carries it into Bitcoin; None while it waits."""


class LogTable(Protocol):
    """The log over all events, and its checkpoints."""

    def sizes(self) -> tuple[int, int]:
        """Return how many events the ledger has, and how many the newest checkpoint covers."""
        ...

    def place_of(self, event_id: bytes) -> int | None:
        """Return the place of an event by its 32-byte digest; walks the ledger."""
        ...

    def leaf_hashes(self, start: int, stop: int) -> bytes:
        """Return the RFC 6962 leaf hashes of places [start, stop), 32 bytes each.

        Computed from the ledger's rows: 0x00, then the event's digest and its signature.
        """
        ...

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Return the entries of places [start, stop): 32 bytes of digest, 64 of signature."""
        ...

    def nodes(self, level: int, start: int, stop: int) -> bytes:
        """Return the roots of full tiles [start, stop) of a level from 1 on, 32 bytes each."""
        ...

    def add(self, checkpoint: StoredCheckpoint, nodes: Iterable[tuple[int, int, bytes]]) -> None:
        """Write a checkpoint and the (level, place, hash) of tiles that became full, at once.

        Raises FatalError when the ledger is shorter, or a checkpoint of that size is there.
        """
        ...

    def last(self) -> StoredCheckpoint | None:
        """Return the newest checkpoint."""
        ...

    def covering(self, size: int) -> StoredCheckpoint | None:
        """Return the oldest checkpoint that covers at least `size` events."""
        ...

    def checkpoints(self) -> Iterator[StoredCheckpoint]:
        """Yield all checkpoints, oldest first."""
        ...

    def waiting(self) -> list[StoredCheckpoint]:
        """Return the checkpoints no batch carries yet, oldest first."""
        ...

    def carried(self, batch_id: int) -> list[StoredCheckpoint]:
        """Return the checkpoints a batch carries, in the order of its trailer."""
        ...


class StoredToken(msgspec.Struct, frozen=True, kw_only=True):
    """A batch's token from one time-stamping authority, or the intent to get one."""

    batch_id: int
    url: str
    attempts: int
    next_attempt_at: int | None
    raw: bytes | None
    """The token (DER), once it came and was verified."""
    last_error: str | None = None


class AuthorityHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How one time-stamping authority behaves."""

    url: str
    kept: int
    """Tokens that came and were verified."""
    pending: int
    """Batches that wait for one."""
    last_ok_at: int | None
    next_attempt_at: int | None
    last_error: str | None
    """What went wrong last with the youngest batch that waits."""


class TokenTable(Protocol):
    """RFC 3161 tokens of batches."""

    def due(self, now: int) -> list[StoredToken]:
        """Return intents whose time has come."""
        ...

    def of_batch(self, batch_id: int) -> list[StoredToken]:
        """Return the tokens of a batch."""
        ...

    def store(self, batch_id: int, url: str, raw: bytes, now: int) -> None:
        """Keep a token that was verified."""
        ...

    def postpone(self, batch_id: int, url: str, at: int | None, error: str) -> None:
        """Write down a failed try; `at` None: it was the last one."""
        ...

    def bring_forward(self, now: int, latest: int) -> int:
        """Make due at once what is put off beyond `latest`; return how much that was."""
        ...

    def health(self) -> list[AuthorityHealth]:
        """Return how every authority that was ever asked behaves."""
        ...

    def intend(self, batch_id: int, urls: Sequence[str], now: int) -> None:
        """Write the intent to get a token for a batch from each authority; harmless twice."""
        ...


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one file of one mirror."""

    mirror: str
    name: str
    state: str
    """`fetched`, `absent`, `refused` or `failed`."""
    sha256: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    fetched_at: int | None = None
    note: str | None = None


class PullTable(Protocol):
    """What was fetched from mirrors."""

    def get(self, mirror: str, names: Sequence[str]) -> dict[str, Pull]:
        """Return what is known of some files of a mirror, by name."""
        ...

    def put(self, pulls: Sequence[Pull]) -> None:
        """Write what became of some files."""
        ...

    def of_mirror(self, mirror: str) -> Iterator[Pull]:
        """Yield all that is known of a mirror, by name."""
        ...
