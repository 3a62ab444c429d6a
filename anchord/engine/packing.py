"""Packing: members of batches, in their order, into ZIPs of bundles that wait in the spool.

The spool has a file, whole and durable, before the store knows of it; then one transaction notes
ZIP and manifest and moves the batches on. A crash in between leaves a file nobody knows, which the
next packing makes again under the same name: its number follows from the store.
"""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from anchord.core import item_name
from anchord.core.event import event_id, member_name
from anchord.core.item_name import DAY_S, ManifestLine
from anchord.core.storage import CaptureState, FileKind, FileState, Item, NewFile, Range
from anchord.engine.export import bundles_of_tile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.model import Batch, Tile
    from anchord.core.storage import ItemFile
    from anchord.engine.item_lane import Desk
    from anchord.ports.archive import Packed
    from anchord.ports.store import Store

_AHEAD = 40
"""Files that may wait to be sent: what the archive does not take does not fill our disk."""
_TILES_A_STEP = 64
"""Tiles looked through in one step for members that stand here."""
_STATES = ("open", "closed", "dark", "foreign")


class Stretch(msgspec.Struct, frozen=True):
    """Members [start, stop) of a batch, to be packed."""

    batch_id: int
    start: int
    stop: int


class Packing:
    """Packs at most one file's worth of members a step.

    Args:
        desk: where the item stages meet.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._store: Store = desk.parts.parts.store

    def step(self, now: int) -> None:
        """Pack again what was lost, else what waits."""
        if self._backed_up():
            return
        if gone := self._desk.table.due((FileState.GONE,), now, 1):
            self._again(gone[0], now)
            return
        rows = self._packable(now)
        at = self._ready_at(rows, now)
        if at is not None and at <= now:
            self._pack_waiting(rows, now)

    def next_moment(self, now: int) -> int | None:
        """Return when something is to be packed; None: nothing waits, or too much is packed."""
        if self._backed_up():
            return None
        moments = (
            self._desk.table.next_moment((FileState.GONE,)),
            self._ready_at(self._packable(now), now),
        )
        return min((max(at, now) for at in moments if at is not None), default=None)

    def _backed_up(self) -> bool:
        return len(self._desk.table.in_state((FileState.PACKED,), _AHEAD)) >= _AHEAD

    def _packable(self, now: int) -> list[tuple[int, int, int, int]]:
        return self._desk.table.packable(now - self._desk.policy.wait_for_anchor_s)

    def _ready_at(self, rows: Sequence[tuple[int, int, int, int]], now: int) -> int | None:
        """Return when what waits is packed: full, waited long enough, or its UTC day is over."""
        if not rows:
            return None
        if sum(size - packed for _, packed, size, _ in rows) >= self._desk.policy.max_members:
            return now
        # A moment in the future is one of a clock that was ahead: nobody waits for that.
        oldest = min(now, *(since for *_, since in rows))
        return min(oldest + self._desk.policy.flush_after_s, (oldest // DAY_S + 1) * DAY_S)

    def _pack_waiting(self, rows: Sequence[tuple[int, int, int, int]], now: int) -> None:
        gathering = _Gathering(self._store, self._desk.policy.max_members)
        gathering.gather(rows)
        for batch_id, stop in gathering.passed:
            self._desk.table.pass_over(batch_id, stop)
        if gathering.found:
            files, _ = self._pack(gathering.found, self._desk.table.members_packed() + 1)
            self._note(files, now, None)

    def _again(self, gone: ItemFile, now: int) -> None:
        """Pack all members of a lost file anew: under new names, in as many files as it takes."""
        left = [
            Stretch(one.batch_id, one.start, one.stop) for one in self._desk.table.ranges(gone.id)
        ]
        first = self._desk.table.members_packed() + 1
        files: list[NewFile] = []
        while left:
            made, left = self._pack(left, first)
            files += made
            first += made[0].members
        self._note(files, now, gone.id)

    def _note(self, files: Sequence[NewFile], now: int, repack_of: int | None) -> None:
        item = self._item_for(now, len(files), sum(file.size for file in files))
        self._desk.table.add_files(item, files, now, repack_of=repack_of)
        self._desk.count("packed", sum(file.kind is FileKind.BUNDLES for file in files))

    def _item_for(self, now: int, files: int, size: int) -> Item:
        """Return the item of today that has room, made when there is none."""
        table, policy, day = self._desk.table, self._desk.policy, now // DAY_S
        item = table.open_item(day)
        if item is not None:
            there = table.files(item.id)
            # One place is kept for the day's own manifest.
            fits = len(there) + files < policy.item_max_files
            if not there or (
                fits and sum(file.size for file in there) + size <= policy.item_max_bytes
            ):
                return item
        parts = [one.part for one in table.items(_STATES) if one.day == day]
        part = max(parts, default=0) + 1
        return table.add_item(item_name.identifier(policy.prefix, day, part), day, part, now)

    # ------------------------------------------------------------------ one file

    def _pack(
        self, stretches: Sequence[Stretch], first: int
    ) -> tuple[list[NewFile], list[Stretch]]:
        """Put a ZIP and its manifest into the spool.

        Returns:
            Both, and the stretches that did not fit.
        """
        number = min(
            sum(part.stop - part.start for part in stretches), self._desk.policy.max_members
        )
        name, packed, lines = self._zip(stretches, first, number)
        if packed.members < number:
            # It holds fewer than its name says: once more, with as many as fit.
            self._desk.spool.remove(name)
            name, packed, lines = self._zip(stretches, first, packed.members)
        beside = item_name.manifest_name(name)
        written = self._desk.spool.write(beside, b"".join(lines[: packed.members]))
        ranges, left = _cut(stretches, packed.members)
        return [
            _new_file(name, FileKind.BUNDLES, packed, ranges),
            _new_file(beside, FileKind.MANIFEST, written, ()),
        ], left

    def _zip(
        self, stretches: Sequence[Stretch], first: int, number: int
    ) -> tuple[str, Packed, list[bytes]]:
        name = item_name.zip_name(first, first + number - 1)
        lines: list[bytes] = []
        members = islice(self._members(stretches, lines), number)
        return name, self._desk.spool.pack(name, members, self._desk.policy.max_bytes), lines

    def _members(
        self, stretches: Sequence[Stretch], lines: list[bytes]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield members as they are rendered, and note each one's line of the manifest.

        Ends before a record that is in the file already: within a ZIP names are its own.
        """
        seen: set[bytes] = set()
        for stretch in stretches:
            batch = self._store.batches.get(stretch.batch_id)
            for tile in self._store.batches.tiles(batch, stretch.start, stretch.stop):
                for digest, line, data in self._tile(batch, tile):
                    if digest in seen:
                        return
                    seen.add(digest)
                    lines.append(line)
                    yield member_name(digest), data

    def _tile(self, batch: Batch, tile: Tile) -> Iterator[tuple[bytes, bytes, bytes]]:
        ids = [member.record_id for member in tile.members]
        rows = self._store.lookup.events(ids)
        bundles = bundles_of_tile(self._store, self._desk.parts.keyring, batch, tile, ids)
        for member, bundle in zip(tile.members, bundles, strict=True):
            url, timestamp = self._capture(member.record_id)
            line = ManifestLine(
                record=member.number or "sha256:" + member.digest.hex(),
                path=member_name(member.digest),
                size=len(bundle.data),
                sha256=hashlib.sha256(bundle.data).hexdigest(),
                event_ids=[event_id(row.event_id) for row in rows.get(member.record_id, ())],
                page_url=url,
                capture_timestamp=timestamp,
            )
            yield member.digest, item_name.manifest_line(line), bundle.data

    def _capture(self, record_id: int) -> tuple[str | None, str | None]:
        """Return which page of a record was captured and when, where that was replayed."""
        if self._desk.parts.captures is None:
            return None, None
        for capture in self._store.storage.captures.of_record(record_id):
            if capture.state is CaptureState.STORED:
                return capture.final_url, capture.timestamp
        return None, None


class _Gathering:
    """Finds the next members to pack.

    A member whose record stands in another batch is packed there. If that batch is an adopted one
    that took the record over after its own turn had passed, nobody else would pack it: it is
    packed here.
    """

    def __init__(self, store: Store, room: int) -> None:
        self.found: list[Stretch] = []
        self.passed: list[tuple[int, int]] = []
        """Batches, and the member before which none needs packing."""
        self._store = store
        self._room = room
        self._tiles = _TILES_A_STEP

    def gather(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Look through batches from where they are packed to."""
        for batch_id, packed, size, _ in rows:
            if self._room <= 0 or self._tiles <= 0:
                return
            batch = self._store.batches.get(batch_id)
            if batch.driving == batch.size:
                self._add(batch_id, packed, min(size, packed + self._room))
            else:
                self._look_through(batch, packed)

    def _look_through(self, batch: Batch, packed: int) -> None:
        any_here, seen_to = False, packed
        for tile in self._store.batches.tiles(batch, packed, batch.size):
            here = self._here(batch, tile)
            for member in tile.members:
                if self._room > 0 and member.record_id in here:
                    self._add(batch.id, member.index, member.index + 1)
                    any_here = True
            seen_to = tile.members[-1].index + 1
            self._tiles -= 1
            if self._room <= 0 or self._tiles <= 0:
                break
        if not any_here:
            self.passed.append((batch.id, seen_to))

    def _here(self, batch: Batch, tile: Tile) -> frozenset[int]:
        records = self._store.lookup.records([member.record_id for member in tile.members])
        return frozenset(
            key
            for key, record in records.items()
            if record.batch_id == batch.id or self._left_behind(record.batch_id)
        )

    def _left_behind(self, standing: int | None) -> bool:
        if standing is None:
            return False  # it waits for a batch of its own
        if self._store.batches.get(standing).kind != "adopted":
            return False
        items = self._store.storage.items
        return items.packed_to(standing) > 0 and items.file_of(standing, 0) is None

    def _add(self, batch_id: int, start: int, stop: int) -> None:
        last = self.found[-1] if self.found else None
        if last is not None and (last.batch_id, last.stop) == (batch_id, start):
            self.found[-1] = Stretch(batch_id, last.start, stop)
        else:
            self.found.append(Stretch(batch_id, start, stop))
        self._room -= stop - start


def _cut(stretches: Sequence[Stretch], members: int) -> tuple[tuple[Range, ...], list[Stretch]]:
    """Return the ranges of the first so many members, and the stretches of the rest."""
    ranges: list[Range] = []
    left: list[Stretch] = []
    place = 0
    for part in stretches:
        stop = min(part.stop, part.start + members - place)
        if stop > part.start:
            ranges.append(Range(part.batch_id, part.start, stop, place))
            place += stop - part.start
        if stop < part.stop:
            left.append(Stretch(part.batch_id, max(stop, part.start), part.stop))
    return tuple(ranges), left


def _new_file(name: str, kind: FileKind, packed: Packed, ranges: tuple[Range, ...]) -> NewFile:
    return NewFile(
        name=name,
        kind=kind,
        size=packed.size,
        md5=packed.md5,
        sha1=packed.sha1,
        sha256=packed.sha256,
        members=packed.members if kind is FileKind.BUNDLES else 0,
        ranges=ranges,
        member_sha256s=packed.member_sha256s if kind is FileKind.BUNDLES else b"",
    )
