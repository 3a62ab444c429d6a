"""Everything the archive knows, and how a job's end changes it."""

from __future__ import annotations

import random
from typing import Any

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.wayback import words
from anchord.sandbox.wayback.captures import Capture, Captures
from anchord.sandbox.wayback.jobs import Job, Jobs
from anchord.sandbox.wayback.journal import Journal
from anchord.sandbox.wayback.limits import Account
from anchord.sandbox.wayback.report import Tally
from anchord.sandbox.wayback.rules import Rules, Span
from anchord.sandbox.wayback.site import MAX_REDIRECTS, Seen, Site
from anchord.sandbox.wayback.urlkey import digits, host_of, moment_of, urlkey


class World:
    """The archive's state. Not for several threads at once: the service holds its lock.

    Args:
        clock: the only time there is.
        rules: limits and delays.
        site: the web.
        journal: where jobs and captures are kept.
        seed: of durations and of shapes that are all right.
    """

    def __init__(
        self, clock: SandboxClock, rules: Rules, site: Site, journal: Journal, *, seed: int
    ) -> None:
        self.clock = clock
        self.rules = rules
        self.site = site
        self.journal = journal
        self.random = random.Random(seed)  # noqa: S311  days that repeat are wanted
        self.captures = Captures()
        self.jobs = Jobs()
        self.tally = Tally()
        self.accounts: dict[str, tuple[str, Account]] = {}
        """Access key -> secret and account."""
        self._paused: dict[str, float] = {}

    def draw(self, span: Span) -> float:
        """Return a duration out of a span."""
        return self.random.uniform(*span)

    def load(self) -> None:
        """Go on where the journal ends."""
        jobs: dict[int, Job] = {}
        for line in self.journal.lines():
            if line.job is not None:
                jobs[line.job.serial] = line.job
            elif line.capture is not None:
                self._load_capture(line.capture)
        for job in jobs.values():
            self.jobs.add(job)
            if job.account in self.accounts:
                _, account = self.accounts[job.account]
                self._count(account, job)
                account.take(job.ends_at)
                self._load_bytes(account, job)

    def _load_bytes(self, account: Account, job: Job) -> None:
        for capture in self.captures.of(urlkey(job.url)):
            account.day.bytes += len(capture.body) if capture.job == job.serial else 0

    def _load_capture(self, capture: Capture) -> None:
        known = self.captures.find(capture.urlkey, capture.timestamp)
        if known is None:
            self.captures.add(capture)
        else:
            known.gone_at, known.gone_but_listed = capture.gone_at, capture.gone_but_listed

    @staticmethod
    def _count(account: Account, job: Job) -> None:
        account.day.turn(job.submitted_at)
        account.day.captures += 1
        account.day.urls[job.url] += 1
        account.day.hosts[host_of(job.url)] += 1

    def accept(self, job: Job, account: Account, slot_free_at: float) -> None:
        """Begin a job."""
        self._count(account, job)
        account.minute.add(job.submitted_at)
        account.take(slot_free_at)
        self.tally.accepted += 1
        self.tally.slot_seconds_used += slot_free_at - job.submitted_at
        self.jobs.add(job)
        self.journal.job(job)

    def settle(self, now: float) -> None:
        """End every job whose time has come."""
        for job in self.jobs.ended(now):
            self._finish(job)
            self.tally.durations.append(job.ends_at - job.starts_at)
            self.journal.job(job)

    def _finish(self, job: Job) -> None:
        moment = job.starts_at + 0.4 * (job.ends_at - job.starts_at)
        job.answer = self._outcome(job, moment)
        job.failed = job.answer["status"] == "error"
        job.settled = True
        kept = self.rules.job_kept_s if job.forgotten_s is None else job.forgotten_s
        job.known_until = job.ends_at + kept
        self.tally.jobs_failed += job.failed

    def _outcome(self, job: Job, moment: float) -> dict[str, Any]:
        """Visit the page; capture it if that is the job's fate, and return the status object."""
        host = host_of(job.url)
        if not self.site.resolves(job.url):
            return words.unresolved(job.url)
        if moment < self._paused.get(host, 0):
            return words.error("too-many-requests", words.PAUSED, resources=[])
        way = self.site.visit(job.url)
        last = way[-1].page.status
        if len(way) > MAX_REDIRECTS + 1:
            return words.error("too-many-redirects", "Too many redirects.", resources=[])
        if last == 429:
            self._paused[host] = moment + self.rules.host_pause_s
        if last >= 400 and not job.capture_all:
            return words.target_error(job.url, last)
        first = not self.captures.of(urlkey(way[-1].url))
        job.timestamp = self._capture(job, way, moment) if job.captures else digits(moment)
        if job.code is not None:
            return words.failed(job.code, job.url)
        return _success(job, way) | ({"first_archive": True} if first and job.tells_first else {})

    def _capture(self, job: Job, way: list[Seen], moment: float) -> str:
        """Keep every answer of the way; return the timestamp of the last."""
        before = self.captures.newest(job.url, moment)
        window = max(job.within_s, self.rules.same_url_again_s)
        if before is not None and moment - moment_of(before.timestamp) < window:
            self.tally.captured_twice += 1
        self.tally.captures_made += 1
        timestamp = ""
        for seen in way:
            capture = self.keep(seen, moment, job=job, visible_at=job.ends_at)
            timestamp = capture.timestamp
        return timestamp

    def keep(
        self, seen: Seen, moment: float, *, visible_at: float, job: Job | None = None
    ) -> Capture:
        """Keep one answer as a capture."""
        key, timestamp = urlkey(seen.url), digits(moment)
        while self.captures.find(key, timestamp):
            timestamp = digits(moment_of(timestamp) + 1)
        name = "spn2" if job else "crawl"
        late = job.late_s + self.draw(self.rules.index_lag_s) if job else 0.0
        capture = Capture(
            url=seen.url,
            urlkey=key,
            timestamp=timestamp,
            status=seen.page.status if seen.page.location is None else _redirect(seen.page.status),
            content_type=seen.page.content_type,
            headers=seen.page.headers,
            body=seen.body,
            location=seen.page.location,
            source=f"{name}-{timestamp}-wwwb-spn01.us.archive.org-8002.warc.gz",
            made_at=moment,
            visible_at=visible_at + late,
            available_at=visible_at + late + (self.draw(self.rules.available_lag_s) if job else 0),
            job=job.serial if job else None,
            gone_at=moment + job.vanish_s if job and job.vanish_s is not None else None,
            gone_but_listed=bool(job and job.gone_but_listed),
        )
        capture.revisit = self.rules.revisits and any(
            one.body == capture.body and one.lives(moment) for one in self.captures.of(key)
        )
        self._keep(capture, job)
        return capture

    def _keep(self, capture: Capture, job: Job | None) -> None:
        if job is not None and job.account in self.accounts:
            self.accounts[job.account][1].day.bytes += len(capture.body)
        self.captures.add(capture)
        self.journal.capture(capture)


def _redirect(status: int) -> int:
    return status if 300 <= status < 400 else 302


def _success(job: Job, way: list[Seen]) -> dict[str, Any]:
    final = way[-1]
    path = final.url.partition("://")[2].partition("/")[2]
    return {
        "status": "success",
        "timestamp": job.timestamp,
        "original_url": f"/{path}" if final.page.path_only else final.url,
        "duration_sec": round(job.ends_at - job.starts_at, 2),
        "http_status": final.page.status,
        "counters": {"outlinks": 0, "embeds": 0},
        "resources": [seen.url for seen in way],
        "outlinks": [],
    }
