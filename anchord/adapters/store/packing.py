"""Members and files: a member of a batch is in no more than one file that is not gone.

`batches.packed` says how far a batch is packed. It moves on with the file that takes the members,
in one transaction, so a crash neither leaves a member out nor packs it twice. Members that stand in
another batch, which has them packed, are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from anchord.adapters.store.connection import insert_many, insert_one
from anchord.adapters.store.schema import batches, file_members, file_ranges, files, series
from anchord.core.event import TIMESTAMPS
from anchord.core.model import BatchState
from anchord.core.storage import FileKind, FileState, NewFile, Range
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HASH = 32
_GIVEN = ("name", "kind", "size", "md5", "sha1", "sha256", "members")


def packable(
    connection: sa.Connection, older_than: int, limit: int
) -> list[tuple[int, int, int, int]]:
    """Return batches with members to pack, oldest first: (batch, packed, size, since).

    Only events about timestamps are waited for: in a big batch captures come all the time, and
    no bundle could hold them all.
    """
    unsigned = sa.select(series.c.batch_id).where(
        series.c.next < series.c.stop, series.c.event_type.in_(TIMESTAMPS)
    )
    anchored = batches.c.state == BatchState.ANCHORED.value
    old = sa.and_(batches.c.created_at < older_than, batches.c.state != BatchState.PARKED.value)
    since = sa.func.coalesce(batches.c.anchored_at, batches.c.created_at)
    query = (
        sa.select(batches.c.id, batches.c.packed, batches.c.size, since)
        .where(batches.c.packed < batches.c.size)
        .where(sa.or_(old, sa.and_(anchored, batches.c.id.not_in(unsigned))))
        .order_by(batches.c.id)
        .limit(limit)
    )
    return [(row[0], row[1], row[2], row[3]) for row in connection.execute(query)]


def advance(connection: sa.Connection, found: Iterable[NewFile]) -> None:
    """Let batches stand after the members that new files take.

    Raises:
        FatalError: a stretch begins before its batch stands, or ends beyond the batch.
    """
    for part in (part for file in found for part in file.ranges):
        next_here = sa.and_(
            batches.c.id == part.batch_id,
            batches.c.packed <= part.start,
            batches.c.size >= part.stop,
        )
        moved = sa.update(batches).where(next_here).values(packed=part.stop)
        if part.stop <= part.start or not connection.execute(moved).rowcount:
            raise FatalError(
                f"members {part.start} to {part.stop} of batch {part.batch_id} are not among those "
                "still to pack: two passes packed at once, or the store is damaged; nothing was "
                "noted, run again"
            )


def pass_over(connection: sa.Connection, batch_id: int, stop: int) -> None:
    """Let a batch stand at `stop`, or where it stands when that is further."""
    behind = sa.and_(batches.c.id == batch_id, batches.c.packed < stop, batches.c.size >= stop)
    connection.execute(sa.update(batches).where(behind).values(packed=stop))


def replace(connection: sa.Connection, found: Iterable[NewFile], gone_id: int) -> None:
    """Let new files take over all members of a gone one, once.

    Raises:
        FatalError: it is not gone, was replaced before, or members differ.
    """
    still = sa.and_(
        files.c.id == gone_id,
        files.c.state == FileState.GONE.value,
        files.c.next_attempt_at.is_not(None),
    )
    done = {"next_attempt_at": None, "version": files.c.version + 1}
    before = _joined(ranges(connection, gone_id))
    after = _joined(part for file in found for part in file.ranges)
    replaced = connection.execute(sa.update(files).where(still).values(done)).rowcount
    if not replaced or before != after:
        raise FatalError(
            f"file {gone_id} cannot be packed again: expected a gone file, packed again for the "
            "first time, and all of its members; nothing was noted, run again"
        )


def insert(
    connection: sa.Connection, item_id: int, found: Sequence[NewFile], now: int
) -> list[int]:
    """Write the rows of new files; return their numbers.

    Raises:
        FatalError: a file's numbers contradict each other.
    """
    made: list[int] = []
    for place, file in enumerate(found):
        _check(file, found[place - 1] if place else None)
        beside = made[-1] if file.kind is FileKind.MANIFEST else None
        values = {name: getattr(file, name) for name in _GIVEN}
        values["kind"] = file.kind.value
        begin = {"version": 0, "attempts": 0, "checks": 0, "confirmations": 0}
        begin |= {"next_attempt_at": now, "created_at": now}
        state = FileState.PACKED.value
        made.append(
            insert_one(
                connection, files, item_id=item_id, state=state, beside=beside, **begin, **values
            )
        )
        _insert_members(connection, made[-1], file)
    return made


def ranges(connection: sa.Connection, file_id: int) -> list[Range]:
    """Return what stretches of batches a file holds, in its order."""
    columns = [file_ranges.c[name] for name in Range.__struct_fields__]
    query = sa.select(*columns).where(file_ranges.c.file_id == file_id)
    return [Range(*row) for row in connection.execute(query.order_by(file_ranges.c.place))]


def _insert_members(connection: sa.Connection, file_id: int, file: NewFile) -> None:
    rows = [(file_id, part.place, part.batch_id, part.start, part.stop) for part in file.ranges]
    names = ("file_id", "place", "batch_id", "start", "stop")
    insert_many(connection, file_ranges, names, rows)
    if file.member_sha256s:
        values = {"file_id": file_id, "sha256s": file.member_sha256s}
        connection.execute(sa.insert(file_members).values(values))


def _check(file: NewFile, before: NewFile | None) -> None:
    place = 0
    for part in file.ranges:
        if part.place != place:
            raise _contradicts(file, f"a stretch at {place}", str(part.place))
        place += part.stop - part.start
    held = len(file.member_sha256s)
    if not file.members == place == held // _HASH or held % _HASH:
        raise _contradicts(file, f"{file.members} members", f"{place} with {held} bytes of hashes")
    if bool(place) != (file.kind is FileKind.BUNDLES):
        raise _contradicts(file, "members in files of bundles alone", f"{place} in {file.kind}")
    if file.kind is FileKind.MANIFEST and (before is None or before.kind is not FileKind.BUNDLES):
        raise _contradicts(file, "its ZIP directly before it", "another file")


def _contradicts(file: NewFile, expected: str, came: str) -> FatalError:
    return FatalError(
        f"file {file.name!r:.80}: expected {expected}, got {came}; nothing was noted, this is a "
        "fault of anchord: please report it"
    )


def _joined(parts: Iterable[Range]) -> list[tuple[int, int, int]]:
    """Return (batch, start, stop) of stretches in order, neighbours joined."""
    joined: list[tuple[int, int, int]] = []
    for batch_id, start, stop in sorted((p.batch_id, p.start, p.stop) for p in parts):
        if joined and joined[-1][0] == batch_id and joined[-1][2] == start:
            joined[-1] = (batch_id, joined[-1][1], stop)
        else:
            joined.append((batch_id, start, stop))
    return joined
