"""Stores to be read, lent to one request at a time.

Opening a store costs more than most questions, so those that are open are kept. None of them holds
a view between requests: a view that is held keeps SQLite's WAL from shrinking, and shows what was.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, NamedTuple

from anchord.adapters.signers.keyring import FILE, load_keyring
from anchord.adapters.store.database import sqlite_path
from anchord.adapters.store.measures import Changes
from anchord.adapters.store.reading import SqlReadingStore
from anchord.app.wiring import store_url
from anchord.errors import AnchordError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from anchord.app.config import Loaded
    from anchord.core.keyring import Keyring


class _Opened(NamedTuple):
    """A store that is kept open."""

    number: int
    file: tuple[int, ...]
    """Which file it read, see `_file_mark`."""
    store: SqlReadingStore


PATIENCE_S = 10.0
"""How long a request waits for a store that another one has."""
_CACHE_KIB = 4_000


class Readers:
    """Lends a store, each time at one fresh moment. Threads may share it.

    Args:
        loaded: the configuration; no private key of it is read.
        size: how many are lent at once.
        patience_s: how long one waits for its turn.
    """

    def __init__(self, loaded: Loaded, size: int = 8, patience_s: float = PATIENCE_S) -> None:
        self._url = store_url(loaded)
        self._path = sqlite_path(self._url)
        self._keys = loaded.resolve(loaded.config.signer.key_dir)
        self._size, self._patience_s = size, patience_s
        self._turns = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[_Opened] = []
        self._opened = 0
        self._changes: Changes | None = None
        self._keyring: tuple[tuple[int, ...], Keyring] | None = None
        self._closed = False

    @contextlib.contextmanager
    def lend(self) -> Iterator[SqlReadingStore]:
        """Lend a store for the length of the block: all of it is as it was when that began.

        Raises:
            ConfigError: absent, foreign, older or newer store.
            StoreBusyError: all are lent, and stay so; or it is locked, or its server away.
            FatalError: it cannot be read.
        """
        if not self._turns.acquire(timeout=self._patience_s):
            raise StoreBusyError(
                f"{self._size} requests read the store at once, and none was done within "
                f"{self._patience_s:g} s: ask again later"
            )
        try:
            lent = self._fresh()
            try:
                yield lent.store
            except AnchordError:
                lent.store.close()  # whatever is wrong with it is not met again
                raise
            except BaseException:
                self._take_back(lent)
                raise
            self._take_back(lent)
        finally:
            self._turns.release()

    def mark(self) -> tuple[int, ...]:
        """Return something that differs from what an earlier call returned if there was a commit.

        Raises:
            ConfigError: there is no such store.
            StoreBusyError: the store is locked, or its server away.
            FatalError: the disk failed.
        """
        with self._lock:
            self._changes = self._changes or Changes(self._url)
            return (*_file_mark(self._path), *self._changes.mark())

    def keyring(self) -> Keyring:
        """Return the public keys, as they are now.

        Raises:
            ConfigError: the keyring cannot be read.
        """
        with self._lock:
            mark = _stated(self._keys / FILE)
            if self._keyring is None or self._keyring[0] != mark:
                self._keyring = (mark, load_keyring(self._keys))
            return self._keyring[1]

    def close(self) -> None:
        """Let go of all that are not lent, and of the others when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            changes, self._changes = self._changes, None
        if changes is not None:
            changes.close()
        # The one that made SQLite's files beside the store takes them away, when it is the last.
        for opened in sorted(idle, reverse=True):
            opened.store.close()

    def _fresh(self) -> _Opened:
        """Return a store at a moment that begins now."""
        while True:
            file = _file_mark(self._path)
            with self._lock:
                known = self._idle.pop() if self._idle else None
                self._opened += 1
                number = self._opened
            if known is None:
                store = SqlReadingStore(self._url, cache_kib=_CACHE_KIB)
                store.begin()
                has_wal = _file_mark(self._path)[1:] == (0,)  # it may be by us that it has
                return _Opened(number, (*file[:1], 0) if has_wal else file, store)
            if known.file == file and _begun(known.store):
                return known
            # Another file has the name by now, the schema was migrated, or a server went away.
            known.store.close()

    def _take_back(self, lent: _Opened) -> None:
        lent.store.let_go()
        with self._lock:
            if not self._closed:
                self._idle.append(lent)
                return
        lent.store.close()


def _begun(store: SqlReadingStore) -> bool:
    try:
        store.begin()
    except AnchordError:
        return False
    return True


def _file_mark(path: Path | None) -> tuple[int, ...]:
    """Return what differs when another file has the name, or one without a WAL was written.

    A store in a folder that cannot be written is read as if it never changed, while it has no WAL
    (`anchord.adapters.store.reading`).
    """
    if path is None:
        return ()
    number, moment = _stated(path)
    wal, _ = _stated(path.with_name(path.name + "-wal"))
    return (number, 0 if wal else moment)


def _stated(path: Path) -> tuple[int, int]:
    """Return number and time of a file; (0, 0): there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_ino, found.st_mtime_ns)
