"""Uploading: packed files go to their items, ZIP before manifest, an item's first file alone.

The intent is stored before the call, in one transaction with the lane's grant. What a killed
process leaves is a file in state `sending`: whether it arrived is read in the item's metadata
before anything is sent again (`anchord.engine.shelving`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from anchord.core import item_name, pacing
from anchord.core.item import Headroom, Sent
from anchord.core.item_rules import ItemDecision, over_limit
from anchord.core.storage import FileChange, FileState, Item, ItemFile, Refused
from anchord.engine.item_lane import UPLOADS, as_refusal
from anchord.engine.item_loss import gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.core.storage import Lane
    from anchord.engine.calls import Calls
    from anchord.engine.item_lane import Desk

_CALLS = "upload"
_FRESH_S = 300
"""How long an answer about limits is good for."""
_ON_ITS_WAY = (FileState.SENDING, FileState.SENT, FileState.STORED)


class _Limits(msgspec.Struct, frozen=True):
    """What the upload service last said of itself; kept with the lane."""

    identifier: str
    at: int
    account_left: int | None
    item_left: int | None


class Uploading:
    """Sends what is packed.

    Args:
        desk: where the item stages meet.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._asking = False
        self._calls: Calls | None = None

    def step(self, now: int, calls: Calls) -> None:
        """Start the uploads that are due and allowed now."""
        self._calls = calls
        for item, file in self._startable(now):
            if self._without_zip(file, now):
                continue
            if self._asking or calls.room(_CALLS) < 1 or self._desk.open_at(UPLOADS, now) != now:
                return
            if self._may_be_foreign(item):
                self._look_first(file, "item-" + item.state, item.note or "", now)
            elif self._desk.spool.path(file.name) is None:
                self._look_first(file, "spool-lost", "the spool has lost the file", now)
            elif not self._has_room(item, now):
                self._ask(item, calls)
            else:
                self._send(item, file, now, calls)

    def next_moment(self, now: int) -> int | None:
        """Return when an upload may start; None: none waits, or something in flight comes first."""
        if self._asking or (self._calls is not None and self._calls.room(_CALLS) < 1):
            return None
        waiting = self._desk.table.in_state((FileState.PACKED,))
        moments = [file.next_attempt_at for file in waiting if (file.next_attempt_at or 0) > now]
        if any(self._startable(now)):
            moments.append(now)
        at = min((moment for moment in moments if moment is not None), default=None)
        free = self._desk.open_at(UPLOADS, now)
        return None if at is None or free is None else max(at, free)

    def _startable(self, now: int) -> Iterator[tuple[Item, ItemFile]]:
        """Yield packed files that nothing but lane and limits can hold up, the longest due first.

        The item is looked at for each anew: the file before may have been its first.
        """
        table = self._desk.table
        for file in table.due((FileState.PACKED,), now):
            item = table.item(file.item_id)
            others = () if item.seen_at is not None else table.files(item.id)
            if any(other.state in _ON_ITS_WAY for other in others):
                continue  # parallel first uploads collide: the first goes alone until it is shown
            if self._zip_state(file) not in (FileState.PACKED, FileState.SENDING):
                yield item, file

    def _zip_state(self, file: ItemFile) -> FileState | None:
        return None if file.beside is None else self._desk.table.file(file.beside).state

    def _without_zip(self, file: ItemFile, now: int) -> bool:
        """Settle a manifest whose ZIP was given up or waits for a person: it is not sent alone."""
        state = self._zip_state(file)
        if state is FileState.GONE:
            self._desk.table.change(gone(self._desk, file, "its ZIP was given up", now))
            self._desk.spool.remove(file.name)
        elif state is FileState.PARKED:
            note = "its ZIP waits for a person"
            self._desk.table.change(self._desk.parked(file, "zip-parked", note))
        return state in (FileState.GONE, FileState.PARKED)

    @staticmethod
    def _may_be_foreign(item: Item) -> bool:
        return item.state not in ("open", "closed")

    def _look_first(self, file: ItemFile, code: str, note: str, now: int) -> None:
        self._desk.table.change([self._desk.look_first(file, code, note, now)])

    # ------------------------------------------------------------------ limits

    def _has_room(self, item: Item, now: int) -> bool:
        limits = _limits(self._desk.lane(UPLOADS))
        return (
            limits is not None
            and limits.identifier == item.identifier
            and limits.at <= now <= limits.at + _FRESH_S
            and self._enough(limits.account_left, limits.item_left)
        )

    def _enough(self, account_left: int | None, item_left: int | None) -> bool:
        policy = self._desk.policy
        asked = ((account_left, policy.account_headroom), (item_left, policy.item_headroom))
        return all(left is None or left >= least for left, least in asked)

    def _ask(self, item: Item, calls: Calls) -> None:
        self._asking = True
        ask = partial(self._desk.archive.headroom, item.identifier)
        calls.start(_CALLS, ("headroom", item.id), ask, partial(self._told, item.identifier))

    def _told(self, identifier: str, now: int, result: Headroom | Refused | Exception) -> None:
        self._asking = False
        refused = as_refusal(result)
        if isinstance(result, Headroom):
            enough = self._enough(result.account_left, result.item_left)
            if result.over_limit:
                refused = over_limit(result)
            elif not enough:
                refused = Refused(code="SlowDown", message=_little_left(result))
        if refused is not None or not isinstance(result, Headroom):
            told = refused or Refused(code="unknown-answer", message="no answer about limits")
            _, lane = self._desk.refusal(UPLOADS, now, told, whole=True)
            self._desk.keep(lane)
            return
        limits = _Limits(identifier, now, result.account_left, result.item_left)
        lane = replace(self._desk.lane(UPLOADS), seen=msgspec.json.encode(limits), changed_at=now)
        self._desk.keep(lane)

    # ------------------------------------------------------------------ sending

    def _send(self, item: Item, file: ItemFile, now: int, calls: Calls) -> None:
        path = self._desk.spool.path(file.name)
        if path is None:
            return
        lane = _one_less(self._desk.granted(UPLOADS, now))
        sending = {"state": FileState.SENDING, "next_attempt_at": None, "checks": 0}
        if not self._desk.table.change([FileChange(file=file, columns=sending)], [lane]):
            return
        metadata = item_name.metadata_of(self._desk.policy.metadata, item.day)
        upload = partial(
            self._desk.archive.upload, item.identifier, file.name, path, file.md5, metadata
        )
        calls.start(_CALLS, ("file", file.id), upload, partial(self._sent, file.id))

    def _sent(self, file_id: int, now: int, result: Sent | Refused | Exception) -> None:
        file = self._desk.table.file(file_id)
        refused = as_refusal(result)
        if isinstance(result, Sent):
            self._accepted(file, result, now)
        else:
            told = refused or Refused(code="unknown-answer", message="the upload ended unclear")
            self._refused(file, told, now)

    def _accepted(self, file: ItemFile, sent: Sent, now: int) -> None:
        """Note that a file is in the service's queue, which proves nothing yet."""
        self._desk.count("skipped" if sent.skipped else "uploaded")
        columns: dict[str, Any] = {
            "state": FileState.SENT,
            "sent_at": now,
            "checks": 0,
            "next_attempt_at": now + self._desk.policy.check_after_s[0],
            "code": None,
            "note": None,
        }
        lane = pacing.works(self._desk.lane(UPLOADS), now)
        self._desk.table.change([FileChange(file=file, columns=columns)], [lane])

    def _refused(self, file: ItemFile, refused: Refused, now: int) -> None:
        decision, lane = self._desk.refusal(UPLOADS, now, refused, attempts=file.attempts)
        changes = self._after(file, refused, decision, now)
        self._desk.table.change(changes, [lane])

    def _after(
        self, file: ItemFile, refused: Refused, decision: ItemDecision, now: int
    ) -> list[FileChange]:
        attempts = file.attempts + decision.counted
        if decision.park:
            self._mark(file, refused)
            note = decision.alert or refused.message
            return self._desk.parked(file, refused.code, note, attempts=attempts)
        columns: dict[str, Any] = {
            "attempts": attempts,
            "code": refused.code,
            "note": refused.message,
            "checks": 0,
        }
        if decision.read_first:
            # A plain refusal that only waits is believed after one look; silence is not.
            plain = decision.scope == "file" and not decision.counted
            columns |= {
                "state": FileState.SENDING,
                "next_attempt_at": decision.at,
                "checks": LOOKS if plain else 0,
            }
        else:
            at = decision.at if decision.scope == "file" else now
            columns |= {"state": FileState.PACKED, "next_attempt_at": at}
        return [FileChange(file=file, columns=columns)]

    def _mark(self, file: ItemFile, refused: Refused) -> None:
        if refused.code in ("foreign", "dark"):
            item = self._desk.table.item(file.item_id)
            self._desk.table.change_item(item, state=refused.code, note=refused.message)


LOOK_AGAIN_S = (240, 1_500)
"""Between the looks for a file whose upload ended unclear: about 1, 5 and 30 minutes after it."""
LOOKS = len(LOOK_AGAIN_S)


def _limits(lane: Lane) -> _Limits | None:
    if lane.seen is None:
        return None
    try:
        return msgspec.json.decode(lane.seen, type=_Limits)
    except msgspec.MsgspecError:
        return None


def _little_left(found: Headroom) -> str:
    return (
        f"check_limit leaves {found.account_left} tasks to the account and {found.item_left} to "
        "the item: too few to take one"
    )


def _one_less(lane: Lane) -> Lane:
    """Return the lane with what its limits leave after one more upload."""
    limits = _limits(lane)
    if limits is None:
        return lane
    less = replace(
        limits,
        account_left=None if limits.account_left is None else limits.account_left - 1,
        item_left=None if limits.item_left is None else limits.item_left - 1,
    )
    return replace(lane, seen=msgspec.json.encode(less))
