"""`anchord worker`: one of any number of processes that share a store, from start to signal.

The main thread runs the event loop: the queue, signals, signs of life. Duties run on threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from typing import TYPE_CHECKING

from anchord import __version__
from anchord.adapters.store.sql import SqlStore
from anchord.app.fleet import schema
from anchord.app.fleet.address import procrastinate
from anchord.app.fleet.duties import STORING, names
from anchord.app.fleet.place import Place
from anchord.app.fleet.work import Work
from anchord.app.service.logs import tell
from anchord.app.service.monitoring import monitored
from anchord.app.service.notify import Notifier
from anchord.app.wiring import store_url
from anchord.errors import AnchordError, ConfigError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anchord.app.config import Loaded

_LOOK_S = 1.0
_STEP_S = 1.0
"""A clock that moved by more than this against the monotonic one was set."""
_HANGS_S = 600.0
"""A duty that shows no life for so long, beyond the longest call, hangs; the watchdog sees it."""
_AGAIN_S = 2.0
"""How soon a place is asked for again after the server went away."""


class FleetWorker:
    """One worker.

    Args:
        loaded: the configuration of the start.
        environ: the service manager's variables are read.
        queues: names of the duties to do; empty: all.
    """

    def __init__(
        self, loaded: Loaded, environ: Mapping[str, str], queues: Sequence[str] = ()
    ) -> None:
        self._loaded, self._queues = loaded, tuple(queues)
        self._notifier = Notifier(environ)
        self._place: Place | None = None
        self._stopping = self._told = False
        self._lost = ""

    def run(self) -> int:
        """Work until a signal or an error that nothing may follow; return the exit code.

        Raises:
            ConfigError: the configuration, the store or the keys cannot be used.
            StoreBusyError: a daemon serves this store, or the server does not answer.
        """
        procrastinate()
        url = store_url(self._loaded)
        self._check()
        _quiet()
        with (
            contextlib.closing(SqlStore(url)) as store,
            store.serving(int(time.time()), shared=True),
        ):
            pass  # the schema is checked, and that nobody else serves it, before keys are opened
        schema.install(url)
        asyncio.run(self._serve(url))
        error = self._work.ended_by
        if error is None or isinstance(error, AnchordError):
            return 0 if error is None else error.exit_code
        raise error

    def _check(self) -> None:
        stores = not self._queues or STORING in self._queues
        others = not self._queues or set(self._queues) != {STORING}
        if stores and others and self._loaded.config.fleet.concurrency < 2:
            raise ConfigError(
                "with a concurrency of 1 a shift at the Internet Archive would hold up everything "
                f"else: give 2, or name queues with --queue, of {', '.join(names())}"
            )

    async def _serve(self, url: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _loop, _context: None)  # see `_quiet`
        self._awake = asyncio.Event()
        self._work = Work(self._loaded, self._end)
        try:
            await asyncio.to_thread(self._work.prove)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                self._loop.add_signal_handler(number, self._heed, number)
            watching = asyncio.create_task(self._watch())
            with monitored(lambda: self._work.loaded, self._work.tally):
                await self._stay_on(url)
            watching.cancel()
            tell(logging.INFO, "stopped", "stopped")
        finally:
            self._work.close()

    async def _stay_on(self, url: str) -> None:
        """Take a place, and another one when it is lost, until the worker is to stop."""
        import psycopg

        library, former = procrastinate(), None
        while not self._stopping:
            self._place = place = Place(url, self._work, self._queues, former)
            try:
                await place.stay(self._joined)
            except (psycopg.Error, library.exceptions.ConnectorException, StoreBusyError) as error:
                self._say_lost(error)
            former, self._place = place.number, None
            if not place.left:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._awake.wait(), _AGAIN_S)

    def _joined(self) -> None:
        if self._lost:
            tell(logging.INFO, "recovered", "back among the workers")
        self._lost = ""
        if not self._told:
            self._told = True
            duties = ", ".join(self._queues) or "all duties"
            tell(
                logging.INFO, "started",
                f"anchord {__version__} works for {self._loaded.path}, pid {os.getpid()}: {duties}",
                version=__version__, pid=os.getpid(), config=str(self._loaded.path),
            )  # fmt: skip
            self._notifier.ready()

    def _say_lost(self, error: Exception) -> None:
        cause = error.__cause__ or error
        words = " ".join(str(cause).split()) or type(cause).__name__
        if not self._stopping and words != self._lost:
            tell(logging.WARNING, "retry", f"not among the workers: {words}; tried again")
        self._lost = words

    # ------------------------------------------------------------------ signals, end

    def _heed(self, number: int) -> None:
        if number == signal.SIGHUP:
            self._reloading = asyncio.create_task(self._reload())
        elif self._stopping:
            self._leave("a second signal", 128 + number)
        else:
            tell(logging.INFO, "stop", f"{signal.Signals(number).name}: stopping")
            self._halt()

    async def _reload(self) -> None:
        """Go on with another configuration, at a new place."""
        self._notifier.reloading()
        await asyncio.to_thread(self._work.reload)
        self._move()
        self._notifier.ready()

    def _end(self) -> None:
        """Nothing may go on; called on a thread that works."""
        self._loop.call_soon_threadsafe(self._halt)

    def _move(self) -> None:
        if self._place is not None:
            self._place.leave()

    def _halt(self) -> None:
        """Let the items in hand end, and calls in flight, each within its timeout."""
        if self._stopping:
            return
        self._stopping = True
        self._notifier.stopping()
        self._work.stop.set()
        self._awake.set()
        self._move()
        why = "what was in hand took longer than any timeout"
        self._loop.call_later(self._work.longest_s() + 2 * _LOOK_S, self._leave, why, 0)

    def _leave(self, why: str, code: int) -> None:
        """End at once; what is in the middle is looked up by others."""
        tell(logging.WARNING, "stopped", f"{why}: stopped at once")
        logging.shutdown()
        os._exit(code)

    # ------------------------------------------------------------------ signs of life

    async def _watch(self) -> None:
        """Tell the service manager how it is, and notice a clock that was set."""
        offset = time.time() - time.monotonic()
        while True:
            if self._work.silent_s() < self._work.longest_s() + _HANGS_S:
                self._notifier.beat()
            if not self._stopping:
                self._notifier.status(self._status())
            await asyncio.to_thread(self._work.rest)
            moved = time.time() - time.monotonic() - offset
            if abs(moved) > _STEP_S:
                offset += moved
                words = f"the clock moved by {moved:+.1f} s: it was set, or the machine slept"
                tell(logging.WARNING, "clock", words)
                self._move()  # looks are counted anew at the next place
            await asyncio.sleep(_LOOK_S)

    def _status(self) -> str:
        if self._lost:
            return f"not among the workers: {self._lost}"
        paused = self._work.paused()
        if paused:
            return f"PAUSED: {'; '.join(paused)}"
        return ", ".join(self._work.at_work()) or "waits for work"


def _quiet() -> None:
    """Keep the libraries' own lines out of the log: what they mean is told in our words."""
    for name in ("procrastinate", "psycopg", "asyncio"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).setLevel(logging.CRITICAL)
        logging.getLogger(name).propagate = False
