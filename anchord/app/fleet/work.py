"""The work of a worker: a duty at a time on each of its threads.

Whatever goes wrong in it ends here, in a guard, and the task counts as done: the store knows what
is still due, and the next look comes by itself.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

from anchord.app.cli import storage
from anchord.app.config import load
from anchord.app.fleet.auditing import audit_shard
from anchord.app.fleet.duties import AUDIT, LOOK, STORING, Duty, duties, names, stirred
from anchord.app.fleet.sessions import Sessions
from anchord.app.fleet.shift import Shift
from anchord.app.metrics.tally import Tally
from anchord.app.service.clock import ClockWatch
from anchord.app.service.guard import Guard, StopNow
from anchord.app.service.heads import HeadWatch
from anchord.app.service.logs import tell
from anchord.app.service.pass_words import facts, words_of
from anchord.app.service.reload import changed, renewed
from anchord.app.service.session import longest_timeout
from anchord.app.wiring import store_url
from anchord.errors import AnchordError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.app.config import Config, Loaded
    from anchord.app.fleet.looking import Looking
    from anchord.app.service.session import Session
    from anchord.engine.run import PassReport


class Work:
    """What the threads of a worker call.

    Args:
        loaded: the configuration of the start.
        on_end: called, on a working thread, when nothing may go on.
        wall: Unix seconds; the machine's clock.
    """

    def __init__(
        self,
        loaded: Loaded,
        on_end: Callable[[], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.stop = threading.Event()
        """Set by any thread: stages stop at their next item, and nothing is begun."""
        self.tally = Tally()
        """What was done, for monitoring."""
        self._loaded = loaded
        self._sessions = Sessions(loaded, self._progress)
        self._guards = {name: Guard(on_end) for name in (*names(), LOOK)}
        self._clock, self._clock_lock = ClockWatch(wall), threading.Lock()
        self._heads = HeadWatch()
        self._auditing = threading.Lock()
        """One shard at a time: Python runs one thread at a time, and cores have workers each."""
        self._alive: dict[int, tuple[str, float]] = {}
        self._shift = Shift(
            self._sessions,
            self.stop,
            beat=self._beat,
            check_moment=self._check_moment,
            told=self._tell_step,
            guard=self._guards[STORING],
        )

    @property
    def loaded(self) -> Loaded:
        """The configuration as it is now, with its file."""
        return self._loaded

    @property
    def config(self) -> Config:
        """The configuration as it is now."""
        return self._loaded.config

    @property
    def ended_by(self) -> Exception | None:
        """What must not be followed by anything, if it happened."""
        found = (guard.ended_by for guard in self._guards.values())
        return next((error for error in found if error is not None), None)

    def prove(self) -> None:
        """Open everything once.

        Raises:
            ConfigError: store, keys or authorities cannot be used.
        """
        with self._sessions.lend():
            pass

    # ------------------------------------------------------------------ duties

    def do(self, duty: Duty) -> tuple[str, ...]:
        """Do a duty, if no other worker does; return the duties that may find work now."""
        found: list[PassReport] = []
        self._guarded(duty.name, lambda: found.append(self._done(duty)))
        return duty.then if any(map(stirred, found)) else ()

    def look(self, looking: Looking) -> tuple[str, ...]:
        """Return the duties that are due; none when that cannot be told now."""
        found: list[str] = []
        self._guarded(LOOK, lambda: found.extend(self._look(looking)))
        return tuple(found)

    def _look(self, looking: Looking) -> tuple[str, ...]:
        with self._sessions.lend() as session:
            now = session.app.clock.now()
            # With no duty due for hours, this is what notices that clock or server are others.
            self._check_moment(session)
            due = looking(session, now)
        # What was paused here and done by another worker is due no more, and would stay paused.
        paused = [duty.name for duty in duties() if self._guards[duty.name].paused]
        return tuple(dict.fromkeys((*due, *paused)))

    def store(self) -> None:
        """Work a shift."""
        self._guarded(STORING, self._shift)

    def audit(self, audit: str, shard: int) -> None:
        """Audit a shard. What goes wrong is told and raised: the queue tries again, or gives up."""
        about = f"shard {shard} of audit {audit:.40}"
        try:
            with self._auditing, self._at_work(AUDIT):
                began = time.monotonic()
                who = audit_shard(store_url(self._loaded), audit, shard, self._beat)
        except Exception as error:
            words = f"{about}: {type(error).__name__}: {error}"
            tell(logging.WARNING, "retry", words, about=AUDIT)
            raise
        done = "found out" if who else "nobody asks for it any more"
        seconds = time.monotonic() - began
        tell(
            logging.INFO, "audited", f"{about}: {done} ({seconds:.1f} s)", seconds=round(seconds, 3)
        )

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        if self.stop.is_set() or self.ended_by is not None:
            return
        with self._at_work(name):
            self._guards[name](name, work)
        self.tally.looked(paused=bool(self.paused()))

    def _done(self, duty: Duty) -> PassReport:
        with self._sessions.lend() as session, session.app.store.turn(duty.name):
            now, began = session.app.clock.now(), time.monotonic()
            self._check_moment(session)
            report = duty.work(session.parts, now)
            self._tell(duty.name, report, began)
            for source in {*report.problems, *session.app.config.headers.sources}:
                words = report.problems.get(source)
                self._guards[duty.name].say(source, logging.WARNING, "headers", words)
        return report

    def _check_moment(self, session: Session) -> None:
        """Look whether clock, ledger and keys are what they were; called once the moment is taken.

        Raises:
            ConfigError: the clock shows a moment that is over.
            FatalError: the store is older than it was.
            TransientError: the keys are others; they are opened for the next duty.
        """
        ledger = session.parts.store.ledger
        server = session.app.store.server_time()
        with self._clock_lock:
            self._clock.check(ledger.last_moment(), server)
        self._heads.check(ledger)
        if session.keys_changed():
            raise TransientError("the keyring was changed: its keys are opened anew")

    # ------------------------------------------------------------------ signs of life

    @contextlib.contextmanager
    def _at_work(self, name: str) -> Iterator[None]:
        me = threading.get_ident()
        self._alive[me] = (name, time.monotonic())
        try:
            yield
        finally:
            del self._alive[me]

    def _beat(self) -> None:
        me = threading.get_ident()
        if me in self._alive:
            self._alive[me] = (self._alive[me][0], time.monotonic())

    def _progress(self, stage: str, done: int, total: int) -> None:
        """Between two items: show life, and stop here when the worker is to stop."""
        del stage, done, total
        self._beat()
        if self.stop.is_set():
            raise StopNow

    def at_work(self) -> list[str]:
        """Return what is being done now."""
        return sorted(name for name, _ in list(self._alive.values()))

    def silent_s(self) -> float:
        """Return for how long the most silent thread at work has shown no life."""
        now = time.monotonic()
        return max((now - at for _, at in list(self._alive.values())), default=0.0)

    def paused(self) -> list[str]:
        """Return why work is paused."""
        return sorted({guard.paused for guard in self._guards.values() if guard.paused})

    # ------------------------------------------------------------------ words

    def _tell(self, name: str, report: PassReport, began: float) -> str:
        """Count what was done, and log it on one line; return the words: none is no news."""
        seconds, words = time.monotonic() - began, words_of(report)
        if words:
            self.tally.made(name, report, seconds)
            level = logging.WARNING if report.failed_calls else logging.INFO
            line = f"{name}: {words} ({seconds:.1f} s)"
            tell(level, name, line, seconds=round(seconds, 3), **facts(report))
        return words

    def _tell_step(self, name: str, report: PassReport, began: float) -> None:
        if not self._tell(name, report, began):
            return
        with self._sessions.lend() as session:
            lanes = session.app.store.storage.lanes.all()
        alerts = "; ".join(storage.alerts(lanes)) or None
        self._guards[STORING].say("alert", logging.ERROR, "alert", alerts)

    # ------------------------------------------------------------------ reload, end

    def reload(self) -> None:
        """Read the configuration again and go on with it; one that cannot be used is left alone."""
        try:
            self._reload()
        except AnchordError as error:
            tell(logging.ERROR, "reload", f"the configuration of before is kept: {error}")
        except Exception as error:  # noqa: BLE001 - a fault must not be taken for a reload
            tell(logging.ERROR, "reload", f"nothing was reloaded: {type(error).__name__}: {error}")
        with self._clock_lock:
            if self._clock.accept():
                tell(logging.WARNING, "clock", "the clock as it is now is taken for right")
        for guard in self._guards.values():
            guard.resume()

    def _reload(self) -> None:
        loaded, kept = renewed(self._loaded, load(str(self._loaded.path)))
        self._sessions.renew(loaded)
        names_, self._loaded = changed(self.config, loaded.config), loaded
        what = ", ".join(names_) or "nothing changed; keys and certificates were read again"
        tell(logging.INFO, "reload", f"reloaded: {what}", changed=names_)
        if kept:
            words = f"needs a new start, and stays as it was: {', '.join(kept)}"
            tell(logging.WARNING, "reload", words, kept=kept)

    def longest_s(self) -> float:
        """Return how long one call of the configured services may take, seconds."""
        return longest_timeout(self.config)

    def rest(self) -> None:
        """Let go of what is not used; called now and then, on any thread."""
        self._sessions.rest()

    def close(self) -> None:
        """Let go of everything."""
        self._sessions.close()
