"""Save Page Now 2: POST /save, and the reads of jobs, account and system."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from anchord.sandbox.faults import Fault
from anchord.sandbox.wayback import words
from anchord.sandbox.wayback.captures import Capture
from anchord.sandbox.wayback.jobs import Job, job_id
from anchord.sandbox.wayback.limits import Account, Minute
from anchord.sandbox.wayback.urlkey import host_of, is_capturable, moment_of
from anchord.sandbox.wayback.world import World
from anchord.sandbox.web import Answer, HangUpError, json_answer

_ON = {"1", "on"}
"""Anything else, `true` and `01` too, means off (SPN2 Public API document)."""
_PART = re.compile(r"(\d+)\s*([dhms])")
_UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that names an account, or fails to."""

    form: Mapping[str, str]
    query: Mapping[str, str]
    account: Account | None
    access: str
    wants_json: bool
    faults: list[Fault]
    now: float

    def struck(self, kind: str) -> Fault | None:
        """Return the fault of this kind that strikes the request."""
        return next((fault for fault in self.faults if fault.kind == kind), None)


def age(text: str) -> float | None:
    """Return the seconds of `if_not_archived_within`: "3d 5h 20m" or "3600"; the first of two."""
    first = text.partition(",")[0].strip()
    if first.isdigit():
        return float(first)
    parts = _PART.findall(first)
    return float(sum(int(number) * _UNITS[unit] for number, unit in parts)) if parts else None


class Saving:
    """Takes submits."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._hosts: dict[str, Minute] = {}

    def submit(self, asked: Asked) -> Answer:
        """Answer POST /save.

        Raises:
            HangUpError: by a fault, after the job was taken.
        """
        tally = self._world.tally
        tally.submits += 1
        if asked.account is None or asked.struck("not-logged-in"):
            tally.refused["http-401"] += 1
            return json_answer({"message": words.NOT_LOGGED_IN}, 401)
        account = asked.account
        account.begin_submit(asked.now)
        account.day.turn(asked.now)
        most = max(tally.max_submits_in_a_minute, account.asked.add(asked.now))
        tally.max_submits_in_a_minute = most
        try:
            return self._admit(asked, account)
        finally:
            account.end_submit(asked.now)

    def _admit(self, asked: Asked, account: Account) -> Answer:
        if account.minute.count(asked.now) >= self._world.rules.submits_per_minute:
            self._world.tally.rate_429 += 1
            self._world.tally.rate_429_by["save"] += 1
            self._world.tally.refused["http-429"] += 1
            return words.too_many_requests()
        url = asked.form.get("url", "").strip()
        refusal = self._forged(asked, url) or self._refusal(asked, account, url)
        if refusal is not None:
            # Also a refused submit is one of the minute.
            account.minute.add(asked.now)
            code = refusal.get("status_ext", "error:user-day-limit").removeprefix("error:")
            self._world.tally.refused[code] += 1
            return json_answer(refusal)
        known = self._known(asked, url)
        if known is not None:
            account.minute.add(asked.now)
            return known if asked.wants_json else words.saving_page(job_id(url))
        if self._slots_full(asked, account):
            account.minute.add(asked.now)
            self._world.tally.refused["user-session-limit"] += 1
            return json_answer(words.session_limit())
        return self._accept(asked, account, url)

    def _slots_full(self, asked: Asked, account: Account) -> bool:
        if account.taken(asked.now) >= self._world.rules.slots:
            self._world.tally.session_limit_refusals += 1
            return True
        return asked.struck("session-limit") is not None

    def _forged(self, asked: Asked, url: str) -> dict[str, Any] | None:
        """Return the refusal a fault wants."""
        rules = self._world.rules
        bare = self._world.random.random() < 0.5
        made: dict[str, Callable[[], dict[str, Any]]] = {
            "blocked-ip": words.blocked_ip,
            "day-limit": lambda: words.day_limit(rules.daily_captures),
            "bandwidth-limit": words.bandwidth_limit,
            "host-limit": lambda: words.host_limit(rules.per_host_per_day or 500),
            "url-limit": lambda: words.url_limit(url, rules.per_url_per_day, bare=bare),
        }
        return next((made[fault.kind]() for fault in asked.faults if fault.kind in made), None)

    def _refusal(self, asked: Asked, account: Account, url: str) -> dict[str, Any] | None:
        """Return why no job is made of this URL today."""
        if not is_capturable(url):
            return words.invalid_url(url)
        if self._world.site.excluded(url):
            return words.blocked_url()
        return self._used_up(asked, account, url)

    def _used_up(self, asked: Asked, account: Account, url: str) -> dict[str, Any] | None:
        rules, day = self._world.rules, account.day
        if day.captures >= rules.daily_captures:
            return words.day_limit(rules.daily_captures)
        if day.bytes >= rules.bytes_per_day:
            return words.bandwidth_limit()
        if day.urls[url] >= rules.per_url_per_day and self._recent(asked, url) is None:
            bare = self._world.random.random() < 0.5
            return words.url_limit(url, rules.per_url_per_day, bare=bare)
        limit = rules.per_host_per_day
        if limit is not None and day.hosts[host_of(url)] >= limit:
            return words.host_limit(limit)
        return None

    def _within(self, asked: Asked) -> float:
        named = age(asked.form.get("if_not_archived_within", ""))
        return self._world.rules.same_url_again_s if named is None else named

    def _recent(self, asked: Asked, url: str) -> Capture | None:
        """Return the living capture that is young enough."""
        newest = self._world.captures.newest(url, asked.now)
        if newest is None or asked.now - moment_of(newest.timestamp) >= self._within(asked):
            return None
        return newest

    def _known(self, asked: Asked, url: str) -> Answer | None:
        """Return what is said when no new job is needed: one runs, or a capture is recent."""
        job, now = self._world.jobs.last(url), asked.now
        if job is not None and not job.settled:
            self._world.tally.old_outcomes += 1
            return json_answer({"url": url, "job_id": job_id(url)})
        recent = self._recent(asked, url)
        if recent is not None:
            self._world.tally.duplicates += 1
            return self._duplicate(asked, url, recent, job)
        if job is not None and now < job.ends_at + self._world.rules.outcome_cache_s:
            return self._old_outcome(url, job, now)
        return None

    def _old_outcome(self, url: str, job: Job, now: float) -> Answer | None:
        """Give a cached outcome again, errors too; a capture that is gone is no outcome."""
        made = job.captures and not job.failed
        if made and self._world.captures.newest(url, now) is None:
            return None
        self._world.tally.old_outcomes += 1
        job.told_again = not job.failed
        job.known_until = now + self._world.rules.job_kept_s
        self._world.journal.job(job)
        return json_answer({"url": url, "job_id": job_id(url)})

    def _duplicate(self, asked: Asked, url: str, recent: Capture, job: Job | None) -> Answer:
        """Say that there is a recent capture, in one of the shapes that were seen."""
        ago = asked.now - moment_of(recent.timestamp)
        message = words.same_snapshot(ago, self._within(asked))
        with_job = {"url": url, "job_id": job_id(url), "message": message}
        bare = [{"url": url, "job_id": None, "message": message}, {"message": message, "url": url}]
        readable = job is not None and asked.now < job.known_until and not job.failed
        asked_for = "if_not_archived_within" in asked.form
        shapes = ([with_job] if readable else []) + (bare if asked_for or not readable else [])
        return json_answer(self._world.random.choice(shapes))

    # ------------------------------------------------------------------ new jobs

    def _accept(self, asked: Asked, account: Account, url: str) -> Answer:
        world, now = self._world, asked.now
        delayed = asked.struck("delayed")
        delay = self._queue(url, now) + (delayed.number("delay_s", 40) if delayed else 0.0)
        ends_at = now + delay + world.draw(world.rules.duration_s)
        job = _fated(asked, self._job(asked, url, now + delay, ends_at))
        slow = asked.struck("slow-slot")
        lag = world.draw(world.rules.slot_lag_s) + (slow.number("delay_s", 30) if slow else 0.0)
        world.accept(job, account, ends_at + lag)
        self._spoil(asked)
        if not asked.wants_json:
            return words.saving_page(job_id(url))
        said = {"message": words.begins_in(delay)} if delay else {}
        return json_answer({"url": url, "job_id": job_id(url)} | said)

    def _job(self, asked: Asked, url: str, starts_at: float, ends_at: float) -> Job:
        return Job(
            serial=self._world.jobs.serial + 1,
            url=url,
            account=asked.access,
            submitted_at=asked.now,
            starts_at=starts_at,
            ends_at=ends_at,
            within_s=self._within(asked),
            capture_all=asked.form.get("capture_all") in _ON,
            tells_first=asked.form.get("skip_first_archive") not in _ON,
        )

    def _queue(self, url: str, now: float) -> float:
        """Return how much later the capture begins because its host is busy."""
        count = self._hosts.setdefault(host_of(url), Minute()).add(now)
        limit = self._world.rules.host_queue_after
        return 0.0 if limit is None or count <= limit else count / 5

    def _spoil(self, asked: Asked) -> None:
        """Lose the answer to a submit that was carried out."""
        for fault in asked.faults:
            if fault.kind in {"captured-hangup", "captured-5xx", "captured-520"}:
                self._world.tally.answers_lost += 1
                raise SpoiledError(fault)


class SpoiledError(HangUpError):
    """The job was taken; the answer is lost, or another one is given."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.kind)
        self._fault = fault

    def answer(self) -> Answer:
        """Return what is said instead.

        Raises:
            HangUpError: nothing is.
        """
        if self._fault.kind == "captured-hangup":
            raise HangUpError
        if self._fault.kind == "captured-520":
            return Answer(520, b"", words.HTML)
        return words.bad_gateway(int(self._fault.number("status", 502)))


def _fated(asked: Asked, job: Job) -> Job:
    """Give a job the fate that the faults want."""
    if failed := asked.struck("job-failed"):
        job.code = failed.text("code", "job-failed")
        job.captures = bool(failed.number("captured", 0))
    if asked.struck("no-snapshot"):
        job.captures = False
    if forgotten := asked.struck("forget-job"):
        job.forgotten_s = forgotten.number("delay_s", 0)
    if vanishes := asked.struck("vanish"):
        job.vanish_s = vanishes.number("delay_s", 3600)
        job.gone_but_listed = bool(vanishes.number("listed", 0))
    if late := asked.struck("late-index"):
        job.late_s = late.number("delay_s", 3600)
    return job
