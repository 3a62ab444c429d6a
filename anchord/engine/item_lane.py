"""What the item stages share: two lanes with their pace, a tally, and changes of files.

Every change of a file goes to the store together with the lane it used, so that a crash forgets
neither that a call was granted nor what it was about.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from anchord.core import pacing
from anchord.core.item_rules import ItemDecision, decide
from anchord.core.storage import FileChange, FileKind, FileState, Lane, Refused
from anchord.errors import AnchordError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from anchord.core.storage import ItemFile
    from anchord.engine.storing import StoringParts
    from anchord.ports.archive import ItemArchive
    from anchord.ports.storage import ItemTable

UPLOADS = "items"
"""The lane of everything that goes to the upload service."""
READS = "metadata"
"""The lane of metadata reads and downloads."""

_PACE = {UPLOADS: pacing.per_minute(10), READS: pacing.per_minute(12)}
"""A thousand records are two uploads and some reads: 300,000 take an hour and flood nobody."""
_PAUSE_S = 1_800


class Desk:
    """Where the item stages of one store meet. Used by the thread of the pass alone.

    Args:
        parts: the parts; items must be on.
    """

    def __init__(self, parts: StoringParts) -> None:
        if parts.items is None:
            raise ConfigError("items are off: no archive to send them to")
        self.parts = parts
        self.archive: ItemArchive = parts.items
        self.policy = parts.item_policy
        self.spool = parts.spool
        self._counts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    @property
    def table(self) -> ItemTable:
        """Items and their files."""
        return self.parts.parts.store.storage.items

    # ------------------------------------------------------------------ tally

    def count(self, what: str, number: int = 1) -> None:
        """Note what was done, for the report of this step."""
        self._counts[what] += number

    def take_tally(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return what was done and refused since the last time."""
        tally = dict(self._counts), dict(self._refused)
        self._counts.clear()
        self._refused.clear()
        return tally

    # ------------------------------------------------------------------ lanes

    def lane(self, name: str) -> Lane:
        """Return a lane as it is now."""
        return self.parts.parts.store.storage.lanes.get(name)

    def keep(self, *lanes: Lane) -> None:
        """Write lanes down."""
        self.parts.parts.store.storage.lanes.put(*lanes)

    def open_at(self, name: str, now: int) -> int | None:
        """Return when the next call may be made on a lane, at least `now`; None: it is stopped."""
        lane = self.lane(name)
        at = pacing.open_at(lane, now)
        return None if at is None else max(at, pacing.free_at(lane, _PACE[name], now))

    def granted(self, name: str, now: int) -> Lane:
        """Return the lane with one call granted now."""
        return pacing.take(self.lane(name), _PACE[name], now)

    def refusal(
        self, name: str, now: int, refused: Refused, *, attempts: int = 0, whole: bool = False
    ) -> tuple[ItemDecision, Lane]:
        """Return what follows from a refusal, for the file and for the lane.

        Args:
            name: the lane the call used.
            now: Unix seconds.
            refused: what was said.
            attempts: the file's failed tries that count.
            whole: the lane waits in any case, because the call was about no single file.
        """
        self._refused[refused.code] += 1
        lane = self.lane(name)
        decision = decide(refused, now, attempts=attempts, strikes=lane.strikes)
        code, note, row = refused.code, refused.message, decision.strikes
        at = self.spread(now, decision.at)
        if decision.stop:
            alert = decision.alert or note
            lane = pacing.stopped(lane, now, code=code, note=note, alert=alert, strikes=row)
        elif whole or decision.scope == "lane":
            # What would park a file says nothing of when to call again.
            until = now + _PAUSE_S if decision.park else max(at, now + 1)
            lane = pacing.paused(lane, until, now, code=code, note=note, strikes=row)
            lane = replace(lane, seen=None, alert=decision.alert or lane.alert)
        else:
            lane = replace(lane, strikes=row, alert=decision.alert or lane.alert, changed_at=now)
        return replace(decision, at=at), lane

    def spread(self, now: int, at: int) -> int:
        """Return a moment put off by a little chance."""
        return now + max(round(self.parts.jitter(at - now)), at - now) if at > now else at

    # ------------------------------------------------------------------ files

    def parked(
        self, file: ItemFile, code: str, note: str, *, attempts: int | None = None
    ) -> list[FileChange]:
        """Return the changes that park a file, and with a ZIP its manifest that was not sent.

        A manifest without its ZIP would be a promise nobody keeps.
        """
        self.count("parked")
        columns = {"state": FileState.PARKED, "next_attempt_at": None, "code": code, "note": note}
        own = columns if attempts is None else {**columns, "attempts": attempts}
        beside = [FileChange(file=one, columns=columns) for one in self.unsent_beside(file)]
        return [FileChange(file=file, columns=own), *beside]

    def unsent_beside(self, file: ItemFile) -> Sequence[ItemFile]:
        """Return the manifest of a ZIP, while it waits to be sent."""
        if file.kind is not FileKind.BUNDLES:
            return ()
        return [
            one
            for one in self.table.files(file.item_id)
            if one.beside == file.id and one.state is FileState.PACKED
        ]

    def look_first(self, file: ItemFile, code: str, note: str, at: int) -> FileChange:
        """Return the change that has the item's metadata read before anything else."""
        columns: dict[str, Any] = {
            "state": FileState.SENDING,
            "next_attempt_at": at,
            "checks": 0,
            "code": code,
            "note": note,
        }
        return FileChange(file=file, columns=columns)


def as_refusal(result: object) -> Refused | None:
    """Return what a call's result refuses; None: it is an answer.

    Raises:
        AnchordError: our own state is unsafe.
    """
    if isinstance(result, ConfigError):
        return Refused(code="AccessDenied", message=str(result)[:300])
    if isinstance(result, AnchordError):
        raise result
    return result if isinstance(result, Refused) else None
