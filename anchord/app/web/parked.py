"""What is parked: which work, why, and the command that brings it back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from anchord.app.cli.storage_words import code_words, lane_words
from anchord.app.report.contents import plain
from anchord.app.thresholds import counted
from anchord.core.canonical import record_id
from anchord.core.model import BatchState
from anchord.core.storage import CaptureState, FileState
from anchord.ports.outlet import PARKED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.adapters.store.measures import Measured
    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.core.model import Batch
    from anchord.core.storage import Capture, ItemFile, Lane

SHOWN = 100
"""Of each kind; more are only counted."""
_LONG_BATCH = 10_000_000
"""From here on `anchord retry` wants the word `batch:` before a number."""
_ARCHIVE = "anchord retry --archive"
_LONGEST_COMMAND = 500
_LONGEST_NAME = 200


class Parked(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work that waits for a person."""

    name: str
    """As `anchord status` shows it."""
    about: str
    """How much hangs on it; empty: nothing to say."""
    reason: str
    command: str
    """What to type, once the reason is mended."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Parked work of one kind."""

    name: str
    """`batch`, `capture`, `file`, `delivery` or `lane`: for ids."""
    title: str
    count: int
    rows: tuple[Parked, ...]
    """The oldest of them, at most `SHOWN`."""
    every: str
    """The command that brings all of them back; empty: there is none."""

    @property
    def more(self) -> int:
        """How many are not shown."""
        return max(self.count - len(self.rows), 0)


def parked_work(store: SqlReadingStore, measured: Measured) -> tuple[Kind, ...]:
    """Return all that is parked, by kind; kinds of which nothing is parked are left out.

    Raises:
        StoreBusyError: the store is locked.
        FatalError: it cannot be read.
    """
    kinds = (
        _lanes(measured.lanes), _batches(store, measured), _captures(store, measured),
        _files(store, measured), *_deliveries(store, measured),
    )  # fmt: skip
    return tuple(kind for kind in kinds if kind.count)


def count_parked(kinds: Sequence[Kind]) -> int:
    """Return how many pieces of work are parked."""
    return sum(kind.count for kind in kinds)


def _lanes(lanes: Sequence[Lane]) -> Kind:
    stopped = [lane for lane in lanes if lane.stopped]
    rows = tuple(
        Parked(
            name=plain(lane_words(lane.name)),
            about="nothing more is sent this way",
            reason=_why(lane.code, lane.alert or lane.note),
            command=_ARCHIVE,
        )
        for lane in stopped[:SHOWN]
    )
    title = "Stopped ways to the Internet Archive"
    return Kind(name="lane", title=title, count=len(stopped), rows=rows, every=_ARCHIVE)


def _batches(store: SqlReadingStore, measured: Measured) -> Kind:
    count = measured.batches.get(BatchState.PARKED.value, 0)
    found = store.batches.in_state(BatchState.PARKED, SHOWN) if count else []
    return Kind(
        name="batch", title="Batches", count=count, rows=tuple(map(_batch, found)),
        every="anchord retry --all",
    )  # fmt: skip


def _batch(batch: Batch) -> Parked:
    number = str(batch.id) if batch.id < _LONG_BATCH else f"batch:{batch.id}"
    kind = "an adopted proof" if batch.kind == "adopted" else "a Merkle tree of anchord's own"
    return Parked(
        name=f"batch {batch.id}",
        about=f"{counted(batch.size, 'record')}, {kind}",
        reason=plain(batch.note or "no reason was written down"),
        command=f"anchord retry {number}",
    )


def _captures(store: SqlReadingStore, measured: Measured) -> Kind:
    state, stored = CaptureState.PARKED, measured.stored
    count = stored.captures.get(state, 0) + stored.extras.get(state, 0)
    found = store.storage.captures.in_state((state,), SHOWN) if count else []
    rows = tuple(map(_capture, found))
    return Kind(name="capture", title="Captures", count=count, rows=rows, every=_ARCHIVE)


def _capture(capture: Capture) -> Parked:
    tried = f", tried {counted(capture.attempts, 'time')}" if capture.attempts else ""
    role = "the record's page" if capture.role == "source" else "another page of the record"
    return Parked(
        name=_short(capture.url),
        about=role + tried,
        reason=_why(capture.code, capture.note),
        command=_retry(capture.url),
    )


def _files(store: SqlReadingStore, measured: Measured) -> Kind:
    count, state = measured.parked_files, FileState.PARKED
    found = store.storage.items.in_state((state,), SHOWN) if count else []
    return Kind(
        name="file", title="Files of items", count=count, rows=tuple(map(_file, found)),
        every=_ARCHIVE,
    )  # fmt: skip


def _file(file: ItemFile) -> Parked:
    name = f"{file.identifier}/{file.name}"
    return Parked(
        name=_short(name),
        about=counted(file.members, "bundle") if file.members else "",
        reason=_why(file.code, file.note),
        command=_retry(name),
    )


def _deliveries(store: SqlReadingStore, measured: Measured) -> Iterator[Kind]:
    for outlet in measured.outlets:
        count = outlet.aside.get(PARKED, 0)
        found = store.outlets.rows(outlet.name, PARKED, SHOWN) if count else []
        records = store.lookup.records([one.record_id for one in found])
        command = f"anchord retry --outlet {shlex.quote(plain(outlet.name))}"
        yield Kind(
            name="delivery",
            title=f"Events that the outlet {plain(outlet.name)} refused",
            count=count,
            rows=tuple(
                Parked(
                    name=f"event {one.seq}",
                    about=f"of {record_id(records[one.record_id].digest)}",
                    reason=plain(one.last_error or "no reason was written down"),
                    command=command,
                )
                for one in found
                if one.record_id in records
            ),
            every=command,
        )


def _why(code: str | None, note: str | None) -> str:
    return plain(code_words(code, note)) or "no reason was written down"


def _short(name: str) -> str:
    whole = plain(name)
    return whole if len(whole) <= _LONGEST_NAME else whole[: _LONGEST_NAME - 1] + "…"


def _retry(name: str) -> str:
    """Return the command for one piece; for one whose name no shell should see, that for all."""
    command = f"anchord retry {shlex.quote(name)}"
    whole = name.isprintable() and not name.startswith("-")
    return command if whole and len(command) <= _LONGEST_COMMAND else _ARCHIVE
