"""What pages about the whole store ask of it: lists, what is new, how it came to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.keyring import Keyring
    from anchord.core.model import StoredRecord

ANCHORED_WORDS = ("anchored", "submitted", "not anchored")
STORED_WORDS = ("stored", "not stored")
"""As `core.state.completeness` has them."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One record, as a list shows it."""

    id: int
    """Row id, for `before`; it means nothing elsewhere."""
    name: str
    """Pith Number, or `sha256:` and the digest."""
    digest: bytes
    source_kind: str | None
    source_id: str | None
    source_version: int | None
    label: str | None
    """What people called it where it came from; anybody's text."""
    added_at: int
    anchored: str
    """One of `ANCHORED_WORDS`, by the store's own ledger."""
    stored: str
    """One of `STORED_WORDS`, by the store's own ledger."""


class Listing(msgspec.Struct, frozen=True):
    """A part of a list."""

    rows: tuple[Listed, ...]
    """Newest first."""
    next: int | None
    """What to give as `before` for the part behind it; None: this was the last one."""


class RecentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the ledger."""

    seq: int
    event_type: str
    created_at: int
    """When it was decided, as the event states it."""
    event_id: str
    record_id: int
    """Row id of the record it is about."""
    name: str
    """Of that record, as in `Listed`."""


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """How many there were at the end of a UTC day."""

    day: int
    """Days since 1970-01-01."""
    records: int
    anchored: int
    stored: int
    complete: int
    """Both."""


class FaceTable(Protocol):
    """Questions of pages. All of them are cheap, whatever the number of records.

    The words here are those of the store's own ledger, which foreign bundles do not count in: what
    those prove stands on a record's own page. Rows of the ledger that are not as they were appended
    count for nothing, and neither do events by keys that were not to be believed. No signature is
    verified here and no event made anew; a record's page does that.
    """

    def page(
        self,
        *,
        before: int | None,
        limit: int,
        anchored: str | None = None,
        stored: str | None = None,
        source: str | None = None,
        keyring: Keyring,
    ) -> Listing:
        """Return records, newest first.

        The work is bounded: where few records fit, fewer come than were asked for, even none,
        together with a `next` to go on at.

        Args:
            before: `next` of the part before; None: from the newest on.
            limit: how many at most, from 1 on.
            anchored: only records with this word.
            stored: only records with this word.
            source: only records of this kind of source, say "arxiv".
            keyring: public keys; what others signed counts for nothing.

        Raises:
            RefusedError: no such word, or a limit below 1.
        """
        ...

    def listed(self, ids: Sequence[int], keyring: Keyring) -> list[Listed]:
        """Return records as a list shows them, in the order asked for, without unknown ones."""
        ...

    def recent(self, after: int | None, limit: int) -> list[RecentEvent]:
        """Return events of the ledger, newest last.

        Args:
            after: the first ones behind this sequence number; None: the newest there are.
            limit: how many at most.
        """
        ...

    def history(self) -> list[Day]:
        """Return the days on which anything changed, oldest first."""
        ...

    def citing(self, records: Sequence[StoredRecord]) -> dict[int, list[int]]:
        """Return which other records came in bundles that say they cite these, by row id.

        Nobody has checked whether that was signed, or stands (`engine.citing` does). At most
        `MOST_CITING_RECORDS` of each, the first that came.
        """
        ...


MOST_CITING_RECORDS = 1000
