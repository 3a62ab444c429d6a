"""What ties a capture to its record: the page it is of, and the leaf it is signed for.

Held before a capture is believed, and once more before it is signed for: in between lie rows, and
days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.capture import expected_redirect, same_page
from anchord.core.event import CAPTURED
from anchord.engine.capture_claim import SOURCE
from anchord.errors import FatalError

if TYPE_CHECKING:
    from anchord.core.model import Series
    from anchord.core.storage import Capture
    from anchord.ports.store import Store


def of_its_page(store: Store, capture: Capture, url: str) -> bool:
    """Tell whether a memento of `url` is one of the capture's page."""
    if same_page(capture.url, url):
        return True
    name = capture.contains
    if capture.role == SOURCE:
        # The record's name as its address has it; what its page must hold may be more.
        record = store.lookup.records([capture.record_id]).get(capture.record_id)
        name = None if record is None else record.source_id
    return expected_redirect(capture.url, url, name)


def check_unsigned(store: Store, capture: Capture) -> None:
    """Hold a capture that is about to be signed for against the leaf its event will be about.

    Raises:
        FatalError: another record stands there, or its event is in the ledger and stands.
    """
    place = store.batches.index_of(store.batches.get(capture.batch_id), capture.record_id)
    if place != capture.place:
        raise _changed(capture, f"names leaf {capture.place}, its record is leaf {place}")
    if capture.series_id is not None:
        raise _changed(capture, f"is signed for already, by series {capture.series_id}")


def signed_series(store: Store, capture: Capture) -> Series | None:
    """Return the series of a capture's event, which is the one to withdraw; None: it has none.

    Raises:
        FatalError: the series is about something else.
    """
    if capture.series_id is None:
        return None
    series = store.ledger.get_series(capture.series_id)
    about = (series.event_type, series.batch_id, series.start, series.stop)
    if about != (CAPTURED, capture.batch_id, capture.place, capture.place + 1):
        raise _changed(capture, f"names series {series.id}, which is about something else")
    return series


def _changed(capture: Capture, what: str) -> FatalError:
    return FatalError(
        f"capture {capture.id} {what}: the store was changed, restore it from a backup"
    )
