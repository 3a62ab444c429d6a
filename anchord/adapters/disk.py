"""What every adapter that has to do with files needs: names that last, and reads that end."""

from __future__ import annotations

import errno
import os
from pathlib import Path

SMALL = 1 << 20
"""More than any configuration, keyring, memo, cookie or password has."""


def read_small(path: Path, limit: int = SMALL) -> bytes:
    """Return a whole file that should be small, whatever lies in its place.

    A pipe that nobody writes into is not waited for, and of a file without end no more than `limit`
    bytes are read.

    Raises:
        OSError: it cannot be read, or is longer; as every other failure of reading.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        os.set_blocking(descriptor, True)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"longer than the {limit:,} bytes expected at most", str(path))
    return data


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut: a rename alone does not promise that."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
