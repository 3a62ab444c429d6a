"""Which files of a watched folder come next: one walk over all of it, memory for some of them."""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from anchord.adapters.sources.folder import Identity, shown
from anchord.errors import TransientError

AT_ONCE = 50_000
"""Files that one walk remembers; when there are more, another walk follows."""
_ID_BYTES = 8


class Found(msgspec.Struct, frozen=True, order=True, gc=False):
    """One file that is due; sorted in the order files are taken."""

    at: int
    """When it changed, or where its folder came in when that was later, nanoseconds."""
    path: bytes
    """Below the watched folder."""
    changed_ns: int
    size: int


class Mark(msgspec.Struct, frozen=True):
    """Up to where a folder was taken; this, written, is its cursor."""

    folder: bytes
    at: int = 0
    path: bytes = b""
    seen: dict[bytes, int] = {}
    """Where each folder in it came in, nanoseconds, by a name of 8 bytes."""

    @classmethod
    def read(cls, cursor: bytes | None, folder: Path) -> Mark | None:
        """Return what a cursor means; None when it is none of this folder."""
        try:
            mark = msgspec.msgpack.decode(cursor or b"", type=cls)
        except msgspec.MsgspecError:
            return None
        return mark if mark.folder == os.fsencode(folder) else None

    def after(self, found: Found) -> Mark:
        """Return the mark moved behind a file."""
        return msgspec.structs.replace(self, at=found.at, path=found.path)

    def written(self) -> bytes:
        """Return the cursor."""
        return msgspec.msgpack.encode(self)


class Scan:
    """One walk over a watched folder.

    Args:
        folder: where to walk.
        mark: up to where it was taken; None: nothing was.
        skip: files and folders passed over.
    """

    def __init__(self, folder: Path, mark: Mark | None, skip: Collection[Identity]) -> None:
        self._folder, self._skip = folder, skip
        # A folder that is new comes right behind what was taken. No clock of ours is in this: only
        # the file system's counts, which may be another machine's.
        self._new_at = 0 if mark is None else mark.at + 1
        self._before = mark or Mark(os.fsencode(folder))
        self._seen: dict[bytes, int] = {}
        self.trouble: str | None = None
        """The first folder that could not be read, and why."""
        self.unreadable = 0
        self.more = False
        """There are more files than were remembered."""

    def oldest(self, until_ns: int) -> list[Found]:
        """Return the next files, oldest first, that did not change since `until_ns`.

        Raises:
            TransientError: the watched folder itself cannot be read.
        """
        begin = (self._before.at, self._before.path)
        due = (one for one in self._walk() if one.at <= until_ns and (one.at, one.path) > begin)
        found = heapq.nsmallest(AT_ONCE, due)
        self.more = len(found) == AT_ONCE
        return found

    @property
    def mark(self) -> Mark:
        """The mark as it was, with the folders as they are; known after `oldest`."""
        return msgspec.structs.replace(self._before, seen=self._seen)

    @property
    def changed(self) -> bool:
        """Whether folders came or went."""
        return self._seen != self._before.seen

    def _walk(self) -> Iterator[Found]:
        """Yield every regular file; hidden ones and links are passed over."""
        waiting = [b""]
        while waiting:
            below = waiting.pop()
            try:
                # Not held open: a folder may have any number of files, a process few handles.
                with os.scandir(os.path.join(os.fsencode(self._folder), below)) as entries:  # noqa: PTH118
                    seen = self._first_seen(below)
                    for entry in entries:
                        yield from self._entry(entry, below, seen, waiting)
            except OSError as error:
                self._refused(below, error)

    def _entry(
        self, entry: os.DirEntry[bytes], below: bytes, seen: int, waiting: list[bytes]
    ) -> Iterator[Found]:
        if entry.name.startswith(b"."):
            return
        path = below + b"/" + entry.name if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            if not self._skip or self._identity(entry) not in self._skip:
                waiting.append(path)
        elif entry.is_file(follow_symlinks=False):
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                return
            if (found.st_dev, found.st_ino) not in self._skip:
                at = max(found.st_ctime_ns, seen)
                yield Found(at, path, found.st_ctime_ns, found.st_size)

    @staticmethod
    def _identity(entry: os.DirEntry[bytes]) -> Identity:
        found = entry.stat(follow_symlinks=False)
        return found.st_dev, found.st_ino

    def _first_seen(self, below: bytes) -> int:
        """Return where a folder came in that lies at this place, and remember it."""
        found = os.stat(os.path.join(os.fsencode(self._folder), below))  # noqa: PTH116, PTH118
        what = b"%d %d " % (found.st_dev, found.st_ino) + below
        key = hashlib.sha256(what).digest()[:_ID_BYTES]
        self._seen[key] = self._before.seen.get(key, self._new_at)
        return self._seen[key]

    def _refused(self, below: bytes, error: OSError) -> None:
        if not below:
            raise TransientError(
                f"{shown(self._folder)} cannot be read ({error.strerror}): expected a folder; "
                "it is looked at again later. Mount it, or correct `path` or its permissions"
            ) from None
        if isinstance(error, FileNotFoundError):
            return  # it went away while we walked
        self.unreadable += 1
        where = shown(Path(os.fsdecode(below)))
        self.trouble = self.trouble or f"{where} ({error.strerror})"
