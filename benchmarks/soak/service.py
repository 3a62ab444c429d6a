"""The service in a process of its own: `anchord run`'s work, on a clock that is told the time.

Passes, guard, agenda, reload and the way to the archive are the daemon's; the metronome is the
process that started this one: a command a line comes in, an answer a line goes out. Killing it
at any moment is what it is for.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from anchord.adapters.store.sql import SqlStore
from anchord.app import wiring
from anchord.app.config import load
from anchord.app.service import agenda, guard, logs, session, work
from anchord.app.service.notify import Notifier
from anchord.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS = 200
"""Steps of storing in one beat at most: what is never done must not hold the clock for ever."""
_CALL_S = 10.0
_BUSY_MS = 300
"""How long SQLite waits for a lock here; the thirty seconds of a real service are none here."""
_NO_LIMIT = 1 << 30


class VirtualTime:
    """Stands for the module `time` where the service counts its own pauses."""

    sleep = staticmethod(time.sleep)
    time = staticmethod(time.time)

    def __init__(self) -> None:
        self._first: int | None = None
        self._shift = 0.0

    def tell(self, now: int) -> None:
        """Take in the moment it is."""
        self._first = now if self._first is None else self._first
        self._shift = max(self._shift, now - self._first)

    def monotonic(self) -> float:
        """Return seconds that never go back: real ones, and those that were jumped over."""
        return time.monotonic() + self._shift


class Wall:
    """The machine's clock, as it was told; it may be wrong, and it may be set back."""

    def __init__(self) -> None:
        self.moment = 0

    def __call__(self) -> float:
        """Return Unix seconds."""
        return float(self.moment)


class Clock:
    """What `SystemClock` is: within one process it never goes back."""

    wall = Wall()

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> int:
        """Return whole Unix seconds."""
        self._last = max(self._last, self.wall.moment)
        return self._last


class Disk:
    """What happens to the disk below a SQLite store, put on each connection that is used.

    Processes are killed here, never the machine, so nothing waits for the platters.
    """

    def __init__(self) -> None:
        self.full = self.read_only = False
        event.listen(sa.pool.Pool, "checkout", self._on_use)

    def _on_use(self, connection: Any, record: Any, _proxy: object) -> None:
        state = (self.full, self.read_only)
        if not type(connection).__module__.startswith("sqlite3") or (
            record.info.get("disk") == state and not self.full
        ):
            return
        record.info["disk"] = state
        pages = connection.execute("PRAGMA page_count").fetchone()[0] if self.full else _NO_LIMIT
        for pragma in (
            f"busy_timeout={_BUSY_MS}",
            "synchronous=OFF",
            f"query_only={int(self.read_only)}",
            f"max_page_count={pages}",
        ):
            connection.execute(f"PRAGMA {pragma}")


class Service:
    """The daemon's work, a beat at a time.

    Args:
        config: path of the configuration.
        now: Unix seconds at the start.
    """

    def __init__(self, config: str, now: int) -> None:
        self._time = VirtualTime()
        for module in (agenda, guard, session, work):
            module.time = self._time  # type: ignore[attr-defined]
        wiring.SystemClock = Clock  # type: ignore[misc, assignment]
        # A database server lives in real time, and is of no use to compare with.
        SqlStore.server_time = lambda _self: None  # type: ignore[method-assign]
        self._disk = Disk()
        self._set(now)
        loaded = load(config)
        self._store = SqlStore(wiring.store_url(loaded))
        # As the daemon does: one service a store, for as long as the process lives.
        self._right = self._store.serving(now)
        self._right.__enter__()
        self._work = work.Work(loaded, Notifier({}), wall=Clock.wall)

    def _set(self, now: int) -> None:
        Clock.wall.moment = now
        self._time.tell(now)

    def beat(self, now: int) -> dict[str, Any]:
        """Make a pass when one is due, and steps of storing until nothing is due."""
        self._set(now)
        self._work.make_pass()
        for _ in range(_ROUNDS):
            self._work.store_step()
            current = self._work._session  # noqa: SLF001  what it waits for is looked at
            if self._over() or current.archiving is None:
                break
            if current.archiving.busy:
                current.archiving.wait(_CALL_S)
            elif not self._due(now):
                break
        return self._answer()

    def _due(self, now: int) -> bool:
        """Tell whether a step of storing has something to do; not while the store is away."""
        try:
            return self._work._agenda.storing_due(now)  # noqa: SLF001
        except TransientError:
            return False

    def reload(self, now: int) -> dict[str, Any]:
        """Do what SIGHUP does."""
        self._set(now)
        self._work.reload()
        return self._answer()

    def disk(self, full: bool = False, read_only: bool = False) -> dict[str, Any]:
        """Let the disk of a SQLite store be full or read-only from now on."""
        self._disk.full, self._disk.read_only = full, read_only
        return self._answer()

    def vitals(self) -> dict[str, Any]:
        """Say what this process holds."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return {
            "rss_kib": pages * os.sysconf("SC_PAGE_SIZE") // 1024,
            "handles": len(list(Path("/proc/self/fd").iterdir())),
        }

    def stop(self) -> dict[str, Any]:
        """End as on SIGTERM."""
        self._work.stop.set()
        self._work.finish(self._time.monotonic() + _CALL_S)
        self._right.__exit__(None, None, None)
        self._store.close()
        return {"stopped": True}

    def _over(self) -> bool:
        return self._work.guard.ended_by is not None or self._work.guard.paused is not None

    def _answer(self) -> dict[str, Any]:
        ended = self._work.guard.ended_by
        trouble = self._work._session.trouble  # noqa: SLF001
        return {
            "paused": self._work.guard.paused,
            "ended": None if ended is None else f"{type(ended).__name__}: {ended}",
            "archive": None if trouble is None else str(trouble),
        }


def main() -> int:
    """Serve commands until the input ends."""
    config, now = sys.argv[1], int(sys.argv[2])
    answers, sys.stdout = sys.stdout, sys.stderr
    with logs.logging_as("json"):
        service = Service(config, now)
        commands: dict[str, Callable[..., dict[str, Any]]] = {
            name: getattr(service, name) for name in ("beat", "reload", "disk", "vitals", "stop")
        }
        print(json.dumps({"ready": True}), file=answers, flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            print(json.dumps(commands[asked.pop("do")](**asked)), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
