"""Captures and items put into a workplace's store, signed for as a pass signs."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec.structs import replace

from anchord.core.storage import (
    Capture,
    CaptureChange,
    CaptureState,
    FileChange,
    FileKind,
    FileState,
    ItemFile,
    Lane,
    NewCapture,
    NewFile,
    Range,
)
from anchord.engine import ledger
from anchord.engine.parts import Parts
from support.parties import make_parts
from support.workplace import Workplace

ITEM = "example-records-2024-07-26"
ZIP = "bundles-000000001-000000002.zip"
MEMENTO: dict[str, Any] = {
    "timestamp": "20240726120000",
    "final_url": "https://arxiv.org/abs/2507.00001v1",
    "http_status": 200,
    "sha256": hashlib.sha256(b"the page").digest(),
    "size": 8,
    "x_archive_src": "spn2-20240726115900-wwwb-spn22.us.archive.org-8002.warc.gz",
}


def parts_of(place: Workplace, app: Any) -> Parts:
    """Return the parts of a pass over an opened application."""
    return make_parts(
        place.folder, calendars=place.calendars, headers=[place.chain], signer=app.signer,
        store=app.store,
    )  # fmt: skip


def claim(place: Workplace, number: int = 1, role: str = "source", version: int = 1) -> Capture:
    """Let the page of a record in the first batch wait to be captured."""
    url = f"https://arxiv.org/abs/2507.{number:05d}v{version}"
    with place.app() as app:
        tables = app.store.storage
        new = NewCapture(record_id=number, batch_id=1, place=number - 1, role=role, url=url,
                         host="arxiv.org", contains=f"2507.{number:05d}")  # fmt: skip
        tables.captures.claim(1, number, [new], place.clock.now())
        found = tables.captures.of_record(number)
    return next(one for one in found if one.role == role)


def change(place: Workplace, capture: Capture, **columns: Any) -> Capture:
    """Change a capture without any event."""
    with place.app() as app:
        tables = app.store.storage
        assert tables.captures.change([CaptureChange(capture=capture, columns=columns)]) == 1
        return tables.captures.get(capture.id)


def store_capture(place: Workplace, number: int = 1, **columns: Any) -> Capture:
    """Let the page of a record be replayed, and sign for it."""
    now = place.clock.now()
    capture = claim(place, number)
    url = {"final_url": capture.url}
    values = {"state": CaptureState.STORED, **MEMENTO, **url, "stored_at": now,
              "next_attempt_at": now + 86_400, **columns}  # fmt: skip
    with place.app() as app:
        parts = parts_of(place, app)
        whole = replace(capture, **values)
        intent = ledger.capture_series(parts, whole, now)
        made = CaptureChange(capture=capture, columns=values, intents=(intent,))
        assert app.store.storage.captures.change([made]) == 1
        ledger.append_all(parts, now)
        return app.store.storage.captures.get(capture.id)


def pack(place: Workplace, members: int = 2) -> ItemFile:
    """Let the members of the first batch be packed into a ZIP that was not sent."""
    raw = b"a zip"
    new = NewFile(
        name=ZIP, kind=FileKind.BUNDLES, size=len(raw),
        md5=hashlib.md5(raw, usedforsecurity=False).digest(),
        sha1=hashlib.sha1(raw, usedforsecurity=False).digest(),
        sha256=hashlib.sha256(raw).digest(), members=members, ranges=(Range(1, 0, members, 0),),
        member_sha256s=b"".join(hashlib.sha256(bytes([n])).digest() for n in range(members)),
    )  # fmt: skip
    with place.app() as app:
        items = app.store.storage.items
        now = place.clock.now()
        item = items.add_item(ITEM, now // 86_400, 1, now)
        return items.add_files(item, [new], now)[0]


def change_file(place: Workplace, file: ItemFile, **columns: Any) -> ItemFile:
    """Change a file without any event."""
    with place.app() as app:
        items = app.store.storage.items
        assert items.change([FileChange(file=file, columns=columns)]) == 1
        return items.file(file.id)


def store_item(place: Workplace, members: int = 2) -> ItemFile:
    """Let a ZIP with the members of the first batch be seen in its item, and sign for it."""
    now = place.clock.now()
    file = pack(place, members)
    columns = {"state": FileState.STORED, "sent_at": now, "stored_at": now}
    with place.app() as app:
        parts, items = parts_of(place, app), app.store.storage.items
        intents = ledger.item_series(parts, file, items.ranges(file.id), now)
        assert items.change([FileChange(file=file, columns=columns, intents=intents)]) == 1
        ledger.append_all(parts, now)
        return items.file(file.id)


def put_lane(place: Workplace, lane: Lane) -> None:
    """Keep a lane."""
    with place.app() as app:
        app.store.storage.lanes.put(lane)


def configure(place: Workplace, text: str) -> None:
    """Add tables to the configuration."""
    place.config.write_text(place.config.read_text("utf-8") + text, "utf-8")
