"""What follows when a file of an item is given up: events withdrawn, members packed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchord.core.event import ITEM_STORED, WITHDRAWN
from anchord.core.storage import FileChange, FileKind, FileState, Intent
from anchord.engine import ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.core.model import Series
    from anchord.core.storage import ItemFile
    from anchord.engine.item_lane import Desk

LOST_LOOKS = 3
"""More looks for a stored file that does not show, before it is given up."""
LOST_WAIT_S = 8 * 3_600
"""Between two of them, so that they take a day: listings come and go while an item is moved."""


def gone(desk: Desk, file: ItemFile, why: str, now: int) -> list[FileChange]:
    """Return the changes that give a file up.

    A ZIP's members are to be packed again under a new name, because the old one was signed for;
    what was signed is withdrawn, and what was not is not signed any more. A manifest has nothing
    signed about it: while the spool has it, it is sent again.
    """
    columns: dict[str, Any] = {"state": FileState.GONE, "next_attempt_at": None, "checks": 0}
    columns |= {"confirmations": 0, "code": "gone", "note": why}
    if file.kind is not FileKind.BUNDLES:
        if file.state is FileState.STORED and desk.spool.path(file.name) is not None:
            columns |= {"state": FileState.PACKED, "next_attempt_at": now}
        return [FileChange(file=file, columns=columns)]
    beside = [FileChange(file=one, columns=columns) for one in desk.unsent_beside(file)]
    series = list(_live_series(desk, file))
    intents = []
    for found in series:
        new = ledger.withdrawn_series(desk.parts.parts, found, why, now)
        if new is not None:
            intents.append(Intent(batch_id=found.batch_id, series=new))
    own = FileChange(
        file=file,
        columns={**columns, "next_attempt_at": now},
        intents=tuple(intents),
        cut_series=tuple(found.id for found in series if found.next < found.stop),
    )
    return [own, *beside]


def _live_series(desk: Desk, file: ItemFile) -> Iterator[Series]:
    """Yield the series about a file that nothing has withdrawn."""
    store = desk.parts.parts.store
    for batch_id in sorted({part.batch_id for part in desk.table.ranges(file.id)}):
        found = store.ledger.series_of(batch_id, (ITEM_STORED, WITHDRAWN))
        withdrawn = {series.withdraws for series in found}
        for series in found:
            if series.file_id == file.id and series.id not in withdrawn:
                yield series
