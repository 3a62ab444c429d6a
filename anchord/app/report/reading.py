"""An audit's JSON document read back, so that it can be shown in another form."""

from __future__ import annotations

from typing import Any

import msgspec

from anchord.app.report.contents import Audited
from anchord.app.thresholds import Judged
from anchord.core import strictjson
from anchord.core.audit import AuditReport
from anchord.core.moment import seconds
from anchord.core.standing import DAY_S, FACETS, Completeness
from anchord.errors import AnchordError, RefusedError

MAX_BYTES = 64_000_000
"""Longer than any report gets: each kind of finding is kept 1,000 times."""


def read_document(raw: bytes) -> Audited:
    """Return the audit that `json_document.render` wrote.

    Raises:
        RefusedError: it is something else.
    """
    try:
        found = strictjson.parse(raw, max_bytes=MAX_BYTES)
        thresholds = found.pop("thresholds")
        found["created_at"] = seconds(found["created_at"])
        completeness = found["completeness"]
        completeness["backlog"] = [_day(row) for row in completeness["backlog"]]
        report = msgspec.convert(found, AuditReport)
        _check_rows(report.completeness)
        return Audited(
            report=report,
            thresholds=msgspec.convert(thresholds, tuple[Judged, ...]),
        )
    except (AnchordError, msgspec.ValidationError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(
            "expected a report as `anchord audit -o FILE.json` of this version writes it; "
            f"{type(error).__name__}: {error!s:.200}"
        ) from error


def _check_rows(found: Completeness) -> None:
    """Look whether the tables have the rows and columns that every audit's have.

    Raises:
        KeyError: one is missing; it is named.
    """
    for facet in FACETS:
        found.oldest_waiting_s[facet]
    for groups in (found.by_source, found.by_cohort):
        for row in groups.values():
            for column in ("records", *FACETS, "both"):
                row[column]


def _day(row: dict[str, Any]) -> tuple[int, int, int]:
    number = seconds(f"{row['day']}T00:00:00Z") // DAY_S
    return number, row["not_anchored"], row["not_stored"]
