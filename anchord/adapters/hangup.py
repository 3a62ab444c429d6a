"""Hanging up on a database server that says nothing any more.

A server keeps its own time limits only while it runs and its packets arrive. One that was stopped,
or that a firewall cut off without a word, would be waited for for ever; so the clock is ours, and
the connection's socket is shut down from another thread, which the driver takes for a lost line.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

_TICK_S = 0.25


class Line:
    """The line to one database, of which one connection is open at a time.

    Drivers that do not tell their socket (`fileno`) are left to limits of their own.

    Args:
        engine: makes the connections.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._driver: Any = None
        self._seconds = self._ends_at = float("inf")
        event.listen(engine, "connect", self._connected)

    def answer_within(self, seconds: float) -> None:
        """Expect an answer within so many seconds from now; infinity: expect none."""
        self._seconds, self._ends_at = seconds, time.monotonic() + seconds

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Hang up when an answer is overdue, within the block."""
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done,), name="hangup", daemon=True)
        watch.start()
        try:
            yield
        finally:
            done.set()
            watch.join()
            self.answer_within(float("inf"))

    def _connected(self, driver: Any, _record: Any) -> None:
        self._driver = driver

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(_TICK_S):
            if time.monotonic() > self._ends_at:
                self._hang_up()
                self.answer_within(self._seconds)  # a new connection has its own time

    def _hang_up(self) -> None:
        try:
            number = os.dup(self._driver.fileno())
        except Exception:  # noqa: BLE001 - each driver has its own error for "closed"; SQLite has no socket
            return
        # A line that is down already has nobody waiting at it.
        with contextlib.suppress(OSError), socket.socket(fileno=number) as line:
            line.shutdown(socket.SHUT_RDWR)
