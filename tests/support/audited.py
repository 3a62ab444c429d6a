"""Stores to be audited: one of everything, small, and easily damaged."""

from __future__ import annotations

import functools
import hashlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from anchord.app.audit_wiring import reading_store
from anchord.core.audit import AuditOptions, AuditReport
from anchord.core.bundle_text import render_bundle
from anchord.core.finding import Severity
from anchord.core.model import Document
from anchord.core.moment import utc
from anchord.engine.audit.store import audit_store
from anchord.engine.header_view import HeaderView
from support.evidence import mined
from support.parties import START, FakeChain
from support.passes import adoption
from support.stored_place import store_capture, store_item
from support.workplace import Workplace, bare, sample

CHAIN = "bitcoin-regtest"


def whole_place(folder: Path) -> Workplace:
    """Return a place with two batches, a carried checkpoint, a capture, an item, an adopted proof,
    a foreign document, and a record that waits."""
    place = Workplace(folder)
    place.anchor(sample(1), sample(2), bare(hashlib.sha256(b"three").digest(), "three.pdf"))
    store_capture(place)
    store_item(place)
    own = hashlib.sha256(b"brought").digest()
    place.chain.grow(1)
    brought = mined(own, place.chain)
    place.write_headers()
    foreign = sample(7)
    raw = render_bundle(foreign, utc(START), (), (), ())
    place.add(adoption(brought, own), Document(record=foreign, raw=raw))
    place.step()
    place.mine()
    place.step(1000)
    place.step(1000)
    return place


def reorganised_place(folder: Path) -> Workplace:
    """Return a place whose only batch was anchored, undone and anchored once more."""
    place = Workplace(folder)
    place.anchor(sample(1), sample(2))
    place.chain.reorg(6)
    place.step(100_000)
    place.mine()
    for _ in range(3):
        place.step(100_000)
    return place


def database(place: Workplace) -> Path:
    """Return the file of a place's store."""
    return place.folder / "anchord.db"


def audit(
    place: Workplace,
    path: Path | None = None,
    *,
    chain: FakeChain | None = None,
    keys: Any = None,
    given: Any = (),
    **options: Any,
) -> AuditReport:
    """Audit a place's store, or a copy of it."""
    url = f"sqlite:///{path or database(place)}"
    with place.app() as app:
        keyring = app.keyring if keys is None else keys
    headers = HeaderView([chain or place.chain], CHAIN, 6)
    asked = AuditOptions(now=place.clock.now(), **options)
    outcome, facts = audit_store(
        functools.partial(reading_store, url), keyring, given, headers, asked, _quiet
    )
    return outcome.report(**msgspec.structs.asdict(facts))


def _quiet(_stage: str, _done: int, _total: int) -> None:
    pass


def broken(report: AuditReport) -> dict[str, list[str]]:
    """Return what is broken: code -> subjects."""
    found: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.severity is Severity.BROKEN:
            found.setdefault(finding.code, []).append(f"{finding.subject}: {finding.what}")
    return found


def settled(path: Path) -> None:
    """Bring all of a store into its one file."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()


def damaged(source: Path, target: Path, *statements: str, values: Any = ()) -> Path:
    """Copy a store and run SQL on the copy; a statement that changes nothing is an error."""
    shutil.copy(source, target)
    connection = sqlite3.connect(target, isolation_level=None)
    connection.execute("PRAGMA foreign_keys=OFF")
    changed = 0
    for statement in statements:
        done = connection.execute(statement, values if "?" in statement else ())
        changed += max(done.rowcount, 0)
    connection.close()
    assert changed > 0, f"nothing was changed by {statements}"
    return target
