"""What this process did since it began."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anchord.app.metrics.exposing import Sheet
    from anchord.engine.run import PassReport

_ANCHORING = {
    "submitted": ("submit", "done"),
    "upgraded": ("upgrade", "done"),
    "failed_calls": ("call", "failed"),
}
_CAPTURES = {
    "submitted": ("capture", "done"),
    "adopted": ("capture", "adopted"),
    "parked": ("capture", "parked"),
    "refused": ("capture", "refused"),
    "protocol_errors": ("capture", "unknown"),
    "indexed": ("index", "done"),
    "stored": ("replay", "done"),
    "confirmed": ("replay", "confirmed"),
    "lost": ("replay", "lost"),
}
_ITEMS = {
    "uploaded": ("upload", "done"),
    "skipped": ("upload", "skipped"),
    "parked": ("upload", "parked"),
    "refused": ("upload", "refused"),
    "stored": ("metadata", "done"),
    "confirmed": ("metadata", "confirmed"),
    "lost": ("metadata", "lost"),
}
"""Field of a report -> step and outcome."""
_HEADERS = ("anchored", "headers", "failed")
_ATTEMPTS = [
    *(("anchored", *row) for row in _ANCHORING.values()),
    _HEADERS,
    *(("stored", *row) for row in (*_CAPTURES.values(), *_ITEMS.values())),
]
_LEVELS = ("info", "warning", "error")
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_MOST_CODES = 50
"""Codes are the service's own words: beyond so many they are counted as "other"."""


class Tally:
    """Counts. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: Counter[str] = Counter()
        self._attempts: Counter[tuple[str, str, str]] = Counter(dict.fromkeys(_ATTEMPTS, 0))
        self._refusals: Counter[tuple[str, str]] = Counter()
        self._passes: dict[str, tuple[int, float]] = {}
        self._last: dict[str, tuple[float, float]] = {}
        self._lines: Counter[str] = Counter(dict.fromkeys(_LEVELS, 0))
        self._looked_at: float | None = None
        self._paused = False

    def looked(self, *, paused: bool = False) -> None:
        """Note that it was looked whether there is work."""
        with self._lock:
            self._looked_at, self._paused = time.time(), paused

    def made(self, kind: str, report: PassReport, seconds: float) -> None:
        """Count what a pass, a step of storing, or a stage did.

        Args:
            kind: "pass", "storing", or the stage's name; there are few.
            report: what it did.
            seconds: how long it took.
        """
        with self._lock:
            count, total = self._passes.get(kind, (0, 0.0))
            self._passes[kind] = count + 1, total + seconds
            self._last[kind] = time.time(), seconds
            self._done["sealed_records"] += report.sealed
            self._done["anchored_batches"] += report.anchored
            self._done["signed_events"] += report.signed
            self._count("anchored", _ANCHORING, report)
            self._attempts[_HEADERS] += len(report.problems)
            if report.stored is not None:
                self._count("stored", _CAPTURES, report.stored.captures)
                self._count("stored", _ITEMS, report.stored.items)
                self._refuse("captures", report.stored.captures.refused)
                self._refuse("items", report.stored.items.refused)

    def line(self, level: str) -> None:
        """Count a line of the log."""
        with self._lock:
            self._lines[level if level in _LEVELS else "error"] += 1

    def put(self, sheet: Sheet) -> None:
        """Put the counts on a sheet."""
        with self._lock:
            for kind, (count, total) in self._passes.items():
                sheet.put("pass_duration_seconds", count, total, kind=kind)
            for kind, (ended_at, seconds) in self._last.items():
                sheet.put("last_pass_timestamp_seconds", ended_at, kind=kind)
                sheet.put("last_pass_duration_seconds", seconds, kind=kind)
            sheet.put("last_look_timestamp_seconds", self._looked_at)
            sheet.put("paused", self._paused)
            for name in ("sealed_records", "anchored_batches", "signed_events"):
                sheet.put(f"{name}_total", self._done[name])
            for (facet, step, outcome), count in self._attempts.items():
                sheet.put("attempts_total", count, facet=facet, step=step, outcome=outcome)
            for (way, code), count in self._refusals.items():
                sheet.put("refusals_total", count, way=way, code=code)
            for level, count in self._lines.items():
                sheet.put("log_lines_total", count, level=level)

    def _count(self, facet: str, rows: Mapping[str, tuple[str, str]], report: object) -> None:
        for field, (step, outcome) in rows.items():
            self._attempts[facet, step, outcome] += _amount(getattr(report, field))

    def _refuse(self, way: str, refused: Mapping[str, int]) -> None:
        for code, count in refused.items():
            known = (way, code) in self._refusals or len(self._refusals) < _MOST_CODES
            fits = known and _CODE.fullmatch(code) is not None
            self._refusals[way, code if fits else "other"] += count


def _amount(value: int | Mapping[str, int]) -> int:
    return value if isinstance(value, int) else sum(value.values())


class LineCounter(logging.Handler):
    """Counts the lines of a log by level; writes nothing.

    Args:
        tally: where they are counted.
    """

    def __init__(self, tally: Tally) -> None:
        super().__init__(logging.INFO)
        self._tally = tally

    def emit(self, record: logging.LogRecord) -> None:
        """Count one line."""
        self._tally.line(record.levelname.lower())
