"""What every form of an audit's report shows, in words and rows; the forms only lay it out.

All is a pure function of the report: the same audit gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from anchord.app.thresholds import BOTH, Judged, age_words, counted, done, percent_words
from anchord.core.audit import AuditReport, Coverage
from anchord.core.finding import Finding, Severity
from anchord.core.moment import utc
from anchord.core.standing import FACETS, UNDATED

NAMES = {"store": "a store", "tree": "a published tree", "bundles": "bundles"}
BITCOIN = "bitcoin"


class Audited(msgspec.Struct, frozen=True, kw_only=True):
    """A report, and the thresholds it was held against."""

    report: AuditReport
    thresholds: tuple[Judged, ...] = ()

    @property
    def missed(self) -> list[Judged]:
        """The thresholds that do not hold."""
        return [one for one in self.thresholds if not one.holds]

    @property
    def tone(self) -> str:
        """`good`, `doubtful` or `bad`: how the verdict is coloured."""
        if self.report.result == "broken":
            return "bad"
        return "good" if self.report.result == "sound" and not self.missed else "doubtful"


class FacetRow(NamedTuple):
    """How many records stand in one state of a facet."""

    facet: str
    state: str
    records: int
    share: str


class GroupRow(NamedTuple):
    """How complete the records of one source or cohort are."""

    name: str
    records: int
    anchored: int
    stored: int
    both: int

    def share(self, facet: str) -> str:
        """Return the share of a facet, rounded down."""
        return percent_words(getattr(self, facet), self.records)


class Group(msgspec.Struct, frozen=True):
    """All findings of one code and severity."""

    severity: Severity
    code: str
    count: int
    """All of them, those that were not kept included."""
    kept: Sequence[Finding]

    @property
    def todo(self) -> str:
        """What to do, as the first of them says."""
        return self.kept[0].todo


# ---------------------------------------------------------------------- words


def plain(text: str) -> str:
    """Return text on one line that moves no cursor: strangers wrote what subjects hold."""
    flat = " ".join(text.split())
    return "".join(one if one.isprintable() else "\ufffd" for one in flat)


def lines_of(text: str) -> list[str]:
    """Return the lines of a signed note, each printable."""
    return ["".join(c if c.isprintable() else "\ufffd" for c in line) for line in text.split("\n")]


def facet_words(report: AuditReport) -> dict[str, str]:
    """Return what each facet means here, by its name: a test network is not Bitcoin."""
    chain = "Bitcoin" if report.chain in (None, BITCOIN) else plain(str(report.chain))
    return {"anchored": f"anchored in {chain}", "stored": "stored at an archive"}


def verdict(audited: Audited) -> str:
    """Return the outcome in a sentence or two; the last says where the chain is not Bitcoin."""
    chain = audited.report.chain
    test = "" if chain in (None, BITCOIN) else (
        f" Blocks are of {plain(str(chain))}: that proves nothing about Bitcoin."
    )  # fmt: skip
    return _outcome(audited) + test


def _outcome(audited: Audited) -> str:
    report, missed = audited.report, audited.missed
    about = counted(report.completeness.records, "record")
    short = ""
    if missed:
        are = "is" if len(missed) == 1 else "are"
        short = f" {len(missed)} of {counted(len(audited.thresholds), 'threshold')} {are} missed."
    if report.result == "broken":
        return f"Broken: {_sentence(report.reasons)}{short}"
    if report.result == "sound":
        scope = f"all that was checked of {about}" if report.sampled else f"every claim of {about}"
        warnings = summary(report)[Severity.WARNING]
        also = f"; {counted(warnings, 'warning')} to look at" if warnings else ""
        return f"Sound: {scope} was derived again and holds{also}.{short}"
    return f"Not proved: nothing was found broken, but {_sentence(report.reasons)}{short}"


def _sentence(reasons: Sequence[str]) -> str:
    return plain("; ".join(reasons)) + "."


def heading(report: AuditReport) -> str:
    """Return what was audited, and when."""
    kind = NAMES.get(report.kind, report.kind)
    return f"Audit of {kind}: {plain(report.source)}, {moment(report.created_at)}"


def moment(at: int) -> str:
    """Return a moment for people."""
    return utc(at).replace("T", " ").replace("Z", " UTC")


def day(number: int) -> str:
    """Return a day since 1970-01-01 as `YYYY-MM-DD`."""
    return utc(number * 86_400)[:10]


# ---------------------------------------------------------------------- completeness


def facet_rows(report: AuditReport) -> Iterator[FacetRow]:
    """Yield the states of each facet, the done one first."""
    found = report.completeness
    for facet in FACETS:
        states: dict[str, int] = getattr(found, facet)
        for state, count in sorted(states.items(), key=lambda one: (one[0] != facet, one[0])):
            yield FacetRow(facet, state, count, percent_words(count, found.records))
    if found.records:
        count = done(found, BOTH)
        yield FacetRow(BOTH, "anchored and stored", count, percent_words(count, found.records))


def group_rows(groups: dict[str, dict[str, int]]) -> list[GroupRow]:
    """Return sources or cohorts by name."""
    return [
        GroupRow(plain(name), row["records"], row["anchored"], row["stored"], row[BOTH])
        for name, row in sorted(groups.items())
    ]


def age_rows(report: AuditReport) -> list[tuple[str, int]]:
    """Return how many records wait, by age; an edge is named by the longest age it holds."""
    edges = report.completeness.waiting_age_s.items()
    return [(name if name == "older" else f"up to {name}", count) for name, count in edges]


def waiting(report: AuditReport, facet: str) -> int:
    """Return how many records wait at the right end of the picture of the backlog."""
    backlog = report.completeness.backlog
    return backlog[-1][1 + FACETS.index(facet)] if backlog else 0


def undated(report: AuditReport) -> int:
    """Return how many records the picture of the backlog cannot have."""
    return report.completeness.by_cohort.get(UNDATED, {}).get("records", 0)


def oldest(report: AuditReport) -> list[tuple[str, str]]:
    """Return how long the oldest record waits, by facet."""
    found = report.completeness
    told = []
    for facet in FACETS:
        age = found.oldest_waiting_s[facet]
        missing = found.records - done(found, facet)
        unknown = f"nothing says since when {missing:,} wait" if missing else "none waits"
        told.append((facet, unknown if age is None else age_words(age)))
    return told


# ---------------------------------------------------------------------- coverage

_COVERED = {
    "records": "records whose every claim was derived again",
    "events": "events: id, signature and payload",
    "signatures": "signatures",
    "proofs": "paths from a record to a block",
    "headers": "block headers that confirmed such a path",
    "checkpoints": "checkpoints of the log",
    "tiles": "tiles of the log",
    "inclusions": "events proved to be in the log",
    "files": "files held against a signed index or manifest",
    "mementos": "mementos fetched again",
    "items": "files of items looked up again",
}


def checked(report: AuditReport) -> list[tuple[str, int]]:
    """Return what was checked, and how many of it."""
    return [(words, getattr(report.coverage, name)) for name, words in _COVERED.items()]


def unchecked(report: AuditReport) -> list[str]:
    """Return what was not checked, in words."""
    coverage = report.coverage
    left = [] if report.sampled is None else [plain(report.sampled)]
    if missing := coverage.records_counted - coverage.records:
        left.append(f"{missing:,} of {coverage.records_counted:,} records were only counted")
    if coverage.foreign_events:
        left.append(
            f"{counted(coverage.foreign_events, 'event')} of others: no rule is published for "
            "them, or their key is not known"
        )
    if coverage.headers_missing:
        left.append(f"{counted(coverage.headers_missing, 'block')}: no header could be had")
    if not coverage.mementos + coverage.items:
        left.append("no stored copy was fetched again: see --online")
    return left


def coverage_fields() -> tuple[str, ...]:
    """Return the names of all that is counted."""
    return Coverage.__struct_fields__


# ---------------------------------------------------------------------- findings


def groups(report: AuditReport) -> list[Group]:
    """Return the findings by code, the worst first, then by how many there are."""
    kept: dict[tuple[Severity, str], list[Finding]] = {}
    for finding in report.findings:
        kept.setdefault((finding.severity, finding.code), []).append(finding)
    order = list(Severity)
    found = []
    for (severity, code), ones in kept.items():
        elsewhere = sum(len(kept.get((other, code), ())) for other in order if other != severity)
        found.append(
            Group(severity, code, max(report.counts.get(code, 0) - elsewhere, len(ones)), ones)
        )
    return sorted(found, key=lambda one: (order.index(one.severity), -one.count, one.code))


def severity_words(severity: Severity, count: int) -> str:
    """Return `2 broken`, `1 warning`, `8 notes`."""
    broken = severity is Severity.BROKEN
    return f"{count:,} {severity}" if broken else counted(count, severity.value)


def summary(report: AuditReport) -> dict[Severity, int]:
    """Return how many findings there are of each severity."""
    told = dict.fromkeys(Severity, 0)
    for group in groups(report):
        told[group.severity] += group.count
    return told
