"""What the engine asks of a folder of published files, wherever it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Tree(Protocol):
    """Files below one root, read only. It can be pickled, so that other processes read it, too.

    Paths are relative, their parts divided by `/`. What cannot be read (no permission, a link that
    leads out of the tree, a pipe) is walked over like any file, and refused when it is read.
    """

    name: str
    """What people call it."""

    def walk(self) -> Iterator[str]:
        """Yield the path of every file, in the order of their text."""
        ...

    def read(self, path: str, limit: int) -> bytes | None:
        """Return a file's bytes, None when there is no such file.

        Raises:
            RefusedError: it cannot be read, or has more than `limit` bytes.
        """
        ...

    def hash(self, path: str) -> tuple[int, bytes] | None:
        """Return a file's size and SHA-256, None when there is no such file.

        Raises:
            RefusedError: it cannot be read.
        """
        ...
