"""Setting work aside by hand: it is not tried, holds nothing up, and waits for `anchord retry`.

Nothing is sent here, and nothing is forgotten: what services said so far stays in the rows. A call
that is in flight meanwhile changes nothing any more, because its row has moved on; what it may have
left at the service is looked for when the work is brought back (`engine.reviving`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchord.core.model import Batch, BatchChange, BatchState
from anchord.core.storage import CaptureChange, CaptureState, FileChange, FileKind, FileState
from anchord.engine.capture_fate import UNSEEN
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.core.storage import Capture, ItemFile
    from anchord.ports.storage import StorageTables
    from anchord.ports.store import Store

SET_ASIDE = "set-aside"
"""The code of captures and files that a person set aside."""
BY_HAND = "set aside by hand: "
"""How the note of a batch begins that a person set aside; its other notes are reasons to look."""
_FOUND = (CaptureState.REPORTED, CaptureState.INDEXED)
_UNSENT = (FileState.PACKED, FileState.SENDING, FileState.SENT)


def park_batch(store: Store, batch: Batch, reason: str) -> None:
    """Set a batch aside, with all records that stand in it.

    Raises:
        RefusedError: it is anchored, or parked already.
    """
    name = f"batch {batch.id}"
    if batch.state is BatchState.ANCHORED:
        raise RefusedError(
            f"{name} is anchored: its events are signed, nothing is left to set aside"
        )
    if batch.state is BatchState.PARKED:
        raise RefusedError(f"{name} is parked already: {batch.note or 'no reason is stated'}")
    columns = {"state": BatchState.PARKED.value, "note": BY_HAND + reason}
    store.batches.change([BatchChange(batch_id=batch.id, columns=columns)])


def park_capture(tables: StorageTables, capture: Capture, reason: str) -> None:
    """Set the capture of one URL aside.

    Raises:
        RefusedError: it is stored, or parked already, or a pass changed it at this moment.
    """
    name = f"the capture of {capture.url}"
    if capture.state is CaptureState.STORED:
        raise RefusedError(f"{name} is stored: only later looks at it are left, which cost nothing")
    if capture.state is CaptureState.PARKED:
        raise RefusedError(f"{name} is parked already: {capture.note or capture.code}")
    columns: dict[str, Any] = {**UNSEEN, **_aside(CaptureState.PARKED, reason)}
    if capture.state in _FOUND:
        # A moment that stays says that this memento is no good. This one is to be found again.
        columns["timestamp"] = None
    if not tables.captures.change([CaptureChange(capture=capture, columns=columns)]):
        raise RefusedError(f"{name} went on at this moment: say it again")


def park_file(tables: StorageTables, file: ItemFile, reason: str) -> None:
    """Set a file of an item aside; a ZIP takes its manifest along while that was not sent.

    Raises:
        RefusedError: it is stored, given up or parked, or a pass changed it at this moment.
    """
    name = f"{file.identifier}/{file.name}"
    if file.state is FileState.PARKED:
        raise RefusedError(f"{name} is parked already: {file.note or file.code}")
    if file.state not in _UNSENT:
        what = "stored" if file.state is FileState.STORED else "given up, its members packed anew"
        raise RefusedError(f"{name} is {what}: nothing is left to set aside")
    columns = _aside(FileState.PARKED, reason)
    together = [file, *_unsent_beside(tables, file)]
    if not tables.items.change([FileChange(file=one, columns=columns) for one in together]):
        raise RefusedError(f"{name} went on at this moment: say it again")


def is_by_hand(batch: Batch) -> bool:
    """Tell whether a person set a batch aside, so that nobody need be told of it."""
    return (batch.note or "").startswith(BY_HAND)


def _aside(state: CaptureState | FileState, reason: str) -> dict[str, Any]:
    return {"state": state, "next_attempt_at": None, "code": SET_ASIDE, "note": reason}


def _unsent_beside(tables: StorageTables, file: ItemFile) -> list[ItemFile]:
    """Return the manifest of a ZIP: without its ZIP it would be a promise nobody keeps."""
    if file.kind is not FileKind.BUNDLES:
        return []
    return [
        one
        for one in tables.items.files(file.item_id)
        if one.beside == file.id and one.state is FileState.PACKED
    ]
