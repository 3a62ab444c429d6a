"""What is due: asked so that a store of a million complete records costs nothing to serve.

Between two commits of anybody, all that can make work due is the time, so the moment it will be
due is asked for once after each commit, and looked at again only then.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from anchord.core.moment import utc
from anchord.engine import due

if TYPE_CHECKING:
    from anchord.app.service.session import Session
    from anchord.engine.run import PassReport

_ARCHIVE_EVERY_S = 60.0


class Agenda:
    """When the next pass and the next step of storing have something to do.

    Args:
        session: whose store is asked.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._mark: tuple[int, ...] | None = None
        self._pass_at: int | None = None
        self._passed = float("-inf")
        self._storing_mark: tuple[int, ...] | None = None
        self._storing_at: int | None = None
        self._storing_asked = float("-inf")

    def next_words(self, now: int) -> str:
        """Return what the next work is and when, as far as is known; nothing is asked for it."""
        archiving = self._session.archiving
        calls = ", calls to the Internet Archive run" if archiving and archiving.busy else ""
        if self._pass_at is None:
            return f"nothing is due{calls}" if self._mark else "starting"
        when = "now" if self._pass_at <= now else f"at {utc(self._pass_at)}"
        return f"next pass {when}{calls}"

    def pass_due(self, now: int) -> bool:
        """Tell whether a pass may find something to do."""
        if self._pass_at is not None and self._pass_at <= now:
            return True
        if time.monotonic() - self._passed > due.AT_LEAST_EVERY_S:
            return True
        return self._session.mark() != self._mark

    def passed(self, now: int, report: PassReport) -> None:
        """Remember that a pass was made, and when the next is due."""
        # The mark is taken first: what is committed from here on makes a pass due.
        self._mark, self._passed = self._session.mark(), time.monotonic()
        moments = [now] if _stirred(report) else [*self._moments(now)]
        self._pass_at = min(moments, default=None)

    def _moments(self, now: int) -> list[int]:
        found = due.moments(self._session.parts, self._session.app.store.counts, now)
        return [moment for moment in found.values() if moment is not None]

    def storing_due(self, now: int) -> bool:
        """Tell whether an answer of the archive came, or a call can be made."""
        archiving = self._session.archiving
        if archiving is None:
            return False
        if archiving.wait(0):
            return True
        mark, asked = self._session.mark(), time.monotonic()
        if mark != self._storing_mark or asked - self._storing_asked > _ARCHIVE_EVERY_S:
            self._storing_mark, self._storing_asked = mark, asked
            self._storing_at = archiving.next_moment(now)
        return self._storing_at is not None and self._storing_at <= now

    def stored(self) -> None:
        """Remember that a step of storing was made: what is due next is asked anew."""
        self._storing_mark = None


def _stirred(report: PassReport) -> bool:
    """Tell whether a pass did something, or could not, so that the next may go on."""
    done = report.sealed or report.submitted or report.upgraded or report.anchored or report.signed
    return bool(done or report.failed_calls or report.problems)
