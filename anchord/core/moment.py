"""Moments as events, receipts and reports write them: UTC, whole seconds."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime

from anchord.errors import VerificationError

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def utc(moment: int) -> str:
    """Return Unix seconds as `YYYY-MM-DDTHH:MM:SSZ`."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> int:
    """Return the Unix seconds of `YYYY-MM-DDTHH:MM:SSZ`.

    Raises:
        VerificationError: anything else.
    """
    # strptime alone takes one digit for two, and digits of other scripts.
    if _MOMENT.fullmatch(text):
        with contextlib.suppress(ValueError):
            moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            return int(moment.timestamp())
    raise VerificationError(f"expected YYYY-MM-DDTHH:MM:SSZ, got {text!r:.40}")
