"""What workers do: the stages of a pass, each a task of its own, and what may follow from each.

A task carries nothing but its name. What is to be done stands in the store, so a task that is lost,
or done twice, costs time and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.service.pass_words import facts, words_of
from anchord.engine import stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.engine.parts import Parts
    from anchord.engine.run import PassReport

STORING = "storing"
"""The duty that has the way to the Internet Archive; it takes a shift, see `shift`."""
_THEN = {
    "seal": ("submit", "stamp"),
    "submit": ("sign",),
    "upgrade": ("check",),
    "check": ("sign",),
}
"""What finds something to do once a stage did something; everything else waits for its moment."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a duty did."""

    stirred: bool
    """It did something, so that others may go on."""
    failed: bool = False
    words: str = ""
    """For people; empty: nothing is no news."""
    facts: dict[str, Any] = {}
    problems: dict[str, str] = {}
    """What header sources that could not answer said, by name."""
    heavy: bool = False
    """Much memory may have been used."""


class Duty(msgspec.Struct, frozen=True):
    """One thing that a worker does, and one worker at a time."""

    name: str
    work: Callable[[Parts, int], Done]
    """Given the parts and Unix seconds; raises what `run_pass` does."""
    then: tuple[str, ...] = ()
    """The duties that may find something to do after this one did something."""


def done_of(report: PassReport) -> Done:
    """Return what a stage did, as it is told and followed."""
    stirred = (
        report.sealed or report.submitted or report.upgraded or report.anchored or report.signed
    )
    return Done(
        stirred=bool(stirred),
        failed=bool(report.failed_calls),
        words=words_of(report),
        facts=facts(report),
        problems=report.problems,
        heavy=bool(report.sealed or report.signed),
    )


def duties() -> tuple[Duty, ...]:
    """Return every duty but storing, in the order of a pass."""
    return tuple(_of(stage) for stage in stages.STAGES)


def _of(stage: stages.Stage) -> Duty:
    def work(parts: Parts, now: int) -> Done:
        return done_of(stage.work(parts, now))

    return Duty(stage.name, work, _THEN.get(stage.name, ()))


def names() -> tuple[str, ...]:
    """Return the names of all duties; they are the names of the queues, too."""
    return (*(duty.name for duty in duties()), STORING)
