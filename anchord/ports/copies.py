"""What an audit asks of archives: stored copies, fetched again. Reads only, without an account.

Every method tries once and returns what was said as a value, like `anchord.ports.archive`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from anchord.core.item import Fetched, ItemSeen
    from anchord.core.storage import Refused
    from anchord.core.wayback import Memento, NotThere


class MementoReader(Protocol):
    """Replays mementos of one Wayback Machine."""

    @property
    def where(self) -> str:
        """Its base address, as capture URLs begin."""
        ...

    def replay(
        self, timestamp: str, url: str, contains: str | None
    ) -> Memento | NotThere | Refused:
        """Fetch the raw bytes (`id_`) of one memento, without following anything."""
        ...


class ItemReader(Protocol):
    """Reads items of one archive."""

    @property
    def where(self) -> str:
        """What events call it: `archive.org`, or a stand-in's host and port."""
        ...

    def describe(self, identifier: str) -> ItemSeen | Refused:
        """Read an item's metadata, once for all of its files."""
        ...

    def member(self, identifier: str, file: str, member: str) -> Fetched | Refused | None:
        """Download one member of a ZIP and hash it; None when the archive says it is not there."""
        ...
