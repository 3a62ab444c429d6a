"""From what a person typed to the work it names, for `park` and `retry`.

A number is a batch, as `anchord status` shows it; an address is the capture of that page;
`ITEM/NAME` is a file of an item; all else names a record, and with it what is under way for it
alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from anchord.app.cli.references import one_record
from anchord.core.model import Batch, BatchState
from anchord.core.storage import Capture, CaptureState, ItemFile
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from anchord.app.wiring import App
    from anchord.core.model import StoredRecord

_BATCH = re.compile(r"(?:batch:)?([0-9]{1,7})")
"""Eight digits and more may begin a Pith Number; a batch of that number has the word before it."""
_LONG_BATCH = re.compile(r"batch:([0-9]{1,15})")
_ITEM_STATES = ("open", "closed", "dark", "foreign")


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is under way for one name."""

    batches: tuple[Batch, ...] = ()
    captures: tuple[Capture, ...] = ()
    files: tuple[ItemFile, ...] = ()
    shared: Batch | None = None
    """The batch a record stands in together with others: nobody sets that aside for one of them."""


def batch_number(text: str) -> int | None:
    """Return the number when `text` names a batch."""
    found = _BATCH.fullmatch(text.strip()) or _LONG_BATCH.fullmatch(text.strip())
    return None if found is None else int(found[1])


def find_work(app: App, text: str, *, parked: bool) -> Work:
    """Return what `text` names; of several things, only those that are open, or parked.

    Raises:
        RefusedError: there is nothing of that name, or nothing of it is open, or parked.
    """
    number = batch_number(text)
    if number is not None:
        return Work(batches=(_batch(app, number),))
    if text.startswith(("https://", "http://")):
        captures = app.store.storage.captures.of_url(text)
        if captures:
            return _some(Work(captures=tuple(captures)), parked=parked)
    elif "/" in text:
        file = _file(app, text)
        if file is not None:
            return Work(files=(file,))
    return _some(_of_record(app, one_record(app.store, text)), parked=parked)


def _batch(app: App, number: int) -> Batch:
    try:
        return app.store.batches.get(number)
    except FatalError:  # for rows that name a batch; here a person did
        raise RefusedError(f"there is no batch {number}: `anchord status` shows them") from None


def _file(app: App, text: str) -> ItemFile | None:
    identifier, _, name = text.partition("/")
    tables = app.store.storage.items
    for item in tables.items(_ITEM_STATES):
        if item.identifier == identifier:
            return next((one for one in tables.files(item.id) if one.name == name), None)
    return None


def _of_record(app: App, record: StoredRecord) -> Work:
    captures = tuple(app.store.storage.captures.of_record(record.id))
    if record.batch_id is None:
        return Work(captures=captures)
    batch = app.store.batches.get(record.batch_id)
    if batch.driving > 1:
        return Work(captures=captures, shared=batch)
    return Work(batches=(batch,), captures=captures)


def _some(found: Work, *, parked: bool) -> Work:
    """Return what is open of a work, or what is parked; one thing alone is returned as it is."""
    if len(found.captures) + len(found.batches) == 1 and found.shared is None:
        return found
    over = (BatchState.ANCHORED, BatchState.PARKED), (CaptureState.STORED, CaptureState.PARKED)
    some = msgspec.structs.replace(
        found,
        batches=tuple(
            one
            for one in found.batches
            if (one.state is BatchState.PARKED if parked else one.state not in over[0])
        ),
        captures=tuple(
            one
            for one in found.captures
            if (one.state is CaptureState.PARKED if parked else one.state not in over[1])
        ),
    )
    if not (some.batches or some.captures):
        raise RefusedError("nothing of it is parked" if parked else _nothing_open(found))
    return some


def _nothing_open(found: Work) -> str:
    batch = found.shared
    if batch is None or batch.state in (BatchState.ANCHORED, BatchState.PARKED):
        return "nothing is under way for it: it waits to be sealed, or is done, or parked"
    return (
        f"it stands in batch {batch.id} with {batch.driving - 1:,} other record(s), and nothing "
        f"is under way for it alone; `anchord park {batch.id}` sets all of them aside"
    )
