"""Shelving: what the metadata says of files that were sent, and what becomes of them.

One read serves all files of an item. Only a listing with our size, md5 and sha1, in that very
read, of an item without a task in error makes a file stored; a second one a day later, and for
some files a whole download, confirms it. A crash before a change is written costs one more read.
"""

from __future__ import annotations

import contextlib
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from anchord.core import pacing
from anchord.core.event import member_name
from anchord.core.item import Fetched, ItemSeen
from anchord.core.item_name import DAY_S, sampled
from anchord.core.storage import FileChange, FileKind, FileState, Intent, Item, ItemFile, Refused
from anchord.engine import ledger
from anchord.engine.day_closing import rebuild
from anchord.engine.item_lane import READS, as_refusal
from anchord.engine.item_loss import LOST_LOOKS, LOST_WAIT_S, gone
from anchord.engine.uploading import LOOK_AGAIN_S, LOOKS
from anchord.errors import DiskError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.engine.calls import Calls
    from anchord.engine.item_lane import Desk

_CALLS = "metadata"
_LOOKED_FOR = (FileState.SENDING, FileState.SENT, FileState.STORED)
_NOT_SERVED = "not-served"
_MANY = 100_000
_HASH = 32
_EVER = 2**62
_RECENT = 7
"""Items whose files may have been confirmed just before a crash."""
_PUT_OFF_S = 300
_RESENDS = 5
"""Times a file that was accepted and never shown is sent again, before a person looks."""


class Shelving:
    """Reads metadata, downloads samples, and draws the conclusions.

    Args:
        desk: where the item stages meet.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._calls: Calls | None = None

    def recover(self, now: int, calls: Calls | None = None) -> None:
        """Have everything looked for that was being sent, and whose answer nobody waits for."""
        table = self._desk.table
        note = "nobody heard how sending this ended"
        found = table.in_state((FileState.SENDING,), _MANY)
        changes = [
            self._desk.look_first(file, "interrupted", note, now)
            for file in found
            if file.next_attempt_at is None and (calls is None or not calls.has(("file", file.id)))
        ]
        # Nothing waits longer by any rule: such a moment was set by a clock that ran ahead.
        latest = now + 2 * max(DAY_S, self._desk.policy.confirm_after_s, *self._waits())
        changes += [
            FileChange(file=file, columns={"next_attempt_at": now})
            for file in table.due((FileState.PACKED, FileState.GONE, *_LOOKED_FOR), _EVER, _MANY)
            if (file.next_attempt_at or 0) > latest
        ]
        table.change(changes)
        self._sweep()

    def _sweep(self) -> None:
        """Take away what was confirmed or given up just before a crash, and is still spooled."""
        for item in self._desk.table.items(("open", "closed"))[-_RECENT:]:
            for file in self._desk.table.files(item.id):
                if file.state is FileState.GONE or file.confirmed_at is not None:
                    self._remove(file.name)

    def _waits(self) -> list[int]:
        return _steps(self._desk.policy.check_after_s)

    def step(self, now: int, calls: Calls) -> None:
        """Start the reads that are due and allowed now."""
        self._calls = calls
        due = self._desk.table.due(_LOOKED_FOR, now)
        if not due or calls.room(_CALLS) < 1 or self._desk.open_at(READS, now) != now:
            return
        first = due[0]
        self._desk.keep(self._desk.granted(READS, now))
        if _to_fetch(first):
            fetch = partial(self._desk.archive.fetch, first.identifier, first.name)
            calls.start(_CALLS, ("fetch", first.id), fetch, partial(self._fetched, first))
            return
        files = [file for file in due if file.item_id == first.item_id and not _to_fetch(file)]
        known = {file.id for file in files}
        files += [
            file
            for file in self._desk.table.files(first.item_id)
            if file.state is FileState.SENT and file.id not in known
        ]
        describe = partial(self._desk.archive.describe, first.identifier)
        then = partial(self._described, first.item_id, files)
        calls.start(_CALLS, ("item", first.item_id), describe, then)

    def next_moment(self, now: int) -> int | None:
        """Return when something is to be read; None: nothing is, or a read is in flight."""
        if self._calls is not None and self._calls.room(_CALLS) < 1:
            return None
        at, free = self._desk.table.next_moment(_LOOKED_FOR), self._desk.open_at(READS, now)
        return None if at is None or free is None else max(at, free)

    # ------------------------------------------------------------------ metadata

    def _described(
        self, item_id: int, files: Sequence[ItemFile], now: int, result: ItemSeen | Exception
    ) -> None:
        """Take in what one read says; `files` are as they were when it was asked for."""
        refused = as_refusal(result)
        if refused is not None or not isinstance(result, ItemSeen):
            self._not_told(files, refused, now)
            return
        item = self._mark(self._desk.table.item(item_id), result, now)
        changes: list[FileChange] = []
        if item.state in ("dark", "foreign"):
            changes += self._parked_with(item, files)
            for file in self._stored_in(item, files):
                changes += self._missed(file, f"the item is {item.state}", now)
        else:
            for file in files:
                changes += self._concluded(file, result, now)
        self._desk.table.change(changes, [self._lane_after(result, item, now)])
        self._clear_spool(changes)

    def _not_told(self, files: Sequence[ItemFile], refused: Refused | None, now: int) -> None:
        """Put off what was asked for, so that one item nobody can read does not hold up others."""
        told = refused or Refused(code="unknown-answer", message="no answer about an item")
        decision, lane = self._desk.refusal(READS, now, told, whole=True)
        later = max(decision.at, now + _PUT_OFF_S)
        changes = [
            FileChange(file=file, columns={"next_attempt_at": later})
            for file in files
            if file.next_attempt_at is not None and file.next_attempt_at <= now
        ]
        self._desk.table.change(changes, [lane])

    def _mark(self, item: Item, seen: ItemSeen, now: int) -> Item:
        """Note what the item is now: seen, ours or not, taken down or back again."""
        table = self._desk.table
        if not seen.exists and item.state != "foreign":
            return item
        columns: dict[str, Any] = {}
        if not seen.exists:
            # Nobody has it: what said otherwise was not so. Before an upload it is read once more.
            columns = {"state": "open", "note": None}
        elif seen.dark:
            note = f"item {item.identifier} was taken down: write to info@archive.org"
            columns = {"state": "dark", "note": note}
        elif seen.owned is False:
            note = f"item {item.identifier} belongs to somebody else: choose another prefix"
            columns = {"state": "foreign", "note": note}
        elif item.state in ("dark", "foreign"):
            closed = any(file.kind is FileKind.DAY for file in table.files(item.id))
            columns = {"state": "closed" if closed else "open", "note": None}
        if item.seen_at is None and seen.exists and not seen.dark and seen.owned is not False:
            columns["seen_at"] = now
        if columns:
            table.change_item(item, **columns)
        return table.item(item.id)

    def _stored_in(self, item: Item, asked: Sequence[ItemFile]) -> Iterator[ItemFile]:
        """Yield the stored files of an item: those asked for, and those no look is due for.

        The second kind's looks are over: none of their own would ever miss them.
        """
        yield from (file for file in asked if file.state is FileState.STORED)
        for file in self._desk.table.files(item.id):
            if file.state is FileState.STORED and file.next_attempt_at is None:
                yield file

    def _parked_with(self, item: Item, asked: Sequence[ItemFile]) -> list[FileChange]:
        """Park what was not stored in an item that is dark or not ours."""
        current = {file.id: file for file in self._desk.table.files(item.id)}
        asked_ids = {file.id for file in asked}
        changes: list[FileChange] = []
        for file in current.values():
            looked_for = file.id in asked_ids and file.state is not FileState.STORED
            if looked_for or file.state is FileState.PACKED:
                columns: dict[str, Any] = {"state": FileState.PARKED, "next_attempt_at": None}
                columns |= {"code": item.state, "note": item.note}
                changes.append(FileChange(file=file, columns=columns))
                self._desk.count("parked")
        return changes

    def _concluded(self, file: ItemFile, seen: ItemSeen, now: int) -> list[FileChange]:
        same = _same(file, seen)
        if file.state is FileState.STORED:
            return self._confirmed(file, now) if same else self._missed(file, _why(same), now)
        if same and not seen.failed_tasks:
            return self._listed(file, now)
        if same is not False:
            return self._not_yet(file, seen, now)
        note = f"{file.name} is listed with other bytes than were sent: look at the item"
        return self._desk.parked(file, "different", note)

    def _lane_after(self, seen: ItemSeen, item: Item, now: int) -> Any:
        """Return the lane of reads after a good answer, with what a person should know."""
        alert = None
        if seen.failed_tasks:
            alert = (
                f"item {item.identifier} has a task in error or paused: only the archive's staff "
                "can go on, write to info@archive.org"
            )
        for other in self._desk.table.items(("dark", "foreign")):
            alert = alert or other.note
        return replace(pacing.works(self._desk.lane(READS), now), alert=alert)

    # ------------------------------------------------------------------ not stored yet

    def _listed(self, file: ItemFile, now: int) -> list[FileChange]:
        """Hold what will be signed of a ZIP against the ZIP itself, while the spool has it."""
        if file.kind is FileKind.BUNDLES and self._desk.spool.path(file.name) is not None:
            members = list(self._members(file))
            if not self._desk.spool.holds(file.name, file.sha256, members):
                note = f"{file.name} in the spool is not what the store says: restore the store"
                return self._desk.parked(file, "spool-damaged", note)
        return [self._stored(file, now)]

    def _members(self, file: ItemFile) -> Iterator[tuple[str, bytes]]:
        """Yield names and hashes of a ZIP's members as its events will state them."""
        batches = self._desk.parts.parts.store.batches
        sha256s = self._desk.table.member_sha256s(file.id)
        for stretch in self._desk.table.ranges(file.id):
            batch, at = batches.get(stretch.batch_id), stretch.place - stretch.start
            for tile in batches.tiles(batch, stretch.start, stretch.stop):
                for member in tile.members:
                    place = _HASH * (at + member.index)
                    yield member_name(member.digest), sha256s[place : place + _HASH]

    def _stored(self, file: ItemFile, now: int) -> FileChange:
        """The listing matches: stored, and what follows for every member is intended with it."""
        self._desk.count("stored")
        columns: dict[str, Any] = {
            "state": FileState.STORED,
            "stored_at": now,
            "next_attempt_at": now + self._desk.policy.confirm_after_s,
            "checks": 0,
            "attempts": 0,
            "confirmations": 0,
            "confirmed_at": None,
            "code": None,
            "note": None,
        }
        intents: tuple[Intent, ...] = ()
        if file.kind is FileKind.BUNDLES:
            ranges = self._desk.table.ranges(file.id)
            intents = ledger.item_series(self._desk.parts.parts, file, ranges, now)
        return FileChange(file=file, columns=columns, intents=intents)

    def _not_yet(self, file: ItemFile, seen: ItemSeen, now: int) -> list[FileChange]:
        if file.next_attempt_at is None or file.next_attempt_at > now:
            return []  # it was looked for in passing
        sending = file.state is FileState.SENDING
        waits = LOOK_AGAIN_S if sending else self._waits()
        if file.checks < len(waits) or seen.pending_tasks or seen.failed_tasks:
            wait_s = waits[min(file.checks, len(waits) - 1)] if waits else LOOK_AGAIN_S[-1]
            columns: dict[str, Any] = {
                "checks": min(file.checks + 1, max(len(waits), LOOKS)),
                "next_attempt_at": self._desk.spread(now, now + wait_s),
            }
            return [FileChange(file=file, columns=columns)]
        return self._send_again(file, now)

    def _send_again(self, file: ItemFile, now: int) -> list[FileChange]:
        """It was looked for long enough and nothing works on it: it is not there."""
        if self._desk.spool.path(file.name) is None:
            return self._rebuilt(file, now)
        attempts = file.attempts + (file.state is FileState.SENT)
        if attempts > _RESENDS:
            note = f"{file.name} was accepted {attempts} times and never shown"
            return self._desk.parked(file, "not-shown", note)
        columns: dict[str, Any] = {
            "state": FileState.PACKED,
            "next_attempt_at": now,
            "attempts": attempts,
            "checks": 0,
        }
        return [FileChange(file=file, columns=columns)]

    def _rebuilt(self, file: ItemFile, now: int) -> list[FileChange]:
        """The spool lost what is not there either: make it again, or give it up."""
        if file.kind is not FileKind.DAY:
            self._desk.count("lost")
            return gone(self._desk, file, "the spool lost it before it was stored", now)
        if rebuild(self._desk, file):
            columns: dict[str, Any] = {"state": FileState.PACKED, "next_attempt_at": now}
            return [FileChange(file=file, columns=columns)]
        note = "the spool lost the day's manifest, and it cannot be made again as it was"
        return self._desk.parked(file, "spool-lost", note)

    # ------------------------------------------------------------------ stored before

    def _confirmed(self, file: ItemFile, now: int) -> list[FileChange]:
        """The second listing matches; some files are downloaded, too."""
        if self._is_sampled(file):
            columns: dict[str, Any] = {"confirmations": 1, "next_attempt_at": now}
            return [FileChange(file=file, columns=columns)]
        return [self._done(file, now)]

    def _done(self, file: ItemFile, now: int) -> FileChange:
        self._desk.count("confirmed")
        columns: dict[str, Any] = {
            "confirmations": 1,
            "confirmed_at": now,
            "next_attempt_at": None,
            "checks": 0,
            "code": None,
            "note": None,
        }
        return FileChange(file=file, columns=columns)

    def _is_sampled(self, file: ItemFile) -> bool:
        if file.kind is not FileKind.BUNDLES:
            return False
        zips = [one.id for one in self._desk.table.files(file.item_id) if one.kind is file.kind]
        return sampled(zips.index(file.id), self._desk.policy.sample_every)

    def _missed(self, file: ItemFile, why: str, now: int) -> list[FileChange]:
        """A stored file did not show: three more looks over a day, then it is given up."""
        if file.checks >= LOST_LOOKS:
            self._desk.count("lost")
            return gone(self._desk, file, why, now)
        columns: dict[str, Any] = {
            "checks": file.checks + 1,
            "confirmations": 0,
            "next_attempt_at": self._desk.spread(now, now + LOST_WAIT_S),
            "code": "missed",
            "note": why,
        }
        return [FileChange(file=file, columns=columns)]

    def _fetched(self, file: ItemFile, now: int, result: Fetched | Refused | Exception) -> None:
        refused = as_refusal(result)
        if isinstance(result, Fetched):
            same = (result.size, result.sha256) == (file.size, file.sha256)
            why = "the download has other bytes than were stored"
            changes = [self._done(file, now)] if same else self._missed(file, why, now)
        elif refused is not None and refused.code == _NOT_SERVED:
            changes = self._missed(file, "the archive does not give the file out", now)
        else:
            self._not_told([file], refused, now)
            return
        self._desk.table.change(changes, [pacing.works(self._desk.lane(READS), now)])
        self._clear_spool(changes)

    def _clear_spool(self, changes: Sequence[FileChange]) -> None:
        """Take away what is confirmed or given up; `recover` does what a crash leaves."""
        for change in changes:
            confirmed = change.columns.get("confirmed_at") is not None
            if confirmed or change.columns.get("state") is FileState.GONE:
                self._remove(change.file.name)

    def _remove(self, name: str) -> None:
        """Take a file away; where the disk refuses, the sweep of a later process does it."""
        with contextlib.suppress(DiskError):
            self._desk.spool.remove(name)


def _to_fetch(file: ItemFile) -> bool:
    """Tell whether a file's second listing matched, and its download is due."""
    return file.state is FileState.STORED and file.confirmations > 0


def _same(file: ItemFile, seen: ItemSeen) -> bool | None:
    """Compare a file with its listing; None: it is not listed, or not whole yet."""
    listed = seen.files.get(file.name)
    if listed is None or None in (listed.size, listed.md5, listed.sha1):
        return None
    ours = (file.size, file.md5.hex(), file.sha1.hex())
    return (listed.size, listed.md5, listed.sha1) == ours


def _why(same: bool | None) -> str:
    if same is None:
        return "the item's metadata does not list the file"
    return "the item's metadata lists the file with other bytes"


def _steps(moments: Sequence[int]) -> list[int]:
    """Return the waits between looks that stand at `moments` after an upload."""
    return [max(after - before, 1) for before, after in pairwise(moments)]
