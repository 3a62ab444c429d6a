"""The table of captures, with one glance at it for all questions of a step.

A step asks a dozen times whether something is due, and most of the time nothing is. One query tells
when each state is due next; only what is due is then read. What a step changes ends the glance, and
so does the step's end, because another process may have changed the table meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.storage import Capture, CaptureState, Glance

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from anchord.core.storage import CaptureChange, Lane, NewCapture
    from anchord.ports.storage import CaptureTable


class GlancedCaptures:
    """A capture table that answers what it can from its last glance. Used by one thread."""

    def __init__(self, table: CaptureTable) -> None:
        self._table = table
        self._seen: Glance | None = None

    def forget(self) -> None:
        """Look anew next time."""
        self._seen = None

    def _glance(self) -> Glance:
        if self._seen is None:
            self._seen = self._table.glance()
        return self._seen

    # ------------------------------------------------------------------ from the glance

    def due(
        self,
        states: Collection[CaptureState],
        now: int,
        limit: int,
        skip_hosts: Collection[str] = (),
    ) -> list[Capture]:
        """Return captures in one of the states whose time has come, the longest due first."""
        seen = self._glance().due
        wanted = [state for state in states if seen.get(state, now + 1) <= now]
        return self._table.due(wanted, now, limit, skip_hosts) if wanted else []

    def next_moment(self, states: Collection[CaptureState]) -> int | None:
        """Return when the next capture in one of the states is due."""
        seen = self._glance().due
        return min((seen[state] for state in states if state in seen), default=None)

    def in_flight(self) -> int:
        """Return how many are being submitted or have a job."""
        return self._glance().in_flight

    def unclaimed(self) -> tuple[int, int, int] | None:
        """Return the first batch with members not looked at yet: (batch, claimed, size)."""
        return self._table.unclaimed() if self._glance().unclaimed else None

    # ------------------------------------------------------------------ from the table

    def few(self, state: CaptureState, number: int) -> bool:
        """Tell whether fewer than so many stand in a state."""
        return self._table.count(state, number) < number

    def in_state(self, states: Collection[CaptureState], limit: int = 1000) -> list[Capture]:
        """Return captures in some states, due or not, oldest first."""
        return self._table.in_state(states, limit)

    def get(self, capture_id: int) -> Capture:
        """Return one capture."""
        return self._table.get(capture_id)

    def count(self, state: CaptureState) -> int:
        """Return how many stand in a state."""
        return self._table.count(state)

    # ------------------------------------------------------------------ changes

    def claim(
        self, batch_id: int, stop: int, found: Sequence[NewCapture], now: int, *, start: int
    ) -> int:
        """Note that members before `stop` were looked at, and the URLs found."""
        self.forget()
        return self._table.claim(batch_id, stop, found, now, start=start)

    def claim_again(self) -> None:
        """Let all members be looked at once more."""
        self.forget()
        self._table.claim_again()

    def change(self, changes: Sequence[CaptureChange], lanes: Sequence[Lane] = ()) -> int:
        """Change captures, append intents and keep lanes in one transaction."""
        self.forget()
        return self._table.change(changes, lanes)
