"""A published tree: many small files for a static web server, and an index that speaks for them.

What is true if we crash: every file is whole, the old one or the new one. Until `commit` the old
index lists the old shards, which still lie there, so all a reader can see is that files which
changed since are not the ones it lists; publishing again puts that right. `commit` gives the
shards their names, and the index right after; a crash within that moment leaves an index whose
shards do not fit it, which readers see and refuse until the tree is published again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Self

import msgspec

from anchord.adapters.disk import read_small, sync_folder
from anchord.adapters.outputs.tree_before import Before
from anchord.adapters.outputs.tree_files import beside, compare, linked, replace, same_file
from anchord.core.mirror_manifest import MANIFEST
from anchord.core.tree_index import (
    INDEX,
    MAX_INDEX_BYTES,
    IndexLine,
    Shard,
    line_of,
    shard_name,
    stated_shards,
)
from anchord.errors import AnchordError, ConfigError, FatalError, StoreBusyError

MARKER = ".publishing.lock"
"""Held while a tree is written; it shows that a folder is a tree of ours before its first index."""
OURS = ("pith", "record", "keys", "log", "assets", "schemas", ".well-known")
"""Folders of a tree; whatever lies beside them is the operator's."""
ROOT_FILES = (
    INDEX, MANIFEST, "pith-signing-key.json", "README.txt", "index.html", "llms.txt",
    "openapi.json", "context.jsonld", "pith.sty", "pages.json",
)  # fmt: skip
SHOWN = 20
_SPOOL = ".publishing"
_AT_ONCE = 20_000
_LONGEST = 1 << 24
"""More than a manifest or an index has."""
_ASSET = re.compile(r"assets/[A-Za-z0-9_.-]+-[0-9a-f]{8}\.[a-z0-9]+")
"""A file named by its content: nothing asks for it once all pages are of a later anchord."""


class TreeOutput:
    """Writes a tree; use it as a context manager, for it holds a lock.

    Args:
        root: the folder; made when it is not there.
        force: take a folder that holds something else.
        private: files and folders that must never be served.

    Raises:
        ConfigError: it cannot be made, is no tree of ours, or would publish something private.
        StoreBusyError: another process publishes into it.
    """

    def __init__(self, root: Path, *, force: bool = False, private: Sequence[Path] = ()) -> None:
        self._root = root
        _check_private(root, private)
        try:
            root.mkdir(parents=True, exist_ok=True)
            if not force:
                _check_ours(root)
            self._lock = _held(root)
            self._folder = root / _SPOOL
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir()
            for name in ROOT_FILES:  # Nobody else writes here while we hold the lock.
                for part in root.glob(f".{name}.*.part"):
                    part.unlink()
        except OSError as error:
            raise ConfigError(f"{root} cannot be published to: {error.strerror}") from None
        self._put = _Spool(self._folder, "put")
        self._seen = _Spool(self._folder, "seen")
        self._staged: list[tuple[Path, Path]] = []
        self._noted: tuple[bytes, IndexLine | None] = (b"", None)
        """The bytes that were put last, and their line."""
        self._before = Before(root, ())
        self._unsynced = False
        self._stray: list[str] = []
        self._strays = 0
        self._superseded: list[str] = []
        self._assets = False
        """Assets were put, so those of an earlier anchord have no page any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; what was staged and not committed is taken away."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for written, _ in self._staged:
            written.unlink(missing_ok=True)
        self._before.close()
        self._lock.close()

    def put(self, path: str, data: bytes) -> str:
        """Write one file, unless it is there already."""
        target = f"{self._root}/{path}"
        with self._failing(path):
            outcome = compare(target, data)
            if outcome != "same":
                self._unsynced = True
                replace(beside(target, data), target)
            self._note(line_of(path, data), data)
        self._assets |= path.startswith("assets/")
        return outcome

    def link(self, path: str, of: str, data: bytes) -> str:
        """Make a hard link, where the file system has them; else a copy."""
        target, source = f"{self._root}/{path}", f"{self._root}/{of}"
        with self._failing(path):
            outcome = "same" if same_file(target, source) else compare(target, data)
            if outcome != "same":
                self._unsynced = True
                if not linked(target, source):
                    return self.put(path, data)
            known, line = self._noted
            if line is None or known is not data:
                line = line_of(path, data)
            self._note(msgspec.structs.replace(line, path=path), data)
        return outcome

    def _note(self, line: IndexLine, data: bytes) -> None:
        """Take in a file's line; what is linked next has the same bytes."""
        self._noted = (data, line)
        self._put.add(line.path, msgspec.json.encode(line))

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes."""
        with self._failing(path):
            try:
                return read_small(self._root / path, _LONGEST)
            except FileNotFoundError:
                return None

    def recall(self, shards: Sequence[Shard]) -> None:
        """Go by what an earlier index says."""
        self._before.close()
        self._before = Before(self._root, shards)

    def keep(self, path: str) -> bytes | None:
        """Let a file be as the recalled index has it, if it is."""
        with self._failing(path):
            found = self._before.file(path)
            if found is None:
                return None
            self._note(*found)
        return found[1]

    def settle(self) -> None:
        """Wait until everything is on the disk: once for all files, not once for each."""
        if self._unsynced:
            os.sync()
            self._unsynced = False

    def shards(self) -> Iterator[tuple[str, list[IndexLine]]]:
        """Yield the lines of all that was put, shard by shard; look for strays on the way."""
        with self._failing("the tree"):
            for path in self._walk():
                self._seen.add(path, path.encode("utf-8", "surrogateescape"))
            for name in sorted(self._put.names() | self._seen.names()):
                found = [msgspec.json.decode(raw, type=IndexLine) for raw in self._put.read(name)]
                lines = {line.path: line for line in found}
                self._compare_seen(name, lines)
                if lines:
                    yield name, list(lines.values())

    def stage(self, path: str, data: bytes) -> None:
        """Write beside; the name comes with `commit`."""
        target = f"{self._root}/{path}"
        with self._failing(path):
            if compare(target, data) != "same":
                self._unsynced = True
                self._staged.append((Path(beside(target, data)), Path(target)))

    def commit(self, path: str, data: bytes) -> None:
        """Name what was staged, then `path`; remove what it does not speak of any more."""
        target = self._root / path
        self.settle()
        with self._failing(path):
            changed = compare(str(target), data) != "same"
            if changed:
                self._staged.append((Path(beside(str(target), data, durable=True)), target))
            while self._staged:
                written, name = self._staged[0]
                if name == target and (self._root / "index").is_dir():
                    sync_folder(self._root / "index")
                written.replace(name)
                del self._staged[0]
            if changed:
                sync_folder(self._root)
            self._clear(data)

    def strays(self) -> tuple[int, Sequence[str]]:
        """Return what lies there that nobody put."""
        return self._strays, sorted(self._stray)

    def _compare_seen(self, name: str, lines: dict[str, IndexLine]) -> None:
        for raw in self._seen.read(name):
            path = raw.decode("utf-8", "surrogateescape")
            if path in lines:
                continue
            if self._replaced(path):
                self._superseded.append(path)
                continue
            self._strays += 1
            if len(self._stray) < SHOWN:
                self._stray.append(path)

    def _replaced(self, path: str) -> bool:
        """Tell whether a file that nobody put was ours, and another one stands for it now."""
        if path.startswith("log/tile/"):
            return ".p/" in path
        return self._assets and _ASSET.fullmatch(path) is not None

    def _walk(self) -> Iterator[str]:
        """Yield the files of our folders; what a killed publisher left half-written goes."""
        folders = [name for name in OURS if (self._root / name).is_dir()]
        while folders:
            folder = folders.pop()
            for entry in os.scandir(self._root / folder):
                path = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.name.startswith(".") and entry.name.endswith(".part"):
                    Path(entry.path).unlink()
                else:
                    yield path

    def _clear(self, index: bytes) -> None:
        """Remove tiles that became full, old assets, and shards that hold nothing any more."""
        for path in self._superseded:
            (self._root / path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (self._root / path).parent.rmdir()
        kept = {shard.name.rpartition("/")[2] for shard in stated_shards(index)}
        folder = self._root / "index"
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.name.endswith((".jsonl", ".part")) and file.name not in kept:
                file.unlink()

    @contextlib.contextmanager
    def _failing(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FatalError(
                f"{self._root / path} cannot be written: {error.strerror}; make room or give "
                "access, then publish again"
            ) from None


class _Spool:
    """Lines by shard, in files beside the tree, so that memory stays flat."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder, self._kind = folder, kind
        self._lines: dict[str, list[bytes]] = {}
        self._count = 0
        self._known: set[str] = set()

    def add(self, path: str, line: bytes) -> None:
        name = shard_name(path) if path.isascii() else "index/00.jsonl"
        self._lines.setdefault(name, []).append(line)
        self._known.add(name)
        self._count += 1
        if self._count >= _AT_ONCE:
            self._flush()

    def names(self) -> set[str]:
        return self._known

    def read(self, name: str) -> Iterator[bytes]:
        self._flush()
        path = self._path(name)
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    yield line.rstrip(b"\n")

    def _flush(self) -> None:
        for name, lines in self._lines.items():
            with self._path(name).open("ab") as file:
                file.write(b"".join([line + b"\n" for line in lines]))
        self._lines, self._count = {}, 0

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._kind}-{name.rpartition('/')[2]}"


def _held(root: Path) -> IO[bytes]:
    """Take the tree's lock: two publishers would mix their indexes."""
    file = (root / MARKER).open("ab")
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StoreBusyError(f"another process publishes into {root}: try again later") from None
    return file


def _check_private(root: Path, private: Sequence[Path]) -> None:
    """Refuse a folder that would put keys or the store on the web, whatever was forced."""
    where = root.resolve()
    for path in private:
        inner = path.resolve()
        if inner.is_relative_to(where) or (inner.is_dir() and where.is_relative_to(inner)):
            raise ConfigError(
                f"{root} cannot be published to: {path} belongs to it or holds it, and must not be "
                "served; name a folder of its own"
            )


def _check_ours(root: Path) -> None:
    names = {entry.name for entry in root.iterdir()}
    if not names or MARKER in names:
        return
    if INDEX in names:
        with contextlib.suppress(AnchordError):
            stated_shards(read_small(root / INDEX, MAX_INDEX_BYTES))
            return
    raise ConfigError(
        f"{root} holds something that is no published tree ({min(names)!r:.80}, ...): "
        "name an empty folder, or say --force to write among it; nothing of it is deleted"
    )
