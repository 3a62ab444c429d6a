"""Records that are anchored, made complete: a capture seen three times, and a place in an item.

A million captures take an account of the archive a year; here the rows are written as a pass leaves
them after the last look, with the intents of their events, through the store's own tables. The
events are signed and appended by `anchord run`, as ever.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.item_name import DAY_S
from anchord.core.storage import (
    CaptureChange,
    CaptureState,
    FileChange,
    FileKind,
    FileState,
    NewCapture,
    NewFile,
    Range,
)
from anchord.engine import ledger

if TYPE_CHECKING:
    from anchord.app.wiring import App
    from anchord.core.model import Batch
    from anchord.core.storage import Capture, Item
    from anchord.engine.parts import Parts

_AT_ONCE = 5_000
_IN_A_ZIP = 1_000
_FILES_IN_AN_ITEM = 400
_HOST = "example.org"


def complete(app: App) -> int:
    """Write what is known of stored records; return how many events are to be signed."""
    parts, events = app.parts(), 0
    for number in app.store.lookup.sealed():
        batch = app.store.batches.get(number)
        events += _capture(parts, batch, app.clock.now())
        events += _pack(parts, batch, app.clock.now())
    return events


def _capture(parts: Parts, batch: Batch, now: int) -> int:
    table = parts.store.storage.captures
    for start in range(0, batch.size, _AT_ONCE):
        stop = min(start + _AT_ONCE, batch.size)
        new = [
            NewCapture(
                record_id=member.record_id, batch_id=batch.id, place=member.index, role="source",
                url=f"https://{_HOST}/{member.record_id}", host=_HOST,
            )
            for tile in parts.store.batches.tiles(batch, start, stop)
            for member in tile.members
        ]  # fmt: skip
        table.claim(batch.id, stop, new, now)
        waiting = table.in_state((CaptureState.WAITING,), _AT_ONCE)
        table.change([_captured(parts, one, now) for one in waiting])
    return batch.size


def _captured(parts: Parts, capture: Capture, now: int) -> CaptureChange:
    """Return the change to a capture whose last look was made."""
    columns: dict[str, Any] = {
        "state": CaptureState.STORED,
        "next_attempt_at": None,
        "submitted_at": now,
        "since_at": now,
        "timestamp": "20240801120000",
        "final_url": capture.url,
        "http_status": 200,
        "reported_at": now,
        "sha256": hashlib.sha256(capture.url.encode()).digest(),
        "size": 4_096,
        "x_archive_src": "spn2-20240801120000-wwwb-spn22.us.archive.org-8002.warc.gz",
        "stored_at": now,
        "confirmed_at": now,
        "confirmations": 2,
    }
    whole = msgspec.structs.replace(capture, **columns)
    intent = ledger.capture_series(parts, whole, now)
    return CaptureChange(capture=capture, columns=columns, intents=(intent,))


def _pack(parts: Parts, batch: Batch, now: int) -> int:
    table, item = parts.store.storage.items, None
    for number, start in enumerate(range(0, batch.size, _IN_A_ZIP)):
        if item is None or number % _FILES_IN_AN_ITEM == 0:
            item = _closed_item(parts, batch.id, number // _FILES_IN_AN_ITEM, now)
        stop = min(start + _IN_A_ZIP, batch.size)
        (file,) = table.add_files(item, [_zip(batch, start, stop)], now)
        columns = {
            "state": FileState.STORED, "next_attempt_at": None, "sent_at": now, "stored_at": now,
            "confirmed_at": now, "confirmations": 1,
        }  # fmt: skip
        intents = ledger.item_series(parts, file, table.ranges(file.id), now)
        table.change([FileChange(file=file, columns=columns, intents=intents)])
    return batch.size


def _closed_item(parts: Parts, batch_id: int, part: int, now: int) -> Item:
    """Return an item of a day that is over."""
    table, day = parts.store.storage.items, now // DAY_S - 10 - batch_id
    item = table.add_item(f"benchmark-records-{day}-{part}", day, part + 1, now)
    table.change_item(item, state="closed", seen_at=now)
    return item


def _zip(batch: Batch, start: int, stop: int) -> NewFile:
    raw = f"{batch.id} {start}".encode()
    return NewFile(
        name=f"bundles-{batch.id:09d}-{start:09d}.zip",
        kind=FileKind.BUNDLES,
        size=1 << 22,
        md5=hashlib.md5(raw, usedforsecurity=False).digest(),
        sha1=hashlib.sha1(raw, usedforsecurity=False).digest(),
        sha256=hashlib.sha256(raw).digest(),
        members=stop - start,
        ranges=(Range(batch.id, start, stop, 0),),
        member_sha256s=b"".join(
            hashlib.sha256(b"%d %d" % (batch.id, place)).digest() for place in range(start, stop)
        ),
    )
