"""Those anchord asks: calendars, time-stamping authorities, the Internet Archive."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec

from anchord.app.doctor.result import Result, fail, ok, skipped, warn
from anchord.core.http_date import http_moment
from anchord.core.moment import utc
from anchord.errors import AnchordError, ProtocolError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.doctor.patient import Patient

_OFTEN = 10
"""Failures in a row after which a service is worth a look."""
_CLOCKS = 2
"""So many clocks say more than one."""
_CLOCK_S = 300
"""What events, tokens and signed requests can bear."""


def calendars(patient: Patient) -> Iterator[Result]:
    """Tell each calendar's health, and with it whether enough of them answer."""
    urls = [calendar.url for calendar in patient.config.anchoring.calendars]
    if not patient.online:
        yield skipped("calendars", f"{len(urls)} are not asked: --offline")
        yield from _health(patient, urls)
        return
    with ThreadPoolExecutor(max(len(urls), 1)) as pool:
        said = list(pool.map(lambda url: _reach(patient, url), urls))
    away = [f"{url}: {one.why}" for url, one in zip(urls, said, strict=True) if one.why]
    least = patient.config.anchoring.min_answers
    answering = len(urls) - len(away)
    what = f"{answering} of {len(urls)} answer, {least} are needed"
    if answering < least:
        yield fail(
            "calendars", f"{what}; {'; '.join(away)}",
            "wait when they are overloaded; else is this machine's way out open (HTTPS, proxy)?",
            TransientError.exit_code,
        )  # fmt: skip
    elif away:
        yield warn("calendars", f"{what}; {'; '.join(away)}", "nothing, if it is not for weeks")
    else:
        yield ok("calendars", what)
    yield from _clocks(said)
    yield from _health(patient, urls)


class _Said(msgspec.Struct, frozen=True):
    """What a server answered."""

    why: str | None
    """Why it is of no use now; None: it answers."""
    ahead_s: int | None = None
    """By how much its clock is ahead of ours."""


def _reach(patient: Patient, url: str) -> _Said:
    """Ask a server for its first page; any answer at all is one."""
    try:
        answer = patient.app.client.get(url)
    except ProtocolError as error:
        return _Said(None if error.too_long else str(error))
    except AnchordError as error:
        return _Said(str(error))
    moment = http_moment(answer.headers.get("Date", ""))
    ahead = None if moment is None else moment - patient.app.clock.now()
    return _Said(None if answer.status < 500 else f"answers {answer.status}", ahead)


def _clocks(said: list[_Said]) -> Iterator[Result]:
    """Hold this machine's clock against those of servers that have nothing to do with each other.

    Each tells the time to the second (RFC 9110, 6.6.1). One may be wrong; the middle one is not.
    """
    ahead = sorted(one.ahead_s for one in said if one.ahead_s is not None)
    if len(ahead) < _CLOCKS:
        return
    low, high = ahead[(len(ahead) - 1) // 2], ahead[len(ahead) // 2]
    if low > _CLOCK_S or high < -_CLOCK_S:
        where = "behind" if low > 0 else "ahead of"
        yield fail(
            "clock: calendars", f"it is {min(abs(low), abs(high)):,} s {where} the calendars'",
            "set the clock right and keep it so: timedatectl set-ntp true",
        )  # fmt: skip


def _health(patient: Patient, urls: list[str]) -> Iterator[Result]:
    """Tell what passes met, from the store."""
    try:
        known = patient.store.counts.calendars()
    except AnchordError:
        return  # told where the store is looked at
    for one in known:
        if one.url in urls and one.failures >= _OFTEN:
            since = f"; the last answer was {utc(one.last_ok_at)}" if one.last_ok_at else ""
            yield warn(
                f"calendar {one.url}", f"failed {one.failures:,} times in a row{since}",
                f"it said: {one.last_error or 'nothing'}; for weeks? take it out",
            )  # fmt: skip


def authorities(patient: Patient) -> Iterator[Result]:
    """Tell whether tokens can be asked for, and what passes met."""
    wanted = [one.url for one in patient.config.anchoring.authorities]
    if not wanted:
        yield skipped("authorities", "none is configured")
        return
    if patient.online:
        for url in wanted:
            why, name = _reach(patient, url).why, f"authority {url}"
            yield (
                ok(name, "answers")
                if why is None
                else warn(name, why, "nothing waits for it; batches go without its token meanwhile")
            )
    for health in patient.store.tokens.health():
        if health.url in wanted and health.last_error:
            yield warn(
                f"authority {health.url}", f"a pass was told: {health.last_error}",
                "nothing waits for it; see the authority's notices",
            )  # fmt: skip


def archive(patient: Patient) -> Iterator[Result]:
    """Tell what keeps records from being stored; the service itself is asked by `archive check`."""
    from anchord.app.archive_wiring import CHOSEN

    config = patient.config.archive
    if not (config.credentials_file or config.contact or config.items.prefix):
        yield skipped("archive", "not set up: nothing is sent to the Internet Archive")
        return
    gaps = patient.app.archive_gaps()
    for gap in gaps:
        yield (
            skipped("archive", gap)
            if gap.startswith(CHOSEN)
            else fail("archive", gap, "see docs/internet-archive.md")
        )
    stopped = [one for one in patient.store.storage.lanes.all() if one.stopped]
    for lane in stopped:
        yield fail(
            f"archive: {lane.name}", f"stopped: {lane.alert or 'a person must look'}",
            "mend it, then anchord retry --archive, then anchord archive check",
        )  # fmt: skip
    if not gaps and not stopped:
        yield ok("archive", "keys, contact and prefix are set; `anchord archive check` asks it")
