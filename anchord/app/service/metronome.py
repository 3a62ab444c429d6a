"""When things are done, and nothing else: APScheduler as a metronome with one working thread.

Nothing about the work is known here; what is to be done stands in the store. Beats that were
missed, because work took longer or the machine slept, become one.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

if TYPE_CHECKING:
    from collections.abc import Callable

_DEFAULTS = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}


class Metronome:
    """Calls functions at intervals, one at a time, all on one thread.

    The functions must raise nothing: the scheduler would only log it.
    """

    def __init__(self) -> None:
        # A beat that comes while the last one still works is left out; that is no news.
        logging.getLogger("apscheduler").addHandler(logging.NullHandler())
        logging.getLogger("apscheduler").setLevel(logging.CRITICAL)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(max_workers=1)},
            job_defaults=_DEFAULTS,
            timezone=UTC,
        )
        self._intervals: dict[str, tuple[float, float]] = {}

    def start(self) -> None:
        """Begin."""
        self._scheduler.start()

    def every(
        self, name: str, function: Callable[[], None], interval_s: float, jitter_s: float = 0
    ) -> None:
        """Call `function` now and then at intervals, in place of what `name` did before."""
        self._intervals[name] = (interval_s, jitter_s)
        trigger = _trigger(interval_s, jitter_s)
        now = datetime.now(UTC)
        self._scheduler.add_job(
            function, trigger, id=name, next_run_time=now, replace_existing=True
        )

    def once(self, function: Callable[[], None]) -> None:
        """Call `function` as soon as the thread is free."""
        self._scheduler.add_job(function)

    def retime(self) -> None:
        """Count all intervals anew: the scheduler keeps moments, and the clock was set."""
        for name, (interval_s, jitter_s) in self._intervals.items():
            self._scheduler.reschedule_job(name, trigger=_trigger(interval_s, jitter_s))

    def halt(self) -> None:
        """Call nothing any more; what runs goes on."""
        if self._scheduler.running:
            self._scheduler.remove_all_jobs()

    def stop(self) -> None:
        """End the thread, after what runs."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)


def _trigger(interval_s: float, jitter_s: float) -> IntervalTrigger:
    return IntervalTrigger(seconds=interval_s, jitter=jitter_s or None, timezone=UTC)
