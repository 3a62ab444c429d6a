"""Moments as events, receipts and reports write them: UTC, whole seconds."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from functools import lru_cache

from anchord.errors import VerificationError

_MOMENT = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})Z")


@lru_cache(maxsize=256)
def utc(moment: int) -> str:
    """Return Unix seconds as `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=256)
def seconds(text: str) -> int:
    """Return the Unix seconds of `YYYY-MM-DDTHH:MM:SSZ`.

    Raises:
        VerificationError: anything else.
    """
    # The parsers of the library take more than this one spelling, and strptime is slow.
    found = _MOMENT.fullmatch(text)
    if found is not None:
        with contextlib.suppress(ValueError):
            year, month, day, hour, minute, second = map(int, found.groups())
            moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            return int(moment.timestamp())
    raise VerificationError(f"expected YYYY-MM-DDTHH:MM:SSZ, got {text!r:.40}")
