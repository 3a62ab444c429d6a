"""What a person at a terminal sees of passes, and how they are told to stop."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from anchord.app.cli.output import notes, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SAY_AGAIN_S = 30.0


@contextlib.contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Let SIGTERM end the waiting between passes; a pass itself is never cut in the middle."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def display(
    *, quiet: bool
) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """Show stages as bars on a terminal, and as one line per change elsewhere."""
    console = notes()
    said: list[Any] = ["", 0.0]
    with progress(quiet=quiet) as bars:
        tasks: dict[str, Any] = {}

        def stage(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        def waiting(text: str) -> None:
            """Say what is waited for when that changes; numbers alone change too often."""
            shape, now = re.sub(r"[0-9,]+", "", text), time.monotonic()
            if not quiet and (shape != said[0] or now - said[1] > _SAY_AGAIN_S):
                said[:] = shape, now
                console.print(text, markup=False)

        yield stage, waiting
