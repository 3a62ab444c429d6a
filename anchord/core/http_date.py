"""Moments in HTTP headers (RFC 9110, 5.6.7 and 10.2.3), read without a clock of our own."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from datetime import UTC

RETRY_AFTER_MAX_S = 86_400.0
"""No server can send us away for longer than a day."""


def http_moment(text: str) -> int | None:
    """Return the Unix seconds of an HTTP date; None when it is none."""
    try:
        moment = email.utils.parsedate_to_datetime(text)
        return int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, 0 to one day; None without sense.

    A date is read against the answer's own Date, so that no clock but the server's counts.
    """
    named = {name.lower(): headers[name] for name in headers}
    value = named.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,20}", value):
        return min(float(value), RETRY_AFTER_MAX_S)
    until, now = http_moment(value), http_moment(named.get("date", ""))
    if until is None or now is None:
        return None
    return min(max(float(until - now), 0.0), RETRY_AFTER_MAX_S)
