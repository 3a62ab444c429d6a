"""Words that came from outside, or may hold a secret, made fit for messages and logs."""

from __future__ import annotations

import re

_UNCLEAN = re.compile(r"[^A-Za-z0-9#\-.,; ]")


def clean(text: bytes | str) -> str:
    """Return foreign words fit for a log: 160 characters at most, odd ones as "_".

    The same rule as the standard client's (python-opentimestamps, opentimestamps/calendar.py,
    `get_sanitised_resp_msg`): no line breaks, no escape codes.
    """
    words = text[:160].decode("latin-1") if isinstance(text, bytes) else text[:160]
    return _UNCLEAN.sub("_", words)


def authority(url: str) -> str:
    """Return host and port of `url` for messages; what stands before an "@" is never shown."""
    _, mark, rest = url.partition("//")
    return re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2] if mark else ""
