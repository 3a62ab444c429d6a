"""What ties a capture to its record: the page it is of, and the leaf it is signed for.

Held before a capture is believed, and once more before it is signed for: in between lie rows, and
days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.capture import expected_redirect, same_page
from anchord.engine.capture_claim import SOURCE
from anchord.errors import FatalError

if TYPE_CHECKING:
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


def check_place(store: Store, capture: Capture) -> None:
    """Hold the leaf a capture names against the record it is of: an event is about that leaf.

    Raises:
        FatalError: another record stands there.
    """
    place = store.batches.index_of(store.batches.get(capture.batch_id), capture.record_id)
    if place != capture.place:
        raise FatalError(
            f"capture {capture.id} names leaf {capture.place} of batch {capture.batch_id}, its "
            f"record is leaf {place}: the store was changed, restore it from a backup"
        )
