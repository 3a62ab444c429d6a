"""What an earlier publication said of its tree: its shards, looked up without being held.

A shard's lines are in order of their paths, so a path is found by halving; a tree of a million
records has ten million lines.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from anchord.core.tree_index import IndexLine, Shard, shard_name

_START = len(b'{"path":"')
_line = msgspec.json.Decoder(IndexLine)


class Before:
    """The shards of an index that somebody checked.

    Args:
        root: of the tree.
        shards: as the index says. One that is not what it says has no lines.
    """

    def __init__(self, root: Path, shards: Sequence[Shard]) -> None:
        self._root = root
        self._shards: dict[str, mmap.mmap] = {}
        for shard in shards:
            with contextlib.suppress(OSError, ValueError):  # gone or empty
                self._take(shard)

    def _take(self, shard: Shard) -> None:
        with (self._root / shard.name).open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(data) == shard.size and sha256(data).hexdigest() == shard.sha256:
            self._shards[shard.name] = data
        else:
            data.close()

    def close(self) -> None:
        """Let go of the shards."""
        for data in self._shards.values():
            data.close()
        self._shards = {}

    def line(self, path: str) -> IndexLine | None:
        """Return what was said of a file; None: nothing."""
        data = self._shards.get(shard_name(path))
        if data is None:
            return None
        wanted = path.encode("ascii")
        low, high = 0, len(data)
        while low < high:
            middle = (low + high) // 2
            start = max(data.rfind(b"\n", low, middle) + 1, low)
            end = data.find(b"\n", middle, high)
            found = data[start + _START : data.find(b'"', start + _START)]
            if found == wanted:
                return _line.decode(data[start:end])
            low, high = (end + 1, high) if found < wanted else (low, start)
        return None

    def file(self, path: str) -> tuple[IndexLine, bytes] | None:
        """Return a file with its line; None where it is not what was said of it.

        Raises:
            OSError: it is there, and cannot be read.
        """
        line = self.line(path)
        data = None if line is None else _contents(f"{self._root}/{path}", line.size)
        if line is None or data is None or sha256(data).hexdigest() != line.sha256:
            return None
        return line, data


def _contents(path: str, size: int) -> bytes | None:
    """Return the bytes of a file that has so many of them."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read(size + 1)
    finally:
        os.close(handle)
