"""What the account and its jobs say: slots, day counts, and how captures ended.

A status that says success names a memento and proves nothing; one that says "pending" may be of a
job that was forgotten (https://github.com/agude/wayback-machine-archiver/issues/28), so each job
has a deadline. A job id is the same for every job of one URL: what a status tells must be dated
after the submit, or it is about an older capture.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anchord.core.capture import moment_of, whole_url
from anchord.core.storage import Capture, CaptureState, Refused
from anchord.core.wayback import AccountStatus, Reported, Running, SystemStatus
from anchord.engine.capture_bond import of_its_page
from anchord.engine.capture_index import SKEW_S
from anchord.engine.capture_lanes import SPN, STATUS
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from anchord.engine.calls import Calls
    from anchord.engine.capture_fate import Fates
    from anchord.engine.capture_lanes import CaptureLanes
    from anchord.engine.capture_report import Tally
    from anchord.engine.storing import StoringParts

_JOBS = 50
"""Jobs in one read of statuses; what the service's clients ask for at once."""
_LONGEST_POLL_S = 60
_GRACE_S = 60
"""After its deadline a job may still be read for this long, if statuses can be read at all."""
_OK = (200, None)
_OVERLOADED_S = (300, 600, 1_200, 1_800)

Job = Running | Reported | Refused


class Jobs:
    """Reads the account, the system and the statuses of jobs, one call at a time."""

    def __init__(
        self, parts: StoringParts, lanes: CaptureLanes, fates: Fates, tally: Tally
    ) -> None:
        self._archive = parts.captures
        self._policy = parts.capture_policy
        self._store = parts.parts.store
        self._captures = lanes.captures
        self._lanes = lanes
        self._fates = fates
        self._tally = tally
        self._ended = False
        """The account has a free slot that we hold for a job: it has ended, so read it now."""
        self._silent: frozenset[int] = frozenset()
        """Captures whose jobs were read because of that and still said "pending": forgotten, or the
        account has more slots than we use. They are read in their own time."""

    def start(self, now: int, calls: Calls) -> None:
        """Give up jobs past their deadline, and read the statuses that are due."""
        self._give_up(now)
        self._probe(now, calls)
        if self._archive is None or not self._free(now, calls):
            return
        if self._ended:
            jobs = self._captures.in_state({CaptureState.SUBMITTED}, _JOBS)
        elif self._captures.due({CaptureState.SUBMITTED}, now, 1):
            soon = now + self._policy.poll_s // 2
            jobs = self._captures.due({CaptureState.SUBMITTED}, soon, _JOBS)
        else:
            return
        early, self._ended = self._ended, False
        ids = sorted({job.job_id for job in jobs if job.job_id is not None})
        if ids:
            then = partial(self._told, jobs, early)
            self._call(partial(self._archive.statuses, ids), then, now, calls)

    def read_account(self, now: int, calls: Calls) -> None:
        """Ask for slots, where work waits for one; after an outage ask for the service first."""
        if self._archive is None or not self._free(now, calls):
            return
        if self._lanes.get(SPN, now).code == "offline":
            self._call(self._archive.system, self._system, now, calls)
        else:
            self._call(self._archive.account, self._account, now, calls)

    def moment(self, now: int) -> int | None:
        """Return when the next status can be read, or the next job is given up."""
        moments = [self._read_moment(now), self._lanes.probe_at(now)]
        return min((max(at, now) for at in moments if at is not None), default=None)

    def _read_moment(self, now: int) -> int | None:
        due = self._captures.next_moment({CaptureState.SUBMITTED})
        if due is None:
            return None
        free = self._lanes.free_at(STATUS, now)
        waiting = self._captures.due({CaptureState.SUBMITTED}, now, _JOBS)
        deadlines = [job.deadline_at + _GRACE_S for job in waiting if job.deadline_at is not None]
        moments = [*deadlines, *([] if free is None else [max(free, due, now)])]
        return max(min(moments), now) if moments else None

    def _free(self, now: int, calls: Calls) -> bool:
        return calls.room(STATUS) > 0 and self._lanes.free_at(STATUS, now) == now

    def _call(
        self,
        function: Callable[[], Any],
        then: Callable[[int, Any], None],
        now: int,
        calls: Calls,
    ) -> None:
        def take(at: int, result: Any) -> None:
            if isinstance(result, AnchordError):
                raise result
            if isinstance(result, Refused):
                # Nothing is known of any job; those past their deadline are given up by time.
                self._tally.refuse(result.code)
                self._lanes.refuse_reading(STATUS, result, at)
                return
            self._lanes.works(STATUS, at)
            then(at, result)

        self._lanes.take(STATUS, now)
        self._lanes.flush()
        calls.start(STATUS, function, function, take)

    # ------------------------------------------------------------------ account and system

    def _probe(self, now: int, calls: Calls) -> None:
        """Ask an account that stopped over its key whether it answers by now."""
        at = self._lanes.probe_at(now)
        if self._archive is None or at is None or at > now or calls.room(STATUS) < 1:
            return
        self._lanes.probe(now)
        calls.start(STATUS, self._probe, self._archive.account, self._probed)

    def _probed(self, now: int, result: AccountStatus | Refused | AnchordError) -> None:
        if isinstance(result, AnchordError):
            raise result
        if isinstance(result, Refused):
            self._tally.refuse(result.code)
            return
        self._lanes.go_on(now)
        self._account(now, result)

    def _account(self, now: int, account: AccountStatus) -> None:
        self._lanes.note_account(account, now)
        jobs = self._captures.in_state({CaptureState.SUBMITTED}, _JOBS)
        self._silent &= frozenset(job.id for job in jobs)
        held = self._captures.in_flight() - len(self._silent)
        told = account.available > max(self._policy.parallel - self._captures.in_flight(), 0)
        self._ended = told and held > 0

    def _system(self, now: int, system: SystemStatus) -> None:
        if system.ok:
            # Its word opens the lane; only a submit that is taken ends the refusals in a row.
            self._lanes.reopen(SPN, now)
            return
        lane = self._lanes.get(SPN, now)
        wait_s = _OVERLOADED_S[min(lane.strikes, len(_OVERLOADED_S) - 1)]
        refused = Refused(code="offline", message=system.message)
        self._tally.refuse(refused.code)
        self._lanes.pause(SPN, now, now + wait_s, refused, lane.strikes + 1)

    # ------------------------------------------------------------------ jobs

    def _told(self, jobs: list[Capture], early: bool, now: int, told: dict[str, Job]) -> None:
        for capture in jobs:
            job = told.get(capture.job_id or "")
            if isinstance(job, Reported):
                self._reported(capture, job, now)
            elif isinstance(job, Refused):
                self._fates.refuse(capture, job, now)
            elif capture.deadline_at is not None and capture.deadline_at <= now:
                self._expire(capture, now)
            else:
                self._silent |= {capture.id} if early else set()
                self._fates.change(capture, {"next_attempt_at": self._poll_at(capture, now)})

    def _poll_at(self, capture: Capture, now: int) -> int:
        age_s = now - (capture.submitted_at or now)
        wait_s = max(self._policy.poll_s, min(age_s // 4, _LONGEST_POLL_S))
        at = self._lanes.later(now, now + wait_s)
        return at if capture.deadline_at is None else min(at, max(capture.deadline_at, now + 1))

    def _give_up(self, now: int) -> None:
        for capture in self._captures.due({CaptureState.SUBMITTED}, now, _JOBS):
            if capture.deadline_at is not None and capture.deadline_at + _GRACE_S <= now:
                self._expire(capture, now)

    def _expire(self, capture: Capture, now: int) -> None:
        self._fates.look_after(capture, "expired", "no end of the job was seen in time", now)

    def _reported(self, capture: Capture, job: Reported, now: int) -> None:
        """A success: what it names is checked before it is believed enough to be looked for."""
        url = whole_url(job.original_url, capture.url)
        moment = moment_of(job.timestamp)
        ours = job.original_job_id is None and moment >= (capture.submitted_at or 0) - SKEW_S
        problem = self._problem(capture, url, job, ours=ours, moment=moment, now=now)
        if problem is not None:
            if problem.code == "too-old":
                self._fates.fail(capture, problem, now)
            else:
                self._fates.disbelieve(capture, problem, now)
            return
        columns = {
            "state": CaptureState.REPORTED,
            "timestamp": job.timestamp,
            "final_url": url,
            "http_status": job.http_status,
            "adopted": not ours,
            "reported_at": now,
            "checks": 0,
            "next_attempt_at": self._lanes.gathered(now, now + self._policy.check_after_s[0]),
            "job_id": None,
            "deadline_at": None,
            "code": None,
            "note": None,
        }
        self._fates.worked(capture, now)
        if self._fates.change(capture, columns, done="reported"):
            self._tally.add("adopted", int(not ours))

    def _problem(
        self, capture: Capture, url: str, job: Reported, *, ours: bool, moment: int, now: int
    ) -> Refused | None:
        """Say why a reported capture is not the one that was asked for; None when it may be."""
        if not of_its_page(self._store, capture, url):
            return Refused(code="unexpected-url", message=f"the capture is of {url}"[:300])
        if job.http_status not in _OK:
            said = f"the page was captured with status {job.http_status}"
            return Refused(code="unexpected-status", message=said)
        barred = capture.timestamp is not None and job.timestamp <= capture.timestamp
        if barred or not (ours or moment >= now - self._policy.adopt_younger_than_s):
            said = f"the service named a capture of {job.timestamp}, which is too old"
            return Refused(code="too-old", message=said)
        if moment > now + SKEW_S:
            said = f"the service named a capture of {job.timestamp}, which is yet to come"
            return Refused(code="unexpected-moment", message=said)
        return None
