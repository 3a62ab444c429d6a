"""A Wayback Machine in memory, with a virtual clock, the service's limits, and lies on demand.

It keeps to the port `CaptureArchive`. What it holds against a client (too many submits, statuses
of too many jobs, a URL captured without need) it writes down in `violations`.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from anchord.core.capture import moment_of, same_page, stamp_of
from anchord.core.storage import Refused
from anchord.core.wayback import (
    Accepted,
    AccountStatus,
    Existing,
    IndexPage,
    IndexRow,
    Memento,
    NotThere,
    Reported,
    Running,
    SystemStatus,
)
from support.parties import FakeClock

KEPT_S = 3_600
"""How long a job's status is known."""


def refusal(code: str, retry_after_s: float | None = None) -> Refused:
    return Refused(code=code, message=f"the service says {code}", retry_after_s=retry_after_s)


@dataclass
class Held:
    """One capture the archive holds, or will show later."""

    url: str
    moment: int
    status: int = 200
    body: bytes = b""
    listed_at: int = 0
    replays_at: int = 0
    gone_at: int | None = None

    @property
    def timestamp(self) -> str:
        return stamp_of(self.moment)

    def there(self, now: int, since: int) -> bool:
        return since <= now and (self.gone_at is None or now < self.gone_at)


@dataclass
class Job:
    """One run of a URL."""

    url: str
    started: int
    ends: int
    result: Any
    """What its status says once it has ended: Reported or Refused; None: pending for ever."""


@dataclass
class Lie:
    """What happens instead of the truth in one call.

    `answer` comes back; with `after`, the call is carried out all the same.
    """

    answer: Any
    after: bool = False


@dataclass
class FakeWayback:
    """The service. Times are the clock's.

    Attributes:
        lies: by method name, used up one a call.
        weather: code with which every call of a method is refused while set.
        bend: changes what a job will report.
    """

    clock: FakeClock
    per_minute: int = 7
    slots: int = 3
    daily_limit: int | None = 30_000
    took_s: int = 20
    lag_s: int = 60
    page_rows: int = 1000
    lies: dict[str, deque[Lie]] = field(default_factory=dict)
    weather: dict[str, str] = field(default_factory=dict)
    bend: Callable[[Reported], Any] | None = None
    page: Callable[[str], tuple[int, bytes]] = lambda url: (200, b"page " + url.encode())
    held: list[Held] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    log: list[tuple[int, str, Any]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    daily_used: Counter[int] = field(default_factory=Counter)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # -------------------------------------------------------------- the port

    def submit(self, url: str, *, within_s: int | None, plain: bool) -> Any:
        about = (url, within_s, plain)
        return self._call("submit", about, lambda: self._submit(url, within_s))

    def statuses(self, job_ids: Sequence[str]) -> Any:
        return self._call("statuses", tuple(job_ids), lambda: self._statuses(job_ids))

    def account(self) -> Any:
        return self._call("account", None, self._account)

    def system(self) -> Any:
        return self._call("system", None, lambda: SystemStatus(ok=True, message=""))

    def index(
        self, url: str, *, first: str, last: str, prefix: bool = False, resume: str | None = None
    ) -> Any:
        about = (url, first, last, prefix)
        return self._call("index", about, lambda: self._index(*about, int(resume or 0)))

    def replay(self, timestamp: str, url: str, contains: str | None) -> Any:
        return self._call(
            "replay", (timestamp, url), lambda: self._replay(timestamp, url, contains)
        )

    # -------------------------------------------------------------- for tests

    def lie(self, method: str, answer: Any, *, after: bool = False) -> None:
        """Let the next call of a method answer otherwise."""
        self.lies.setdefault(method, deque()).append(Lie(answer, after))

    def calls(self, method: str) -> list[tuple[int, Any]]:
        """Return the calls of a method with their moments."""
        return [(at, about) for at, name, about in self.log if name == method]

    def hold(self, url: str, moment: int, **changes: Any) -> Held:
        """Hold a capture, as a crawl would have made it."""
        status, body = self.page(url)
        held = Held(**{"url": url, "moment": moment, "status": status, "body": body, **changes})
        self.held.append(held)
        return held

    def running(self) -> int:
        """Return how many jobs run now."""
        now = self.clock.now()
        return sum(job.started <= now < job.ends for job in self.jobs.values())

    def replays(self, timestamp: str, url: str, sha256: bytes) -> bool:
        """Tell whether a capture is there now, with those bytes."""
        held = self._find(timestamp, url)
        return held is not None and hashlib.sha256(held.body).digest() == sha256

    # -------------------------------------------------------------- inside

    def _call(self, method: str, about: Any, truth: Callable[[], Any]) -> Any:
        with self._lock:
            self.log.append((self.clock.now(), method, about))
            if method in self.weather:
                return refusal(self.weather[method])
            queue = self.lies.get(method)
            if not queue:
                return truth()
            told = queue.popleft()
            if told.after:
                truth()
            return told.answer() if callable(told.answer) else told.answer

    def _submit(self, url: str, within_s: int | None) -> Any:
        now = self.clock.now()
        recent = [at for at, _ in self.calls("submit") if at > now - 60]
        if len(recent) > self.per_minute:
            self.violations.append(f"{len(recent)} submits in a minute at {now}")
            return refusal("http-429")
        if self.running() >= self.slots:
            self.violations.append(f"no slot at {now}")
            return refusal("user-session-limit")
        if self.daily_limit is not None and self.daily_used[now // 86_400] >= self.daily_limit:
            self.violations.append(f"beyond the day at {now}")
            return refusal("daily-captures-limit")
        newest = max(
            (held.moment for held in self.held if same_page(held.url, url) and held.status == 200),
            default=None,
        )
        if newest is not None and within_s is not None and now - newest < within_s:
            return Existing(message="The same snapshot had been made")
        return self._begin(url, now)

    def _begin(self, url: str, now: int) -> Any:
        job_id = "spn2-" + hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        before = self.jobs.get(job_id)
        if before is not None and now < before.ends + 4_500:
            return Accepted(job_id=job_id)
        self.daily_used[now // 86_400] += 1
        status, body = self.page(url)
        made, ends = now + self.took_s // 2, now + self.took_s
        reported: Any = Reported(
            job_id=job_id, timestamp=stamp_of(made), original_url=url, http_status=status,
            original_job_id=None, raw=b"{}",
        )  # fmt: skip
        result = self.bend(reported) if self.bend is not None else reported
        self.jobs[job_id] = Job(url, now, ends, result)
        if not isinstance(result, Refused):
            shown = ends + self.lag_s
            self.held.append(Held(url, made, status, body, listed_at=shown, replays_at=shown))
        return Accepted(job_id=job_id)

    def _statuses(self, job_ids: Sequence[str]) -> dict[str, Any]:
        now, found = self.clock.now(), {}
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            known = job is not None and job.ends <= now < job.ends + KEPT_S
            result = job.result if job is not None and known else None
            found[job_id] = Running(job_id=job_id) if result is None else result
        return found

    def _account(self) -> AccountStatus:
        return AccountStatus(
            available=max(self.slots - self.running(), 0),
            processing=self.running(),
            daily_captures=self.daily_used[self.clock.now() // 86_400],
            daily_captures_limit=self.daily_limit,
        )

    def _index(self, url: str, first: str, last: str, prefix: bool, start: int) -> IndexPage:
        now = self.clock.now()
        rows = [
            IndexRow("", held.timestamp, held.url, "text/html", str(held.status), "", "")
            for held in self.held
            if held.there(now, held.listed_at)
            and first <= held.timestamp <= last
            and (held.url.startswith(url) if prefix else same_page(held.url, url))
        ]
        rows.sort(key=lambda row: (row.original, row.timestamp))
        stop = start + self.page_rows
        resume = str(stop) if stop < len(rows) else None
        return IndexPage(rows=tuple(rows[start:stop]), resume=resume)

    def _replay(self, timestamp: str, url: str, contains: str | None) -> Memento | NotThere:
        held = self._find(timestamp, url)
        if held is None:
            return NotThere(reason="has not archived that URL")
        return Memento(
            timestamp=held.timestamp,
            http_status=held.status,
            sha256=hashlib.sha256(held.body).digest(),
            size=len(held.body),
            x_archive_src="spn2-test.warc.gz",
            contains=contains is None or contains.encode() in held.body,
        )

    def _find(self, timestamp: str, url: str) -> Held | None:
        now = self.clock.now()
        return next(
            (
                held
                for held in self.held
                if held.moment == moment_of(timestamp)
                and same_page(held.url, url)
                and held.there(now, held.replays_at)
            ),
            None,
        )
