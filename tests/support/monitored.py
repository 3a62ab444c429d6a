"""A store in which everything that monitoring tells of is there, and its numbers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from anchord.adapters.store import schema
from anchord.adapters.store.sql import SqlStore
from anchord.app.config import Loaded, load
from anchord.core.model import BatchChange, BatchState
from anchord.core.storage import CaptureState, FileState, Lane
from anchord.engine.archiving import ArchiveReport
from anchord.engine.capture_report import CaptureReport
from anchord.engine.itemising import ItemReport
from anchord.engine.run import PassReport
from support.parties import FakeChain
from support.passes import bare
from support.stored_rows import NOW, anchor, bundles, fill, new_capture
from support.stores import made

URL_A, URL_B = "https://a.pool.example.org", "https://b.pool.example.org"
AUTHORITY = "https://tsa.example.org/"
CONFIG = f"""
[store]
url = "STORE"
[headers]
network = "regtest"
[[anchoring.calendars]]
url = "{URL_A}"
uris = ["https://alice.calendar.example.org"]
[[anchoring.calendars]]
url = "{URL_B}"
uris = ["https://bob.calendar.example.org"]
[[anchoring.authorities]]
url = "{AUTHORITY}"
certificates = "tsa.pem"
[archive.items]
prefix = "example"
[[sources]]
name = "registry"
kind = "folder"
path = "in"
[[outlets]]
name = "folder"
kind = "folder"
path = "out"
"""
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Name and labels -> value."""
REPORT = PassReport(
    sealed=4, submitted=3, upgraded=2, anchored=1, signed=8, failed_calls=5,
    problems={"node": "warming up"},
    stored=ArchiveReport(
        captures=CaptureReport(submitted=1, refused={"http-429": 2}, lost=1),
        items=ItemReport(uploaded=2, refused={"SlowDown": 1}),
    ),
)  # fmt: skip
"""What a pass did."""


def samples(text: bytes) -> Samples:
    """Read an exposition with the client library's own parser; nothing may be there twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode("utf-8")):
        for one in family.samples:
            key = one.name, frozenset(one.labels.items())
            assert key not in found, key
            found[key] = one.value
    return found


def value(found: Samples, name: str, **labels: str) -> float | None:
    """Return one sample's value; None: it is absent."""
    return found.get((f"anchord_{name}", frozenset(labels.items())))


def configured(folder: Path, text: str = CONFIG) -> Loaded:
    """Return a configuration over the folder's store, which is made when it is not there."""
    file = folder / "anchord.toml"
    file.write_text(text.replace("STORE", made(folder)), "utf-8")
    return load(str(file))


def filled(folder: Path) -> Loaded:
    """Fill a store: 4 records wait, 3 are anchored, 2 submitted, 5 parked; and so on."""
    loaded = configured(folder)
    FakeChain().write(folder / "headers.bin")
    store = SqlStore(made(folder))
    try:
        fill(store, 3, 2, 5)
        anchor(store, 1)
        _move(store, 2, BatchState.SUBMITTED)
        _move(store, 3, BatchState.PARKED)
        store.add(bare(4, "waiting"), NOW + 50)
        _store(store)
        with store._engine.begin() as connection:
            for table, row in _rows():
                connection.execute(sa.insert(table).values(row))
    finally:
        store.close()
    return loaded


def write(loaded: Loaded, folder: Path, count: int = 1, name: str = "more") -> None:
    """Let somebody else add records."""
    del loaded
    store = SqlStore(made(folder))
    store.add(bare(count, name), NOW + 60)
    store.close()


def _move(store: SqlStore, batch_id: int, state: BatchState) -> None:
    store.batches.change([BatchChange(batch_id=batch_id, columns={"state": state.value})])


def _store(store: SqlStore) -> None:
    """Two captures and an extra one, a ZIP in an item, ways to the archive."""
    captures = [new_capture(1), new_capture(2), new_capture(2, role="extra-1")]
    store.storage.captures.claim(1, 3, captures, NOW + 7)
    item = store.storage.items.add_item("example-1970-01-12", 11, 1, NOW)
    store.storage.items.add_files(item, [bundles("a.zip", (1, 0, 2))], NOW)
    store.storage.lanes.put(
        Lane(name="spn", stopped=True, alert="mend it", strikes=3),
        Lane(name="index", until=1 << 40, strikes=1),
        Lane(name="host:papers.example.org"),
        Lane(name="host:other.example.org", until=1 << 40),
        Lane(name="host:third.example.org", stopped=True),
        Lane(name="claims", grants=(1,)),
    )
    table = schema.captures
    with store._engine.begin() as connection:
        last = sa.update(table).where(table.c.record_id == 1)
        connection.execute(last.values(state=CaptureState.STORED.value))
        connection.execute(sa.update(schema.files).values(state=FileState.PARKED.value))


def _rows() -> list[tuple[sa.Table, dict[str, Any]]]:
    failed = {"last_error_at": NOW + 8, "last_error": "down", "failures": 3}
    source = {"name": "registry", "kind": "sql", "next_at": NOW + 90, "looked_at": NOW}
    outlet = {"name": "folder", "kind": "folder", "seq": 1, "last_ok_at": NOW + 2}
    return [
        (schema.calendars, {"url": URL_A, "last_ok_at": NOW + 9, **failed}),
        (schema.calendars, {"url": "https://gone.example.org", **failed}),
        (schema.tokens, _token(1, answered_at=NOW + 3, raw=b"token")),
        (schema.tokens, _token(2, next_attempt_at=NOW + 4)),
        (schema.sources, {**source, "last_ok_at": NOW + 1, "failures": 2, "taken": 7,
                          "refused": 1}),
        (schema.sources, {**source, "name": "gone", "failures": 9, "taken": 0, "refused": 0}),
        (schema.outlets, {**outlet, "failures": 0, "delivered": 1}),
        (schema.outlets, {**outlet, "name": "gone", "failures": 9, "delivered": 0}),
        (schema.outlet_rows, _aside(2, "parked")),
        (schema.outlet_rows, _aside(3, "waiting")),
        (schema.series, _series()),
        *((schema.events, _event(seq)) for seq in range(1, 4)),
        (schema.checkpoints, {"size": 2, "root": bytes(32), "note": b"", "key_id": "k",
                              "created_at": NOW + 6}),
    ]  # fmt: skip


def _token(batch_id: int, **values: Any) -> dict[str, Any]:
    return {"batch_id": batch_id, "url": AUTHORITY, "attempts": 1, **values}


def _aside(seq: int, state: str) -> dict[str, Any]:
    return {"name": "folder", "seq": seq, "record_id": 1, "state": state, "attempts": 1}


def _series() -> dict[str, Any]:
    return {
        "batch_id": 1, "event_type": "timestamp_anchored", "created_at": NOW + 5, "payload": b"{}",
        "signer": b"{}", "key_id": "k", "start": 0, "stop": 5, "next": 3,
    }  # fmt: skip


def _event(seq: int) -> dict[str, Any]:
    return {
        "seq": seq, "record_id": seq, "series_id": 1, "numbered": 0,
        "event_id": seq.to_bytes(32), "signature": bytes(64),
        "chain": bytes(32),
    }  # fmt: skip
