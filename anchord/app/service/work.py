"""The work of the service: the same stages as `anchord run-once`, a pass or a step at a time.

Everything here runs on the metronome's one thread, so passes, steps, reloads and the end follow
each other. What is known is in the store; killing it anywhere costs nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from anchord.app.cli import storage
from anchord.app.config import load
from anchord.app.metrics.tally import Tally
from anchord.app.service.agenda import Agenda
from anchord.app.service.clock import ClockWatch
from anchord.app.service.guard import Guard, StopNow
from anchord.app.service.heads import HeadWatch
from anchord.app.service.logs import tell
from anchord.app.service.pass_words import facts, words_of
from anchord.app.service.reload import changed, renewed
from anchord.app.service.session import Session, longest_timeout
from anchord.engine.run import PassReport, run_pass, run_storing
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.app.config import Config, Loaded
    from anchord.app.service.notify import Notifier


class Work:
    """What is done at each beat.

    Args:
        loaded: the configuration of the start.
        notifier: is given signs of life and the status.
        on_end: called, on the working thread, when nothing may go on.
        wall: Unix seconds; the machine's clock.

    Raises:
        ConfigError: store, keys or authorities cannot be used.
    """

    def __init__(
        self,
        loaded: Loaded,
        notifier: Notifier,
        on_end: Callable[[], None] = lambda: None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.stop = threading.Event()
        """Set by any thread: the stage at work stops at its next item, and nothing is begun."""
        self._loaded, self._notifier = loaded, notifier
        self.guard = Guard(on_end)
        self.tally = Tally()
        """What was done, for monitoring."""
        self._clock, self._heads = ClockWatch(wall), HeadWatch()
        self._session = Session(loaded, self._progress)
        self._agenda = Agenda(self._session)

    @property
    def loaded(self) -> Loaded:
        """The configuration as it is now, with its file."""
        return self._loaded

    @property
    def config(self) -> Config:
        """The configuration as it is now."""
        return self._loaded.config

    # ------------------------------------------------------------------ beats

    def beat(self) -> None:
        """Do nothing but show that the working thread works."""
        self._notifier.beat()

    def make_pass(self) -> None:
        """Make a pass when one may find something to do."""
        self._guarded("pass", self._pass)

    def store_step(self) -> None:
        """Take in what came back from the archive, and start what is due."""
        self._guarded("storing", self._store)

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        self._notifier.beat()
        if self.stop.is_set():
            return
        self.guard(name, work)
        self.tally.looked(paused=self.guard.paused is not None)
        self._notifier.beat()
        if self.guard.ended_by is None:
            self._notifier.status(self._status())

    def _pass(self) -> None:
        now, session = self._session.app.clock.now(), self._session
        if session.open_archive():
            trouble = session.trouble and f"nothing is sent to the archive: {session.trouble}"
            self.guard.say("archive", logging.WARNING, "archive", trouble or None)
        if not self._agenda.pass_due(now) or not self._may_sign():
            return
        began = time.monotonic()
        report = run_pass(session.parts, now, session.archiving)
        self._agenda.passed(now, report)
        self._tell("pass", report, began)
        if report.sealed or report.signed:
            session.rest()
        for source in {*report.problems, *session.app.config.headers.sources}:
            self.guard.say(source, logging.WARNING, "headers", report.problems.get(source))
        if report.received is not None:
            for name in report.received.looked:
                words = report.received.problems.get(name)
                self.guard.say(f"source {name}", logging.WARNING, "source", words)
        problems = {} if report.delivered is None else report.delivered.problems
        for outlet in session.parts.outlets:
            words = problems.get(outlet.name)
            self.guard.say(f"outlet {outlet.name}", logging.WARNING, "outlet",
                           words and f"outlet {outlet.name}: {words}")  # fmt: skip

    def _store(self) -> None:
        now, session = self._session.app.clock.now(), self._session
        if session.archiving is None or not self._agenda.storing_due(now):
            return
        if not self._may_sign():
            return
        began = time.monotonic()
        report = run_storing(session.parts, now, session.archiving)
        self._agenda.stored()
        self._tell("storing", report, began)

    def _may_sign(self) -> bool:
        """Look whether clock, ledger and keys are what they were; False: at the next look."""
        ledger = self._session.parts.store.ledger
        self._clock.check(ledger.last_moment(), self._session.app.store.server_time())
        self._heads.check(ledger)
        if self._session.keys_changed():
            self._reload()
            return False
        return True

    # ------------------------------------------------------------------ words

    def _tell(self, event: str, report: PassReport, began: float) -> None:
        """Count what was done, and log it on one line; nothing is no news."""
        seconds = time.monotonic() - began
        self.tally.made(event, report, seconds)
        words = words_of(report)
        if not words:
            return
        level = logging.WARNING if report.failed_calls else logging.INFO
        tell(level, event, f"{event}: {words} ({seconds:.1f} s)", seconds=round(seconds, 3),
             **facts(report))  # fmt: skip
        lanes = self._session.app.store.storage.lanes.all()
        alerts = "; ".join(storage.alerts(lanes)) or None
        self.guard.say("alert", logging.ERROR, "alert", alerts)

    def _status(self) -> str:
        if self.guard.paused is not None:
            return f"PAUSED: {self.guard.paused}"
        trouble = self._session.trouble
        words = self._agenda.next_words(self._session.app.clock.now())
        return words + (f"; archive: {trouble}" if trouble else "")

    def _progress(self, stage: str, done: int, total: int) -> None:
        """Between two items: show life, and stop here when the service is to stop."""
        del stage, done, total
        self._notifier.beat()
        if self.stop.is_set():
            raise StopNow

    # ------------------------------------------------------------------ reload, end

    def reload(self) -> None:
        """Read the configuration again and go on with it; one that cannot be used is left alone."""
        self._notifier.reloading()
        try:
            self._reload()
        except AnchordError as error:
            tell(logging.ERROR, "reload", f"the configuration of before is kept: {error}")
        except Exception as error:  # noqa: BLE001 - a fault must not be taken for a reload
            tell(logging.ERROR, "reload", f"nothing was reloaded: {type(error).__name__}: {error}")
        if self._clock.accept():
            tell(logging.WARNING, "clock", "the clock as it is now is taken for right")
        self.guard.resume()
        self._notifier.ready()

    def _reload(self) -> None:
        loaded, kept = renewed(self._loaded, load(str(self._loaded.path)))
        session = Session(loaded, self._progress)
        self._session.drain(time.monotonic() + longest_timeout(self.config), self._notifier.beat)
        names, old = changed(self.config, loaded.config), self._session
        self._loaded, self._session, self._agenda = loaded, session, Agenda(session)
        # The account's lock goes with it; the next look takes it again.
        old.close()
        what = ", ".join(names) or "nothing changed; keys and certificates were read again"
        tell(logging.INFO, "reload", f"reloaded: {what}", changed=names)
        if kept:
            words = f"needs a new start, and stays as it was: {', '.join(kept)}"
            tell(logging.WARNING, "reload", words, kept=kept)

    def finish(self, deadline: float) -> None:
        """Take in what is in flight, until a moment of time.monotonic; let go of everything."""
        try:
            if self.guard.ended_by is None:
                self._session.drain(deadline, self._notifier.beat)
        except Exception as error:  # noqa: BLE001 - the end comes all the same
            tell(logging.ERROR, "stop", f"while stopping: {error}")
        finally:
            self._session.close()
