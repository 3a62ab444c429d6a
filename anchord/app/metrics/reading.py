"""The store's numbers, read so that asking for them never hurts.

A thread of its own reads, one reading at a time. Who asks waits a little for it, and takes the last
one where that was not enough. Nothing is read again while nobody wrote to the store, nor more often
than costs a twentieth of the time: a store that takes a second to be read is read every 20 s.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import msgspec

from anchord.adapters.store.database import sqlite_path
from anchord.adapters.store.measures import Changes, Measured, measure
from anchord.adapters.store.vitals import sizes
from anchord.app.wiring import store_url
from anchord.core.header import HEADER_SIZE, parse_header
from anchord.errors import AnchordError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anchord.app.config import Loaded

LIMIT_S = 30.0
"""A reading that takes longer is given up."""
_LEAST_EVERY_S = 5.0
_GOODBYE_S = 2.0
_SHARE = 20
"""After a reading, so many times what it took passes before the next."""


class Tip(msgspec.Struct, frozen=True):
    """The newest header of anchord's own file."""

    height: int
    time: int


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    measured: Measured | None = None
    """None: it cannot be read."""
    known_at: float | None = None
    """Unix seconds: the numbers were right then."""
    took_s: float = 0.0
    size: tuple[int, int] | None = None
    """Bytes of the store and of the log beside it."""
    tip: Tip | None = None
    workers: dict[str, int] | None = None
    """Workers of a PostgreSQL store: those that are there, and those that went without a word."""
    error: AnchordError | None = None


def read(loaded: Loaded) -> Reading:
    """Read everything now.

    Raises:
        ConfigError: there is no such store, or not of this schema.
        StoreBusyError: it took longer than `LIMIT_S`.
        FatalError: it cannot be read.
    """
    url, began = store_url(loaded), time.monotonic()
    uris = [uri for one in loaded.config.anchoring.calendars for uri in one.uris]
    measured = measure(url, uris, LIMIT_S)
    return Reading(
        measured=measured, known_at=time.time(), took_s=time.monotonic() - began, size=sizes(url),
        tip=tip_of(loaded), workers=_workers(url),
    )  # fmt: skip


class Meter:
    """Keeps the last reading. Threads may share it.

    Args:
        loaded: returns the configuration as it is now.
    """

    def __init__(self, loaded: Callable[[], Loaded]) -> None:
        self._loaded = loaded
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._again_at = float("-inf")
        self._reading = Reading()
        self._changes: Changes | None = None
        self._mark: tuple[int, ...] | None = None

    def latest(self, patience_s: float) -> Reading:
        """Return the newest reading; a new one that is due is waited for up to `patience_s`."""
        with self._lock:
            if self._thread is None and time.monotonic() >= self._again_at:
                self._thread = threading.Thread(target=self._read, name="measures", daemon=True)
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(patience_s)
        return self._reading

    def close(self) -> None:
        """Let go of the store; may be called twice. A reading that takes long is left to itself."""
        with self._lock:
            self._again_at = float("inf")
            thread = self._thread
        if thread is not None:
            thread.join(_GOODBYE_S)
        if thread is None or not thread.is_alive():
            self._unwatch()

    def _read(self) -> None:
        began = time.monotonic()
        try:
            self._reading = self._next()
        except AnchordError as error:
            self._reading = self._without(error)
        except Exception as error:  # noqa: BLE001 - monitoring never ends the service
            words = f"the store's measures cannot be read: {type(error).__name__}: {error}"
            self._reading = self._without(AnchordError(words))
        with self._lock:
            wait = max(_LEAST_EVERY_S, (time.monotonic() - began) * _SHARE)
            self._again_at = max(self._again_at, time.monotonic() + wait)
            self._thread = None

    def _next(self) -> Reading:
        loaded = self._loaded()
        url = store_url(loaded)
        if self._changes is None:
            self._changes = Changes(url)
        # The mark is taken first: what is committed from here on is read the next time.
        mark, last = self._changes.mark(), self._reading
        if mark == self._mark and last.error is None:
            return msgspec.structs.replace(
                last, known_at=time.time(), size=sizes(url), tip=tip_of(loaded),
                workers=_workers(url),
            )  # fmt: skip
        reading = read(loaded)
        self._mark = mark
        return reading

    def _without(self, error: AnchordError) -> Reading:
        """Return what is left when the store could not be read: a busy one's numbers still hold."""
        self._mark = None
        self._unwatch()
        if isinstance(error, TransientError):
            return msgspec.structs.replace(self._reading, error=error)
        return Reading(error=error)

    def _unwatch(self) -> None:
        changes, self._changes = self._changes, None
        if changes is not None:
            changes.close()


def _workers(url: str) -> dict[str, int] | None:
    if sqlite_path(url) is not None:
        return None
    from anchord.app.fleet.roster import workers

    there = [worker.pid is not None for worker in workers(url)]
    return {"there": sum(there), "gone": len(there) - sum(there)}


def tip_of(loaded: Loaded) -> Tip | None:
    """Return the newest header of anchord's own file; None: there is none, or it is not used."""
    headers = loaded.config.headers
    return _tip(loaded.resolve(headers.file.path)) if "file" in headers.sources else None


def _tip(path: Path) -> Tip | None:
    """Return the last header of a file; whether the chain holds is not checked here."""
    try:
        with path.open("rb") as file:
            whole = file.seek(0, 2) // HEADER_SIZE
            file.seek(max(whole - 1, 0) * HEADER_SIZE)
            raw = file.read(HEADER_SIZE)
    except OSError:
        return None
    return Tip(whole - 1, parse_header(raw).time) if len(raw) == HEADER_SIZE else None
