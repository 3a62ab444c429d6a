"""Inclusion proofs in a bundle: which checkpoints of which logs cover its events.

The key `inclusion` is anchord's (docs/protocol.md, Bundle). A checkpoint is a signed note whose
text begins with origin, tree size and root (https://c2sp.org/tlog-checkpoint); a proof is the
audit path of RFC 6962, 2.1.1. Here is their shape alone: whether they hold is for others to say.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from anchord.core.checkpoint import parse
from anchord.errors import RefusedError

_MOST_HASHES = 64


class IncludedEvent(msgspec.Struct, frozen=True, order=True):
    """One event's place in a log, and the path from it to the root of a checkpoint."""

    event_id: str
    index: int
    hashes: tuple[bytes, ...]
    """Base64 in JSON."""


class Inclusion(msgspec.Struct, frozen=True):
    """Events that one checkpoint covers."""

    checkpoint: str
    """The signed note, whole."""
    events: tuple[IncludedEvent, ...]


@lru_cache(maxsize=256)
def place_of(checkpoint: str) -> tuple[str, int]:
    """Return origin and tree size of a checkpoint.

    Raises:
        RefusedError: it is none.
    """
    found = parse(checkpoint.encode("utf-8"))
    return found.origin, found.size


def read_inclusion(value: Any, event_ids: Iterable[Any]) -> tuple[Inclusion, ...]:
    """Return what a bundle's `inclusion` says, written the one way that is allowed.

    Args:
        value: as it stands in the bundle.
        event_ids: of the events beside it.

    Raises:
        RefusedError: another shape or order, an index beyond the log, a hash that is none, or
            an event that is not in the bundle.
    """
    try:
        found = msgspec.convert(value, tuple[Inclusion, ...])
    except msgspec.ValidationError as error:
        raise RefusedError(f"the bundle's inclusion is damaged: {error}") from None
    # What the parser leaves out (keys not known, idle bits of base64) shows when it is written.
    if not found or not _says(msgspec.json.encode(united(found)), value):
        raise RefusedError("the bundle's inclusion is damaged: it is not written as it has to be")
    known = {name for name in event_ids if isinstance(name, str)}
    for item in found:
        _check(item, place_of(item.checkpoint)[1], known)
    return found


def _says(written: bytes, value: Any) -> bool:
    """Tell whether `written` is a value in JSON."""
    with contextlib.suppress(OverflowError):  # integers that the encoder has no bytes for
        if msgspec.json.encode(value) == written:  # in the same order, as anchord writes it
            return True
    return bool(msgspec.json.decode(written) == value)


def _check(item: Inclusion, size: int, known: set[str]) -> None:
    for event in item.events:
        if event.event_id not in known:
            raise RefusedError(
                f"the bundle's inclusion names event {event.event_id:.80}, which is not in it: "
                "the event was dropped"
            )
        if not 0 <= event.index < size:
            raise RefusedError(
                f"the bundle's inclusion gives event {event.event_id:.80} place {event.index}, "
                f"in a log of {size}"
            )
        if len(event.hashes) > _MOST_HASHES or any(len(item) != 32 for item in event.hashes):
            raise RefusedError(
                f"the inclusion of event {event.event_id:.80} has a hash that is not 32 bytes"
            )


def united(parts: Iterable[Inclusion]) -> tuple[Inclusion, ...]:
    """Return inclusions without repetitions, by origin, size and note; events by place.

    Raises:
        RefusedError: a checkpoint is none.
    """
    by_note: dict[str, set[IncludedEvent]] = {}
    for item in parts:
        by_note.setdefault(item.checkpoint, set()).update(item.events)
    return tuple(
        Inclusion(note, tuple(sorted(events, key=lambda event: (event.index, event))))
        for note, events in sorted(by_note.items(), key=lambda pair: (*place_of(pair[0]), pair[0]))
        if events
    )
