"""Those that anchord depends on, and how each of them does, in words: from what the store knows.

Nobody is asked. What a source or an outlet said in its own words is left to `anchord sources` and
`anchord outlets`: it may name what stands inside a network, and pages may be everybody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.app.cli.storage_words import code_words, lane_words
from anchord.app.report.contents import moment, plain
from anchord.app.thresholds import age_words, counted
from anchord.core.model import BatchState
from anchord.core.pacing import used_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from anchord.adapters.store.counts import Health
    from anchord.adapters.store.measures import Measured
    from anchord.app.config import Config
    from anchord.app.fleet.roster import Worker
    from anchord.app.metrics.reading import Tip
    from anchord.core.storage import Lane
    from anchord.ports.log import AuthorityHealth

GOOD, WAIT, BAD, IDLE = "good", "wait", "bad", "idle"
"""How a state is coloured; the words say the same."""
MOST_HOSTS = 20
"""Captured hosts that are named; only those that pause or are stopped."""
_NOTES = frozenset({"claims", "marks"})
"""Rows among the lanes that remember something; nothing goes by them."""
_OLD_HEADER_S = 6 * 3600
"""As in `config/alerts.yml`: headers this old while paths are to be confirmed are not synced."""
_LONG_AGO_S = 7 * 24 * 3600
_BAD_FAILURES = 3
_LAST = 253_402_300_799
"""9999-12-31T23:59:59Z: later ones have no name."""


class Party(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    name: str
    tone: str
    state: str
    """In one or two words."""
    words: str
    """More about it; empty: nothing to say."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Those of one kind."""

    title: str
    parties: tuple[Party, ...]
    none: str
    """What to say when there are none."""


def groups(
    config: Config, found: Measured, tip: Tip | None, workers: Sequence[Worker] | None, now: int
) -> tuple[Group, ...]:
    """Return all that is known of everybody.

    Args:
        config: tells who is configured.
        found: the store's measures.
        tip: newest header of anchord's own file; None: there is none, or it is not used.
        workers: of a store that several share; None: nobody shares it.
        now: Unix seconds.
    """
    all_groups = [
        Group(title="Calendars", parties=tuple(_calendars(config, found, now)),
              none="No calendar is configured: nothing can be anchored."),
        Group(title="Block headers", parties=tuple(_headers(config, found, tip, now)),
              none="No source of headers is configured."),
        Group(title="Time-stamping authorities", parties=tuple(_authorities(config, found, now)),
              none=""),
        Group(title="Internet Archive", parties=tuple(_lanes(found.lanes, now)),
              none="Nothing was sent to the Internet Archive yet."),
        Group(title="Sources", parties=tuple(_sources(config, found, now)), none=""),
        Group(title="Outlets", parties=tuple(_outlets(config, found, now)), none=""),
        Group(title="Workers", parties=tuple(map(_worker, workers or ())),
              none="" if workers is None else "No worker is there."),
    ]  # fmt: skip
    return tuple(group for group in all_groups if group.parties or group.none)


def ago(at: int, now: int) -> str:
    """Return how long ago a moment was."""
    return f"{age_words(max(now - at, 0))} ago"


def when(at: int) -> str:
    """Return a moment for people; what a clock far ahead wrote is no reason for no page."""
    return moment(min(at, _LAST))


def _calendars(config: Config, found: Measured, now: int) -> Iterator[Party]:
    known = {one.url: one for one in found.calendars}
    for url in (one.url for one in config.anchoring.calendars):
        yield _calendar(url, known.get(url), now)


def _calendar(url: str, health: Health | None, now: int) -> Party:
    if health is None or (health.last_ok_at is None and not health.failures):
        return Party(name=plain(url), tone=IDLE, state="not asked yet", words="")
    good = (
        "never answered" if health.last_ok_at is None else f"answered {ago(health.last_ok_at, now)}"
    )
    if not health.failures:
        return _answering(url, health.last_ok_at, good, now)
    said = plain(health.last_error or "no answer came")
    return _failing(url, health.failures, f"{said}; {good}")


def _answering(url: str, last_ok_at: int | None, words: str, now: int) -> Party:
    """Return who answered when last asked: that says little once it is long ago."""
    if last_ok_at is None or now - last_ok_at > _LONG_AGO_S:
        return Party(name=plain(url), tone=IDLE, state="not asked lately", words=words)
    return Party(name=plain(url), tone=GOOD, state="answers", words=words)


def _failing(name: str, failures: int, words: str) -> Party:
    tone = BAD if failures >= _BAD_FAILURES else WAIT
    return Party(
        name=plain(name), tone=tone, state=f"failed {counted(failures, 'time')}", words=words
    )


def _headers(config: Config, found: Measured, tip: Tip | None, now: int) -> Iterator[Party]:
    for source in dict.fromkeys(config.headers.sources):
        if source != "file":
            name = "own node" if source == "node" else "explorers"
            words = "asked whenever a path is checked; all that answer must agree"
            yield Party(name=name, tone=IDLE, state="asked at need", words=words)
        elif tip is None:
            words = "run anchord headers sync"
            yield Party(name="own header file", tone=BAD, state="no headers", words=words)
        else:
            awaited = found.records.get(BatchState.ATTESTED.value, 0) > 0
            yield _tip(tip, now, late=awaited and now - tip.time > _OLD_HEADER_S)


def _tip(tip: Tip, now: int, *, late: bool) -> Party:
    return Party(
        name="own header file",
        tone=WAIT if late else GOOD,
        state=f"block {tip.height:,}",
        words=f"of {when(tip.time)}, {ago(tip.time, now)}"
        + (": not synced lately" if late else ""),
    )


def _authorities(config: Config, found: Measured, now: int) -> Iterator[Party]:
    known = {one.url: one for one in found.authorities}
    for url in (one.url for one in config.anchoring.authorities):
        yield _authority(url, known.get(url), now)


def _authority(url: str, health: AuthorityHealth | None, now: int) -> Party:
    if health is None:
        return Party(name=plain(url), tone=IDLE, state="not asked yet", words="")
    kept = counted(health.kept, "token") + " kept"
    if health.last_ok_at is not None:
        kept += f", the last {ago(health.last_ok_at, now)}"
    if health.last_error:
        words = f"{plain(health.last_error)}; {kept}"
        return Party(name=plain(url), tone=WAIT, state="asked again", words=words)
    waiting = (
        counted(health.pending, "batch") if health.pending == 1 else f"{health.pending:,} batches"
    )
    if health.kept and not health.pending:
        return _answering(url, health.last_ok_at, kept, now)
    state, tone = (f"{waiting} waiting", WAIT) if health.pending else ("not asked yet", IDLE)
    return Party(name=plain(url), tone=tone, state=state, words=kept)


def _lanes(lanes: Iterable[Lane], now: int) -> Iterator[Party]:
    hosts = 0
    for lane in lanes:
        waits = lane.stopped or (lane.until is not None and lane.until > now)
        if lane.name.startswith("host:"):
            hosts += waits
            if not waits or hosts > MOST_HOSTS:
                continue
        if lane.name not in _NOTES:
            yield _lane(lane, now)
    if hosts > MOST_HOSTS:
        name = f"{hosts - MOST_HOSTS:,} more hosts"
        yield Party(name=name, tone=WAIT, state="pausing", words="")


def _lane(lane: Lane, now: int) -> Party:
    name = plain(lane_words(lane.name))
    name = name[:1].upper() + name[1:]
    why = plain(lane.alert or code_words(lane.code, lane.note))
    if lane.stopped:
        return Party(name=name, tone=BAD, state="stopped", words=why)
    if lane.until is not None and lane.until > now:
        words = "; ".join(filter(None, [f"until {when(lane.until)}", why]))
        return Party(name=name, tone=WAIT, state="pauses", words=words)
    used = used_on(lane, now)
    words = f"{counted(used, 'call')} today" if used else "no call today"
    return Party(name=name, tone=GOOD if used else IDLE, state="open", words=words)


def _sources(config: Config, found: Measured, now: int) -> Iterator[Party]:
    known = {one.name: one for one in found.sources}
    for name in (one.name for one in config.sources):
        row = known.get(name)
        if row is None:
            yield Party(name=plain(name), tone=IDLE, state="not looked at yet", words="")
            continue
        taken = f"{counted(row.taken, 'record')} taken, {row.refused:,} refused"
        last = "never read" if row.last_ok_at is None else f"read {ago(row.last_ok_at, now)}"
        words = f"{taken}; {last}"
        if row.failures:
            yield _failing(name, row.failures, f"{words}; anchord sources says why")
        else:
            yield Party(name=plain(name), tone=GOOD, state="read", words=words)


def _outlets(config: Config, found: Measured, now: int) -> Iterator[Party]:
    known = {one.name: one for one in found.outlets}
    for name in (one.name for one in config.outlets):
        row = known.get(name)
        if row is None:
            yield Party(name=plain(name), tone=IDLE, state="nothing handed over yet", words="")
            continue
        behind, parked = max(found.events - row.seq, 0), row.aside.get("parked", 0)
        words = f"{counted(row.delivered, 'event')} handed over"
        words += "" if row.last_ok_at is None else f", the last {ago(row.last_ok_at, now)}"
        words += f"; {counted(parked, 'event')} parked" if parked else ""
        if row.failures:
            yield _failing(name, row.failures, f"{words}; anchord outlets says why")
        else:
            state = f"{counted(behind, 'event')} behind" if behind else "up to date"
            tone = WAIT if behind or parked else GOOD
            yield Party(name=plain(name), tone=tone, state=state, words=words)


def _worker(worker: Worker) -> Party:
    doing = ", ".join(worker.duties) or "waits for work"
    if worker.pid is None:
        words = f"silent for {age_words(int(worker.silent_s))}; others take over: {doing}"
        return Party(name=f"worker {worker.id}", tone=BAD, state="gone", words=words)
    since = "" if worker.since is None else f" since {worker.since}"
    return Party(name=f"worker {worker.id}", tone=GOOD, state="there", words=f"{doing}{since}")
