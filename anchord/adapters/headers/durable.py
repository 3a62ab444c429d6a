"""Bytes that stay on the disk: locks between processes, writes that finished, names that last."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anchord.errors import ConfigError, FatalError, ProtocolError, StoreBusyError


@contextmanager
def locked(path: Path, wait_s: float) -> Iterator[None]:
    """Hold an exclusive lock; the kernel lets go of it when the process dies.

    Raises:
        ConfigError: the lock file cannot be made.
        StoreBusyError: another process held it for longer than `wait_s`.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(f"{path} cannot be made: {error}; check headers.file.path") from None
    try:
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise StoreBusyError(
                        f"another anchord process holds {path}: wait until its sync has ended"
                    ) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(fd)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn what the disk says into an error that says what to do.

    Raises:
        FatalError: writing failed.
    """
    try:
        yield
    except OSError as error:
        raise FatalError(
            f"{path} cannot be written: {error}; what was checked before is kept, "
            "make room or repair the disk and sync again"
        ) from error


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write every byte at `offset`, however often the system stops short."""
    view = memoryview(data)
    while view:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


def read_exactly(fd: int, offset: int, count: int) -> bytes:
    """Return `count` bytes.

    Raises:
        ProtocolError: the file was shortened under our hands.
    """
    parts: list[bytes] = []
    while count > 0:
        part = os.pread(fd, count, offset)
        if not part:
            raise ProtocolError(
                "the header file ended early: another program shortened it; sync again"
            )
        parts.append(part)
        offset, count = offset + len(part), count - len(part)
    return b"".join(parts)
