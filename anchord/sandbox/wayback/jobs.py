"""Save Page Now's jobs: when each ends, what it captures, and what its status says.

Job ids are made from the URL alone, so that the same URL has the same id again. A status read
of a job that expired or never was says `pending`, for ever (agude/wayback-machine-archiver #28).
"""

from __future__ import annotations

import hashlib
import heapq
from typing import Any

import msgspec


class Job(msgspec.Struct, kw_only=True):
    """One accepted submit, and its fate."""

    serial: int
    url: str
    account: str
    submitted_at: float
    starts_at: float
    ends_at: float
    within_s: float
    """No younger capture existed, as far as the archive knew."""
    capture_all: bool = False
    tells_first: bool = True
    """The client wants to know whether this is the first capture."""
    # its fate
    code: str | None = None
    """It ends in this error, whatever the page is."""
    captures: bool = True
    forgotten_s: float | None = None
    """It is forgotten so long after its end; None: as the rules say."""
    vanish_s: float | None = None
    gone_but_listed: bool = False
    late_s: float = 0
    # its end
    settled: bool = False
    answer: dict[str, Any] = {}
    """The status object, once it has ended."""
    timestamp: str | None = None
    """Of its capture."""
    told_again: bool = False
    """A later submit was given this outcome, so the status names an original job."""
    known_until: float = 0
    """When the status forgets it."""
    failed: bool = False


def job_id(url: str) -> str:
    """Return the id of every job of a URL."""
    return f"spn2-{hashlib.sha1(url.encode()).hexdigest()}"  # noqa: S324  no secret


def single_id(job: Job) -> str:
    """Return the id of one job alone, as `original_job_id` names it."""
    return f"spn2-{hashlib.sha1(f'{job.serial} {job.url}'.encode()).hexdigest()}"  # noqa: S324


class Jobs:
    """The last job of every URL, and those that still run."""

    def __init__(self) -> None:
        self._by_id: dict[str, Job] = {}
        self._running: list[tuple[float, int, Job]] = []
        self.serial = 0

    def add(self, job: Job) -> None:
        """Take a job in; the last of its URL replaces the one before."""
        self.serial = max(self.serial, job.serial)
        self._by_id[job_id(job.url)] = job
        self._by_id[single_id(job)] = job
        if not job.settled:
            heapq.heappush(self._running, (job.ends_at, job.serial, job))

    def last(self, url: str) -> Job | None:
        """Return the last job of a URL."""
        return self._by_id.get(job_id(url))

    def ended(self, now: float) -> list[Job]:
        """Return jobs whose end has come, in order, and have them no more among the running."""
        found = []
        while self._running and self._running[0][0] <= now:
            found.append(heapq.heappop(self._running)[2])
        return found

    def status(self, asked: str, now: float) -> dict[str, Any]:
        """Return the status object of a job id."""
        job = self._by_id.get(asked)
        if job is None or not job.settled or now >= job.known_until:
            return {"job_id": asked, "resources": [], "status": "pending"}
        answer = {"job_id": asked} | job.answer
        if job.told_again and answer["status"] == "success":
            answer["original_job_id"] = single_id(job)
        return answer
