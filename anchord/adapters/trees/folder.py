"""A tree of files in a folder. Nothing outside of it is read, whatever links stand in it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from anchord.errors import ConfigError, RefusedError

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Not blocking: opening a pipe would wait for whoever writes into it."""
_PIECE = 1 << 16
"""Big files are hashed in pieces of this size."""


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
        self._above = ("", self._root)
        """The folder around it."""

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
        for name in self._names(prefix):
            path = prefix + name
            if not name.endswith("/"):
                yield path
                continue
            try:
                yield from self._below(path)
            except PermissionError:
                yield path  # it is refused when it is read, and so comes to be known

    def _names(self, prefix: str) -> list[str]:
        """Return what lies in a folder, a folder with `/`, so that whole paths come in order."""
        with os.scandir(f"{self._root}/{prefix}") as entries:
            return sorted(
                [
                    entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                ]
            )

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a file's bytes, None when there is no such file.

        Raises:
            RefusedError: it cannot be read, or has more than `limit` bytes.
        """
        try:
            descriptor, size = self._open(path)
            try:
                # A byte more than there is, so that the end is seen at once.
                raw = _read(descriptor, min(size, limit) + 1, limit + 1)
            finally:
                os.close(descriptor)
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
            descriptor, _ = self._open(path)
            try:
                return _hashed(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RefusedError(f"{_shown(path)} cannot be read: {error.strerror}") from None

    def _open(self, path: str) -> tuple[int, int]:
        """Open a file for reading; return its descriptor and its size.

        Raises:
            OSError: it is not there or cannot be read.
            RefusedError: the path leads out, or to something that is no file.
        """
        folder, _, name = path.rpartition("/")
        if folder != self._entered[0]:
            self._entered = (folder, self._enter(folder, path))
        try:
            descriptor = os.open(f"{self._entered[1]}/{name}", _READ | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP and name not in ("", ".", ".."):
                raise
            descriptor = os.open(self._inside(path, path), _READ)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise RefusedError(f"{_shown(path)} is no file but something else: it is not read")
        return descriptor, found.st_size

    def _enter(self, folder: str, whole: str) -> str:
        """Return where a folder really is; neighbours lie in one, which is looked up once."""
        parent, _, name = folder.rpartition("/")
        with contextlib.suppress(OSError, RefusedError):  # said below, of the whole path
            if parent != self._above[0]:
                self._above = (parent, self._inside(parent, whole))
            beneath = f"{self._above[1]}/{name}"
            if name not in ("", ".", "..") and stat.S_ISDIR(os.lstat(beneath).st_mode):
                return beneath
        return self._inside(folder, whole)

    def _inside(self, path: str, whole: str) -> str:
        """Return where a path really leads, which must be within the tree."""
        real = os.path.realpath(os.path.join(self._root, path))  # noqa: PTH118 - called a lot
        if real != self._root and not real.startswith(self._root.rstrip("/") + "/"):
            raise RefusedError(f"{_shown(whole)} leads out of {self.name}: it is not followed")
        return real


def _read(descriptor: int, first: int, limit: int) -> bytes:
    """Return up to `limit` bytes of a file, read in as few pieces as it gives them."""
    pieces = []
    ask = first
    while limit > 0 and (piece := os.read(descriptor, min(ask, limit))):
        pieces.append(piece)
        limit -= len(piece)
        ask = _PIECE
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _hashed(descriptor: int) -> tuple[int, bytes]:
    """Return size and SHA-256 of a file."""
    size, digest = 0, hashlib.sha256()
    while piece := os.read(descriptor, _PIECE):
        size += len(piece)
        digest.update(piece)
    return size, digest.digest()


def _shown(path: str) -> str:
    """Return a path that every screen can show."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
