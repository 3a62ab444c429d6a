"""`anchord run`: one process that passes for years, from start to signal.

The main thread waits for signals; the metronome's one thread works. APScheduler keeps moments of
the wall clock, so when that is set the main thread, which counts by the monotonic one, has the
intervals counted anew.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from anchord import __version__
from anchord.adapters.store.sql import SqlStore
from anchord.app.service.logs import tell
from anchord.app.service.metronome import Metronome
from anchord.app.service.monitoring import monitored
from anchord.app.service.notify import Notifier
from anchord.app.service.session import longest_timeout
from anchord.app.service.signals import Signals
from anchord.app.service.work import Work
from anchord.app.wiring import store_url
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anchord.app.config import Loaded

_LOOK_S = 1.0
"""How soon a clock that was set is noticed."""
_STEP_S = 1.0
"""A clock that moved by more than this against the monotonic one was set."""
_JITTER = 0.1
"""Passes come up to a tenth of their interval later: machines of one make do not march in step."""


class Daemon:
    """The service.

    Args:
        loaded: the configuration of the start.
        environ: the service manager's variables are read.
    """

    def __init__(self, loaded: Loaded, environ: Mapping[str, str]) -> None:
        self._loaded = loaded
        self._notifier = Notifier(environ)
        self._metronome = Metronome()

    def run(self) -> int:
        """Serve until a signal or an error that nothing may follow; return the exit code.

        Raises:
            ConfigError: the configuration, the store or the keys cannot be used.
            StoreBusyError: another service has the store.
        """
        now = int(time.time())
        with contextlib.ExitStack() as stack:
            # The schema is checked, and the lock taken, before keys are opened.
            store = SqlStore(store_url(self._loaded))
            stack.callback(store.close)
            stack.enter_context(store.serving(now))
            signals = stack.enter_context(Signals())
            self._ended = threading.Event()
            self._work = Work(self._loaded, self._notifier, signals.wake)
            stack.enter_context(monitored(lambda: self._work.loaded, self._work.tally))
            self._begin()
            self._wait(signals)
            self._stop(signals)
        error = self._work.guard.ended_by
        if error is None or isinstance(error, AnchordError):
            return 0 if error is None else error.exit_code
        raise error

    def _begin(self) -> None:
        self._metronome.start()
        self._set_intervals()
        if self._notifier.watchdog_s is not None:
            self._metronome.every("beat", self._work.beat, self._notifier.watchdog_s / 2)
        tell(
            logging.INFO, "started",
            f"anchord {__version__} serves {self._loaded.path}, pid {os.getpid()}",
            version=__version__, pid=os.getpid(), config=str(self._loaded.path),
        )  # fmt: skip
        self._notifier.status("started")
        self._notifier.ready()

    def _set_intervals(self) -> None:
        service = self._work.config.service
        every = service.pass_every_s
        self._metronome.every("pass", self._work.make_pass, every, every * _JITTER)
        self._metronome.every("storing", self._work.store_step, service.storing_every_s)

    def _wait(self, signals: Signals) -> None:
        """Heed signals until one of them, or an error, ends the service."""
        offset = time.time() - time.monotonic()
        while self._work.guard.ended_by is None:
            for number in signals.wait(_LOOK_S):
                if number != signal.SIGHUP:
                    tell(logging.INFO, "stop", f"{signal.Signals(number).name}: stopping")
                    return
                self._metronome.once(self._reload)
            moved = time.time() - time.monotonic() - offset
            if abs(moved) > _STEP_S:
                offset += moved
                words = f"the clock moved by {moved:+.1f} s: it was set, or the machine slept"
                tell(logging.WARNING, "clock", words)
                self._metronome.retime()

    def _reload(self) -> None:
        self._work.reload()
        self._set_intervals()

    def _stop(self, signals: Signals) -> None:
        """Let the item in hand end, and calls in flight, each within its timeout."""
        self._notifier.stopping()
        deadline = time.monotonic() + longest_timeout(self._work.config)
        self._work.stop.set()
        self._metronome.halt()
        self._metronome.once(lambda: self._finish(deadline, signals))
        while not self._ended.is_set():
            for number in signals.wait(_LOOK_S):
                if number != signal.SIGHUP:
                    self._leave("a second signal", 128 + number)
            if time.monotonic() > deadline + _LOOK_S * 2:
                self._leave("what was in hand took longer than any timeout", 0)
        self._metronome.stop()
        tell(logging.INFO, "stopped", "stopped")

    def _finish(self, deadline: float, signals: Signals) -> None:
        self._work.finish(deadline)
        self._ended.set()
        signals.wake()

    def _leave(self, why: str, code: int) -> None:
        """End at once; what is in the middle is looked up at the next start."""
        tell(logging.WARNING, "stopped", f"{why}: stopped at once")
        logging.shutdown()
        os._exit(code)
