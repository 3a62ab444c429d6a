"""The days themselves: virtual time goes on in beats, and what the plan holds happens between."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.soak.world import DAY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.soak.machine import Machine
    from benchmarks.soak.trouble import Event
    from benchmarks.soak.world import World

BEAT_S = 900
"""Virtual seconds from one look of the service to the next."""
_BLOCK_S = 600
_SAY_S = 15.0
_EXPECTED = ("FatalError: the store", "DiskError: the store")
"""How the service may end by itself: the store refused a write, which only a bad disk does."""


class Life:
    """Lives through a plan.

    Args:
        world: the stand-ins.
        machine: with the service.
        on_evening: called at the end of each day, with its number.
        quiet: say nothing on stderr.
    """

    def __init__(
        self, world: World, machine: Machine, on_evening: Callable[[int], None], *, quiet: bool
    ) -> None:
        self.world, self.machine = world, machine
        self.happened: Counter[str] = Counter()
        self.paused: Counter[str] = Counter()
        self.bad_ends: list[str] = []
        """How the service ended though its disk was well."""
        self.brought_back = 0
        """Captures and files that were parked, and that a person let go on."""
        self._on_evening, self._quiet = on_evening, quiet
        self._skew = 0
        self._broken = 0
        self._down = False
        self._meanwhile: list[Callable[[], None]] = []
        self._said = time.monotonic()
        self._ends = 0

    # ------------------------------------------------------------------ time

    def live(self, events: Sequence[Event], days: float) -> None:
        """Live through the events of so many days, from now on."""
        begin, left = self.world.now(), list(reversed(events))
        while (since := self.world.now() - begin) < days * DAY_S:
            while left and left[-1].at <= since:
                self._happen(left.pop())
            self.beat()
            self.world.clock.advance(BEAT_S)
            self._say(since)
        for event in reversed(left):
            self._happen(event)

    def _happen(self, event: Event) -> None:
        self.happened[event.name] += 1
        getattr(self, event.name)(**event.words)

    def beat(self) -> None:
        """Let the service work at this moment; start it when it is gone."""
        now = self.world.now() + self._skew
        if self._down or not self._up(now):
            return
        meanwhile = self._meanwhile.pop() if self._meanwhile else None
        answer = self.machine.ask("beat", meanwhile, now=now)
        if answer is not None and answer["paused"]:
            self.paused[answer["paused"].partition(":")[0][:60]] += 1
        self._note_ends()

    def _up(self, now: int) -> bool:
        """Have the service run; False when it could not start."""
        if self.machine.runs:
            return True
        if not self.machine.start(now):
            self._note_ends()
            return False
        if self._broken:
            self.world.place.again(self.machine)
        return True

    def _note_ends(self) -> None:
        """Sort out how the service ended by itself; nobody starts it while its disk is bad."""
        for words in self.machine.ends[self._ends :]:
            self._down = bool(self._broken)
            if not (self._broken and words.startswith(_EXPECTED)):
                self.bad_ends.append(words)
        self._ends = len(self.machine.ends)

    def _say(self, since: float) -> None:
        if self._quiet or time.monotonic() - self._said < _SAY_S:
            return
        self._said = time.monotonic()
        print(
            f"  day {since / DAY_S:.1f}: {len(self.world.truth):,} records, "
            f"{self.machine.kills} kills",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    # ------------------------------------------------------------------ what the plan holds

    def come(self, count: int) -> None:
        """Let records come."""
        if not self._broken:
            self.world.come(count)
        else:
            self.world.delay(count)

    def mine(self) -> None:
        """Mine a block."""
        self.world.sandbox.mine(1)

    def reorg(self, depth: int, drop: bool) -> None:
        """Replace the newest blocks."""
        room = self.world.sandbox.height - 116
        if room > 0:
            self.world.sandbox.reorg(min(depth, room), drop=drop)

    def fault(self, service: str, kind: str, count: int | None, options: dict[str, Any]) -> None:
        """Let a service go wrong."""
        if service.startswith("authority") and not self.world.sandbox.authorities:
            return
        self.world.sandbox.fault(service, kind, count, **options)

    def heal(self, service: str) -> None:
        """Let it work again."""
        if not service.startswith("authority") or self.world.sandbox.authorities:
            self.world.sandbox.clear_faults(service)

    def full(self, on: bool) -> None:
        """Let there be no room on the disk, or room again."""
        self._break(self.world.place.full, on=on)

    def read_only(self, on: bool) -> None:
        """Let nothing be written, or all again."""
        self._break(self.world.place.read_only, on=on)

    def _break(self, what: Callable[..., None], *, on: bool) -> None:
        self._broken = max(0, self._broken + (1 if on else -1))
        what(self.machine, on=on)
        self._down = self._down and bool(self._broken)

    def hold(self, seconds: float) -> None:
        """Keep every writer out while the service works."""
        self._meanwhile.append(lambda: self.world.place.hold(seconds))

    def restart(self, crash: bool, after_s: float) -> None:
        """Restart the database while the service works."""

        def now() -> None:
            time.sleep(after_s)
            self.world.place.restart(crash=crash)

        self._meanwhile.append(now)

    def kill(self, after_s: float) -> None:
        """Kill the service while it works."""
        self._meanwhile.append(lambda: self.machine.kill(after_s))

    def restart_service(self) -> None:
        """Stop the service as `systemctl restart` does; the next beat starts it."""
        self.machine.stop()

    def step_clock(self, seconds: int) -> None:
        """Set the machine's clock wrongly, or right again."""
        self._skew = seconds

    def rotate_key(self) -> None:
        """Make a new key active, and tell the service; by a clock that is behind it is refused."""
        now = str(self.world.now() + self._skew)
        measure.run(
            [measure.PYTHON, "-m", "benchmarks.soak.at", now, "key", "rotate"],
            cwd=self.world.folder, allowed=(0, 2),
        )  # fmt: skip
        self.machine.ask("reload", now=self.world.now() + self._skew)

    def reload(self, poll_max_s: int) -> None:
        """Change the configuration, and tell the service."""
        self.world.configure(poll_max_s)
        self.machine.ask("reload", now=self.world.now() + self._skew)

    def reload_nonsense(self) -> None:
        """Break the configuration, tell the service, and mend it: the old one must be kept."""
        good = self.world.config.read_text("utf-8")
        nonsense = good.replace("min_answers = 2", 'min_answers = "two"')
        self.world.config.write_text(nonsense, "utf-8")
        self.machine.ask("reload", now=self.world.now() + self._skew)
        self.world.config.write_text(good, "utf-8")

    def evening(self, day: int) -> None:
        """Look at the process and at the store."""
        self.machine.look()
        self._on_evening(day)

    # ------------------------------------------------------------------ the end

    def heed_alerts(self) -> None:
        """Do what a person does who reads `anchord status`: bring back what waits for one."""
        done = measure.run(
            [measure.PYTHON, "-m", "benchmarks.soak.at", str(self.world.now()), "retry",
             "--archive", "--json"],
            cwd=self.world.folder,
        )  # fmt: skip
        told = json.loads(done.stdout)
        self.brought_back += told["captures"] + told["files"]

    def heal_all(self) -> None:
        """End everything that goes wrong."""
        self.world.sandbox.clear_faults()
        self._skew = 0
        self._meanwhile.clear()
        while self._broken:
            self.full(on=False)
            self.read_only(on=False)
        self.world.come(0)

    def settle(self, done: Callable[[], bool], most_days: int) -> float:
        """Live on in fair weather until all is done; return the days it took."""
        begin = self.world.now()
        mined = begin
        while self.world.now() - begin < most_days * DAY_S:
            while mined < self.world.now():
                mined += _BLOCK_S
                self.mine()
            self.beat()
            self.world.clock.advance(BEAT_S)
            self._say(self.world.now() - self.world.begin)
            if (self.world.now() - begin) % (DAY_S // 4) < BEAT_S and done():
                break
        return (self.world.now() - begin) / DAY_S
