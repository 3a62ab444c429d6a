"""Export into one stream: a ustar archive written without an object a member, or plain bytes.

The same members give the same archive: owner, mode and time are constants. The layout is that of
POSIX.1-1988 (ustar), as in POSIX pax, "ustar Interchange Format".
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path
from typing import IO, Protocol

from anchord.adapters.outputs.part import clear_abandoned, hold, part_of
from anchord.errors import ConfigError, FatalError, RefusedError

BLOCK = 512
MAX_NAME = 100
MAX_SIZE = 0o77777777777
MOMENT = 315_532_800
"""1980-01-01, when zip files begin: members carry no time of their own."""

_BEFORE_SIZE = b"0000644\x000000000\x000000000\x00"
_AFTER_SIZE = b"%011o\x00" % MOMENT
_BLANK = b"        "
_TAIL = b"0" + bytes(100) + b"ustar\x0000" + bytes(32 + 32 + 8 + 8 + 155 + 12)
_FIXED_SUM = sum(_BEFORE_SIZE) + sum(_AFTER_SIZE) + sum(_BLANK) + sum(_TAIL)
_FLUSH = 1 << 20


def member(name: bytes, size: int) -> bytes:
    """Return the 512-byte header of a regular file.

    Raises:
        RefusedError: the name or the size does not fit.
    """
    if not 0 < len(name) <= MAX_NAME or size > MAX_SIZE:
        raise RefusedError(f"expected a name up to {MAX_NAME} bytes, got {name!r:.120}")
    digits = b"%011o\x00" % size
    check = _FIXED_SUM + sum(name) + sum(digits)
    return b"".join(
        (
            name.ljust(MAX_NAME, b"\x00"), _BEFORE_SIZE, digits, _AFTER_SIZE,
            b"%06o\x00 " % check, _TAIL,
        )
    )  # fmt: skip


class ByteSink(Protocol):
    """Takes bytes in order."""

    def write(self, data: bytes) -> None:
        """Take some."""
        ...

    def close(self) -> None:
        """End; only now the output is there."""
        ...

    def abandon(self) -> None:
        """Stop in the middle."""
        ...


class StreamSink:
    """Writes to an open stream, such as standard output, and leaves it open."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Write."""
        self._stream.write(data)

    def close(self) -> None:
        """Flush."""
        self._stream.flush()

    def abandon(self) -> None:
        """Leave what was written."""


class FileSink:
    """Writes a file that takes its name when it is whole.

    Args:
        path: the file.
        packed: compress with gzip; the same bytes in give the same bytes out.

    Raises:
        ConfigError: it cannot be made.
    """

    def __init__(self, path: Path, *, packed: bool) -> None:
        self._path = path
        self._beside = part_of(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            names = [entry.name for entry in path.parent.iterdir()]
            clear_abandoned(path.parent, names, of=path.name)
            self._file = self._beside.open("wb")
            hold(self._file)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
        self._packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS) if packed else None

    def write(self, data: bytes) -> None:
        """Write.

        Raises:
            FatalError: the disk refused.
        """
        try:
            self._file.write(data if self._packer is None else self._packer.compress(data))
        except OSError as error:
            raise FatalError(f"{self._path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Put the file on the disk and give it its name.

        Raises:
            FatalError: the disk refused.
        """
        try:
            if self._packer is not None:
                self._file.write(self._packer.flush())
            self._file.flush()
            os.fsync(self._file.fileno())
            # Named while the lock is held: until then nobody takes it for abandoned.
            self._beside.replace(self._path)
            self._file.close()
        except OSError as error:
            raise FatalError(f"{self._path} cannot be written: {error.strerror}") from None

    def abandon(self) -> None:
        """Leave nothing behind."""
        with contextlib.suppress(OSError):
            # A full disk refuses what is still in the buffer; that was said before.
            self._file.close()
        self._beside.unlink(missing_ok=True)


class TarOutput:
    """Writes members into a ustar archive."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._pieces: list[bytes] = []
        self._size = 0

    def put(self, name: str, data: bytes) -> None:
        """Add one member.

        Raises:
            FatalError: the disk refused.
        """
        padding = bytes(-len(data) % BLOCK)
        self._pieces += (member(name.encode("ascii"), len(data)), data, padding)
        self._size += BLOCK + len(data) + len(padding)
        if self._size >= _FLUSH:
            self._flush()

    def close(self) -> None:
        """End the archive: two empty blocks."""
        self._pieces.append(bytes(2 * BLOCK))
        self._flush()
        self._sink.close()

    def _flush(self) -> None:
        self._sink.write(b"".join(self._pieces))
        self._pieces.clear()
        self._size = 0


class PlainOutput:
    """Writes files one behind the other, without names: one `.ots`, or JSON Lines."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink

    def put(self, name: str, data: bytes) -> None:
        """Write one file's bytes."""
        del name
        self._sink.write(data)

    def close(self) -> None:
        """End."""
        self._sink.close()
