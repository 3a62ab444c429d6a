"""What becomes of a capture that was refused, or of which nothing is known.

A failed answer is no proof of a failed capture
(https://github.com/internetarchive/wayback/issues/297), so the index is asked before anything is
sent again; and what a service said about the account or the host is charged to its lane, never to
the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.capture_rules import Scope, decide, lane_of, rule_of
from anchord.core.capture_table import BUSY_WORKERS, HOUR
from anchord.core.storage import Capture, CaptureChange, CaptureState, Intent, Refused
from anchord.engine.capture_hosts import Hosts
from anchord.engine.capture_lanes import SPN, host_lane

if TYPE_CHECKING:
    from anchord.core.capture_rules import Decision
    from anchord.engine.capture_lanes import CaptureLanes
    from anchord.engine.capture_report import Tally

LOOK_AFTER_S = (0, 300, 1_800)
"""Looks into the index for a capture nobody told us of, seconds after the first one."""
CACHED_S = 4_800
"""The service keeps a job's outcome for 75 minutes and more: before that, the same URL gives the
same outcome."""
_DAY_USED_UP = "daily-captures-limit"
INTERRUPTED = "interrupted"
"""Code of a submit whose answer a killed process did not see."""
UNSEEN: dict[str, Any] = {
    "job_id": None, "deadline_at": None, "final_url": None, "http_status": None, "adopted": False,
    "checks": 0, "reported_at": None, "sha256": None, "size": None, "x_archive_src": None,
}  # fmt: skip
"""What a capture without a memento has. Its `timestamp` stays: that memento was lost or is no good,
and only a later one counts."""


class Fates:
    """Writes what captures become."""

    def __init__(self, lanes: CaptureLanes, tally: Tally) -> None:
        self._captures = lanes.captures
        self._lanes = lanes
        self._tally = tally
        self._hosts = Hosts(lanes)

    def change(
        self,
        capture: Capture,
        columns: dict[str, Any],
        *,
        intents: tuple[Intent, ...] = (),
        cut_series: tuple[int, ...] = (),
        done: str = "",
    ) -> bool:
        """Change one capture, and what lanes changed; when that was done, count it as `done`."""
        change = CaptureChange(
            capture=capture, columns=columns, intents=intents, cut_series=cut_series
        )
        made = self._captures.change([change], self._lanes.unwritten()) == 1
        self._lanes.written()
        if made and done:
            self._tally.add(done)
        return made

    def look(
        self, capture: Capture, refused: Refused, now: int, *, attempts: int, again_at: int | None
    ) -> None:
        """Ask the index whether there is a capture nobody told us of.

        Args:
            capture: which.
            refused: what was said instead of a result.
            now: Unix seconds.
            attempts: failed tries, this one included if it counts.
            again_at: when to submit again if there is none; None: then it is parked. Kept in
                `deadline_at`, which no job needs any more.
        """
        columns = {
            **UNSEEN,
            "state": CaptureState.LOOKING,
            "attempts": attempts,
            "next_attempt_at": now,
            "deadline_at": again_at,
            "code": refused.code,
            "note": refused.message,
        }
        self.change(capture, columns)

    def look_after(self, capture: Capture, code: str, note: str, now: int) -> None:
        """Ask the index about a try that has no result and that nobody refused."""
        refused = Refused(code=code, message=note[:300])
        if code == INTERRUPTED:
            self.look(capture, refused, now, attempts=capture.attempts, again_at=now)
            return
        decision = decide(refused, now, attempts=capture.attempts, strikes=0)
        attempts = capture.attempts + decision.counted
        self.look(capture, refused, now, attempts=attempts, again_at=decision.at)

    def worked(self, capture: Capture, now: int) -> None:
        """Note a capture that succeeded with the account and with its host."""
        self._lanes.note_outcome("", now)
        self._lanes.works(SPN, now)
        self._hosts.worked(capture.host, now)

    def refuse(self, capture: Capture, refused: Refused, now: int) -> None:
        """Follow a refusal at the submit, or as the end of a job."""
        self._tally.refuse(refused.code)
        decision = self._decide(capture, refused, now)
        if refused.code == _DAY_USED_UP and decision.at is not None:
            # Nobody documents when the service's day ends: the account is asked every hour.
            decision = msgspec.structs.replace(decision, at=min(decision.at, now + HOUR))
        if decision.scope is not Scope.JOB:
            self._lanes.apply(_lane(decision.scope, capture), refused, decision, now)
        elif decision.lane is not None:
            self._lanes.strike(_lane(decision.lane, capture), refused.code, decision.strikes, now)
        if decision.scope is Scope.JOB:
            self._hosts.refused(capture.host, refused.code, decision.alert, now)
        if not decision.look:
            self._follow(capture, refused, decision, now)
            return
        attempts = capture.attempts + decision.counted
        again_at = decision.at if decision.scope is Scope.JOB else now
        self.look(capture, refused, now, attempts=attempts, again_at=again_at)

    def not_found(self, capture: Capture, now: int) -> None:
        """The index does not list what was looked for: look later, and in the end submit again."""
        checks = capture.checks + 1
        if checks < len(LOOK_AFTER_S):
            at = self._lanes.later(now, now + LOOK_AFTER_S[checks] - LOOK_AFTER_S[checks - 1])
            self.change(capture, {"checks": checks, "next_attempt_at": at})
            return
        refused = Refused(code=capture.code or INTERRUPTED, message=capture.note or "")
        if capture.deadline_at is None:
            self.park(capture, capture.attempts, refused)
        else:
            self._wait(capture, capture.attempts, refused, max(capture.deadline_at, now), now)

    def fail(self, capture: Capture, refused: Refused, now: int) -> None:
        """End a try: the index was asked, or the memento is no good."""
        self._tally.refuse(refused.code)
        decision = decide(refused, now, attempts=capture.attempts, strikes=0)
        self._follow(capture, refused, decision, now)

    def disbelieve(self, capture: Capture, refused: Refused, now: int) -> None:
        """A memento is not what was asked for: put up an alert, and end the try."""
        text = f"{capture.url}: {refused.code}: {refused.message}"[:300]
        self._lanes.alert(host_lane(capture.host), now, text)
        self.fail(capture, refused, now)

    def park(self, capture: Capture, attempts: int, refused: Refused) -> None:
        """Leave a capture to a person."""
        columns = {
            **UNSEEN,
            "state": CaptureState.PARKED,
            "attempts": attempts,
            "next_attempt_at": None,
            "code": refused.code,
            "note": refused.message,
        }
        self.change(capture, columns, done="parked")

    def _decide(self, capture: Capture, refused: Refused, now: int) -> Decision:
        """Decide with the strikes of the lane that the code is about.

        Workers that are busy are the service's trouble when half of the last ten outcomes are
        such, with successes between them or not.
        """
        codes = self._lanes.note_outcome(refused.code, now)
        lane = self._lanes.get(_lane(lane_of(refused.code), capture), now)
        strikes, last_code = lane.strikes, lane.code
        if rule_of(refused.code) is BUSY_WORKERS:
            strikes = max(strikes, sum(rule_of(code) is BUSY_WORKERS for code in codes) - 1)
            last_code = refused.code
        return decide(refused, now, attempts=capture.attempts, strikes=strikes, last_code=last_code)

    def _follow(self, capture: Capture, refused: Refused, decision: Decision, now: int) -> None:
        attempts = capture.attempts + decision.counted
        if decision.park:
            self.park(capture, attempts, refused)
        elif decision.scope is Scope.JOB:
            self._wait(capture, attempts, refused, decision.at or now, now)
        else:
            self._wait(capture, capture.attempts, refused, now, now)

    def _wait(self, capture: Capture, attempts: int, refused: Refused, at: int, now: int) -> None:
        """Back into the queue; a job that was made is not asked for while its outcome is cached."""
        refused_at_once = capture.state is CaptureState.SENDING
        if not refused_at_once and capture.submitted_at is not None:
            at = max(at, capture.submitted_at + CACHED_S)
        columns = {
            **UNSEEN,
            "state": CaptureState.WAITING,
            "attempts": attempts,
            "next_attempt_at": self._lanes.later(now, at),
            "code": refused.code,
            "note": refused.message,
        }
        self.change(capture, columns)


def _lane(scope: Scope, capture: Capture) -> str:
    return host_lane(capture.host) if scope is Scope.HOST else SPN
