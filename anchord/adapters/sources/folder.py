"""The files of a folder and the folders in it, in sorted order, whatever links lead where."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from anchord.adapters.sources.checksums import text
from anchord.adapters.sources.streams import why
from anchord.core.model import Rejection

Identity = tuple[int, int]
"""Device and inode: the same file, whatever it is called."""


def walk(folder: Path, skip: Collection[Identity]) -> Iterator[Path | Rejection]:
    """Yield each regular file below `folder`, depth first by name.

    Hidden files and folders are passed over. Links are followed, but each folder is read once,
    so a loop of links ends. Only the names of the folders on the way are held.

    Args:
        folder: where to begin; read even when its own name is hidden.
        skip: files and folders to pass over.
    """
    seen = set(skip)
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            found = path.stat()
            identity = (found.st_dev, found.st_ino)
            if stat.S_ISDIR(found.st_mode):
                if identity not in seen:
                    seen.add(identity)
                    waiting.extend(_children(path))
                continue
        except OSError as error:
            yield Rejection(where=shown(path), line=None, reason=why(error))
            continue
        if not stat.S_ISREG(found.st_mode):
            reason = "is no regular file (a pipe, a socket or a device): name it directly"
            yield Rejection(where=shown(path), line=None, reason=reason)
        elif identity not in skip:
            yield path


def _children(folder: Path) -> list[Path]:
    """Return what is in a folder, last name first, hidden ones left out."""
    names = sorted(os.listdir(folder), reverse=True)  # noqa: PTH208  names sort faster than paths
    return [folder / name for name in names if not name.startswith(".")]


def identities(paths: Collection[Path]) -> frozenset[Identity]:
    """Return the identities of those `paths` that exist."""
    found: set[Identity] = set()
    for path in paths:
        try:
            entry = path.stat()
        except OSError:
            continue
        found.add((entry.st_dev, entry.st_ino))
    return frozenset(found)


def shown(path: Path) -> str:
    """Return a path as valid text."""
    return text(os.fsencode(path))
