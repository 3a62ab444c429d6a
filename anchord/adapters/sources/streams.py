"""Bytes as they come in: look at the beginning without losing it, read lines under a cap.

Nothing here grows with the input: a line longer than the cap is counted and skipped.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD = 64 * 1024
"""How much of the beginning is looked at to tell what it is."""
BOMB_RATIO = 250
BOMB_FROM = 64 * 1024 * 1024
"""Less than this is read whatever its ratio: it is over at once."""
GZIP_MAGIC = b"\x1f\x8b"


class _Rejoined(io.RawIOBase):
    """A stream with its beginning put back, for pipes that cannot seek."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        chunk = self._head[: len(view)] if self._head else self._rest.read(len(view))
        self._head = self._head[len(view) :]
        view[: len(chunk)] = chunk
        return len(chunk)


def look(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """Return up to HEAD bytes of the beginning, and a stream that begins there again."""
    head = stream.read(HEAD)
    if stream.seekable():
        stream.seek(-len(head), io.SEEK_CUR)
        return head, stream
    return head, cast("BinaryIO", io.BufferedReader(_Rejoined(head, stream), HEAD * 2))


class _Counted:
    """A stream that knows how much was read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._stream.read(size)
        self.count += len(chunk)
        return chunk


class _Unzipped(io.RawIOBase):
    """What is inside a gzip stream, as long as it is no bomb.

    DEFLATE can hide 1,032 times its size (https://zlib.net/zlib_tech.html), records written as text
    a tenth of that at most.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._packed = _Counted(stream)
        self._inside = gzip.GzipFile(fileobj=cast("BinaryIO", self._packed), mode="rb")
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        chunk = self._inside.read1(len(memoryview(buffer)))
        self._given += len(chunk)
        if self._given > max(BOMB_FROM, BOMB_RATIO * self._packed.count):
            raise OSError(
                f"gzip: expected at most {BOMB_RATIO} times the packed size inside, and there is "
                "more: repetitive as it is, unpack it by hand and look what it is"
            )
        memoryview(buffer)[: len(chunk)] = chunk
        return len(chunk)


def unzipped(stream: BinaryIO) -> BinaryIO:
    """Return what is inside a gzip stream; damage and bombs raise OSError, EOFError, zlib.error."""
    return cast("BinaryIO", io.BufferedReader(_Unzipped(stream), HEAD * 2))


def unzipped_head(head: bytes) -> bytes:
    """Return the beginning of what is inside a gzip stream; b"" when it is damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""


READ_ERRORS = (OSError, EOFError, zlib.error)
"""What reading a stream may raise."""


def why(error: BaseException) -> str:
    """Return the reason a read failed, without file names and numbers of the system."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {str(error) or type(error).__name__}"


def lines(stream: BinaryIO, cap: int) -> Iterator[bytes | None]:
    """Yield each line without its line ending; None for a line longer than `cap` bytes."""
    readline = stream.readline
    limit = cap + 2
    while line := readline(limit):
        if line[-1] == 10:
            line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
        elif len(line) == limit:
            while (rest := readline(limit)) and rest[-1] != 10:
                pass
            yield None
            continue
        yield line if len(line) <= cap else None


def standard_input() -> BinaryIO:
    """Return the bytes of standard input."""
    return sys.stdin.buffer
