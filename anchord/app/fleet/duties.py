"""What workers do: the stages of a pass, each a task of its own, and what may follow from each.

A task carries nothing but its name. What is to be done stands in the store, so a task that is lost,
or done twice, costs time and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.engine import delivering, receiving, stages
from anchord.engine.run import PassReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.engine.parts import Parts

STORING = "storing"
"""The duty that has the way to the Internet Archive; it takes a shift, see `shift`."""
RECEIVING, DELIVERING = "receive", "deliver"
LOOK = "look"
"""What finds out which of the others are due. Every worker takes part in it, whichever duties it
was started for, so it is not among the names there are to choose from."""
AUDIT = "audit"
"""Shards of audits that were asked for; any number at once, see `auditing`."""
_THEN = {
    RECEIVING: ("seal",),
    "seal": ("submit", "stamp"),
    "submit": ("sign",),
    "upgrade": ("check",),
    "check": ("sign",),
    "sign": (DELIVERING,),
}
"""What finds something to do once a stage did something; everything else waits for its moment."""


class Duty(msgspec.Struct, frozen=True):
    """One thing that a worker does, and one worker at a time."""

    name: str
    work: Callable[[Parts, int], PassReport]
    """Given the parts and Unix seconds; raises what `run_pass` does."""
    then: tuple[str, ...] = ()
    """The duties that may find something to do after this one did something."""


def stirred(report: PassReport) -> bool:
    """Tell whether a duty did something, so that others may go on."""
    done = report.sealed + report.submitted + report.upgraded + report.anchored + report.signed
    if report.received is not None:
        done += report.received.new + report.received.adopted
    return bool(done)


def duties() -> tuple[Duty, ...]:
    """Return every duty but storing, in the order of a pass."""
    staged = ((stage.name, stage.work) for stage in stages.STAGES)
    every = ((RECEIVING, _receive), *staged, (DELIVERING, _deliver))
    return tuple(Duty(name, work, _THEN.get(name, ())) for name, work in every)


def _receive(parts: Parts, now: int) -> PassReport:
    """Look at sources that are due."""
    return PassReport(received=receiving.receive(parts, now) if parts.sources else None)


def _deliver(parts: Parts, now: int) -> PassReport:
    """Hand receipts to outlets."""
    return PassReport(delivered=delivering.deliver(parts, now) if parts.outlets else None)


def names() -> tuple[str, ...]:
    """Return the names of the duties to choose from; they are the names of the queues, too."""
    return (*(duty.name for duty in duties()), STORING, AUDIT)
