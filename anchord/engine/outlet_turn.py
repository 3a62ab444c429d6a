"""One outlet's turn in one pass: what is handed over, set aside, parked, or left for later.

What an outlet refuses by itself is set aside with the later events of its record behind it, and
the others go on. While nothing at all arrives it is the outlet that fails: it is tried again later
from where it is, and nothing is set aside for that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from anchord.core.retry import next_attempt
from anchord.engine.deliveries import Desk
from anchord.errors import (
    ConfigError,
    LedgerError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    RefusedError,
    TransientError,
)
from anchord.ports.outlet import PARKED, WAITING, Closed, Partly, Progress, SetAside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from anchord.core.model import SignedRow
    from anchord.engine.parts import Parts
    from anchord.errors import AnchordError
    from anchord.ports.outlet import Delivery, Outlet, OutletState

TURN_S = 10.0
"""About how long one outlet is served in one pass: others wait meanwhile."""
PARK_AFTER = 12
"""Refusals of one event before it waits for a person: after about a day and a half."""
STUBBORN_AFTER = 5
"""Failures in a row of an outlet, after about a quarter of an hour, from which on the first event
is suspected to be the reason, and the ones behind it are tried."""
_IN_A_ROW = 3
"""So many refusals without an event that arrived, and it is not the events."""
_RETRIES = 8
"""Refusals of events that were set aside, before new ones have their turn."""
_TOGETHER = 64
"""Events written down together: at most so many arrive twice after a crash."""
_WINDOW = 256
_OUTLET_S = (30, 3_600)
_EVENT_S = (60, 43_200)


def ready(parts: Parts, outlet: Outlet) -> int:
    """Return how much of the ledger an outlet can have now.

    A bundle waits for a checkpoint that covers its newest event, and so holds its place in the log.
    """
    length, covered = parts.store.log.sizes()
    return covered if outlet.wants == "bundle" else length


class _FailingError(Exception):
    """An outlet takes nothing; `retry_after` as it asked for."""

    def __init__(self, words: str, retry_after: float | None = None) -> None:
        super().__init__(words)
        self.retry_after = retry_after


class _ClosedError(Exception):
    """An outlet wants nothing any more."""


class _Draft:
    """What happened since it was last written down."""

    def __init__(self, seq: int) -> None:
        self.before = self.seq = seq
        self.arrived = 0
        self.done: list[tuple[int, int]] = []
        self.aside: list[SetAside] = []
        self.behind: list[tuple[int, int]] = []

    def progress(self) -> Progress | None:
        """Return what is to be written; None when that is nothing."""
        if self.seq == self.before and not (self.done or self.aside):
            return None
        return Progress(
            before=self.before,
            seq=self.seq,
            delivered=self.arrived,
            done=self.done,
            aside=self.aside,
            behind=self.behind,
        )


class Turn:
    """One outlet's turn in one pass."""

    def __init__(self, parts: Parts, outlet: Outlet, now: int) -> None:
        self._parts, self._outlet, self._now = parts, outlet, now
        self._table = parts.store.outlets
        self._desk = Desk(parts.store, parts.keyring, outlet.wants)
        self._ends = time.monotonic() + TURN_S
        self._state = self._begin()
        self._draft = _Draft(self._state.seq)
        self._stubborn = self._state.failures >= STUBBORN_AFTER
        self._refusals: list[str] = []
        """Words of new events that were refused since one arrived."""
        self._after: float | None = None
        """How long the outlet asked to be left alone when it failed at one of them."""
        self._guessed = False
        """One of them did not answer for itself: the outlet failed at it."""
        self._held: set[int] = set()
        """Records with events that were refused in this turn."""
        self.delivered = 0
        self.set_aside = 0

    def __call__(self) -> str | None:
        """Hand over what is due; return what is wrong with the outlet."""
        at = self._state.next_attempt_at
        if at is None or at > self._now:
            return self._state.last_error if self._state.failures else None
        self._check_ledger()
        try:
            self._again()
            self._onward()
            self._conclude()
        except _FailingError as error:
            self._commit()
            self._fail(self._later(error.retry_after), str(error))
            return str(error)
        except _ClosedError as error:
            self._commit()
            self._fail(None, str(error))
            return str(error)
        except Exception:  # we are to stop, or the store is damaged: what arrived has arrived
            if not self._refusals:
                self._commit()
            raise
        self._commit()
        return None

    def _begin(self) -> OutletState:
        outlet, store = self._outlet, self._parts.store
        state = self._table.get(outlet.name)
        if state is not None:
            return state
        first = store.log.sizes()[0] if outlet.from_now else 0
        with store.exclusive():
            return self._table.begin(outlet.name, outlet.kind, first, self._now)

    def _check_ledger(self) -> None:
        """Rows that an outlet has passed must be there, or it would miss what takes their place."""
        length, _ = self._parts.store.log.sizes()
        if self._state.seq > length:
            raise LedgerError(
                f"the outlet {self._outlet.name} is at row {self._state.seq:,} of the ledger, but "
                f"that has {length:,}: it was put back to an older state without its outlets. "
                "Restore the whole store from a backup, or give the outlet a new name"
            )

    # ------------------------------------------------------------------ what was set aside

    def _again(self) -> None:
        """Try events that were set aside; those behind one that arrives are next."""
        refused = 0
        while refused < _RETRIES and time.monotonic() < self._ends:
            due = self._table.due(self._outlet.name, self._now, _RETRIES)
            if not due:
                return
            for one in due:
                refused += not self._try_again(one)
                if self._guessed:
                    return  # what is new shows whether it is the event or the outlet
            self._commit()

    def _try_again(self, one: SetAside) -> bool:
        rows = next(self._parts.store.ledger.walk(one.seq - 1, 1), [])
        delivery = self._desk.prepare(rows)[one.seq]
        self._commit()
        refused, _ = self._call([delivery], guessing=True)
        words = refused.get(one.seq)
        if words is None:
            self._draft.done.append((one.seq, one.record_id))
            self._arrived()
            return True
        if self._guessed:
            self._refusals.append(words)
        self._draft.aside.append(self._refusal(one.seq, one.record_id, one.attempts + 1, words))
        return False

    # ------------------------------------------------------------------ new events

    def _onward(self) -> None:
        """Hand over what came since, a window of the ledger at a time."""
        end, walk = ready(self._parts, self._outlet), self._parts.store.ledger.walk
        size = self._outlet.at_once if self._outlet.wants == "bundle" else _WINDOW
        while self._draft.seq < end and time.monotonic() < self._ends:
            rows = [row for row in next(walk(self._draft.seq, size), []) if row.seq <= end]
            if not rows:
                return
            self._window(rows, end)

    def _window(self, rows: Sequence[SignedRow], end: int) -> None:
        wanted = self._wanted(rows)
        held = self._table.held(self._outlet.name, [row.record_id for row in wanted])
        self._held |= held
        to_go = [row for row in wanted if row.record_id not in held]
        prepared = self._desk.prepare(to_go)
        passed = {row.seq for row in rows} - {row.seq for row in wanted}
        if len(prepared) < len(to_go):
            rows = [row for row in rows if row.seq <= max(prepared)]
        for group in self._groups(rows, prepared):
            if time.monotonic() > self._ends:
                return
            offered = [
                prepared[row.seq]
                for row in group
                if row.seq in prepared and row.record_id not in self._held
            ]
            refused, rest = self._call(offered, guessing=self._stubborn) if offered else ({}, None)
            done = [row for row in group if rest is None or row.seq < rest]
            self._take_down(done, passed, {one.seq for one in offered}, refused)
            self._tell(end)
            if rest is not None:
                return

    def _wanted(self, rows: Sequence[SignedRow]) -> list[SignedRow]:
        """Return the rows whose event type the outlet takes."""
        events = self._outlet.events
        if not events:
            return list(rows)
        get = self._parts.store.ledger.get_series
        wanted = {
            number: get(number).event_type in events for number in {row.series_id for row in rows}
        }
        return [row for row in rows if wanted[row.series_id]]

    def _groups(
        self, rows: Sequence[SignedRow], prepared: Collection[int]
    ) -> Iterator[list[SignedRow]]:
        """Cut a window into what one call may hold; no record is twice in one."""
        most = 1 if self._stubborn else self._outlet.at_once
        group: list[SignedRow] = []
        records: set[int] = set()
        for row in rows:
            goes = row.seq in prepared
            if goes and (row.record_id in records or len(records) == most):
                yield group
                group, records = [], set()
            if goes:
                records.add(row.record_id)
            group.append(row)
        if group:
            yield group

    def _take_down(
        self,
        group: Sequence[SignedRow],
        passed: Collection[int],
        offered: Collection[int],
        refused: Mapping[int, str],
    ) -> None:
        """Note what became of a stretch of the ledger, in its order."""
        for row in group:
            words = refused.get(row.seq)
            if words is not None:
                self._refuse(row, words)
                continue
            self._draft.seq = row.seq
            if row.seq in offered:
                self._arrived()
            elif row.seq not in passed:
                self._draft.behind.append((row.seq, row.record_id))

    def _refuse(self, row: SignedRow, words: str) -> None:
        """Set an event aside, unless it seems that the outlet takes nothing at all."""
        if not self._refusals:
            self._commit()
        self._refusals.append(words)
        self._held.add(row.record_id)
        self._draft.seq = row.seq
        self._draft.aside.append(self._refusal(row.seq, row.record_id, 1, words))
        if len(self._refusals) < (2 if self._guessed else _IN_A_ROW):
            return
        count = len(self._refusals)
        if self._guessed or not self._stubborn:
            self._drop()
        said = f"{count} events in a row were not taken; the last: {words}"
        raise _FailingError(said, self._after)

    def _conclude(self) -> None:
        """The outlet failed at an event, and nothing else told which of the two is to blame.

        The event is not: it would be parked for no more than that nothing happened meanwhile.
        """
        if self._guessed:
            words = self._refusals[-1]
            self._drop()
            raise _FailingError(words, self._after)

    def _arrived(self) -> None:
        self._draft.arrived += 1
        if self._refusals or self._draft.arrived >= _TOGETHER:
            self._refusals, self._guessed, self._after = [], False, None
            self._commit()

    # ------------------------------------------------------------------ calls

    def _call(
        self, offered: Sequence[Delivery], *, guessing: bool
    ) -> tuple[Mapping[int, str], int | None]:
        """Make one call; return what was refused by itself, and from where on nothing was tried.

        Args:
            offered: what goes.
            guessing: take a failure of the outlet for a refusal until more is known.
        """
        try:
            answer = self._outlet.hand_over(offered)
        except (ConfigError, ProtocolError, RefusedError, TransientError) as error:
            after = error.retry_after if isinstance(error, TransientError) else None
            if guessing and _may_be_its_fault(error):
                self._guessed = True
                self._after = max(self._after or 0, after or 0) or None
                return {offered[0].seq: str(error)}, None
            self._drop_guesses()
            raise _FailingError(str(error), after) from None
        if isinstance(answer, Closed):
            self._drop_guesses()
            raise _ClosedError(answer.words)
        if isinstance(answer, Partly):
            return answer.refused, answer.rest
        return answer, None

    def _refusal(self, seq: int, record_id: int, attempts: int, words: str) -> SetAside:
        shortest, longest = _EVENT_S
        at = next_attempt(self._now, attempts, shortest_s=shortest, longest_s=longest)
        parked = attempts >= PARK_AFTER
        return SetAside(
            seq=seq,
            record_id=record_id,
            state=PARKED if parked else WAITING,
            attempts=attempts,
            next_attempt_at=None if parked else at,
            last_error=words[:500],
        )

    # ------------------------------------------------------------------ writing down

    def _drop_guesses(self) -> None:
        """Do not believe refusals after which nothing arrived before the outlet failed."""
        if self._refusals:
            self._drop()

    def _drop(self) -> None:
        self._draft, self._refusals, self._guessed = _Draft(self._draft.before), [], False

    def _commit(self) -> None:
        """Write down what happened; if we crash before it, all of it is handed over again."""
        progress = self._draft.progress()
        if progress is None:
            return
        with self._parts.store.exclusive():
            self._table.advance(self._outlet.name, progress, self._now)
        self.delivered += progress.delivered
        self.set_aside += len(progress.aside)
        self._draft = _Draft(progress.seq)

    def _fail(self, at: int | None, words: str) -> None:
        with self._parts.store.exclusive():
            self._table.fail(self._outlet.name, self._now, at, words[:500])

    def _later(self, retry_after_s: float | None) -> int:
        shortest, longest = _OUTLET_S
        failures = 0 if self.delivered else self._state.failures
        return next_attempt(
            self._now,
            failures + 1,
            shortest_s=shortest,
            longest_s=longest,
            retry_after_s=retry_after_s,
        )

    def _tell(self, end: int) -> None:
        self._parts.on_progress(f"deliver {self._outlet.name}", self._draft.seq, end)


def _may_be_its_fault(error: AnchordError) -> bool:
    """Tell whether an event may be why an outlet fails at it, whatever it says about that.

    A server in front of a receiver may forbid what one event says, a trigger may fail for one row.
    """
    never_sent = isinstance(error, NetworkError) and error.refused
    return not (never_sent or isinstance(error, RateLimitedError))
