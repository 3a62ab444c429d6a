"""Which duties are due: asked once for all of them, so that an idle fleet costs one task a look."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from anchord.app.fleet.duties import duties
from anchord.engine import due

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.app.service.session import Session


class Looking:
    """The looks of a worker at one place; the fleet makes one look at a time.

    The first asks for every duty: a new place is what a worker takes when it starts, after a
    reload, after the clock was set and when the server is back. Nothing is written, so a look that
    is killed, or made twice, costs its time.

    Args:
        monotonic: seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._all_at = float("-inf")

    def __call__(self, session: Session, now: int) -> tuple[str, ...]:
        """Return the duties that are due at `now`; at times all of them, whatever seems due.

        Raises:
            StoreBusyError: the server does not answer.
        """
        names = tuple(duty.name for duty in duties())
        if self._monotonic() - self._all_at >= due.AT_LEAST_EVERY_S:
            self._all_at = self._monotonic()
            return names
        moments = due.moments(session.parts, session.app.store.counts, now)
        return tuple(name for name in names if _is_due(moments[name], now))


def _is_due(moment: int | None, now: int) -> bool:
    return moment is not None and moment <= now
