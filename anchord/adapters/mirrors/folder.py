"""A mirror in a folder: a tree that was copied here, or is published on this machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from anchord.core.tree_index import safe_path
from anchord.errors import ConfigError, ProtocolError, TransientError
from anchord.ports.mirror import Absent, Fetched, NotModified


class FolderMirror:
    """Reads files of one folder, and nothing outside it whatever names and links say.

    Args:
        folder: the tree.

    Raises:
        ConfigError: it is no folder, or cannot be read.
    """

    at_once = 256

    def __init__(self, folder: Path) -> None:
        try:
            self._root = folder.resolve(strict=True)
            next(self._root.iterdir(), None)
        except OSError as error:
            raise ConfigError(
                f"{folder} cannot be read as a mirror: {error.strerror}; expected a folder with "
                "pith-mirrors.json, or such a file"
            ) from None
        self.name = str(self._root)

    def get(
        self, name: str, etag: str | None, last_modified: str | None, limit: int
    ) -> Fetched | NotModified | Absent:
        """Return one file; `etag` is made of its inode, size and time."""
        del last_modified
        if not safe_path(name):
            raise ProtocolError(f"{name!r:.120} leads out of the mirror's folder: not followed")
        try:
            path = (self._root / name).resolve(strict=True)
            if not path.is_relative_to(self._root):
                raise ProtocolError(f"{name!r:.120} is a link out of the mirror: not followed")
            return _read(path, name, etag, limit)
        except (FileNotFoundError, NotADirectoryError):
            return Absent()
        except (OSError, RuntimeError) as error:
            words = getattr(error, "strerror", None) or "links in a circle"
            raise TransientError(f"{name:.120} of {self.name} cannot be read: {words}") from None


def _read(path: Path, name: str, etag: str | None, limit: int) -> Fetched | NotModified | Absent:
    # A pipe would be waited for: what is no ordinary file is never read.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            return Absent()
        if not stat.S_ISREG(found.st_mode):
            raise ProtocolError(f"{name:.120} is no ordinary file: it is not read")
        mark = f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
        if mark == etag:
            return NotModified()
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(handle)
    if len(data) > limit:
        raise ProtocolError(
            f"{name:.120}: expected at most {limit:,} bytes, got more", too_long=True
        )
    return Fetched(data=data, etag=mark)
