"""Records that are anchored, made complete: a capture seen three times, and a place in an item.

A million captures take an account of the archive a year. Here their rows are written as a pass
leaves them after the last look, and their events are rendered, signed and appended in bulk, so the
store is what a year would have made of it. What stands in items is signed by `anchord run`.
"""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core import event
from anchord.core.item_name import DAY_S
from anchord.core.model import Series, SignedRow
from anchord.core.storage import (
    Capture,
    CaptureState,
    FileChange,
    FileKind,
    FileState,
    NewFile,
    Range,
)
from anchord.engine import ledger
from anchord.engine.rendering import Renderer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from anchord.app.wiring import App
    from anchord.core.model import Batch, Member
    from anchord.core.storage import Item
    from anchord.engine.parts import Parts

_AT_ONCE = 8 * 1024
_IN_A_ZIP = 1_000
_FILES_IN_AN_ITEM = 400
_HOST = "example.org"


def complete(app: App, store: Path) -> int:
    """Write what is known of stored records; return how many events are still to be signed.

    Args:
        app: with a store in which nothing is due.
        store: its SQLite file.
    """
    parts, left, captured = app.parts(), 0, 0
    for number in app.store.lookup.sealed():
        batch, now = app.store.batches.get(number), app.clock.now()
        for start in range(0, batch.size, _AT_ONCE):
            stop = min(start + _AT_ONCE, batch.size)
            tiles = app.store.batches.tiles(batch, start, stop)
            members = [member for tile in tiles for member in tile.members]
            found = [_capture(batch, member, captured + 1 + n, now) for n, member in
                     enumerate(members)]  # fmt: skip
            series = _insert(store, parts, batch, found, stop)
            _sign(parts, batch, series, members)
            captured += len(found)
        left += _pack(parts, batch, now)
    return left


def _capture(batch: Batch, member: Member, number: int, now: int) -> Capture:
    """Return a capture whose last look was made."""
    url = f"https://{_HOST}/{member.record_id}"
    return Capture(
        id=number, version=7, record_id=member.record_id, batch_id=batch.id, place=member.index,
        role="source", url=url, host=_HOST, contains=None, state=CaptureState.STORED, attempts=0,
        next_attempt_at=None, submitted_at=now, since_at=now, timestamp="20240801120000",
        final_url=url, http_status=200, reported_at=now,
        sha256=hashlib.sha256(url.encode()).digest(), size=4_096,
        x_archive_src="spn2-20240801120000-wwwb-spn22.us.archive.org-8002.warc.gz",
        stored_at=now, confirmed_at=now, confirmations=2, created_at=now,
    )  # fmt: skip


def _insert(
    store: Path, parts: Parts, batch: Batch, captures: Sequence[Capture], stop: int
) -> list[Series]:
    """Write captures with the series of their events, as they are when these are signed."""
    with sqlite3.connect(store, timeout=60) as file:
        last = file.execute("SELECT max(id) FROM series").fetchone()[0]
        series = [_series(last + 1 + n, parts, capture) for n, capture in enumerate(captures)]
        rows = [
            {**msgspec.to_builtins(capture, builtin_types=(bytes,)), "series_id": one.id}
            for capture, one in zip(captures, series, strict=True)
        ]
        _put(file, "captures", rows)
        _put(file, "series", [msgspec.structs.asdict(one) for one in series])
        file.execute("UPDATE batches SET claimed = ? WHERE id = ?", (stop, batch.id))
    file.close()
    return series


def _series(number: int, parts: Parts, capture: Capture) -> Series:
    new = ledger.capture_series(parts, capture, capture.created_at).series
    return Series(
        id=number, batch_id=capture.batch_id, next=capture.place + 1, **msgspec.structs.asdict(new)
    )


def _put(file: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(rows[0])
    places = ", ".join(f":{name}" for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    file.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", rows)  # noqa: S608


def _sign(parts: Parts, batch: Batch, series: Sequence[Series], members: Sequence[Member]) -> None:
    """Sign and append the one event of each series, in one transaction."""
    seq, chain = parts.store.ledger.head()
    rows = []
    for one, member in zip(series, members, strict=True):
        numbered = member.number is not None
        (body,) = Renderer(parts.store, batch, one).bare([member], [numbered])
        digest = event.event_digest(body)
        signature = parts.signer.sign(digest)
        chain, seq = event.chain_next(chain, digest, signature), seq + 1
        rows.append(SignedRow(seq, member.record_id, one.id, numbered, digest, signature, chain))
    with parts.store.exclusive():
        parts.store.ledger.append([], rows)  # the series were written as done


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
