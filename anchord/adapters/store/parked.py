"""What is set aside: rows of parked batches are not due, whatever moment stands in them.

The moments stay in the rows, so bringing a batch back needs nobody to remember them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.schema import batch_pendings, batches, pendings
from anchord.core.model import BatchState

if TYPE_CHECKING:
    from collections.abc import Collection

_PARKED = sa.select(batches.c.id).where(batches.c.state == BatchState.PARKED.value)


def of_live_batch(batch_id: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a row's batch is not parked; the parked ones are read once."""
    return batch_id.not_in(_PARKED)


def is_asked_for(known_uris: Collection[str] | None = None) -> sa.ColumnElement[bool]:
    """Return the condition that a batch that is not parked waits for a commitment.

    Args:
        known_uris: of these calendars only; None: of all.
    """
    live = (
        sa.select(batch_pendings.c.batch_id)
        .where(
            batch_pendings.c.pending_id == pendings.c.id, of_live_batch(batch_pendings.c.batch_id)
        )
        .correlate(pendings)
        .exists()
    )
    if known_uris is None:
        return live
    # An expression, so that no index of addresses is chosen: all that was ever asked of a calendar
    # stands under its address, and only what is still asked for has a moment.
    return sa.and_(pendings.c.uri.concat("").in_(list(known_uris)), live)
