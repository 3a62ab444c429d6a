"""What the engine asks of the Internet Archive: captures (Wayback Machine) and items.

Every method tries once and returns what was said as a value: a refusal is normal there. The
caller keeps the pace, the retries and the intents. Threads may share an implementation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from anchord.core.item import Fetched, Headroom, ItemSeen, Sent
    from anchord.core.storage import Refused
    from anchord.core.wayback import (
        Accepted,
        AccountStatus,
        Existing,
        IndexPage,
        Memento,
        NotThere,
        Reported,
        Running,
        SystemStatus,
    )


# ---------------------------------------------------------------------- captures


class CaptureArchive(Protocol):
    """The Wayback Machine. Raises nothing but ConfigError."""

    def submit(
        self, url: str, *, within_s: int | None, plain: bool
    ) -> Accepted | Existing | Refused:
        """Ask for a capture.

        Args:
            url: what to capture.
            within_s: no capture is made when one younger than this exists; None: the service's
                own hour.
            plain: fetch without a browser (JSON, PDF).
        """
        ...

    def statuses(self, job_ids: Sequence[str]) -> dict[str, Running | Reported | Refused] | Refused:
        """Read up to 50 jobs in one call; jobs the answer leaves out are left out."""
        ...

    def account(self) -> AccountStatus | Refused:
        """Read slots and day counts; costs nothing."""
        ...

    def system(self) -> SystemStatus | Refused:
        """Read whether the service is overloaded."""
        ...

    def index(
        self, url: str, *, first: str, last: str, prefix: bool = False, resume: str | None = None
    ) -> IndexPage | Refused:
        """List captures of `url` (or of all that begins with it) from `first` to `last`.

        Args:
            url: the page, or with `prefix` the beginning of pages.
            first: 1 to 14 digits, inclusive.
            last: 1 to 14 digits, inclusive.
            prefix: `url` is a beginning.
            resume: what the page before gave.
        """
        ...

    def replay(
        self, timestamp: str, url: str, contains: str | None
    ) -> Memento | NotThere | Refused:
        """Fetch the raw bytes of one memento, without following anything."""
        ...


# ---------------------------------------------------------------------- items


class ItemArchive(Protocol):
    """archive.org items. Raises nothing but ConfigError."""

    def headroom(self, identifier: str) -> Headroom | Refused:
        """Ask check_limit."""
        ...

    def describe(self, identifier: str) -> ItemSeen | Refused:
        """Read an item's metadata (and its tasks), once for all of its files."""
        ...

    def upload(
        self, identifier: str, name: str, path: Path, md5: bytes, metadata: Mapping[str, str]
    ) -> Sent | Refused:
        """PUT one file; `metadata` counts only when this makes the item. Never derives."""
        ...

    def fetch(self, identifier: str, name: str) -> Fetched | Refused:
        """Download a file and hash it as it streams; nothing is kept."""
        ...

    def close(self) -> None:
        """End the upload process; may be called twice."""
        ...


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """A file that lies whole and durable in the spool."""

    path: Path
    size: int
    md5: bytes
    sha1: bytes
    sha256: bytes
    members: int = 0
    member_sha256s: bytes = b""
    """32 bytes a member, in order."""
    left_over: tuple[str, bytes] | None = None
    """The member that did not fit within the size limit, to begin the next file with."""


class Spool(Protocol):
    """The folder where files wait until they are confirmed."""

    def pack(self, name: str, members: Iterable[tuple[str, bytes]], max_bytes: int) -> Packed:
        """Write a deterministic ZIP; the same members give the same bytes everywhere.

        Stops before the member that would exceed `max_bytes` (never before the first).

        Raises:
            FatalError: the disk failed or is full; nothing is left behind.
        """
        ...

    def write(self, name: str, data: bytes) -> Packed:
        """Write a plain file, whole and durable.

        Raises:
            FatalError: the disk failed or is full.
        """
        ...

    def path(self, name: str) -> Path | None:
        """Return where a file lies; None when it is not there."""
        ...

    def holds(self, name: str, sha256: bytes, members: Sequence[tuple[str, bytes]]) -> bool:
        """Tell whether a ZIP that lies here is this one, with these members and no others.

        Args:
            name: of the ZIP.
            sha256: of the whole file.
            members: their names and the SHA-256 of each, in the file's order.
        """
        ...

    def remove(self, name: str) -> None:
        """Take a file away; one that is not there is no error."""
        ...
