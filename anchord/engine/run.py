"""One pass: the list of stages. This list is the architecture.

`anchord run-once` calls it, and so does everything else that ever runs one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.engine import (
    anchoring,
    checking,
    continuity,
    delivering,
    ledger,
    receiving,
    tokens,
)
from anchord.engine.checkpointing import checkpoint_if_due

if TYPE_CHECKING:
    from anchord.engine.archiving import ArchiveReport, Archiving
    from anchord.engine.parts import Parts


class PassReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one pass did."""

    sealed: int = 0
    """Records put into a new batch."""
    batch_id: int | None = None
    submitted: int = 0
    """Calendars' answers that came."""
    upgraded: int = 0
    """Paths to Bitcoin that came."""
    anchored: int = 0
    """Batches that became anchored."""
    signed: int = 0
    """Events appended to the ledger."""
    failed_calls: int = 0
    """Calls to calendars and time-stamping authorities that failed and will be repeated."""
    problems: dict[str, str] = {}
    """What header sources that could not answer said, by name."""
    received: receiving.Received | None = None
    """What came from sources; None: none is configured."""
    stored: ArchiveReport | None = None
    """What was done at the Internet Archive; None: nothing can be, see `anchord status`."""
    delivered: delivering.Delivered | None = None
    """What was handed over to outlets; None: none is configured."""


def run_pass(parts: Parts, now: int, archiving: Archiving | None = None) -> PassReport:
    """Receive, seal, submit, upgrade, check, sign, store, sign; write nothing when nothing is due.

    Calls to the Internet Archive may still be in flight when it returns; see `run_storing`.

    Raises:
        StoreBusyError: another pass runs on this store.
        ConfigError: the configuration names another chain than the store's events.
        FatalError: the store contradicts itself; nothing was signed on its word.
    """
    received = receiving.receive(parts, now) if parts.sources else None
    with parts.store.exclusive():
        continuity.check_chain(parts.store, parts.policy.chain)
        continuity.heal_clock(parts, now)
        anchoring.free_orphans(parts, now)
        batch = anchoring.seal(parts, now)
        submitting = anchoring.Submitting(parts, now)
        submitting.start()
        stamping = tokens.Stamping(parts, now)
        try:
            stamping.start()
            submitting.until_enough()
            anchoring.settle_all(parts, now)
            upgraded, failed = anchoring.upgrade(parts, now)
            stamping.collect()
            anchored, problems = checking.check(parts, now)
            signed = ledger.append_all(parts, now)
        finally:
            submitting.finish()
            stamping.finish()
        stored = None if archiving is None else archiving.step(now)
        signed += ledger.append_all(parts, now)
        checkpoint_if_due(parts, now)
        delivered = delivering.deliver(parts, now) if parts.outlets else None
    return PassReport(
        sealed=0 if batch is None else batch.size,
        batch_id=None if batch is None else batch.id,
        submitted=submitting.answered,
        upgraded=upgraded,
        anchored=anchored,
        signed=signed,
        failed_calls=failed + submitting.failed + stamping.failed,
        problems=problems,
        received=received,
        stored=stored,
        delivered=delivered,
    )


def run_storing(parts: Parts, now: int, archiving: Archiving) -> PassReport:
    """Do only the storing part of a pass: take in what came back, start what is due, sign.

    Raises:
        StoreBusyError: another pass runs on this store.
        FatalError: the store contradicts itself; nothing was signed on its word.
    """
    with parts.store.exclusive():
        stored = archiving.step(now)
        signed = ledger.append_all(parts, now)
        checkpoint_if_due(parts, now)
    return PassReport(stored=stored, signed=signed)
