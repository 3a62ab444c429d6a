"""Noticing that the clock went back, before anything is signed with a moment that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.moment import utc
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE_S = 120
"""Time services set a clock back by less than this; such a moment is waited for."""


OF_SERVICE = "reload (SIGHUP, `systemctl reload anchord`)"
"""How the clock is taken for right in a service."""
BY_HAND = "say `anchord run-once --accept-clock`"
"""How it is in a pass by hand."""


class ClockWatch:
    """Compares the clock with what it showed before: in this process, and in the ledger.

    Args:
        wall: Unix seconds; the machine's clock.
        accepting: what a person does to have the clock taken for right, for the message.
    """

    def __init__(self, wall: Callable[[], float], accepting: str = OF_SERVICE) -> None:
        self._wall, self._accepting = wall, accepting
        self._seen = 0
        self._last: int | None = None
        self._accepted: int | None = None

    def check(self, last_event: int | None, server: int | None = None) -> None:
        """Refuse to go on while the clock shows a moment that is over, or another than the store's.

        A worker that ran ahead would sign moments that are over for nobody else, and all others
        would have to wait for them.

        Args:
            last_event: when the ledger's newest event was decided.
            server: what the clock of the store's machine shows now; None: it is this one.

        Raises:
            ConfigError: the clock went back by more than is usual, or the two differ by more.
        """
        now, self._last = int(self._wall()), last_event
        if server is not None and abs(now - server) > TOLERANCE_S:
            raise ConfigError(
                f"the clock here shows {utc(now)}, and that of the database server {utc(server)}: "
                f"expected less than {TOLERANCE_S} s between them; nothing is sent or signed. Set "
                "the one right that is wrong, and work goes on by itself"
            )
        counts = last_event is not None and last_event != self._accepted
        latest = max(self._seen, last_event if counts and last_event else 0)
        if now < latest - TOLERANCE_S:
            raise ConfigError(
                f"the clock went back: it shows {utc(now)}, and {utc(latest)} was before; nothing "
                "is sent or signed. Set the clock right and work goes on by itself; if it is right "
                f"now and was wrong before, {self._accepting}"
            )
        self._seen = max(self._seen, now)

    def accept(self) -> bool:
        """Take the clock as it is now for right; return whether it seemed to have gone back."""
        went_back = int(self._wall()) < max(self._seen, self._last or 0) - TOLERANCE_S
        self._seen, self._accepted = 0, self._last
        return went_back
