"""One process at a time for one archive.org account, on this machine.

The service counts what an account does, and each store keeps that account's pace. Two stores that
use one account would each keep half of the rules. So whoever may have calls in flight holds a lock
of the account; the kernel lets go of it when the process dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import msgspec

from anchord.errors import ConfigError, StoreBusyError

OTHER_STORE_WAITS_S = 120
"""The longest that the service's rules per minute look back, twice."""
_MAX_BYTES = 8_192


class _Note(msgspec.Struct, frozen=True):
    """What the lock file says: who used the account last, and when that ended."""

    store: str
    pid: int
    released_at: int | None = None
    """None: in use, or its user was killed."""


def default_directory(environ: Mapping[str, str], home: Path) -> Path:
    """Return where locks of accounts lie, for all stores of a user alike.

    Args:
        environ: `XDG_STATE_HOME` is read (XDG Base Directory Specification): an absolute path.
        home: the user's folder.
    """
    state = Path(environ.get("XDG_STATE_HOME") or "")
    return (state if state.is_absolute() else home / ".local" / "state") / "anchord"


class AccountLock:
    """The right to use an account, held from here to `close`; a context manager.

    Args:
        directory: where the lock files lie.
        fingerprint: of the account's keys.
        store: what the store that uses it is called; others are told so.
        clock: Unix seconds.

    Raises:
        StoreBusyError: another process uses the account, or another store did a moment ago.
        ConfigError: the lock file cannot be made.
    """

    def __init__(
        self,
        directory: Path,
        fingerprint: str,
        store: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = directory / f"account-{fingerprint}.lock"
        self._store, self._clock = store, clock
        self._handle: int | None = _open(self._path)
        try:
            self._take(self._handle)
        except BaseException:
            os.close(self._handle)
            self._handle = None
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Say when it ended, and let go; may be called twice."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        # Where the disk is full the note stays "in use", which only makes another store wait.
        with contextlib.suppress(OSError):
            _write(handle, _Note(self._store, os.getpid(), int(self._clock())))
        os.close(handle)

    def _take(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _read(handle)
            raise StoreBusyError(
                "another anchord process uses this archive.org account "
                + (f"(process {owner.pid}, store {owner.store})" if owner else "(just begun)")
                + ": one at a time; wait for its end"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{self._path} cannot be locked: {error.strerror}; use a folder of a local disk"
            ) from None
        try:
            self._wait_for_other_store(handle)
            _write(handle, _Note(self._store, os.getpid()))
        except OSError as error:
            raise _unusable(self._path, error) from None

    def _wait_for_other_store(self, handle: int) -> None:
        """Refuse while another store's last calls may still count against ours.

        One that was killed did not say when it ended: it counts from the moment that is noticed,
        and so does a note that nobody can read, or one from a clock that ran ahead.
        """
        now, note = int(self._clock()), _read(handle)
        if note is None and os.fstat(handle).st_size == 0:
            return
        last = note or _Note("unknown", 0)
        if last.store == self._store:
            return
        if last.released_at is None or last.released_at > now:
            last = _Note(last.store, last.pid, now)
            _write(handle, last)
        left = (last.released_at or now) + OTHER_STORE_WAITS_S - now
        if left > 0:
            raise StoreBusyError(
                f"the store {last.store} used this archive.org account until a moment ago, and "
                f"its pace is not known here: try again in {left} s",
                retry_after=left,
            )


def _open(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"the lock of the archive.org account cannot be kept in {path}: "
        f"{error.strerror or 'input/output error'}; make its folder writable, or set "
        "XDG_STATE_HOME"
    )


def _read(handle: int) -> _Note | None:
    with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(os.pread(handle, _MAX_BYTES, 0), type=_Note)
    return None


def _write(handle: int, note: _Note) -> None:
    """Replace the note. Not synced: after a power cut no call is in flight any more."""
    data = msgspec.json.encode(note)
    os.ftruncate(handle, 0)
    os.pwrite(handle, data, 0)
