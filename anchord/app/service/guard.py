"""What follows from an error of the work: go on, pause, or stop. Nothing gets past a guard.

The scheduler would log what a job raises and call it again as if nothing had been.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from anchord.app.service.logs import tell
from anchord.errors import (
    AnchordError,
    ConfigError,
    FatalError,
    ProtocolError,
    RefusedError,
    TransientError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 300.0
"""How long work is left alone that needs a person: who mends it need not tell us."""


class StopNow(BaseException):
    """The service is to stop; raised between two items of a stage."""


class Guard:
    """Calls work, and keeps what its errors mean for what comes next. One thread uses it.

    Args:
        on_end: called when nothing may go on.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._paused_until = float("-inf")
        self._paused_by = ""
        self._said: dict[str, str] = {}
        self.paused: str | None = None
        """Why work is paused; None: it is not."""
        self.ended_by: Exception | None = None
        """What ended the service."""

    def __call__(self, name: str, work: Callable[[], None]) -> None:
        """Call `work`, unless work is paused or over."""
        if self.ended_by is not None or time.monotonic() < self._paused_until:
            return
        try:
            work()
        except StopNow:
            return
        except (TransientError, ProtocolError, RefusedError) as error:
            self.say(name, logging.WARNING, "retry", f"{error}; tried again")
        except ConfigError as error:
            self._pause(name, error)
        except Exception as error:  # noqa: BLE001 - ours and unforeseen ones: nothing is swallowed
            self._end(error)
        else:
            self.say(name, logging.INFO, "recovered", None)
            if name == self._paused_by:
                self.resume()

    def resume(self) -> None:
        """End a pause: what was in the way may be gone."""
        if self.paused is not None:
            tell(logging.INFO, "resumed", "work goes on")
        self.paused, self._paused_by, self._paused_until = None, "", float("-inf")

    def say(self, name: str, level: int, event: str, words: str | None) -> None:
        """Log words about `name` when they change; None: there is nothing to say any more."""
        if words is None:
            self._said.pop(name, None)
        elif self._said.get(name) != words:
            self._said[name] = words
            tell(level, event, words, about=name)

    def _pause(self, name: str, error: ConfigError) -> None:
        words = f"work is paused: {error}; tried again every {PAUSE_S:.0f} s, or at once on SIGHUP"
        self.say(name, logging.ERROR, "paused", words)
        self.paused, self._paused_by = str(error), name
        self._paused_until = time.monotonic() + PAUSE_S

    def _end(self, error: Exception) -> None:
        self.ended_by = error
        kind = "stopped" if isinstance(error, AnchordError) else "fault"
        words = (
            str(error) if isinstance(error, AnchordError) else f"{type(error).__name__}: {error}"
        )
        fatal = "; a person must look before it is started again" * isinstance(error, FatalError)
        tell(logging.CRITICAL, kind, f"{words}{fatal}")
        self._on_end()
