"""One service to a store: a lock whose owner can be told.

The lock is beside the store and held from start to end of `anchord run`; the kernel lets go of it
when the process dies, however it dies. Passes by hand do not need it: they take turns with the
service's by the lock of passes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from anchord.core.moment import utc
from anchord.errors import ConfigError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_BYTES = 4_096
_PATIENCE_S = 1.0
"""Who only looks holds the lock for a moment; a service that starts waits for that."""


class Owner(msgspec.Struct, frozen=True):
    """The service of a store, as it wrote itself down."""

    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        return f"pid {self.pid} on host {self.host} runs since {self.since}"


@contextlib.contextmanager
def serving(store: Path, now: int) -> Iterator[None]:
    """Be the store's one service within the block.

    Args:
        store: the store's file.
        now: Unix seconds, shown to others.

    Raises:
        StoreBusyError: another service has the store; it is named.
        ConfigError: the lock file cannot be made.
    """
    handle = _open(_lock_of(store))
    try:
        _take(handle, store)
        # Where the disk is full others are told less; the lock holds all the same.
        with contextlib.suppress(OSError):
            note = msgspec.json.encode(Owner(os.getpid(), platform.node() or "?", utc(now)))
            os.ftruncate(handle, 0)
            os.pwrite(handle, note, 0)
        yield
    finally:
        os.close(handle)


def owner_of(store: Path) -> Owner | None:
    """Return the service that has the store now; None when there is none, or it cannot be told."""
    try:
        handle = os.open(_lock_of(store), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(handle)
    except OSError:
        return None
    finally:
        os.close(handle)
    return None


def _take(handle: int, store: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(0.05)
                continue
            raise StoreBusyError(
                f"another `anchord run` serves {store}: {_read(handle) or 'it has just begun'}; "
                "one is enough, stop it first"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{_lock_of(store)} cannot be locked: {error.strerror}; keep the store on a "
                "local disk"
            ) from None
        return


def _lock_of(store: Path) -> Path:
    return store.with_name(store.name + ".service")


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the lock file {path} cannot be opened: {error.strerror}; check the folder's "
            "permissions and free space"
        ) from None


def _read(handle: int) -> Owner | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(os.pread(handle, _MAX_BYTES, 0), type=Owner)
    return None
