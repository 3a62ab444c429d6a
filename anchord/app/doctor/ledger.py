"""The ledger's end: its last rows chain, its last checkpoint is ours and young; or all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, fail, failed, ok, warn
from anchord.core.moment import utc
from anchord.errors import AnchordError, ConfigError, FatalError, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.doctor.patient import Patient
    from anchord.ports.log import StoredCheckpoint

NAME = "ledger"
_TAIL = 1024
_DAY_S = 86_400
_RESTORE = "nothing is signed over a changed history: restore a backup, and find out who did it"


def check(patient: Patient) -> Iterator[Result]:
    """Look at the end of the ledger, or with --full at every row, tile and checkpoint."""
    if patient.full:
        yield _whole(patient)
    else:
        yield _tail(patient)
    last = patient.store.log.last()
    if last is not None:
        yield _signed(patient, last)
    yield from _open(patient)


def _whole(patient: Patient) -> Result:
    from anchord.engine.header_view import HeaderView
    from anchord.engine.ledger_check import LedgerCheck

    view = HeaderView([], None, 1)  # blocks are for `ledger check` and `audit`
    report = LedgerCheck(patient.as_store, patient.app.keyring, view, lambda *_: None).run()
    if report.faults:
        first = report.findings[0]
        what = f"{report.faults:,} fault(s), the first at {first.subject}: {first.what}"
        return fail(NAME, what, _RESTORE, FatalError.exit_code)
    return ok(NAME, f"all {report.rows:,} rows and {report.checkpoints:,} checkpoints hold")


def _tail(patient: Patient) -> Result:
    length, _ = patient.store.log.sizes()
    start = max(length - _TAIL, 0)
    try:
        rows = next(patient.store.ledger.walk(start, _TAIL), [])
    except LedgerError as error:
        return fail(NAME, str(error), _RESTORE, FatalError.exit_code)
    if len(rows) != length - start:
        what = f"of its last {length - start:,} rows {len(rows):,} are there"
        return fail(NAME, what, _RESTORE, FatalError.exit_code)
    return ok(NAME, f"the last {len(rows):,} of {length:,} rows chain")


def _signed(patient: Patient, last: StoredCheckpoint) -> Result:
    """Hold the newest checkpoint against the rows it covers, and look how old it is."""
    from anchord.core.log_tree import Growth
    from anchord.engine.ledger_check import open_own

    name, length = "ledger: checkpoint", patient.store.log.sizes()[0]
    try:
        keyring = patient.app.keyring
    except ConfigError as error:
        return failed(name, error, "it cannot be checked before the key folder is restored")
    try:
        open_own(last, keyring)
        root = Growth.of(patient.store.log, last.size).frontier().root()
    except AnchordError as error:
        return fail(name, str(error), _RESTORE, FatalError.exit_code)
    if root != last.root:
        what = f"that of {last.size:,} rows was signed for other rows than are there"
        return fail(name, what, _RESTORE, FatalError.exit_code)
    late = max(_DAY_S, 2 * patient.config.ledger.checkpoint_every_s)
    if length > last.size and patient.now - last.created_at > late:
        what = f"the last is of {utc(last.created_at)}, {length - last.size:,} events are newer"
        return warn(name, what, "a pass signs the next: is the timer running?")
    return ok(name, f"of {last.size:,} rows, {utc(last.created_at)}; signed by {last.key_id}")


def _open(patient: Patient) -> Iterator[Result]:
    waiting = patient.store.counts.unsigned()
    if waiting:
        yield ok("ledger: open", f"{waiting:,} event(s) are signed by the next pass")
    oldest = patient.store.counts.oldest_unfinished()
    if oldest is not None and patient.now - oldest > 3 * _DAY_S:
        yield warn(
            "ledger: waiting", f"a batch of {utc(oldest)} is not anchored",
            "`anchord status` tells what it waits for: calendars, fees, headers",
        )  # fmt: skip
