"""What every adapter that has to do with files needs: names that last, and reads that end."""

from __future__ import annotations

import errno
import os
import tarfile
from pathlib import Path
from typing import Self

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


class TarHeader(tarfile.TarInfo):
    """A header of a tar of strangers: what the library would read whole into memory is short.

    Names that are too long for a header, and whatever else pax has to say, come in blocks before
    the member, of any length that is stated (POSIX.1-2024, pax, "pax Header Block").
    """

    _LONGEST = 1 << 16
    _BEFORE_MEMBERS = (
        tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    )  # fmt: skip

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the header in a block.

        Raises:
            tarfile.TarError: it is none, or what it announces is too long.
        """
        found = super().frombuf(buf, encoding, errors)
        if found.type in cls._BEFORE_MEMBERS and found.size > cls._LONGEST:
            raise tarfile.ReadError(f"it has {found.size:,} bytes of headers before a member")
        return found
