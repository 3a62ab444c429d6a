"""What was asked of the archive, and how often its rules were broken. Threads may share it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

COUNTS = (
    "puts",
    "puts_accepted",
    "bytes",
    "bytes_refused",
    "put_twice",
    "put_again_before_visible",
    "overwrites",
    "deletes",
    "parallel_puts_max",
    "first_puts_in_parallel",
    "puts_before_item_visible",
    "puts_while_over_limit",
    "puts_without_md5",
    "derives_requested",
    "items",
    "files_over_advice",
    "files_over_day_advice",
    "check_limits",
    "metadata_reads",
    "task_reads",
    "downloads",
    "download_bytes",
    "keys_in_foreign_user_agents",
    "keys_in_urls",
)
"""Every count, also when it is zero."""


class Tally:
    """The counts of one run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._reads: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._running = 0

    def add(self, name: str, number: int = 1) -> None:
        """Count."""
        with self._lock:
            self._counts[name] += number

    def read(self, identifier: str) -> None:
        """Count a read of an item's metadata."""
        with self._lock:
            self._counts["metadata_reads"] += 1
            self._reads[identifier] += 1

    def refused(self, code: str) -> None:
        """Count an upload that was refused, by its code."""
        with self._lock:
            self._refusals[code] += 1

    @contextmanager
    def one_put(self) -> Iterator[None]:
        """Count uploads that run at the same time."""
        with self._lock:
            self._counts["puts"] += 1
            self._running += 1
            highest = max(self._counts["parallel_puts_max"], self._running)
            self._counts["parallel_puts_max"] = highest
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def report(self) -> dict[str, int | dict[str, int]]:
        """Return a copy of all counts, for people and JSON."""
        with self._lock:
            counts: dict[str, int | dict[str, int]] = {n: self._counts[n] for n in COUNTS}
            counts["refusals"] = dict(self._refusals)
            counts["metadata_reads_by_item"] = dict(self._reads)
            return counts
