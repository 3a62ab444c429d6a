"""The numbers of the dashboard: read by one thread of its own, kept, and given to every request.

A request waits for numbers only while there are none. While nobody writes to the store nothing is
read but its change mark, and reading takes at most a twentieth of the time, however large the store
is and however many look.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from anchord.adapters.store.database import sqlite_path
from anchord.app.metrics.reading import Reading, read, tip_of
from anchord.app.service.logs import tell
from anchord.app.web.parked import Kind, parked_work
from anchord.app.wiring import store_url
from anchord.errors import AnchordError, TransientError
from anchord.ports.face import Day

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.app.fleet.roster import Worker
    from anchord.app.web.face import Face

_LEAST_EVERY_S = 3.0
_SHARE = 20
"""After a reading, so many times what it took passes before the next."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was read."""

    number: int = 0
    """Of this reading, growing: pages that show an older one are out of date."""
    reading: Reading = Reading()
    days: tuple[Day, ...] = ()
    parked: tuple[Kind, ...] = ()
    workers: tuple[Worker, ...] | None = None
    """None: nobody shares the store."""


class Board:
    """Keeps the last figures. Threads may share it.

    Args:
        face: the store that is shown.
        clock: seconds that only grow.
    """

    def __init__(self, face: Face, clock: Callable[[], float] = time.monotonic) -> None:
        self._face, self._clock = face, clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._again_at = float("-inf")
        self._figures = Figures()
        self._mark: tuple[int, ...] | None = None
        self._said = ""

    def latest(self, patience_s: float) -> Figures:
        """Return the newest figures; begin to read new ones when they are due.

        Args:
            patience_s: how long to wait while there are none; newer ones are never waited for.
        """
        with self._lock:
            if self._thread is None and self._clock() >= self._again_at:
                self._thread = threading.Thread(target=self._read, name="figures", daemon=True)
                self._thread.start()
            thread, figures = self._thread, self._figures
        if figures.reading.measured is not None or thread is None:
            return figures
        thread.join(patience_s)
        return self._figures

    def _read(self) -> None:
        began = self._clock()
        try:
            figures = self._next()
            self._say("")
        except AnchordError as error:
            figures = self._without(error)
        except Exception as error:  # noqa: BLE001 - a page says so, and the next reading may work
            figures = self._without(AnchordError(f"{type(error).__name__}: {error}"))
        with self._lock:
            self._figures = figures
            took = self._clock() - began
            self._again_at = self._clock() + max(_LEAST_EVERY_S, took * _SHARE)
            self._thread = None

    def _next(self) -> Figures:
        loaded = self._face.loaded
        # The mark is taken first: what is committed from here on is read the next time.
        mark, last = self._face.readers.mark(), self._figures
        if mark == self._mark and last.reading.error is None:
            reading = msgspec.structs.replace(
                last.reading, known_at=time.time(), tip=tip_of(loaded)
            )
            workers = self._workers()
            changed = reading.tip != last.reading.tip or workers != last.workers
            return msgspec.structs.replace(
                last,
                number=_after(last) if changed else last.number,
                reading=reading,
                workers=workers,
            )
        figures = self._whole(_after(last))
        self._mark = mark
        return figures

    def _whole(self, number: int) -> Figures:
        reading = read(self._face.loaded)
        with self._face.readers.lend() as store:
            parked = parked_work(store, reading.measured) if reading.measured else ()
            return Figures(
                number=number,
                reading=reading,
                days=tuple(store.faces.history()),
                parked=parked,
                workers=self._workers(),
            )

    def _workers(self) -> tuple[Worker, ...] | None:
        url = store_url(self._face.loaded)
        if sqlite_path(url) is not None:
            return None
        from anchord.app.fleet.roster import workers

        return tuple(workers(url))

    def _without(self, error: AnchordError) -> Figures:
        """Return what is left when the store could not be read: a busy one's numbers still hold."""
        self._mark = None
        self._say(str(error))
        last = self._figures
        busy = isinstance(error, TransientError) and last.reading.measured is not None
        reading = (
            msgspec.structs.replace(last.reading, error=error) if busy else Reading(error=error)
        )
        kept = last if busy else Figures()
        return msgspec.structs.replace(kept, number=_after(last), reading=reading)

    def _say(self, words: str) -> None:
        """Log what is in the way when that changes; pages say only that something is."""
        if words != self._said:
            level = logging.WARNING if words else logging.INFO
            tell(level, "figures", f"no numbers: {words}" if words else "numbers again")
        self._said = words


def _after(last: Figures) -> int:
    """Return the number of the next figures; another process begins with another one."""
    return last.number + 1 if last.number else int(time.time())
