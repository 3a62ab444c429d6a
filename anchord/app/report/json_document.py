"""An audit as one JSON document with stable keys (docs/json.md, `anchord audit`)."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from anchord.app.report.contents import Audited, day
from anchord.core.moment import utc


def document(audited: Audited) -> dict[str, Any]:
    """Return the report as it is printed; moments are UTC, days `YYYY-MM-DD`."""
    report = audited.report
    found: dict[str, Any] = msgspec.to_builtins(report)
    found["created_at"] = utc(report.created_at)
    found["completeness"]["backlog"] = [
        {"day": day(at), "not_anchored": anchored, "not_stored": stored}
        for at, anchored, stored in report.completeness.backlog
    ]
    found["thresholds"] = msgspec.to_builtins(audited.thresholds)
    return found


def render(audited: Audited) -> str:
    """Return the document, indented.

    A name that is no valid text (a file's, say) keeps its odd units as escapes of JSON.
    """
    text = json.dumps(document(audited), indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
