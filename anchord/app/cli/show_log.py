"""Where a record's events stand in the log, as `anchord show` tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchord.core.event import event_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.app.wiring import App
    from anchord.core.model import StoredRecord


def describe(app: App, record: StoredRecord) -> list[dict[str, Any]]:
    """Return the place of each event, and the oldest checkpoint that covers it."""
    found = []
    for row in app.store.ledger.of_record(record.id):
        covering = app.store.log.covering(row.seq)
        found.append(
            {
                "event_id": event_id(row.event_id),
                "index": row.seq - 1,
                "checkpoint": None if covering is None else covering.size,
            }
        )
    return found


def lines(places: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line about the log, where there are events."""
    if not places:
        return
    covered = [one for one in places if one["checkpoint"] is not None]
    where = ", ".join(f"{one['index']:,}" for one in covered[:8])
    more = ", ..." if len(covered) > 8 else ""
    at = f" (entries {where}{more})" if covered else ""
    yield f"{'log':<14}{len(covered)} of {len(places)} events in signed checkpoints{at}"
