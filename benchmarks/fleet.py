"""`python -m benchmarks.fleet --size 50000`: two workers against one daemon, on one machine.

The same records come in waves, are sealed, submitted, attested, checked and signed twice, against
the sandbox: by two `anchord worker` on a PostgreSQL server made for it, by `anchord run` on the
same, and by `anchord run` on a SQLite file. Counted is the time from the first record to the last
event. Rounds alternate, so that what else the machine does hits all alike; the best of each counts,
and the medians stand beside. Looks come each second: with few, small sizes would measure waiting.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.postgres import Cluster

from anchord.app.config import load
from anchord.app.wiring import App
from anchord.core.model import Record, Scheme
from anchord.sandbox.run import Sandbox
from benchmarks import measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MODES = {
    "2 workers, PostgreSQL": ("worker", "worker"),
    "daemon, PostgreSQL": ("run",),
    "daemon, SQLite": ("run",),
}
_OFTEN = "\n[service]\npass_every_s = {}\n"
_WAVES = 5
_CHUNK = 1_000
_LONGEST_S = 3_600.0
_LOOK_S = 0.05
_SETTLES_S = 2.0
"""Until all of them are up, and have looked at the empty store."""


def chunks(size: int, wave: int) -> Iterator[list[Record]]:
    """Yield the records of a wave."""
    for first in range(0, size // _WAVES, _CHUNK):
        yield [
            Record(digest=hashlib.sha256(f"{wave} {n}".encode()).digest(), scheme=Scheme.SHA256)
            for n in range(first, min(first + _CHUNK, size // _WAVES))
        ]


def lived(config: Path, sandbox: Sandbox, commands: Sequence[str], size: int) -> dict[str, float]:
    """Serve a store while records come, up to the last event; return what that took."""
    services = [
        subprocess.Popen(
            [measure.PYTHON, "-m", "anchord", "-c", str(config), command],
            cwd=measure.ROOT, stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]  # fmt: skip
    try:
        with App(load(str(config))) as app:
            until(lambda: app.store.service() is not None)
            time.sleep(_SETTLES_S)
            began = time.monotonic()
            for wave in range(_WAVES):
                for some in chunks(size, wave):
                    app.store.add(some, int(time.time()))
            added = time.monotonic()
            until(lambda: app.store.counts.events() >= size // _WAVES * _WAVES)
            submitted = time.monotonic()
            sandbox.mine(7)
            until(lambda: app.store.counts.events() >= size // _WAVES * _WAVES * 2)
            ended = time.monotonic()
    finally:
        for service in services:
            service.send_signal(signal.SIGTERM)
        for service in services:
            service.wait(120)
    return {
        "added_s": added - began, "submitted_s": submitted - began, "anchored_s": ended - submitted,
        "whole_s": ended - began,
    }  # fmt: skip


def until(question: Callable[[], bool]) -> None:
    """Wait until a question is answered with yes.

    Raises:
        StageError: it never was.
    """
    end = time.monotonic() + _LONGEST_S
    while not question():
        if time.monotonic() > end:
            raise measure.StageError("the services did not finish their work")
        time.sleep(_LOOK_S)


def round_of(cluster: Cluster, mode: str, size: int, every_s: float) -> dict[str, float]:
    """Return what one mode took."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox(Path(folder), tick_s=0.1, archive=False, authority=False) as sandbox,
    ):
        config = sandbox.write_config()
        text = config.read_text("utf-8") + _OFTEN.format(every_s)
        if "PostgreSQL" in mode:
            text += f'\n[store]\nurl = "{cluster.empty()}"\n'
        config.write_text(text, "utf-8")
        measure.run([measure.PYTHON, "-m", "anchord", "-c", str(config), "init", folder])
        return lived(config, sandbox, MODES[mode], size)


def main(words: list[str]) -> int:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=float, default=1.0, help="service.pass_every_s")
    asked = parser.parse_args(words)
    found: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    with Cluster() as cluster:
        for _ in range(asked.rounds):
            for mode, rounds in found.items():
                rounds.append(round_of(cluster, mode, asked.size, asked.every))
    best = {mode: min(rounds, key=lambda one: one["whole_s"]) for mode, rounds in found.items()}
    whole = {mode: [one["whole_s"] for one in rounds] for mode, rounds in found.items()}
    document: dict[str, Any] = {
        "records": asked.size,
        "rounds": asked.rounds,
        "cores": os.cpu_count(),
        "best": {mode: {k: round(v, 2) for k, v in one.items()} for mode, one in best.items()},
        "records_per_s": {m: round(asked.size / one["whole_s"]) for m, one in best.items()},
        "workers to daemon": _ratio(whole, min),
        "workers to daemon, medians": _ratio(whole, statistics.median),
    }
    print(json.dumps(document, indent=2))
    return 0


def _ratio(whole: dict[str, list[float]], of: Callable[[list[float]], float]) -> float:
    """Return how many times as fast the workers were."""
    return round(of(whole["daemon, PostgreSQL"]) / of(whole["2 workers, PostgreSQL"]), 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
