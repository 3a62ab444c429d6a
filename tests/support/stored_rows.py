"""Rows of the facet `stored` to put into stores, and a look at how a store finds them."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from anchord.adapters.store.sql import SqlStore
from anchord.core.model import BatchChange, BatchState, NewSeries
from anchord.core.storage import FileKind, Intent, NewCapture, NewFile, Range
from support.passes import bare
from support.stores import made

NOW = 1_000_000


def url_of(path: Path) -> str:
    """Return the address of a SQLite store."""
    return f"sqlite:///{path}"


class Stores:
    """Hands out fresh stores quickly: one is made, the others are copies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def fresh(self, *sizes: int) -> Iterator[SqlStore]:
        """Give a store with batches 1, 2, ... of some sizes for the length of the block."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            store = SqlStore(made(Path(folder)))
            try:
                fill(store, *sizes)
                yield store
            finally:
                store.close()


def fill(store: SqlStore, *sizes: int) -> None:
    """Seal one batch of each size; records are numbered 1, 2, ... through all of them."""
    for number, size in enumerate(sizes):
        store.add(bare(size, f"batch {number}"), NOW)
        store.batches.seal(NOW, [], lambda found: (bytes(16 * len(found)), b"".join(found)))


def anchor(store: SqlStore, batch_id: int, at: int = NOW) -> None:
    """Let a batch be anchored."""
    columns = {"state": BatchState.ANCHORED.value, "anchored_at": at}
    store.batches.change([BatchChange(batch_id=batch_id, columns=columns)])


def new_capture(record_id: int, **changes: Any) -> NewCapture:
    """Return a URL of a record that is the only one of its batch."""
    values: dict[str, Any] = {
        "record_id": record_id, "batch_id": 1, "place": record_id - 1, "role": "source",
        "url": f"https://papers.example.org/{record_id}", "host": "papers.example.org",
    }  # fmt: skip
    return NewCapture(**{**values, **changes})


def new_series(event_type: str = "capture_stored", **changes: Any) -> NewSeries:
    """Return a series of one member."""
    values: dict[str, Any] = {
        "event_type": event_type, "created_at": NOW, "payload": b"{}", "proof": None,
        "signer": b"{}", "key_id": "k", "stop": 1,
    }  # fmt: skip
    return NewSeries(**{**values, **changes})


def intent(event_type: str = "capture_stored", batch_id: int = 1, **changes: Any) -> Intent:
    """Return the intent of one event."""
    return Intent(batch_id=batch_id, series=new_series(event_type, **changes))


def bundles(name: str, *stretches: tuple[int, int, int]) -> NewFile:
    """Return a ZIP of bundles that holds stretches (batch, start, stop)."""
    ranges: list[Range] = []
    members = 0
    for batch_id, start, stop in stretches:
        ranges.append(Range(batch_id, start, stop, members))
        members += stop - start
    hashes = b"".join(
        hashlib.sha256(f"{part.batch_id} {place}".encode()).digest()
        for part in ranges
        for place in range(part.start, part.stop)
    )
    return new_file(
        name, FileKind.BUNDLES, members=members, ranges=tuple(ranges), member_sha256s=hashes
    )


def new_file(name: str, kind: FileKind = FileKind.MANIFEST, **changes: Any) -> NewFile:
    """Return a file, without members unless they are given."""
    values: dict[str, Any] = {
        "size": len(name), "md5": hashlib.md5(name.encode(), usedforsecurity=False).digest(),
        "sha1": hashlib.sha1(name.encode(), usedforsecurity=False).digest(),
        "sha256": hashlib.sha256(name.encode()).digest(),
    }  # fmt: skip
    return NewFile(name=name, kind=kind, **{**values, **changes})


def plans(store: SqlStore, ask: Callable[[], object]) -> list[str]:
    """Return how SQLite finds what a question asks for, a line a step."""
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, text: str, values: Any, _x: Any, _many: bool) -> None:
        if text.startswith("SELECT"):
            asked.append((text, values))

    engine = store._engine
    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        ask()
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)
    with engine.connect() as connection:
        return [
            str(row[3])
            for text, values in asked
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
        ]


def rows(store: SqlStore, table: sa.Table) -> list[tuple[Any, ...]]:
    """Return a whole table."""
    with store._engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.c))]
