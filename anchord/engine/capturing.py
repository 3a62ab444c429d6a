"""Captures by the Wayback Machine, one step at a time: claim, submit, poll, look, replay, confirm.

Rules of the service: "Save Page Now 2 Public API Docs"
(https://archive.org/details/spn-2-public-api-docs). Each effect has its intent in the store before
it: a capture is `sending` before it is submitted, so a killed process leaves nothing to guess. The
next one asks the index first, and a capture is never asked for twice without that.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anchord.core.capture import moment_of
from anchord.core.storage import Capture, CaptureState, Refused
from anchord.core.wayback import Accepted, Existing
from anchord.engine.capture_claim import Claiming
from anchord.engine.capture_fate import INTERRUPTED, Fates
from anchord.engine.capture_jobs import Jobs
from anchord.engine.capture_lanes import SPN, STATUS, CaptureLanes
from anchord.engine.capture_report import CaptureReport, Tally
from anchord.engine.mementos import Mementos
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from anchord.engine.calls import Calls
    from anchord.engine.storing import StoringParts

__all__ = ["CaptureReport", "Capturing"]

_SUBMIT = "submit"
_AFTER_DELAY_S = 900
_LONGEST_DEADLINE_S = 3_300
"""A status is kept for an hour: after that a job can only be looked up in the index."""
_NOT_READ = 2**20
"""More submits than any account has slots: what another process read lets nothing go."""
_SLOT_S = 60
"""The longest between two questions for a slot; a capture that takes long is asked after rarely."""
_EVER = 2**40
"""Later than any wait: what is due by then is everything, in its order."""
_UNFINISHED = tuple(set(CaptureState) - {CaptureState.STORED, CaptureState.PARKED})


class Capturing:
    """The captures lane. Lives as long as a process may have calls in flight.

    Args:
        parts: the parts; whoever makes them holds the account's lock.
    """

    def __init__(self, parts: StoringParts) -> None:
        self._store = parts.parts.store
        self._archive = parts.captures
        self._policy = parts.capture_policy
        self._tally = Tally()
        self._lanes = CaptureLanes(parts)
        self._captures = self._lanes.captures
        self._fates = Fates(self._lanes, self._tally)
        self._claiming = Claiming(parts, self._captures)
        self._jobs = Jobs(parts, self._lanes, self._fates, self._tally)
        self._mementos = Mementos(parts, self._lanes, self._fates, self._tally)
        self._calls: Calls | None = None
        self._since_account = _NOT_READ
        """Submits made since this process read the account."""

    def recover(self, now: int, calls: Calls | None = None) -> None:
        """Look up what was being sent, and nobody waits for the answer: it may have happened.

        Called before the first step of a process, with the account's lock held, and before the
        step after one that did not come to its end.

        Args:
            now: Unix seconds.
            calls: what is in flight, and waited for.
        """
        while sending := [
            capture
            for capture in self._captures.in_state({CaptureState.SENDING})
            if calls is None or not calls.has((_SUBMIT, capture.id))
        ]:
            for capture in sending:
                self._fates.look_after(capture, INTERRUPTED, "nobody heard the answer", now)

    def step(self, now: int, calls: Calls) -> CaptureReport:
        """Start everything that is due and allowed now, without waiting for any of it."""
        self._calls = calls
        if self._archive is None:
            return CaptureReport()
        self._tally.add("claimed", self._claiming.claim(now))
        self._jobs.start(now, calls)
        self._submit_due(now, calls)
        self._mementos.start(now, calls)
        self._lanes.forget()
        return self._tally.report()

    def next_moment(self, now: int) -> int | None:
        """Return the earliest moment something can be done; None: nothing is left to do.

        What a call in flight will make possible is left out: its end is a moment of its own.
        """
        if self._archive is None:
            return None
        if self._claiming.wanted():
            return now
        moments = [self._submit_moment(now), self._mementos.moment(now, self._calls)]
        if self._room(STATUS) > 0:
            moments.append(self._jobs.moment(now))
        self._lanes.forget()
        return min((moment for moment in moments if moment is not None), default=None)

    def unfinished(self) -> int:
        """Return how many captures are on their way; members not looked at yet count as one."""
        captures = sum(self._captures.count(state) for state in _UNFINISHED)
        return captures + (self._captures.unclaimed() is not None)

    # ------------------------------------------------------------------ gates

    def _submit_moment(self, now: int) -> int | None:
        """Return when a submit can be made, or the account be read for a slot."""
        free, due = self._lanes.free_at(SPN, now), self._due_at(now)
        if free is None or due is None or self._room(_SUBMIT) < 1:
            return None
        at = max(free, due, now)
        if self._slots(now) > 0 and at == now:
            return now
        if self._room(STATUS) < 1:
            return None
        account_at = self._lanes.free_at(STATUS, now)
        if account_at is None:
            return None
        return max(at, account_at, now + self._account_wait_s(now))

    def _due_at(self, now: int) -> int | None:
        """Return when the next capture may be submitted, its host's pause reckoned with."""
        first = self._captures.next_moment({CaptureState.WAITING})
        hosts = self._lanes.paused_hosts(now)
        if first is None or not hosts:
            return first
        other = self._captures.due({CaptureState.WAITING}, _EVER, 1, hosts)
        moments = [one.next_attempt_at for one in other] + list(hosts.values())
        return min((moment for moment in moments if moment is not None), default=None)

    def _account_wait_s(self, now: int) -> int:
        """Return how long until the account may be read again for a slot."""
        wait_s = max(self._policy.slot_poll_s, min(self._lanes.idle_s(SPN, now) // 16, _SLOT_S))
        age_s = now - self._lanes.account(now).read_at
        return wait_s - age_s if 0 <= age_s < wait_s else 0

    def _slots(self, now: int) -> int:
        """Return how many submits the account's last word, if fresh, and our own limit allow."""
        seen = self._lanes.account(now)
        account, age_s = seen.account, now - seen.read_at
        if account is None or not 0 <= age_s <= self._policy.slot_poll_s:
            return 0
        said = account.available - self._since_account
        left = self._lanes.left_today(now, self._since_account)
        return min(said, left, self._policy.parallel - self._captures.in_flight())

    def _room(self, lane: str) -> int:
        return 1 if self._calls is None else self._calls.room(lane)

    # ------------------------------------------------------------------ submit

    def _submit_due(self, now: int, calls: Calls) -> None:
        while calls.room(_SUBMIT) > 0 and self._lanes.free_at(SPN, now) == now:
            hosts = self._lanes.paused_hosts(now)
            due = self._captures.due({CaptureState.WAITING}, now, 1, hosts)
            if not due:
                return
            if self._slots(now) < 1:
                if not self._account_wait_s(now):
                    # What is being submitted meanwhile, the answer may not know of yet.
                    self._since_account = self._policy.parallel - calls.room(_SUBMIT)
                    self._jobs.read_account(now, calls)
                return
            self._submit(due[0], now, calls)

    def _submit(self, capture: Capture, now: int, calls: Calls) -> None:
        """Note the intent with the token it takes, then send.

        If we crash behind the transaction, the capture may or may not have been asked for:
        `recover` looks.
        """
        within_s = self._within_s(capture, now)
        columns = {
            "state": CaptureState.SENDING,
            "next_attempt_at": None,
            "submitted_at": now,
            "since_at": now - within_s,
            "deadline_at": None,
            "job_id": None,
        }
        self._since_account += 1
        self._lanes.take(SPN, now)
        if not self._fates.change(capture, columns):
            return
        sent = self._captures.get(capture.id)
        self._send(sent, within_s, calls)

    def _send(self, sent: Capture, within_s: int, calls: Calls) -> None:
        if self._archive is None:
            return
        record = self._store.lookup.records([sent.record_id]).get(sent.record_id)
        template = self._claiming.template(sent.role, record)
        plain = template is not None and template.plain
        call = partial(self._archive.submit, sent.url, within_s=within_s, plain=plain)
        calls.start(_SUBMIT, (_SUBMIT, sent.id), call, partial(self._answered, sent))

    def _within_s(self, capture: Capture, now: int) -> int:
        """Return how young a capture may be that is taken instead of a new one.

        A memento that was lost, or was no good, must not be offered once more.
        """
        adopted = max(self._policy.adopt_younger_than_s, 1)
        if capture.timestamp is None:
            return adopted
        return max(min(adopted, now - moment_of(capture.timestamp) - 1), 1)

    def _answered(
        self, sent: Capture, now: int, result: Accepted | Existing | Refused | AnchordError
    ) -> None:
        if isinstance(result, AnchordError):
            raise result
        if isinstance(result, Refused):
            self._fates.refuse(sent, result, now)
            return
        self._lanes.works(SPN, now)
        if isinstance(result, Existing):
            self._lanes.note_outcome("", now)
            self._fates.look_after(sent, "existing", result.message, now)
            return
        deadline_at = now + self._policy.job_deadline_s
        if result.delay_s:
            deadline_at = now + min(result.delay_s + _AFTER_DELAY_S, _LONGEST_DEADLINE_S)
        first = self._lanes.later(now, now + result.delay_s + self._policy.first_poll_s)
        columns = {
            "state": CaptureState.SUBMITTED,
            "job_id": result.job_id,
            "deadline_at": deadline_at,
            "next_attempt_at": min(first, deadline_at),
            "note": result.message or None,
        }
        self._fates.change(sent, columns, done="submitted")
