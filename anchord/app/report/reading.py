"""An audit's JSON document read back, so that it can be shown in another form."""

from __future__ import annotations

from collections.abc import Iterable
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
_MOST = 10**15
"""What is larger is no count, and no number of seconds."""


def read_document(raw: bytes) -> Audited:
    """Return the audit that `json_document.render` wrote.

    Raises:
        RefusedError: it is something else.
    """
    try:
        found = strictjson.parse(raw, max_bytes=MAX_BYTES)
        _check_numbers(found)
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
    except (
        AnchordError,
        msgspec.ValidationError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
    ) as error:
        raise RefusedError(
            "expected a report as `anchord audit -o FILE.json` of this version writes it; "
            f"{type(error).__name__}: {error!s:.200}"
        ) from error


def _check_numbers(value: object) -> None:
    """Look whether all numbers are such that they can be drawn.

    Raises:
        ValueError: one is larger than anything that is counted.
    """
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, int | float) and not abs(one) <= _MOST:
            raise ValueError(f"the number {one!s:.40}")


def _check_rows(found: Completeness) -> None:
    """Look whether the tables have the rows and columns that every audit's have.

    Raises:
        KeyError: one is missing; it is named.
        ValueError: more are done than there are.
    """
    for facet in FACETS:
        found.oldest_waiting_s[facet]
        _check_parts(found.records, getattr(found, facet).values())
    for groups in (found.by_source, found.by_cohort):
        for row in groups.values():
            _check_parts(row["records"], (row["both"],))
            _check_parts(row["records"], (row["anchored"] + row["stored"] - row["both"],))
            _check_parts(min(row["anchored"], row["stored"]), (row["both"],))


def _check_parts(whole: int, parts: Iterable[int]) -> None:
    for part in parts:
        if not 0 <= part <= whole:
            raise ValueError(f"{part} of {whole}")


def _day(row: dict[str, Any]) -> tuple[int, int, int]:
    number = seconds(f"{row['day']}T00:00:00Z") // DAY_S
    return number, row["not_anchored"], row["not_stored"]
