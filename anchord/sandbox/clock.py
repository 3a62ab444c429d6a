"""The sandbox's own time, for services whose rules take hours or days.

It runs with the machine's clock, shifted by what it was advanced; or it stands still and moves only
when it is told to, for simulated days.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class SandboxClock:
    """Unix seconds. Threads may share it.

    Args:
        start: the moment it shows first; None: now.
        frozen: it moves only by `advance`.
    """

    def __init__(self, start: float | None = None, *, frozen: bool = False) -> None:
        self._lock = threading.Lock()
        self._frozen = frozen
        self._shown = time.time() if start is None else start
        self._since = time.monotonic()
        self._watchers: list[Callable[[], object]] = []

    def watch(self, call: Callable[[], object]) -> None:
        """Have this called after each `advance`, on the thread that advances."""
        self._watchers.append(call)

    def now(self) -> float:
        """Return the present moment."""
        with self._lock:
            passed = 0.0 if self._frozen else time.monotonic() - self._since
            return self._shown + passed

    def advance(self, seconds: float) -> float:
        """Move on; return the new moment. Never goes back."""
        if seconds < 0:
            raise ValueError(f"a clock cannot be advanced by {seconds} seconds")
        with self._lock:
            self._shown += seconds
        for call in self._watchers:
            call()
        return self.now()
