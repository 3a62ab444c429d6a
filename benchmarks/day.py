"""A simulated day of captures: `python -m benchmarks.day --records 20000 --hours 24`.

The day is run twice against the real limits, in fair weather and in foul. Each prints a report
after the day and another one when every capture has come to its end, with the laws that must hold;
a law that is broken makes the exit code 1. The clock jumps, so a day takes minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.storage import CaptureState
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.weather import Spell, Weather
from benchmarks.laws import Found, judge
from benchmarks.timeless import DAY_S, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.wiring import App
    from anchord.sandbox.run import Sandbox

_HOUR_S = 3600
_AFTERMATH_S = 40 * DAY_S
"""How long at most the clock runs on after the day."""


def foul(hours: float) -> tuple[Spell, ...]:
    """Return everything that goes wrong on a bad day of that many hours.

    What comes at a time of the day comes at that share of the hours.
    """
    hour = hours * _HOUR_S / 24

    def always(kind: str, share: float, on: str | None = None, **options: Any) -> Spell:
        return Spell(kind=kind, share=share, stop_s=24 * hour, on=on, options=options)

    def between(
        kind: str, begin: float, end: float, share: float = 1.0, on: str | None = None
    ) -> Spell:
        return Spell(kind=kind, start_s=begin * hour, stop_s=end * hour, share=share, on=on)

    return (
        # captured, and the answer says something else or nothing
        always("captured-5xx", 0.02),
        always("captured-520", 0.01),
        always("captured-hangup", 0.01),
        always("job-failed", 0.01, captured=1),
        always("job-failed", 0.01),
        always("no-snapshot", 0.01),
        always("forget-job", 0.02),
        always("vanish", 0.02, delay_s=6 * hour),
        always("vanish", 0.01, delay_s=3 * hour, listed=1),
        always("late-index", 0.02, delay_s=4_000),
        # refusals, some of them in bursts
        between("not-logged-in", 5, 5.1, 0.4),
        always("session-limit", 0.02),
        always("slow-slot", 0.05, delay_s=40),
        always("url-limit", 0.005),
        always("unknown-shape", 0.002),
        always("html", 0.002),
        always("empty-body", 0.002, on="status"),
        always("nothing-listed", 0.02),
        always("gateway-timeout", 0.02, on="cdx"),
        between("rate-limited", 8, 8.05, on="cdx"),
        between("rate-limited", 9, 9.02, on="save"),
        # hours without the service, and a limit that ends with the day
        between("offline", 2, 4.5),
        between("refused", 14, 16),
        between("day-limit", 11, 12),
    )


def _captures(sandbox: Sandbox) -> str:
    return f'[archive.captures]\nweb_url = "{sandbox.wayback.url}"\n'


class Day(Place):
    """One store and one stand-in for a day, and for what follows it."""

    def __init__(
        self, folder: Path, records: int, hours: float, spells: tuple[Spell, ...], *,
        seed: int, quiet: bool,
    ) -> None:  # fmt: skip
        weather = Weather(spells, seed=seed)
        super().__init__(folder, records, rules=Rules(), weather=weather, quiet=quiet)
        self.hours = hours
        self.foul = bool(spells)

    def run(self) -> Iterator[Found]:
        """Yield what was found after the day, and at the end."""
        with self.opened(_captures) as (app, parts, archiving):
            begin = self.clock.now()
            end = begin + self.hours * _HOUR_S
            self.live(app, parts, archiving, end)
            yield self._found(app, "after the day", self.clock.now() - begin, over=False)
            self.live(app, parts, archiving, end + _AFTERMATH_S, done=lambda _: self._over(app))
            yield self._found(app, "at the end", self.clock.now() - begin, over=True)

    def _over(self, app: App) -> bool:
        """Tell whether every capture is stored and was confirmed once, or is parked."""
        captures = app.store.storage.captures
        first = app.config.archive.captures.confirm_after_s[0]
        settled = {CaptureState.STORED, CaptureState.PARKED}
        if captures.unclaimed() or any(captures.count(s, 1) for s in set(CaptureState) - settled):
            return False
        due = captures.next_moment({CaptureState.STORED})
        return due is None or due - app.clock.now() > first

    def _found(self, app: App, name: str, seconds: float, *, over: bool) -> Found:
        service = self.sandbox.wayback.service
        return judge(
            app, service.report(), list(service.mementos()), name=name, seconds=seconds,
            records=self.records, passes=self.passes, foul=self.foul, over=over, rules=Rules(),
        )  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.day", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--weather", choices=["fair", "foul", "both"], default="both")
    parser.add_argument("--day-only", action="store_true", help="end with the day")
    parser.add_argument("--json", action="store_true", help="print JSON Lines instead of tables")
    parser.add_argument("--dir", type=Path, help="keep the stores here")
    return parser.parse_args()


def main() -> int:
    """Run the days and print their reports; 1 when a law is broken."""
    wanted = _arguments()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="anchord-day-") as temporary:
        folder = wanted.dir or Path(temporary)
        for weather in ("fair", "foul") if wanted.weather == "both" else (wanted.weather,):
            spells = foul(wanted.hours) if weather == "foul" else ()
            day = Day(
                folder / weather, wanted.records, wanted.hours, spells,
                seed=wanted.seed, quiet=wanted.json,
            )  # fmt: skip
            began = time.perf_counter()
            for found in day.run():
                broken += len(found.broken)
                if wanted.json:
                    document = {"weather": weather, **msgspec.to_builtins(found)}
                    print(json.dumps(document), flush=True)
                else:
                    print("\n".join(found.lines(weather, time.perf_counter() - began)), flush=True)
                if wanted.day_only:
                    break
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
