"""Files that are being written: named `.<name>.<pid>.part`, locked by their writer.

kill -9 leaves such a file behind. The kernel let go of its lock, so the next export into the
folder knows that nobody writes it any more, and takes it away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

_MINUTE_S = 60.0
"""Younger parts are left alone: between making and locking one there is a moment."""
_PART = re.compile(r"\.(?P<name>.+)\.[0-9]+\.part", re.DOTALL)


def part_of(path: Path) -> Path:
    """Return the name under which this process writes `path`."""
    return path.with_name(part_name(path.name))


def part_name(name: str) -> str:
    """Return what this process calls a file of that name while it writes it."""
    return f".{name}.{os.getpid()}.part"


def hold(file: IO[bytes]) -> None:
    """Show that the file is being written; where locks are unknown, nothing is cleared either."""
    with contextlib.suppress(OSError):
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def clear_abandoned(folder: Path, names: Iterable[str], *, of: str | None = None) -> set[str]:
    """Remove the parts nobody writes any more; return their names.

    Args:
        folder: where they are.
        names: what is in the folder.
        of: only parts of this file; None: of any.
    """
    gone = set()
    for name in names:
        found = _PART.fullmatch(name)
        if found and of in {None, found["name"]} and _remove(folder / name):
            gone.add(name)
    return gone


def _remove(path: Path) -> bool:
    """Remove a part unless its writer holds it; what cannot be opened or locked stays."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if time.time() - os.fstat(handle).st_mtime < _MINUTE_S:
            return False
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
