"""Where a record stands, as an audit derived it, and the tallies of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from anchord.core.moment import utc

DAY_S = 86_400


class Standing(NamedTuple):
    """Where one record stands, derived from evidence that was checked in this audit."""

    source: str
    """Kind of source (`arxiv`), or `none` for records that name none."""
    added_at: int | None
    """When it came in, Unix seconds: its first alias' or event's moment where only a bundle is
    there; None when nothing says."""
    anchored: str
    """`anchored`, `submitted`, `not anchored` or `parked`."""
    anchored_at: int | None
    """When the event that stands was signed."""
    stored: str
    """`stored`, `capturing`, `not stored` or `parked`."""
    stored_at: int | None
    """When the first storage event that stands was signed."""
    sound: bool = True
    """Nothing about it was found broken."""


class Completeness(msgspec.Struct, frozen=True, kw_only=True):
    """How complete a set of records is. Days are whole days since 1970-01-01, UTC."""

    records: int
    sound: int
    anchored: dict[str, int]
    """Records by state of the facet."""
    stored: dict[str, int]
    by_source: dict[str, dict[str, int]]
    """Source kind -> `records`, `anchored`, `stored`, `both`."""
    by_cohort: dict[str, dict[str, int]]
    """Month a record was added in (`2026-08`, or `unknown`) -> the same four."""
    waiting_age_s: dict[str, int]
    """Upper edge of the age (`1 h`, `6 h`, `24 h`, `7 d`, `30 d`, `older`) -> records that are not
    anchored or not stored, by time since they were added."""
    oldest_waiting_s: dict[str, int | None]
    """Facet -> age of the oldest record that is not done; None when all are."""
    backlog: tuple[tuple[int, int, int], ...]
    """(day, records not anchored, records not stored) at the end of each day there was a change."""


class TallyParts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a tally holds, as values that can be written down."""

    records: int
    sound: int
    states: tuple[tuple[str, str, int], ...]
    groups: tuple[tuple[str, str, str, int], ...]
    ages: dict[str, int]
    days: tuple[tuple[str, int, int], ...]
    oldest: dict[str, int]


EDGES = ((3_600, "1 h"), (21_600, "6 h"), (DAY_S, "24 h"), (7 * DAY_S, "7 d"), (30 * DAY_S, "30 d"))
OLDER = "older"
UNDATED = "unknown"
"""Cohort of the records that nothing says the day of."""
FACETS = ("anchored", "stored")


class Tally:
    """Counts standings as they come; memory grows with days and kinds, not with records.

    Args:
        now: moment the audit is of, Unix seconds.
    """

    def __init__(self, now: int) -> None:
        self._now = now
        self._records, self._sound = 0, 0
        self._states: Counter[tuple[str, str]] = Counter()
        self._groups: Counter[tuple[str, str, str]] = Counter()
        """(`source` or `cohort`, its name, column)."""
        self._ages: Counter[str] = Counter()
        self._days: Counter[tuple[str, int]] = Counter()
        """(`added`, `anchored` or `stored`, day)."""
        self._oldest: dict[str, int] = {}

    def add(self, standing: Standing, count: int = 1) -> None:
        """Take in `count` records that stand alike."""
        done = {"anchored": standing.anchored == "anchored", "stored": standing.stored == "stored"}
        self._records += count
        self._sound += count * standing.sound
        self._states["anchored", standing.anchored] += count
        self._states["stored", standing.stored] += count
        columns = ["records", *(name for name in FACETS if done[name])]
        if all(done.values()):
            columns.append("both")
        for column in columns:
            self._groups["source", standing.source, column] += count
            self._groups["cohort", _month(standing.added_at), column] += count
        self._add_ages(standing, done, count)
        self._add_days(standing, done, count)

    def _add_ages(self, standing: Standing, done: dict[str, bool], count: int) -> None:
        added_at = standing.added_at
        if added_at is None or all(done.values()):
            return
        self._ages[_edge(self._now - added_at)] += count
        for facet in FACETS:
            if not done[facet]:
                self._oldest[facet] = min(added_at, self._oldest.get(facet, added_at))

    def _add_days(self, standing: Standing, done: dict[str, bool], count: int) -> None:
        if standing.added_at is None:
            return
        added = standing.added_at // DAY_S
        self._days["added", added] += count
        for facet, at in (("anchored", standing.anchored_at), ("stored", standing.stored_at)):
            if done[facet]:
                self._days[facet, max(added, (at or 0) // DAY_S)] += count

    def merge(self, other: Tally) -> None:
        """Take in what another process counted."""
        self._records += other._records
        self._sound += other._sound
        self._states.update(other._states)
        self._groups.update(other._groups)
        self._ages.update(other._ages)
        self._days.update(other._days)
        for facet, at in other._oldest.items():
            self._oldest[facet] = min(at, self._oldest.get(facet, at))

    def parts(self) -> TallyParts:
        """Return what was counted so far, to be written down."""
        return TallyParts(
            records=self._records,
            sound=self._sound,
            states=tuple((*key, count) for key, count in self._states.items()),
            groups=tuple((*key, count) for key, count in self._groups.items()),
            ages=dict(self._ages),
            days=tuple((*key, count) for key, count in self._days.items()),
            oldest=dict(self._oldest),
        )

    @classmethod
    def of(cls, now: int, parts: TallyParts) -> Tally:
        """Return the tally that `parts` were taken from; `now` as it was given there."""
        tally = cls(now)
        tally._records, tally._sound = parts.records, parts.sound
        tally._states.update({(name, state): count for name, state, count in parts.states})
        tally._groups.update({(kind, name, col): count for kind, name, col, count in parts.groups})
        tally._ages.update(parts.ages)
        tally._days.update({(kind, day): count for kind, day, count in parts.days})
        tally._oldest.update(parts.oldest)
        return tally

    def result(self) -> Completeness:
        """Return what was counted."""
        return Completeness(
            records=self._records,
            sound=self._sound,
            anchored=self._facet("anchored"),
            stored=self._facet("stored"),
            by_source=self._table("source"),
            by_cohort=self._table("cohort"),
            waiting_age_s={name: self._ages[name] for name in (*dict(EDGES).values(), OLDER)},
            oldest_waiting_s={
                facet: self._now - self._oldest[facet] if facet in self._oldest else None
                for facet in FACETS
            },
            backlog=tuple(self._backlog()),
        )

    def _facet(self, facet: str) -> dict[str, int]:
        return {s: n for (name, s), n in sorted(self._states.items()) if name == facet and n}

    def _table(self, kind: str) -> dict[str, dict[str, int]]:
        names = sorted({name for found, name, _ in self._groups if found == kind})
        columns = ("records", *FACETS, "both")
        return {name: {c: self._groups[kind, name, c] for c in columns} for name in names}

    def _backlog(self) -> Iterator[tuple[int, int, int]]:
        added, anchored, stored = 0, 0, 0
        for day in sorted({day for _, day in self._days}):
            added += self._days["added", day]
            anchored += self._days["anchored", day]
            stored += self._days["stored", day]
            yield day, added - anchored, added - stored


def _month(at: int | None) -> str:
    return UNDATED if at is None else utc(at)[:7]


def _edge(age_s: int) -> str:
    return next((name for edge, name in EDGES if age_s <= edge), OLDER)
