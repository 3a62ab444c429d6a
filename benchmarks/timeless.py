"""A store, a stand-in for the Internet Archive, and a clock that jumps instead of running.

Everything is real but the network and the clock: anchord's passes, its store, its HTTP and its
upload process. Nobody waits: the clock jumps to the next moment at which something can be done.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.run import Sandbox
from benchmarks import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from anchord.app.wiring import App
    from anchord.engine.archiving import ArchiveReport, Archiving
    from anchord.engine.parts import Parts
    from anchord.sandbox.items.rules import Rules as ItemRules
    from anchord.sandbox.wayback.rules import Rules
    from anchord.sandbox.wayback.weather import Weather

DAY_S = 86_400
_SHOW_EVERY_S = 10.0


class Whole:
    """The sandbox's clock in whole seconds, as anchord wants it."""

    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock

    def now(self) -> int:
        """Return the simulated moment."""
        return int(self._clock.now())


class Place:
    """One folder with a store of waiting records, and the stand-in.

    Args:
        folder: where both live; made here.
        records: how many records wait.
        rules: of the Wayback Machine.
        item_rules: of the items.
        weather: what goes wrong at the Wayback Machine.
        quiet: say nothing on stderr meanwhile.
    """

    def __init__(
        self,
        folder: Path,
        records: int,
        *,
        rules: Rules | None = None,
        item_rules: ItemRules | None = None,
        weather: Weather | None = None,
        quiet: bool = False,
    ) -> None:
        self.home = folder
        self.records = records
        # From noon to noon, so that midnight comes in the middle; tomorrow's, so that keys count.
        noon = int(time.time()) // DAY_S * DAY_S + DAY_S + DAY_S // 2
        self.clock = SandboxClock(noon, frozen=True)
        self.sandbox = Sandbox(
            folder, calendars=1, explorers=0, peers=0, clock=self.clock,
            archive_rules=rules, item_rules=item_rules, archive_weather=weather,
        )  # fmt: skip
        self.passes = 0
        self._quiet = quiet

    @contextlib.contextmanager
    def opened(self, archive: Callable[[Sandbox], str]) -> Iterator[tuple[App, Parts, Archiving]]:
        """Make the store, fill it, seal all of it into one batch, and open the way to the archive.

        Args:
            archive: gives the tables [archive.*] of the configuration, behind the account's.
        """
        from anchord.app.wiring import open_app
        from anchord.engine import anchoring

        self.home.mkdir(parents=True)
        with self.sandbox:
            (self.home / "anchord.toml").write_text(
                self._account() + archive(self.sandbox), encoding="utf-8"
            )
            measure.anchord("init", cwd=self.home)
            measure.workload("records", self.records, self.home / "records.jsonl")
            measure.anchord("add", "records.jsonl", cwd=self.home)
            with open_app(str(self.home / "anchord.toml")) as app:
                app.clock = Whole(self.clock)
                parts = app.parts()
                anchoring.seal(parts, int(time.time()))
                with app.archiving(parts) as archiving:
                    if archiving is None:
                        raise measure.StageError("the configuration lets nothing be sent")
                    yield app, parts, archiving

    def _account(self) -> str:
        return f"""[archive]
credentials_file = "{self.sandbox.wayback.credentials_file}"
contact = "https://registry.example.org/"
account_dir = "account"
"""

    def live(
        self,
        app: App,
        parts: Parts,
        archiving: Archiving,
        end: float,
        *,
        done: Callable[[ArchiveReport], bool] = lambda _report: False,
    ) -> None:
        """Make passes until `end`, until nothing is left to do, or until `done` says so."""
        from anchord.engine.run import run_storing

        shown = time.monotonic()
        while self.clock.now() < end:
            now = app.clock.now()
            report = run_storing(parts, now, archiving).stored
            self.passes += 1
            if report is not None and done(report):
                return
            if archiving.busy:
                archiving.wait()
                continue
            at = archiving.next_moment(now)
            if at is None:
                return
            self.clock.advance(max(min(at, end) - self.clock.now(), 0.0))
            if not self._quiet and time.monotonic() - shown > _SHOW_EVERY_S:
                shown = time.monotonic()
                self._show(app)

    def _show(self, app: App) -> None:
        counts = app.store.storage.counts()
        moment = time.strftime("day %j %H:%M", time.gmtime(app.clock.now()))
        print(f"  {moment}  {counts.captures} {counts.files}", file=sys.stderr, flush=True)
