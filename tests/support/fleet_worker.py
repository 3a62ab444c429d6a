"""`anchord worker` that writes down when stages run, and what calendars are handed.

Run as `python -m support.fleet_worker JOURNAL ARGUMENTS...`.

A line is one write to a file that is only ever appended to, so lines of several processes do not
mix, and what a killed one had begun stands there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from anchord.adapters.calendars import HttpCalendar
from anchord.app.cli.main import main
from anchord.engine import stages


def note(file: int, what: str, about: str) -> None:
    words = what, about, os.getpid(), threading.get_ident(), time.monotonic()
    os.write(file, (" ".join(map(str, words)) + "\n").encode())


def journaled(file: int, stage: stages.Stage) -> stages.Stage:
    """Return a stage that writes down when it runs."""

    def work(*given: Any) -> Any:
        note(file, "begin", stage.name)
        try:
            return stage.work(*given)
        finally:
            note(file, "end", stage.name)

    found: Callable[..., Any] = work
    return msgspec.structs.replace(stage, work=found)


def watched(file: int) -> None:
    """Write down each root before a calendar is handed it."""
    submit = HttpCalendar.submit

    def submits(calendar: HttpCalendar, root: bytes) -> Any:
        note(file, "hand", f"{calendar.url}#{root.hex()}")
        return submit(calendar, root)

    HttpCalendar.submit = submits  # type: ignore[method-assign]


if __name__ == "__main__":
    handle = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    stages.STAGES = tuple(journaled(handle, stage) for stage in stages.STAGES)
    watched(handle)
    main()
