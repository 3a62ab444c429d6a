"""Closing: when an item's day is over and all of its files are settled, a signed list of them.

The list is a file like the others, so it is spooled, sent and looked for in the same way. If we
crash between noting it and closing the item, the next step finds it noted and closes the item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core import item_name
from anchord.core.event import event_digest, signer_block
from anchord.core.item_name import DAY_S, DayFile
from anchord.core.storage import FileKind, FileState, Item, NewFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.storage import ItemFile
    from anchord.engine.item_lane import Desk

_SETTLED = (FileState.STORED, FileState.PARKED, FileState.GONE)


class DayClosing:
    """Closes items whose day is over.

    Args:
        desk: where the item stages meet.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def step(self, now: int) -> None:
        """Close what can be closed."""
        for item in self._past(now):
            files = self._desk.table.files(item.id)
            if not _wanted(files):
                self._desk.table.change_item(item, state="closed")
            elif _ready(files):
                self._close(item, files, now)

    def next_moment(self, now: int) -> int | None:
        """Return when an item can be closed; None: files of it come first."""
        for item in self._past(now):
            files = self._desk.table.files(item.id)
            if not _wanted(files) or _ready(files):
                return now
        today = now // DAY_S
        is_open = any(item.day == today for item in self._desk.table.items(("open",)))
        return (today + 1) * DAY_S if is_open else None

    def _past(self, now: int) -> list[Item]:
        """Return open items of other days; one of a day to come was made by a clock ahead."""
        return [item for item in self._desk.table.items(("open",)) if item.day != now // DAY_S]

    def _close(self, item: Item, files: Sequence[ItemFile], now: int) -> None:
        name = item_name.day_manifest_name(item.day, item.part)
        packed = self._desk.spool.write(name, _document(self._desk, item, files, now))
        new = NewFile(
            name=name,
            kind=FileKind.DAY,
            size=packed.size,
            md5=packed.md5,
            sha1=packed.sha1,
            sha256=packed.sha256,
        )
        self._desk.table.add_files(item, [new], now)
        self._desk.table.change_item(item, state="closed")


def _wanted(files: Sequence[ItemFile]) -> bool:
    """Tell whether a list is still to be made: not when it is there, nor of lost files alone."""
    lost = all(file.state is FileState.GONE for file in files)
    return not lost and all(file.kind is not FileKind.DAY for file in files)


def _ready(files: Sequence[ItemFile]) -> bool:
    settled = all(file.state in _SETTLED for file in files)
    return settled and any(file.state is FileState.STORED for file in files)


def rebuild(desk: Desk, file: ItemFile) -> bool:
    """Write a day's manifest anew that the spool has lost; False when it is not the same any more.

    It follows from rows that do not change and from a signature that is the same each time
    (Ed25519, RFC 8032, is deterministic), unless files were lost or the key changed since.
    """
    item = desk.table.item(file.item_id)
    files = [one for one in desk.table.files(item.id) if one.id < file.id]
    packed = desk.spool.write(file.name, _document(desk, item, files, file.created_at))
    if packed.sha256 == file.sha256:
        return True
    desk.spool.remove(file.name)
    return False


def _document(desk: Desk, item: Item, files: Sequence[ItemFile], now: int) -> bytes:
    signer = desk.parts.parts.signer
    block = signer_block(signer.key_id, signer.public_key, signer.signer_id)
    listed = [
        DayFile(
            name=file.name,
            size=file.size,
            md5=file.md5.hex(),
            sha1=file.sha1.hex(),
            sha256=file.sha256.hex(),
            members=file.members,
        )
        for file in files
        if file.state is FileState.STORED
    ]
    body = item_name.day_manifest_body(item.identifier, item.day, listed, block, now)
    return item_name.signed_day_manifest(body, signer.sign(event_digest(body)))
