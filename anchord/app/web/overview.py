"""The dashboard's words and pictures, made from figures; nothing here reads a store or a clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup

from anchord.app.cli import storage
from anchord.app.face import plots
from anchord.app.metrics.filling import earliest, unstored_since
from anchord.app.report.contents import day, moment, plain
from anchord.app.thresholds import age_words, counted, percent_words
from anchord.app.web.parked import count_parked
from anchord.app.web.parties import Group, ago, groups, when
from anchord.core.model import BatchState
from anchord.ports.face import Day

if TYPE_CHECKING:
    from anchord.adapters.store.measures import Measured
    from anchord.app.config import Config
    from anchord.app.metrics.reading import Reading
    from anchord.app.web.figures import Figures

MOST_ROWS = 60
"""Days in the table beneath the pictures; the last ones, and others evenly before."""
LINES = (
    ("records", "records"),
    ("anchored", "anchored"),
    ("stored", "stored"),
    ("complete", "anchored and stored"),
)
"""Field of `Day`, also the class in pictures, and its words."""
FACETS = ("anchored", "stored", "complete")
_MAINNET = "mainnet"
_DAY_S = 86_400


class Facet(msgspec.Struct, frozen=True, kw_only=True):
    """How many records have earned a word."""

    name: str
    title: str
    done: int
    share: str
    bar: Markup
    words: str
    """What waits, and for how long."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A number or a moment with its name."""

    name: str
    value: str
    words: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under a title."""

    title: str
    rows: tuple[Row, ...]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of the page but the events."""

    as_of: str
    network: str
    """Of a test network, whose blocks prove nothing about Bitcoin; empty: it is Bitcoin."""
    trouble: str
    """Why the numbers are old; empty: they are not."""
    alerts: tuple[str, ...]
    """What a person must act on, shown first."""
    parked: int
    records: int
    facets: tuple[Facet, ...]
    counts: Markup
    shares: Markup
    days: tuple[Day, ...]
    """Of the table, newest first."""
    stages: tuple[Table, ...]
    last: tuple[Row, ...]
    groups: tuple[Group, ...]


def overview(config: Config, figures: Figures, now: int) -> Overview | None:
    """Return the page's contents; None: there are no numbers.

    Args:
        config: tells who is configured.
        figures: what was read.
        now: Unix seconds, for ages.
    """
    reading = figures.reading
    found = reading.measured
    if found is None:
        return None
    days = _until(now, figures.days)
    network = config.headers.network
    return Overview(
        as_of=moment(int(reading.known_at or now)),
        network="" if network == _MAINNET else network,
        trouble="" if reading.error is None else "The store is busy: these numbers are of before.",
        alerts=tuple(plain(one).rstrip(": ") for one in storage.alerts(list(found.lanes))),
        parked=count_parked(figures.parked),
        records=days[-1].records if days else 0,
        facets=tuple(_facets(config, found, days, now)),
        counts=_counts(days),
        shares=_shares(days),
        days=tuple(days[at] for at in reversed(plots.thinned(days, MOST_ROWS))),
        stages=tuple(_stages(found)),
        last=tuple(_last(reading, found, now)),
        groups=groups(config, found, reading.tip, figures.workers, now),
    )


def share(part: int, whole: int) -> str:
    """Return a share for people; of nothing there is none."""
    return percent_words(part, whole) if whole else "none"


def day_words(number: int) -> str:
    """Return a day since 1970 as `YYYY-MM-DD`."""
    return day(number)


# ---------------------------------------------------------------------- facets


def _facets(config: Config, found: Measured, days: Sequence[Day], now: int) -> Iterator[Facet]:
    last = days[-1] if days else Day(day=0, records=0, anchored=0, stored=0, complete=0)
    anchored_since = earliest(found.waiting_since, found.unfinished_since)
    said = {
        "anchored": _waits(last.records - last.anchored, anchored_since, now),
        "stored": _waits(last.records - last.stored, unstored_since(config, found), now),
        "complete": _waits(last.records - last.complete, None, now),
    }
    titles = {"anchored": "Anchored", "stored": "Stored", "complete": "Anchored and stored"}
    for name, words in said.items():
        done: int = getattr(last, name)
        yield Facet(
            name=name, title=titles[name], done=done, share=share(done, last.records),
            bar=plots.bar(name, done, last.records), words=words,
        )  # fmt: skip


def _waits(missing: int, since: int | None, now: int) -> str:
    if missing <= 0:
        return "none waits"
    waits = f"{missing:,} {'waits' if missing == 1 else 'wait'}"
    return waits if since is None else f"{waits}, the oldest for {age_words(max(now - since, 0))}"


# ---------------------------------------------------------------------- over time


def _until(now: int, days: Sequence[Day]) -> tuple[Day, ...]:
    """Return the days until today: what nobody wrote to since stays as it was."""
    today = now // _DAY_S
    if not days or days[-1].day >= today:
        return tuple(days)
    return (*days, msgspec.structs.replace(days[-1], day=today))


def _counts(days: Sequence[Day]) -> Markup:
    lines = [plots.Line(name, [getattr(one, name) for one in days]) for name, _ in LINES]
    said = "There are no records yet."
    if days:
        last = days[-1]
        said = (
            f"From {day(days[0].day)} to {day(last.day)}: at the end "
            f"{counted(last.records, 'record')}, {last.anchored:,} of them anchored, "
            f"{last.stored:,} stored, {last.complete:,} both."
        )
    title = "Records at the end of each day"
    return plots.counts("counts", title, said, [one.day for one in days], lines)


def _shares(days: Sequence[Day]) -> Markup:
    """Return shares; days before the first record have none."""
    some = [one for one in days if one.records]
    lines = [
        plots.Line(name, [100 * getattr(one, name) / one.records for one in some])
        for name in FACETS
    ]
    said = "There are no records yet."
    if some:
        last = some[-1]
        said = (
            f"From {day(some[0].day)} to {day(last.day)}: at the end "
            f"{share(last.anchored, last.records)} anchored, {share(last.stored, last.records)} "
            f"stored, {share(last.complete, last.records)} both."
        )
    title = "Share of the records at the end of each day"
    return plots.shares("shares", title, said, [one.day for one in some], lines)


# ---------------------------------------------------------------------- under way

_BATCH_WORDS = {
    BatchState.SEALED: ("sealed", "under a Merkle root that too few calendars hold yet"),
    BatchState.SUBMITTED: ("submitted", "calendars hold the root; a block takes hours"),
    BatchState.ATTESTED: ("attested", "in a block; confirmations are missing"),
    BatchState.ANCHORED: ("anchored", "checked against headers, with enough confirmations"),
    BatchState.PARKED: ("parked", "a person must act"),
}


def _stages(found: Measured) -> Iterator[Table]:
    waiting = Row(name="waiting", value=f"{found.waiting:,}", words="for the next batch")
    batches = [
        Row(name=name, value=f"{found.records.get(state.value, 0):,}", words=words)
        for state, (name, words) in _BATCH_WORDS.items()
    ]
    yield Table(title="Records on their way into Bitcoin", rows=(waiting, *batches))
    stored = found.stored
    rows = list(_archive_rows("captures", stored.captures))
    if stored.unclaimed:
        rows.append(Row(name="not looked at yet", value=f"{stored.unclaimed:,}"))
    yield Table(title="Captures of records' pages", rows=tuple(rows))
    rows = list(_archive_rows("bundles", stored.files))
    if stored.unpacked:
        rows.append(Row(name="in no file yet", value=f"{stored.unpacked:,}"))
    yield Table(title="Bundles on their way into items", rows=tuple(rows))


def _archive_rows(kind: str, states: dict[str, int]) -> Iterator[Row]:
    for state, words in storage.STATE_WORDS[kind].items():
        if states.get(state):
            yield Row(name=words, value=f"{states[state]:,}")


# ---------------------------------------------------------------------- last and next


def _last(reading: Reading, found: Measured, now: int) -> Iterator[Row]:
    due = f", {counted(found.events_due, 'event')} due" if found.events_due else ""
    yield _dated("Last signed event", found.last_event_at, now, f"{found.events:,} in all{due}")
    covered = f"covers {found.covered:,} of {counted(found.events, 'event')}"
    yield _dated("Last checkpoint of the log", found.checkpoint_at, now, covered)
    answered = max((one.last_ok_at or 0 for one in found.calendars), default=0) or None
    yield _dated("Last answer of a calendar", answered, now, "")
    if found.next_moment is not None:
        soon = "next pass" if found.next_moment <= now else when(found.next_moment)
        yield Row(name="Next look for Bitcoin", value=soon)
    if reading.size is not None:
        yield Row(name="Size of the store", value=_bytes(sum(reading.size)))


def _dated(name: str, at: int | None, now: int, words: str) -> Row:
    if at is None:
        return Row(name=name, value="none yet", words=words)
    return Row(name=name, value=ago(at, now), words=", ".join(filter(None, [when(at), words])))


def _bytes(count: int) -> str:
    """Return a size as people have it, in powers of a thousand."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
