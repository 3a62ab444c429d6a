"""Items and their files: which members of which batches are in which ZIP at archive.org."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store import due, packing
from anchord.adapters.store.connection import Database, insert_one
from anchord.adapters.store.lanes import put as put_lanes
from anchord.adapters.store.ledger import cut_series, insert_series
from anchord.adapters.store.schema import batches, file_members, file_ranges, files, items
from anchord.core.storage import FileChange, FileKind, FileState, Item, ItemFile, Range
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from anchord.core.storage import Lane, NewFile


class Items:
    """The tables of items, files and what they hold. Every writing method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ------------------------------------------------------------------ packing

    def packable(self, older_than: int, limit: int = 1000) -> list[tuple[int, int, int, int]]:
        """Return batches with members to pack, oldest first: (batch, packed, size, since)."""
        with self._database.reading() as connection:
            return packing.packable(connection, older_than, limit)

    def add_files(
        self, item: Item, files: Sequence[NewFile], now: int, *, repack_of: int | None = None
    ) -> list[ItemFile]:
        """Note files of an item in one transaction, and that their members are packed.

        A manifest stands directly after its ZIP in `files`. A range begins where its batch was
        packed to, or later: members left out stand in another batch, which has them packed.
        `repack_of` is the gone file whose members these are; then no batch moves on.

        Raises:
            FatalError: members were packed before, or the files' numbers contradict each other;
                nothing is noted.
        """
        with self._database.writing() as connection:
            if repack_of is None:
                packing.advance(connection, files)
            else:
                packing.replace(connection, files, repack_of)
            made = packing.insert(connection, item.id, files, now)
            rows = connection.execute(_FILES.where(_FILE.id.in_(made)).order_by(_FILE.id))
            return [_file(row) for row in rows]

    def pass_over(self, batch_id: int, stop: int) -> None:
        """Note that members before `stop` need no packing here: they stand in other batches.

        A batch that is packed further already stays as it is.
        """
        with self._database.writing() as connection:
            packing.pass_over(connection, batch_id, stop)

    def packed_to(self, batch_id: int) -> int:
        """Return before which member of a batch all are packed or passed over."""
        query = sa.select(batches.c.packed).where(batches.c.id == batch_id)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def members_packed(self) -> int:
        """Return how many members all files of bundles hold, gone ones included."""
        query = sa.select(sa.func.sum(_FILE.members)).where(_FILE.kind == FileKind.BUNDLES.value)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    # ------------------------------------------------------------------ items

    def open_item(self, day: int) -> Item | None:
        """Return the item of a UTC day that takes files; of several the last part."""
        query = sa.select(items).where(items.c.day == day, items.c.state == "open")
        with self._database.reading() as connection:
            row = connection.execute(query.order_by(items.c.part.desc()).limit(1)).first()
        return None if row is None else _item(row)

    def add_item(self, identifier: str, day: int, part: int, now: int) -> Item:
        """Note an item about to be used."""
        given = {"identifier": identifier, "day": day, "part": part, "created_at": now}
        with self._database.writing() as connection:
            item_id = insert_one(connection, items, state="open", **given)
        return self.item(item_id)

    def item(self, item_id: int) -> Item:
        """Return one item.

        Raises:
            FatalError: there is none of that number.
        """
        with self._database.reading() as connection:
            row = connection.execute(sa.select(items).where(items.c.id == item_id)).first()
        if row is None:
            raise FatalError(f"item {item_id} is named but not in the store: it is damaged")
        return _item(row)

    def items(self, states: Collection[str]) -> list[Item]:
        """Return items in some states, oldest first."""
        query = sa.select(items).where(items.c.state.in_(sorted(states))).order_by(items.c.id)
        with self._database.reading() as connection:
            return [_item(row) for row in connection.execute(query)]

    def change_item(self, item: Item, **columns: object) -> None:
        """Change an item's own fields."""
        with self._database.writing() as connection:
            where = items.c.id == item.id
            connection.execute(sa.update(items).where(where).values(due.plain(columns)))

    # ------------------------------------------------------------------ files

    def files(self, item_id: int) -> list[ItemFile]:
        """Return an item's files in the order they were packed."""
        return self._read(_FILES.where(_FILE.item_id == item_id).order_by(_FILE.id))

    def file(self, file_id: int) -> ItemFile:
        """Return one file.

        Raises:
            FatalError: there is none of that number.
        """
        found = self._read(_FILES.where(_FILE.id == file_id))
        if not found:
            raise FatalError(f"file {file_id} is named but not in the store: it is damaged")
        return found[0]

    def due(self, states: Collection[FileState], now: int, limit: int = 1000) -> list[ItemFile]:
        """Return files in one of the states whose time has come, the longest due first."""
        with self._database.reading() as connection:
            rows = due.due(connection, _FILES, files, states, now, limit)
        return [_file(row) for row in rows]

    def in_state(self, states: Collection[FileState], limit: int = 1000) -> list[ItemFile]:
        """Return files in some states, oldest first."""
        with self._database.reading() as connection:
            rows = due.in_state(connection, _FILES, files, states, limit)
        return [_file(row) for row in rows]

    def next_moment(self, states: Collection[FileState]) -> int | None:
        """Return when the next file in one of the states is due."""
        with self._database.reading() as connection:
            return due.next_moment(connection, files, states)

    def ranges(self, file_id: int) -> list[Range]:
        """Return what stretches of batches a file holds, in its order."""
        with self._database.reading() as connection:
            return packing.ranges(connection, file_id)

    def member_sha256s(self, file_id: int) -> bytes:
        """Return the members' hashes, 32 bytes each, in the file's order."""
        query = sa.select(file_members.c.sha256s).where(file_members.c.file_id == file_id)
        with self._database.reading() as connection:
            return connection.execute(query).scalar() or b""

    def file_of(self, batch_id: int, place: int) -> ItemFile | None:
        """Return the newest file a member of a batch is in; a gone one only if there is no other.

        Files that are not gone share no member, so the nearest stretch at or below is the one.
        """
        holding = _FILES.join(file_ranges, file_ranges.c.file_id == _FILE.id).where(
            file_ranges.c.batch_id == batch_id,
            file_ranges.c.start <= place,
            file_ranges.c.stop > place,
        )
        gone = FileState.GONE.value
        live = holding.where(_FILE.state != gone).order_by(file_ranges.c.start.desc())
        lost = holding.where(_FILE.state == gone).order_by(_FILE.id.desc())
        packed = sa.select(batches.c.packed).where(batches.c.id == batch_id)
        with self._database.reading() as connection:
            if place >= (connection.execute(packed).scalar() or 0):
                return None
            row = connection.execute(live.limit(1)).first()
            row = row or connection.execute(lost.limit(1)).first()
        return None if row is None else _file(row)

    def change(self, changes: Sequence[FileChange], lanes: Sequence[Lane] = ()) -> int:
        """Change files, append intents and keep lanes in one transaction.

        Return how many changes were made; one whose row has moved on meanwhile is left out. What
        the lanes granted was granted anyway, so they are kept in any case.
        """
        with self._database.writing() as connection:
            put_lanes(connection, lanes)
            return sum(_change(connection, item) for item in changes)

    def _read(self, query: sa.Select[Any]) -> list[ItemFile]:
        with self._database.reading() as connection:
            return [_file(row) for row in connection.execute(query)]


_FILE = files.c
_FILES = sa.select(files, items.c.identifier).join(items, items.c.id == files.c.item_id)


def _change(connection: sa.Connection, item: FileChange) -> int:
    if not due.move_on(connection, files, item.file, item.columns):
        return 0
    for series_id in item.cut_series:
        cut_series(connection, series_id)
    for intent in item.intents:
        insert_series(connection, intent.batch_id, intent.series)
    return 1


def _item(row: Any) -> Item:
    return Item(**{name: getattr(row, name) for name in Item.__struct_fields__})


def _file(row: Any) -> ItemFile:
    values = {name: getattr(row, name) for name in ItemFile.__struct_fields__}
    try:
        values["kind"], values["state"] = FileKind(row.kind), FileState(row.state)
    except ValueError as error:
        raise FatalError(
            f"file {row.id}: {error}; the store is damaged, restore it from a backup"
        ) from None
    return ItemFile(**values)
