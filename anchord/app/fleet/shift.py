"""A shift: one worker has the way to the Internet Archive, for some minutes, then another may.

Calls to the archive outlive a step, so whoever starts them must be there to take them in. Two locks
keep others away meanwhile: the queue's, which hands out the next shift, and the turn, a lock of the
session at the server. The second one holds when the first is mistaken: the queue takes a worker
that was stopped for dead, and one that was cut off believes that it has the shift still.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING

from anchord.app.archive_wiring import may_send
from anchord.app.fleet.duties import STORING
from anchord.app.service.agenda import Agenda
from anchord.app.service.session import longest_timeout
from anchord.engine.run import run_storing
from anchord.errors import TransientError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from anchord.app.fleet.sessions import Sessions
    from anchord.app.service.guard import Guard
    from anchord.app.service.session import Session
    from anchord.engine.run import PassReport


class Shift:
    """Shifts of one worker, one after the other.

    Args:
        sessions: a shift opens one of its own, and closes it before its turn ends.
        stop: set when the worker is to stop.
        beat: called between steps.
        check_moment: raises when nothing may be dated now, see `Work`.
        told: given what a step did, and when it began (time.monotonic).
        guard: remembers what was said about trouble.
    """

    def __init__(
        self,
        sessions: Sessions,
        stop: threading.Event,
        *,
        beat: Callable[[], None],
        check_moment: Callable[[Session], None],
        told: Callable[[str, PassReport, float], None],
        guard: Guard,
    ) -> None:
        self._sessions, self._stop = sessions, stop
        self._beat, self._check_moment, self._told = beat, check_moment, told
        self._guard = guard

    def __call__(self) -> None:
        """Work a shift, if anything may be sent at all.

        Raises:
            TransientError: another worker has it, another process the account, or it was lost.
            ConfigError: keys, folder or addresses cannot be used.
        """
        loaded = self._sessions.loaded
        if may_send(loaded) is None:
            return
        end = time.monotonic() + loaded.config.fleet.shift_s
        with contextlib.ExitStack() as stack:
            session = self._sessions.open()
            stack.callback(session.close)
            is_ours = stack.enter_context(session.app.store.turn(STORING))
            # Closed before the turn is let go of, so that no call of ours meets the next shift's.
            stack.callback(session.close)
            session.open_archive()
            if session.trouble is not None:
                raise session.trouble
            agenda = Agenda(session)
            while self._goes_on(end, session):
                is_ours()
                self._step(session, agenda)
                self._stop.wait(loaded.config.service.storing_every_s)
            session.drain(time.monotonic() + longest_timeout(loaded.config), self._beat)

    def _goes_on(self, end: float, session: Session) -> bool:
        self._beat()
        changed = session.app.loaded is not self._sessions.loaded or session.keys_changed()
        return time.monotonic() < end and not self._stop.is_set() and not changed

    def _step(self, session: Session, agenda: Agenda) -> None:
        """Do what is due; what is temporary is tried again within the shift."""
        now, archiving = session.app.clock.now(), session.archiving
        if archiving is None:
            return
        began = time.monotonic()
        try:
            if not agenda.storing_due(now):
                return
            self._check_moment(session)
            report = run_storing(session.parts, now, archiving)
        except TransientError as error:
            self._guard.say("step", logging.WARNING, "retry", f"{error}; tried again")
            return
        agenda.stored()
        self._guard.say("step", logging.INFO, "recovered", None)
        self._told(STORING, report, began)
