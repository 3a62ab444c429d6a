"""Bringing back what a person was asked to look at: parked captures and files, stopped lanes.

Nothing is sent here. A row that is brought back stands where its first try stood, so the rules
that keep a capture or an upload from being made twice hold for it as for any other: an upload
reads the item's metadata first, a capture keeps its distance to the last submit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.core.storage import CaptureChange, CaptureState, FileChange, FileState
from anchord.engine.capture_fate import CACHED_S
from anchord.engine.parking import SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.storage import Capture, ItemFile, Lane
    from anchord.ports.storage import StorageTables

_AT_ONCE = 500
_MOST_ROUNDS = 1_000_000 // _AT_ONCE


class Revived(msgspec.Struct, frozen=True, kw_only=True):
    """What was brought back."""

    captures: int
    files: int
    lanes: tuple[str, ...]


def revive(tables: StorageTables, now: int) -> Revived:
    """Bring everything back; a crash in between leaves the rest parked, for another try."""
    lanes = [lane for lane in tables.lanes.all() if lane.stopped]
    tables.lanes.put(*[_reopened(lane, now) for lane in lanes])
    return Revived(
        captures=_captures(tables, now),
        files=_files(tables, now),
        lanes=tuple(lane.name for lane in lanes),
    )


def revive_captures(tables: StorageTables, parked: Sequence[Capture], now: int) -> int:
    """Bring these parked captures back; return how many."""
    return tables.captures.change(
        [CaptureChange(capture=one, columns=_tried_again(one, now)) for one in parked]
    )


def revive_files(tables: StorageTables, parked: Sequence[ItemFile], now: int) -> int:
    """Bring these parked files back; return how many."""
    return tables.items.change([FileChange(file=one, columns=_packed(now)) for one in parked])


def _reopened(lane: Lane, now: int) -> Lane:
    """The alert stays until the lane works again: a person may have been wrong."""
    return msgspec.structs.replace(lane, stopped=False, until=None, strikes=0, changed_at=now)


def _captures(tables: StorageTables, now: int) -> int:
    brought_back = 0
    for _ in range(_MOST_ROUNDS):
        done = revive_captures(
            tables, tables.captures.in_state((CaptureState.PARKED,), _AT_ONCE), now
        )
        brought_back += done
        if not done:
            break
    return brought_back


def _tried_again(capture: Capture, now: int) -> dict[str, object]:
    """The service would repeat the outcome of a job that it still remembers.

    One that was set aside by hand may have been made meanwhile, and nobody read of it: the index
    is asked first, and it is submitted only if nothing is found.
    """
    at = now if capture.submitted_at is None else max(now, capture.submitted_at + CACHED_S)
    if capture.code == SET_ASIDE and capture.submitted_at is not None:
        looked_for = {"next_attempt_at": now, "deadline_at": at}
        return {"state": CaptureState.LOOKING, "attempts": 0, **looked_for}
    return {"state": CaptureState.WAITING, "attempts": 0, "next_attempt_at": at}


def _files(tables: StorageTables, now: int) -> int:
    brought_back = 0
    for _ in range(_MOST_ROUNDS):
        done = revive_files(tables, tables.items.in_state((FileState.PARKED,), _AT_ONCE), now)
        brought_back += done
        if not done:
            break
    return brought_back


def _packed(now: int) -> dict[str, object]:
    return {"state": FileState.PACKED, "attempts": 0, "checks": 0, "next_attempt_at": now}
