"""A tree of files in a folder. Nothing outside of it is read, whatever links stand in it."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from anchord.errors import ConfigError, RefusedError

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Not blocking: opening a pipe would wait for whoever writes into it."""


class FolderTree:
    """Reads the files below a folder.

    Args:
        folder: where they lie.

    Raises:
        ConfigError: there is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder: name the one that was published or exported")
        self._root = os.path.realpath(folder)
        self._entered = ("", self._root)
        """The folder that was read from last, and where it really is: files come by folder."""

    def walk(self) -> Iterator[str]:
        """Yield the path of every file, in the order of their text.

        Raises:
            ConfigError: the folder itself cannot be listed.
        """
        try:
            yield from self._below("")
        except OSError as error:
            raise ConfigError(f"{self.name} cannot be listed: {error.strerror}") from None

    def _below(self, prefix: str) -> Iterator[str]:
        with os.scandir(Path(self._root, prefix)) as entries:
            # A folder sorts by its name and `/`, so that whole paths come in their order.
            names = sorted(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
            )
        for name in names:
            path = prefix + name
            if not name.endswith("/"):
                yield path
                continue
            try:
                yield from self._below(path)
            except PermissionError:
                yield path  # it is refused when it is read, and so comes to be known

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a file's bytes, None when there is no such file.

        Raises:
            RefusedError: it cannot be read, or has more than `limit` bytes.
        """
        try:
            with self._open(path) as file:
                raw = file.read(limit + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RefusedError(f"{_shown(path)} cannot be read: {error.strerror}") from None
        if len(raw) > limit:
            raise RefusedError(f"{_shown(path)} has more than {limit:,} bytes: it is no such file")
        return raw

    def hash(self, path: str) -> tuple[int, bytes] | None:
        """Return a file's size and SHA-256, None when there is no such file.

        Raises:
            RefusedError: it cannot be read.
        """
        try:
            with self._open(path) as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                return file.tell(), digest
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RefusedError(f"{_shown(path)} cannot be read: {error.strerror}") from None

    def _open(self, path: str) -> BufferedReader:
        """Open a file for reading.

        Raises:
            OSError: it is not there or cannot be read.
            RefusedError: the path leads out, or to something that is no file.
        """
        folder, _, name = path.rpartition("/")
        if folder != self._entered[0]:
            self._entered = (folder, self._inside(folder, path))
        try:
            descriptor = os.open(f"{self._entered[1]}/{name}", _READ | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP and name not in ("", ".", ".."):
                raise
            descriptor = os.open(self._inside(path, path), _READ)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise RefusedError(f"{_shown(path)} is no file but something else: it is not read")
        return os.fdopen(descriptor, "rb")

    def _inside(self, path: str, whole: str) -> str:
        """Return where a path really leads, which must be within the tree."""
        real = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118 - called a lot
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            raise RefusedError(f"{_shown(whole)} leads out of {self.name}: it is not followed")
        return real


def _shown(path: str) -> str:
    """Return a path that every screen can show."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
