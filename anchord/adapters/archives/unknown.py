"""Answers of a shape that nobody knows are logged, so that a person can see what changed.

The caller counts and repeats; this keeps what was said. Words are cleaned and cut: the log never
holds more than 2 kB of an answer, no line break of its making, and no key.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from anchord.core.storage import Refused

UNKNOWN = "unknown-answer"
_LOG = logging.getLogger("anchord.archive")
_MOST = 2_000
_ODD = re.compile(r"[^ -~]+")


def log_unknown(who: str, told: Any, status: int, kind: str, body: bytes) -> None:
    """Log an answer that was read as unknown, or that tells of something unknown.

    Args:
        who: what was asked, without keys.
        told: what the answer was read as.
        status: of the answer.
        kind: its media type.
        body: its bytes, keys blotted out.
    """
    parts = told.values() if isinstance(told, Mapping) else (told,)
    if not any(isinstance(part, Refused) and part.code == UNKNOWN for part in parts):
        return
    words = _ODD.sub(" ", body[:_MOST].decode("latin-1"))
    _LOG.warning(
        "%s gave an answer of unknown shape (HTTP %d, %s), which is not used and asked for again: "
        "%s", who, status, _ODD.sub(" ", kind)[:80] or "no type", words,
    )  # fmt: skip
