"""Storing records at the Internet Archive: the two lanes side by side, one step at a time.

`Archiving` lives as long as a process may have calls in flight; what it knows is in the store. A
step starts what is due and allowed now and takes in what has come back. It never waits, so that a
service that needs a minute holds up neither the other lane nor the next pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from anchord.engine import continuity
from anchord.engine.calls import Calls
from anchord.engine.capturing import CaptureReport, Capturing
from anchord.engine.itemising import Itemising, ItemReport

if TYPE_CHECKING:
    from anchord.engine.storing import StoringParts

_UPLOADS = 2
"""Parallel uploads; the archive's clients keep to two once an item is there."""


class ArchiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the storing stages did."""

    captures: CaptureReport = msgspec.field(default_factory=CaptureReport)
    items: ItemReport = msgspec.field(default_factory=ItemReport)


class Archiving:
    """Captures and items of one store, by one account. A context manager.

    Args:
        storing: the parts; whoever makes them holds the account's lock as long as this lives.
    """

    def __init__(self, storing: StoringParts) -> None:
        self._storing = storing
        self._capturing = Capturing(storing) if storing.captures is not None else None
        self._itemising = Itemising(storing) if storing.items is not None else None
        self._calls = Calls(
            {
                "submit": max(storing.capture_policy.parallel, 1),
                "status": 1,
                "index": 1,
                "replay": 1,
                "upload": _UPLOADS,
                "metadata": 1,
            }
        )
        self._recovered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def step(self, now: int) -> ArchiveReport:
        """Take in what has come back, and start what is due and allowed now.

        The first step looks after what a killed process left in the middle: its intents are looked
        up at the archive before anything is sent again. So does the step after one that did not
        come to its end: it may have noted an intent and sent nothing, because the store did not
        say that it was noted, or have lost an answer, because the store could not take it in.
        """
        if not self._recovered:
            self._recover(now)
        self._recovered = False
        self._calls.collect(now)
        captures, items = CaptureReport(), ItemReport()
        if self._capturing is not None:
            captures = self._capturing.step(now, self._calls)
        if self._itemising is not None:
            items = self._itemising.step(now, self._calls)
        self._recovered = True
        return ArchiveReport(captures=captures, items=items)

    def _recover(self, now: int) -> None:
        if self._capturing is not None:
            continuity.heal_captures(self._storing, now)
            self._capturing.recover(now, self._calls)
        if self._itemising is not None:
            self._itemising.recover(now, self._calls)

    @property
    def busy(self) -> bool:
        """Whether a call is in flight."""
        return self._calls.busy()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a call has come back; False when none did in time, or none is in flight."""
        return self._calls.wait(timeout_s)

    def take_in(self, now: int) -> None:
        """Take in what has come back, and start nothing; for the end of a process."""
        self._calls.collect(now)

    def next_moment(self, now: int) -> int | None:
        """Return when something can be done next; None: nothing is left to do."""
        moments = [
            lane.next_moment(now) for lane in (self._capturing, self._itemising) if lane is not None
        ]
        return min((at for at in moments if at is not None), default=None)

    def unfinished(self) -> int:
        """Return how many captures and files are on their way, parked ones left out."""
        return sum(
            lane.unfinished() for lane in (self._capturing, self._itemising) if lane is not None
        )

    def close(self) -> None:
        """Leave what is still in flight; the next process looks it up by its intent."""
        self._calls.close()
