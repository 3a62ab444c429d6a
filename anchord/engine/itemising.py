"""Items at archive.org, one step at a time: pack, upload, look, confirm, close the day.

What is known is in the store; this object holds no more than which calls are in flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.core import pacing
from anchord.core.storage import FileState
from anchord.engine.day_closing import DayClosing
from anchord.engine.item_lane import READS, UPLOADS, Desk
from anchord.engine.packing import Packing
from anchord.engine.shelving import Shelving
from anchord.engine.uploading import Uploading
from anchord.errors import DiskError

if TYPE_CHECKING:
    from anchord.engine.calls import Calls
    from anchord.engine.storing import StoringParts

_MANY = 1_000_000
SPOOL = "spool"
"""The lane of what is written to our own disk before it is sent."""
_DISK_S = 600


class ItemReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was done about items since the last step, in files."""

    packed: int = 0
    uploaded: int = 0
    skipped: int = 0
    """Uploads that were not made, because the file is there."""
    stored: int = 0
    confirmed: int = 0
    lost: int = 0
    parked: int = 0
    refused: dict[str, int] = {}
    """Refusals by code."""


class Itemising:
    """The item lane of one store. Used by the thread of the pass alone.

    Args:
        parts: the parts; items must be on.
    """

    def __init__(self, parts: StoringParts) -> None:
        self._desk = Desk(parts)
        self._packing = Packing(self._desk)
        self._uploading = Uploading(self._desk)
        self._shelving = Shelving(self._desk)
        self._closing = DayClosing(self._desk)

    def recover(self, now: int, calls: Calls | None = None) -> None:
        """Look after what was left in the middle: what was being sent is looked for first.

        Args:
            now: Unix seconds.
            calls: what is in flight, and waited for.
        """
        for name in (UPLOADS, READS, SPOOL):
            lane = self._desk.lane(name)
            healed = pacing.healed(lane, now)
            if healed != lane:
                self._desk.keep(healed)
        self._shelving.recover(now, calls)

    def step(self, now: int, calls: Calls) -> ItemReport:
        """Start what is due and allowed now; report what was done since the last step.

        Args:
            now: Unix seconds.
            calls: has the lanes "upload" and "metadata".
        """
        self._fill_spool(now)
        self._shelving.step(now, calls)
        self._uploading.step(now, calls)
        done, refused = self._desk.take_tally()
        return ItemReport(**done, refused=refused)

    def next_moment(self, now: int) -> int | None:
        """Return when a step can do something; None: nothing waits but calls in flight."""
        moments = [stage.next_moment(now) for stage in (self._shelving, self._uploading)]
        opens = pacing.open_at(self._desk.lane(SPOOL), now)
        filling = [stage.next_moment(now) for stage in (self._closing, self._packing)]
        moments += [max(at, opens or at) for at in filling if at is not None]
        return min((max(at, now) for at in moments if at is not None), default=None)

    def _fill_spool(self, now: int) -> None:
        """Write what is to be sent; a disk that takes nothing holds up nothing else."""
        lane = self._desk.lane(SPOOL)
        if pacing.open_at(lane, now) != now:
            return
        try:
            self._closing.step(now)
            self._packing.step(now)
        except DiskError as error:
            note, row = str(error), lane.strikes + 1
            lane = pacing.paused(lane, now + _DISK_S, now, code="disk", note=note, strikes=row)
            self._desk.keep(msgspec.structs.replace(lane, alert=note))
        else:
            if lane.code is not None:
                self._desk.keep(pacing.works(lane, now))

    def unfinished(self) -> int:
        """Return how many files are on their way, parked ones left out."""
        table = self._desk.table
        states = (FileState.PACKED, FileState.SENDING, FileState.SENT)
        lost = table.due((FileState.GONE,), 2**62, _MANY)
        return len(table.in_state(states, _MANY)) + len(lost)
