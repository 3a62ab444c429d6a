"""An `anchord` command at a virtual moment: `python -m benchmarks.soak.at SECONDS WORD...`."""

from __future__ import annotations

import sys
import time

from anchord.adapters.store.sql import SqlStore
from anchord.app import wiring
from benchmarks.soak.service import Clock

if __name__ == "__main__":
    Clock.wall.moment = int(sys.argv[1])
    # Before the commands are loaded, which take the clock by its name.
    SqlStore.server_time = lambda _self: None  # type: ignore[method-assign]
    wiring.SystemClock = Clock  # type: ignore[misc, assignment]
    time.time = lambda: float(Clock.wall.moment)
    from anchord.app.cli.main import main

    sys.argv = ["anchord", *sys.argv[2:]]
    main()
