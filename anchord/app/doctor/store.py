"""The store: opens, has this code's schema, is whole; and who works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, fail, failed, ok, skipped, warn
from anchord.core.model import BatchState
from anchord.engine.parking import is_by_hand
from anchord.errors import AnchordError, FatalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.doctor.patient import Patient

NAME = "store"
_QUICK_BYTES = 1 << 30
"""A bigger store is read whole only with --full: it would take minutes."""
_LONG_WAL = 512 << 20
_RESTORE = "stop the passes, keep the files, and restore a backup: anchord restore"


def check(patient: Patient) -> Iterator[Result]:
    """Open it first; what cannot be opened is not looked into."""
    try:
        rows = patient.store.ledger.head()[0]
    except AnchordError as error:
        yield failed(NAME, error, "see docs/operations.md, Backup and restore")
        return
    yield ok(NAME, f"opens; {rows:,} events in the ledger")
    yield _integrity(patient)
    yield from _work(patient)


def _integrity(patient: Patient) -> Result:
    from anchord.adapters.store.vitals import integrity, server, sizes

    name = "store: pages"
    size = sizes(patient.url) or (0, 0)
    if settings := server(patient.url):
        return _server(settings, size[0])
    if size[0] > _QUICK_BYTES and not patient.full:
        return skipped(name, f"{size[0]:,} bytes are read with --full")
    try:
        wrong = integrity(patient.url)
    except FatalError as error:
        return failed(name, error, _RESTORE)
    if wrong:
        return fail(name, f"damaged: {'; '.join(wrong)[:300]}", _RESTORE, FatalError.exit_code)
    if size[1] > _LONG_WAL:
        return warn(
            name, f"the write-ahead log beside it has {size[1]:,} bytes",
            "end what reads the store for hours (audits, sqlite3); the next pass shortens it",
        )  # fmt: skip
    return ok(name, f"all of {size[0]:,} bytes are sound")


def _server(settings: dict[str, str], size: int) -> Result:
    """Tell how a PostgreSQL server is set up; its pages it looks after itself."""
    name = "store: server"
    off = [setting for setting in ("fsync", "full_page_writes") if settings[setting] == "off"]
    if off:
        return fail(
            name, f"{' and '.join(off)} is off: a power cut can take receipts that were confirmed",
            "switch it on in postgresql.conf", FatalError.exit_code,
        )  # fmt: skip
    if settings["data_checksums"] == "off":
        return warn(
            name, "pages have no checksums: damage on its disk is found late",
            "stop the server and run pg_checksums --enable",
        )  # fmt: skip
    return ok(name, f"PostgreSQL {settings['server_version']}, {size:,} bytes, with checksums")


def _work(patient: Patient) -> Iterator[Result]:
    """Tell who works on it, and what waits for a person."""
    from anchord.adapters.store.vitals import holder
    from anchord.app.wiring import chain_name
    from anchord.engine.continuity import check_chain

    who = holder(patient.url)
    yield ok("store: passes", "none is running" if who is None else f"running: {who}")
    try:
        check_chain(patient.as_store, chain_name(patient.config.headers.network))
    except AnchordError as error:
        yield failed("store: chain", error, "set headers.network back")
    yield from _parked(patient)


def _parked(patient: Patient) -> Iterator[Result]:
    """Tell what waits for a person; what a person set aside waits for nobody."""
    parked = patient.store.batches.in_state(BatchState.PARKED)
    by_hand = sum(is_by_hand(batch) for batch in parked)
    if len(parked) > by_hand:
        yield fail(
            "store: parked", f"{len(parked) - by_hand:,} batch(es) wait for a person",
            "`anchord status` tells why; mend it, then anchord retry",
        )  # fmt: skip
    if by_hand:
        yield ok("store: set aside", f"{by_hand:,} batch(es), by hand: see `anchord status`")
