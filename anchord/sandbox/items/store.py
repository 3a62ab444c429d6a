"""What the archive holds: items, files, tasks, and the blobs on disk. Time comes as an argument.

Everything that happened is a line of the journal, and the state is what the lines make of an
empty archive; so a second run goes on where the first one ended, whatever ended it.
"""

from __future__ import annotations

import binascii
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from anchord.sandbox.items.tasks import Task, Version

_PIECE = 1 << 18


class Made(msgspec.Struct, frozen=True, tag="made"):
    """An item was made; `shown`: at once, without a task."""

    identifier: str
    at: float
    uploader: str
    metadata: dict[str, str | list[str]]
    shown: bool = False


class Queued(msgspec.Struct, frozen=True, tag="queued"):
    """An upload or a deletion was taken."""

    identifier: str
    at: float
    task: Task


class Halted(msgspec.Struct, frozen=True, tag="halted"):
    """The item's tasks stop (2 error, 9 paused) or go on again (0)."""

    identifier: str
    at: float
    wait_admin: int


class Darkened(msgspec.Struct, frozen=True, tag="darkened"):
    """The item was taken down, or put up again."""

    identifier: str
    at: float
    dark: bool


class Lost(msgspec.Struct, frozen=True, tag="lost"):
    """A file is gone without a word."""

    identifier: str
    at: float
    name: str


class Bent(msgspec.Struct, frozen=True, tag="bent"):
    """The item lists other checksums for a file than it had."""

    identifier: str
    at: float
    version: Version


Happened = Made | Queued | Halted | Darkened | Lost | Bent


class Item(msgspec.Struct):
    """One item: what its metadata shows, and what still waits."""

    identifier: str
    number: int
    uploader: str
    made: float
    metadata: dict[str, str | list[str]]
    shown: bool = False
    dark: bool = False
    halted: int = 0
    changed: float = 0.0
    files: dict[str, Version] = {}
    queue: list[Task] = []
    history: list[Task] = []

    def coming(self, name: str) -> Version | None:
        """Return the newest version of a file, also one that waits; None: none, or deleted."""
        for task in reversed(self.queue):
            if task.name == name:
                return task.put
        return self.files.get(name)

    def all_names(self) -> set[str]:
        """Return the names of files that are there or wait."""
        return {*self.files, *(task.name for task in self.queue if task.put is not None)}

    def size(self) -> int:
        """Return the bytes of what is there or waits."""
        waiting = sum(task.put.size for task in self.queue if task.put is not None)
        return waiting + sum(version.size for version in self.files.values())


class Blobs:
    """The bytes of files, each in its own file of one folder.

    A crash leaves at most a blob no line of the journal names; `keep_only` takes it away.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._numbers = itertools.count(1)

    def path(self, blob: int) -> Path:
        """Return where a blob lies."""
        return self.folder / str(blob)

    def take(self, name: str, length: int, read: Callable[[int], bytes], at: float) -> Version:
        """Stream a body to disk and hash it on the way.

        Raises:
            EOFError: the sender went away before the end.
        """
        blob = next(self._numbers)
        with self.path(blob).open("xb") as target:
            try:
                return _copied(name, blob, length, read, target, at)
            except (EOFError, OSError):
                self.path(blob).unlink(missing_ok=True)
                raise

    def remove(self, blob: int) -> None:
        """Take a blob away; one that is gone is no error."""
        self.path(blob).unlink(missing_ok=True)

    def keep_only(self, blobs: set[int]) -> None:
        """Take away what no file or task needs, and number new ones behind all others."""
        for file in self.folder.iterdir():
            if int(file.name) not in blobs:
                file.unlink()
        self._numbers = itertools.count(max(blobs, default=0) + 1)


def _copied(
    name: str, blob: int, length: int, read: Callable[[int], bytes], target: BinaryIO, at: float
) -> Version:
    md5, sha1, crc, left = hashlib.md5(usedforsecurity=False), hashlib.sha1(), 0, length  # noqa: S324 (what the archive lists)
    while left > 0:
        piece = read(min(left, _PIECE))
        if not piece:
            raise EOFError(f"{length} bytes were announced, {length - left} came")
        left -= len(piece)
        md5.update(piece)
        sha1.update(piece)
        crc = binascii.crc32(piece, crc)
        target.write(piece)
    return Version(name, blob, length, md5.hexdigest(), sha1.hexdigest(), f"{crc:08x}", at)


class State:
    """All items. Not for threads; the archive holds a lock around it."""

    def __init__(self, folder: Path) -> None:
        self.blobs = Blobs(folder / "blobs")
        self.items: dict[str, Item] = {}
        self._busy: dict[str, Item] = {}
        self._tasks = itertools.count(1)
        self._journal = folder / "journal.jsonl"
        self._replay()
        self._lines = self._journal.open("ab")

    def close(self) -> None:
        """Close the journal."""
        self._lines.close()

    def happen(self, what: Happened) -> None:
        """Write a line and do what it says. A line that was written whole has happened."""
        self._lines.write(msgspec.json.encode(what) + b"\n")
        self._lines.flush()
        self._apply(what)

    def next_task(self) -> int:
        """Return the number of the next task."""
        return next(self._tasks)

    def settle(self, now: float) -> None:
        """Run every task whose time has come."""
        for item in list(self._busy.values()):
            self._settle(item, now)

    def waiting(self) -> Counter[str]:
        """Return the tasks in the queue by item."""
        return Counter({item.identifier: len(item.queue) for item in self._busy.values()})

    def _replay(self) -> None:
        lines = self._journal.read_bytes() if self._journal.exists() else b""
        whole = lines[: lines.rfind(b"\n") + 1]
        if whole != lines:
            self._journal.write_bytes(whole)  # what was being written when the run ended
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Happened)
        last = 0
        for line in whole.splitlines():
            what = decoder.decode(line)
            self._apply(what)
            last = max(last, what.task.task_id if isinstance(what, Queued) else 0)
        self._tasks = itertools.count(last + 1)
        self.blobs.keep_only({version.blob for version in self._versions()})

    def _versions(self) -> Iterator[Version]:
        for item in self.items.values():
            yield from item.files.values()
            yield from (task.put for task in item.queue if task.put is not None)

    def _apply(self, what: Happened) -> None:
        if isinstance(what, Made):
            self.items[what.identifier] = Item(
                what.identifier,
                len(self.items) + 1,
                what.uploader,
                what.at,
                what.metadata,
                shown=what.shown,
                changed=what.at,
            )
            return
        item = self.items[what.identifier]
        self._settle(item, what.at)
        match what:
            case Queued(task=task):
                item.queue.append(task)
                self._busy[item.identifier] = item
            case Halted(wait_admin=wait_admin):
                item.halted = wait_admin
            case Darkened(dark=dark):
                item.dark = dark
            case Lost(name=name):
                self.blobs.remove(item.files.pop(name).blob)
            case Bent(version=version):
                item.files[version.name] = version

    def _settle(self, item: Item, now: float) -> None:
        while item.queue and item.queue[0].due <= now and not item.halted:
            task = item.queue.pop(0)
            self._run(item, task)
            item.history.append(task)
        if not item.queue:
            self._busy.pop(item.identifier, None)

    def _run(self, item: Item, task: Task) -> None:
        item.shown, item.changed = True, task.due
        if task.cmd == "derive.php":
            return
        old = item.files.pop(task.name, None)
        if task.put is not None:
            item.files[task.name] = task.put
        if old is not None and task.keep_old:
            kept = _history_name(item, task.name)
            item.files[kept] = msgspec.structs.replace(old, name=kept)
        elif old is not None:
            self.blobs.remove(old.blob)


def _history_name(item: Item, name: str) -> str:
    """Return where an old version is kept, as IAS3 names it (x-archive-keep-old-version)."""
    names = (f"history/files/{name}.~{number}~" for number in itertools.count(1))
    return next(kept for kept in names if kept not in item.files)
