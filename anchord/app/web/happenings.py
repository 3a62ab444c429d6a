"""Events of the ledger as the dashboard tells of them: in lists, and in messages of its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.core.event import ANCHORED, CAPTURED, ITEM_STORED, SUBMITTED, WITHDRAWN
from anchord.core.moment import utc
from anchord.engine.publishing_about import folder_of

if TYPE_CHECKING:
    from anchord.ports.face import RecentEvent

_WORDS = {
    SUBMITTED: "handed to calendars",
    ANCHORED: "anchored in a block",
    CAPTURED: "captured by the Wayback Machine",
    ITEM_STORED: "stored in an item",
    WITHDRAWN: "an earlier event withdrawn",
}


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One event, for people; field by field what a message of the stream holds."""

    seq: int
    event_type: str
    words: str
    created_at: str
    """UTC, as the event states it."""
    event_id: str
    record: str
    """Pith Number, or `sha256:` and the digest."""
    path: str
    """Of the record's page, below the root."""


def happening(event: RecentEvent) -> Happening:
    """Return an event as it is told of."""
    return Happening(
        seq=event.seq,
        event_type=event.event_type,
        words=_WORDS.get(event.event_type, event.event_type),
        created_at=utc(event.created_at),
        event_id=event.event_id,
        record=event.name,
        path=path_of(event.name),
    )


def path_of(name: str) -> str:
    """Return where a record's page is below the root, by the record's name."""
    return folder_of(name.rpartition(":")[2])
