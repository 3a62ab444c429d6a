"""The stages one by one, for workers that share a store: each takes the right to write as it needs.

The same functions as in `run.run_pass`, in the same order; there one process holds the right from
the first to the last. Here what waits for a service does so without it, so that others work
meanwhile, and what comes back is written under it. Every write looks again at what it changes, and
a stage that is killed leaves intents that are still due. Running one twice at once costs calls,
never an event: what a calendar is handed twice it keeps twice, and the ledger refuses a row that
does not follow its last one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from anchord.engine import anchoring, checking, continuity, ledger, tokens
from anchord.engine.checkpointing import checkpoint_if_due
from anchord.engine.parts import Parts
from anchord.engine.run import PassReport


class Stage(msgspec.Struct, frozen=True):
    """One thing that a worker does."""

    name: str
    work: Callable[[Parts, int], PassReport]
    """Given the parts and Unix seconds. Raises what `run_pass` does."""


def seal(parts: Parts, now: int) -> PassReport:
    """Put waiting records under one root."""
    with parts.store.exclusive():
        _begin(parts, now)
        anchoring.free_orphans(parts, now)
        batch = anchoring.seal(parts, now)
    return PassReport(
        sealed=0 if batch is None else batch.size, batch_id=None if batch is None else batch.id
    )


def submit(parts: Parts, now: int) -> PassReport:
    """Hand roots to calendars."""
    _begin(parts, now)
    submitting = anchoring.Submitting(parts, now)
    try:
        submitting.start()
    finally:
        submitting.finish()
    with parts.store.exclusive():
        anchoring.settle_all(parts, now)
    return PassReport(submitted=submitting.answered, failed_calls=submitting.failed)


def stamp(parts: Parts, now: int) -> PassReport:
    """Ask time-stamping authorities for tokens."""
    _begin(parts, now)
    stamping = tokens.Stamping(parts, now)
    try:
        stamping.start()
    finally:
        stamping.finish()
    return PassReport(failed_calls=stamping.failed)


def upgrade(parts: Parts, now: int) -> PassReport:
    """Ask calendars for paths to Bitcoin."""
    _begin(parts, now)
    upgraded, failed = anchoring.upgrade(parts, now)
    return PassReport(upgraded=upgraded, failed_calls=failed)


def check(parts: Parts, now: int) -> PassReport:
    """Hold paths against block headers."""
    with parts.store.exclusive():
        _begin(parts, now)
        anchored, problems = checking.check(parts, now)
    return PassReport(anchored=anchored, problems=problems)


def sign(parts: Parts, now: int) -> PassReport:
    """Sign what is due, append it, and sign the log."""
    _begin(parts, now)
    signed = ledger.append_all(parts, now)
    with parts.store.exclusive():
        checkpoint_if_due(parts, now)
    return PassReport(signed=signed)


def _begin(parts: Parts, now: int) -> None:
    """Look whether chain and clock are the store's, before anything is sent or signed."""
    continuity.check_chain(parts.store, parts.policy.chain)
    continuity.heal_clock(parts, now)


STAGES = (
    Stage("seal", seal),
    Stage("submit", submit),
    Stage("stamp", stamp),
    Stage("upgrade", upgrade),
    Stage("check", check),
    Stage("sign", sign),
)
"""In the order of `run_pass`."""
