"""Signals as values: the main thread waits for them, and nothing is done inside a handler."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import FrameType

HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Collects SIGTERM, SIGINT and SIGHUP while it is open; a context manager of the main thread.

    A handler only writes down what came. The interpreter writes a byte into a socket beside it
    (`signal.set_wakeup_fd`), so waiting ends at once and no lock is taken in a handler.
    """

    def __init__(self) -> None:
        self._came: list[int] = []
        self._mine, self._theirs = socket.socketpair()

    def __enter__(self) -> Self:
        for end in (self._mine, self._theirs):
            end.settimeout(0)
        self._before = {number: signal.signal(number, self._note) for number in HEEDED}
        self._wakeup = signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *_exception: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._mine.close()
        self._theirs.close()

    def wait(self, timeout_s: float) -> list[int]:
        """Return the signals that came, in order; after `timeout_s` or `wake` maybe none."""
        if not self._came:
            select.select([self._mine], [], [], timeout_s)
        with contextlib.suppress(BlockingIOError):
            while self._mine.recv(4096):
                pass
        came, self._came = self._came, []
        return came

    def wake(self) -> None:
        """End a waiting; any thread may call it."""
        with contextlib.suppress(OSError):
            self._theirs.send(b"\0")

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._came.append(number)
