"""The folder where files wait until archive.org lists them, and the ZIPs in it.

A ZIP here is a function of its members alone: nothing is compressed, every date is the format's
first (1980-01-01), rights and versions are fixed, members stand in the order given. So the same
members give the same bytes on every machine, and a ZIP can be made again from its records. The
format is PKWARE's APPNOTE 6.3.10 in what all tools read: a file ends before it would need ZIP64.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from anchord.adapters.disk import sync_folder
from anchord.errors import DiskError, FatalError
from anchord.ports.archive import Packed

_VERSION = 20
_MADE_BY_UNIX = 3
_UTF8_NAMES = 0x800
_FIRST_DATE = (1 << 5) | 1
"""1980-01-01 as the format counts; its time of day is 0."""
_RIGHTS = 0o100644 << 16
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s4B4H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_MAX_MEMBERS = 0xFFFF - 1
_MAX_BYTES = 0xFFFF_FFFF - 1

_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]+")
_MAX_NAME_BYTES = 200
_PART = re.compile(r"\..+\.part", re.DOTALL)


class FolderSpool:
    """Implements `anchord.ports.archive.Spool`. One thread at a time writes to it.

    Args:
        folder: made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pack(self, name: str, members: Iterable[tuple[str, bytes]], max_bytes: int) -> Packed:
        """Write a deterministic ZIP; the same members give the same bytes everywhere.

        Stops before the member that would exceed `max_bytes` (never before the first). Holds one
        member and the directory in memory, however long the file gets.

        Raises:
            DiskError: the disk failed or is full, and nothing is left behind.
            FatalError: a name that cannot be one, twice the same, or no member at all.
        """
        with self._writing(name) as out:
            writer = _ZipWriter(out, min(max_bytes, _MAX_BYTES))
            left_over = next((pair for pair in members if not writer.add(*pair)), None)
            writer.end(name)
        return self._packed(name, out, writer, left_over)

    def write(self, name: str, data: bytes) -> Packed:
        """Write a plain file, whole and durable.

        Raises:
            FatalError: the disk failed or is full, or the name cannot be one.
        """
        with self._writing(name) as out:
            out.write(data)
        return self._packed(name, out, None, None)

    def path(self, name: str) -> Path | None:
        """Return where a file lies; None when it is not there.

        Raises:
            FatalError: the name cannot be one.
        """
        path = self._folder / _checked(name)
        return path if path.is_file() else None

    def holds(self, name: str, sha256: bytes, members: Sequence[tuple[str, bytes]]) -> bool:
        """Tell whether a ZIP that lies here is this one, with these members and no others.

        Raises:
            FatalError: the name cannot be one.
        """
        path = self._folder / _checked(name)
        try:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").digest() != sha256:
                    return False
                with zipfile.ZipFile(file) as archive:
                    found = archive.infolist()
                    return len(found) == len(members) and all(
                        (one.filename, hashlib.sha256(archive.read(one)).digest()) == member
                        for one, member in zip(found, members, strict=True)
                    )
        except (OSError, zipfile.BadZipFile):
            return False

    def remove(self, name: str) -> None:
        """Take a file away; one that is not there is no error.

        Raises:
            FatalError: the disk failed, or the name cannot be one.
        """
        path = self._folder / _checked(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _broken(path, error) from None

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[_Hashing]:
        """Give a file to write, which becomes `name` whole and durable, or is gone.

        If we are killed in between, a part is left that the next file takes away.
        """
        path = self._folder / _checked(name)
        part = path.with_name(f".{name}.{os.getpid()}.part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _clear_parts(self._folder)
            written = part
            try:
                with part.open("wb") as file:
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
                    yield _Hashing(file)
                    file.flush()
                    os.fsync(file.fileno())
                    written = part.replace(path)
                sync_folder(self._folder)
            except BaseException:
                _discard(written)
                raise
        except OSError as error:
            raise _broken(path, error) from None

    def _packed(
        self,
        name: str,
        out: _Hashing,
        writer: _ZipWriter | None,
        left_over: tuple[str, bytes] | None,
    ) -> Packed:
        return Packed(
            path=self._folder / name,
            size=out.size,
            md5=out.md5.digest(),
            sha1=out.sha1.digest(),
            sha256=out.sha256.digest(),
            members=writer.count if writer else 0,
            member_sha256s=bytes(writer.sha256s) if writer else b"",
            left_over=left_over,
        )


class _Hashing:
    """A file that is hashed as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = 0
        # What archive.org lists, and what is signed (sha256): md5 and sha1 guard nothing alone.
        self.md5 = hashlib.md5(usedforsecurity=False)
        self.sha1 = hashlib.sha1(usedforsecurity=False)
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)
        for digest in (self.md5, self.sha1, self.sha256):
            digest.update(data)


class _ZipWriter:
    """Writes a ZIP from front to back, without going back (APPNOTE 4.3.6)."""

    def __init__(self, out: _Hashing, max_bytes: int) -> None:
        self._out, self._max_bytes = out, max_bytes
        self._directory = bytearray()
        self._names: set[bytes] = set()
        self.sha256s = bytearray()
        self.count = 0

    def add(self, name: str, data: bytes) -> bool:
        """Write a member; False when the file must end before it.

        Raises:
            FatalError: a name that cannot be one, or that is in the file already.
        """
        raw = _checked(name).encode()
        size = self._out.size + _LOCAL.size + len(raw) + len(data)
        size += len(self._directory) + _CENTRAL.size + len(raw) + _END.size
        if self.count and (size > self._max_bytes or self.count >= _MAX_MEMBERS):
            return False
        if raw in self._names:
            raise FatalError(f"two members of one ZIP are named {name!r}: this is a bug")
        if size > _MAX_BYTES:
            raise FatalError(f"{name} has {len(data):,} bytes: more than a ZIP takes")
        self._names.add(raw)
        self._write(raw, data)
        return True

    def _write(self, raw: bytes, data: bytes) -> None:
        flags = 0 if raw.isascii() else _UTF8_NAMES
        start, crc, size = self._out.size, zlib.crc32(data), len(data)
        same = (flags, 0, 0, _FIRST_DATE, crc, size, size, len(raw), 0)
        self._out.write(_LOCAL.pack(b"PK\x03\x04", _VERSION, *same) + raw)
        self._out.write(data)
        self._directory += _CENTRAL.pack(
            b"PK\x01\x02", _VERSION, _MADE_BY_UNIX, _VERSION, 0, *same, 0, 0, 0, _RIGHTS, start
        )
        self._directory += raw
        self.sha256s += hashlib.sha256(data).digest()
        self.count += 1

    def end(self, name: str) -> None:
        """Write the directory.

        Raises:
            FatalError: there is no member.
        """
        if not self.count:
            raise FatalError(f"{name} would hold nothing: this is a bug")
        start, size = self._out.size, len(self._directory)
        self._out.write(bytes(self._directory))
        end = _END.pack(b"PK\x05\x06", 0, 0, self.count, self.count, size, start, 0)
        self._out.write(end)


def _checked(name: str) -> str:
    """Return a name that is one part of a path and nothing else.

    Raises:
        FatalError: it is not.
    """
    try:
        fits = len(name.encode()) <= _MAX_NAME_BYTES
    except UnicodeEncodeError:
        fits = False
    if not fits or name[:1] == "." or not _NAME.fullmatch(name):
        raise FatalError(
            f"{name!r:.240} cannot be the name of a file: expected up to {_MAX_NAME_BYTES} bytes "
            "without separators and control characters, not beginning with a dot"
        )
    return name


def _clear_parts(folder: Path) -> None:
    """Remove parts that nobody writes any more: their writers were killed."""
    for part in folder.iterdir():
        if not _PART.fullmatch(part.name):
            continue
        with contextlib.suppress(OSError), part.open("rb") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _discard(part: Path) -> None:
    with contextlib.suppress(OSError):
        part.unlink(missing_ok=True)


def _broken(path: Path, error: OSError) -> DiskError:
    return DiskError(
        f"{path} cannot be written: {error.strerror or 'input/output error'}; nothing of it is "
        "kept, make room or repair the disk and run again"
    )
