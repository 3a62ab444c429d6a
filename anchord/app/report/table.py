"""An audit as CSV (RFC 4180): one table that a spreadsheet takes, a row a fact or a finding.

The column `section` says what a row is about. No cell begins a formula: what strangers wrote could
otherwise run in the reader's spreadsheet (https://owasp.org/www-community/attacks/CSV_Injection).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from anchord.app.report.contents import Audited, day, plain, verdict
from anchord.core.audit import AuditReport
from anchord.core.moment import utc
from anchord.core.standing import FACETS, Completeness

COLUMNS = ("section", "name", "severity", "part", "subject", "count", "what", "todo")
_FORMULA = ("=", "+", "-", "@")

Row = dict[str, str | int]


def render(audited: Audited) -> str:
    """Return the table; lines end in CRLF, as RFC 4180 has it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\r\n")
    writer.writeheader()
    for row in _rows(audited):
        writer.writerow({name: cell(value) for name, value in row.items()})
    return out.getvalue()


def cell(value: str | int) -> str:
    """Return a cell on one line that no spreadsheet takes for a formula."""
    if isinstance(value, int):
        return str(value)
    text = plain(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _rows(audited: Audited) -> Iterator[Row]:
    report = audited.report
    yield from _about(audited)
    for one in audited.thresholds:
        holds = "holds" if one.holds else "missed"
        yield {"section": "threshold", "name": one.asked, "subject": holds, "what": one.words}
    yield from _completeness(report.completeness)
    for name, count in _coverage(report):
        yield {"section": "coverage", "name": name, "count": count}
    for code, count in report.counts.items():
        yield {"section": "findings", "name": code, "count": count}
    for found in report.findings:
        yield {
            "section": "finding", "name": found.code, "severity": found.severity.value,
            "part": found.part.value, "subject": found.subject, "what": found.what,
            "todo": found.todo,
        }  # fmt: skip


def _about(audited: Audited) -> Iterator[Row]:
    report = audited.report
    told = {
        "result": report.result,
        "verdict": verdict(audited),
        "source": report.source,
        "kind": report.kind,
        "created_at": utc(report.created_at),
        "sampled": report.sampled,
        "chain": report.chain,
        "seconds": None if report.seconds is None else f"{report.seconds:.1f}",
    }
    for name, words in told.items():
        if words is not None:
            yield {"section": "audit", "name": name, "what": words}
    for section, lines in (("reason", report.reasons), ("key", report.keys)):
        for line in lines:
            yield {"section": section, "what": line}


def _completeness(found: Completeness) -> Iterator[Row]:
    for facet in FACETS:
        yield from _counts("facet", facet, getattr(found, facet))
    for section, table in (("source", found.by_source), ("cohort", found.by_cohort)):
        for name, columns in table.items():
            yield from _counts(section, name, columns)
    for name, count in found.waiting_age_s.items():
        yield {"section": "waiting", "name": name, "count": count}
    for facet, age in found.oldest_waiting_s.items():
        if age is not None:
            yield {"section": "oldest waiting, seconds", "name": facet, "count": age}
    for at, anchored, stored in found.backlog:
        yield from _counts("backlog", day(at), {"not anchored": anchored, "not stored": stored})


def _counts(section: str, name: str, counts: dict[str, int]) -> Iterator[Row]:
    for subject, count in counts.items():
        yield {"section": section, "name": name, "subject": subject, "count": count}


def _coverage(report: AuditReport) -> Iterator[tuple[str, int]]:
    for name in report.coverage.__struct_fields__:
        yield name, getattr(report.coverage, name)
