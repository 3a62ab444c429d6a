"""What the captures lane did, counted while it does it."""

from __future__ import annotations

from collections import Counter

import msgspec


class CaptureReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was done with captures since the last report."""

    claimed: int = 0
    """URLs found that are to be captured."""
    submitted: int = 0
    """Submits the service made a job of."""
    reported: int = 0
    """Jobs that ended in success."""
    indexed: int = 0
    """Captures found in the index."""
    stored: int = 0
    """Mementos that replayed: `capture_stored` is in the ledger or due."""
    confirmed: int = 0
    """Later replays that gave the same bytes."""
    lost: int = 0
    """Mementos that were signed for and are gone: withdrawn, captured again."""
    adopted: int = 0
    """Captures that were there already and are taken instead of a new one."""
    parked: int = 0
    """Captures that need a person."""
    refused: dict[str, int] = {}
    """Refusals by code."""
    protocol_errors: int = 0
    """Answers of unknown shape."""


class Tally:
    """Counts by field name of `CaptureReport`; taking the report begins anew."""

    def __init__(self) -> None:
        self._done: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def add(self, field: str, count: int = 1) -> None:
        """Count something that was done."""
        self._done[field] += count

    def refuse(self, code: str) -> None:
        """Count a refusal."""
        self._refused[code] += 1
        self._done["protocol_errors"] += code == UNKNOWN_ANSWER

    def report(self) -> CaptureReport:
        """Return what was counted, and begin anew."""
        report = CaptureReport(**self._done, refused=dict(self._refused))
        self._done, self._refused = Counter(), Counter()
        return report


UNKNOWN_ANSWER = "unknown-answer"
"""The code of an answer that is none the service's documents or its clients know."""
