"""What is counted against whom: rolling minutes, days, slots, and the firewall."""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque

from anchord.sandbox.wayback.rules import Rules

MINUTE_S = 60.0
DAY_S = 86_400
BACKED_OFF_S = 15
"""Clients that wait 20 s after a 429 are not shut out (overcast07/wayback-machine-spn-scripts)."""


class Minute:
    """What happened within the last 60 seconds."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()

    def count(self, now: float) -> int:
        """Return how often it happened in the 60 seconds that end now."""
        while self._times and self._times[0] <= now - MINUTE_S:
            self._times.popleft()
        return len(self._times)

    def add(self, now: float) -> int:
        """Note that it happens now; return the count."""
        self._times.append(now)
        return self.count(now)

    def below(self, limit: int, now: float) -> float:
        """Return from when on the count is below `limit`, if nothing more happens."""
        over = self.count(now) - limit
        return now if over < 0 else self._times[over] + MINUTE_S


class Day:
    """One account's counts of one UTC day."""

    def __init__(self) -> None:
        self._number = -1
        self._clear()

    def _clear(self) -> None:
        self.captures = 0
        self.bytes = 0
        self.status_reads = 0
        self.urls: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()

    def turn(self, now: float) -> None:
        """Begin anew at UTC midnight."""
        number = int(now // DAY_S)
        if number != self._number:
            self._number = number
            self._clear()


class Account:
    """What one account has used up."""

    def __init__(self, rules: Rules) -> None:
        self.minute = Minute()
        """Submits that were let through."""
        self.asked = Minute()
        """All submits."""
        self.day = Day()
        self.idle_s = 0.0
        self.rules = rules
        self._taken: list[float] = []
        self._free_from = math.inf

    def taken(self, now: float) -> int:
        """Return how many slots are taken, or still seem so."""
        while self._taken and self._taken[0] <= now:
            heapq.heappop(self._taken)
        return len(self._taken)

    def take(self, free_at: float) -> None:
        """Take a slot until `free_at`."""
        heapq.heappush(self._taken, free_at)

    def begin_submit(self, now: float) -> None:
        """Note a submit: until now, what was free was idle."""
        self.idle_s = self.idle_until(now)
        self._free_from = math.inf

    def end_submit(self, now: float) -> None:
        """Reckon from when on the next one could be made: that moment only depends on this one."""
        over = self.taken(now) - self.rules.slots
        slot_at = now if over < 0 else heapq.nsmallest(over + 1, self._taken)[-1]
        self._free_from = max(slot_at, self.minute.below(self.rules.submits_per_minute, now))
        if self.day.captures >= self.rules.daily_captures:
            self._free_from = max(self._free_from, (now // DAY_S + 1) * DAY_S)

    def idle_until(self, now: float) -> float:
        """Return the seconds in which a slot and a submit were free, from the first submit on."""
        return self.idle_s + max(0.0, now - self._free_from)


class Firewall:
    """Closes for an hour, then two, ..., when a 429 is ignored (edgi wayback #137)."""

    def __init__(self, rules: Rules) -> None:
        self.closed_until = 0.0
        self.closings = 0
        self.rules = rules
        self._told: dict[str, tuple[float, int]] = {}

    def shut(self, until: float) -> None:
        """Close until a moment."""
        self.closed_until = max(self.closed_until, until)

    def told(self, family: str, now: float) -> None:
        """Note that a 429 went out to requests of this family."""
        since, _ = self._told.get(family, (now - MINUTE_S - 1, 0))
        if now - since > MINUTE_S:
            self._told[family] = (now, 0)

    def served(self, family: str, now: float) -> None:
        """Note that a request was answered: who had waited before is forgiven."""
        since, _ = self._told.get(family, (now, 0))
        if now - since >= BACKED_OFF_S:
            self._told.pop(family, None)

    def came(self, family: str, now: float) -> None:
        """Note a request of a family; close when too many come after a 429."""
        if family not in self._told:
            return
        since, count = self._told[family]
        if now - since > MINUTE_S:
            del self._told[family]
            return
        self._told[family] = (since, count + 1)
        if count + 1 >= self.rules.ignored_429:
            self.closings += 1
            self.shut(now + self.rules.firewall_s * 2 ** (self.closings - 1))
            self._told.clear()
