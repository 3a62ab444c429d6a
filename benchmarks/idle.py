"""`python -m benchmarks.idle --size 100000`: what `anchord run` costs when there is nothing to do.

A store of records that are over and done with is made: the service itself anchors them in the
sandbox, down to the last check; that they are captured and stored is written into the store
(`benchmarks.complete`), and the service signs for it. Then it is served at the default intervals,
with the way to the archive open. Memory is read in the process that did the work, and in a fresh
one; the share of a core is that of the fresh one.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchord.app.config import load
from anchord.app.wiring import App
from anchord.sandbox.run import Sandbox
from benchmarks import measure
from benchmarks.complete import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUICK = "\n[service]\npass_every_s = 0.5\n"
_TICKS = os.sysconf("SC_CLK_TCK")
_LONGEST_S = 7_200.0
_NO_ARCHIVE = ("ANCHORD__ARCHIVE__CAPTURES__ENABLED", "ANCHORD__ARCHIVE__ITEMS__ENABLED")
_QUIET = 0.02
"""A share of a core below which a start is over."""


@contextlib.contextmanager
def serving(config: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service within the block."""
    process = subprocess.Popen(
        [measure.PYTHON, "-m", "anchord", "-c", str(config), "run"],
        cwd=measure.ROOT, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds a process used (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_mib(pid: int) -> float:
    """Return the memory a process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def until(question: Callable[[], bool]) -> None:
    """Wait until a question is answered with yes.

    Raises:
        StageError: it never was.
    """
    end = time.monotonic() + _LONGEST_S
    while not question():
        if time.monotonic() > end:
            raise measure.StageError("the service did not finish its work")
        time.sleep(0.2)


def fill(folder: Path, size: int) -> Path:
    """Write a list of digests."""
    listed = folder / "SHA256SUMS"
    with listed.open("w", encoding="ascii") as file:
        file.writelines(f"{hashlib.sha256(b'%d' % n).hexdigest()}  {n}\n" for n in range(size))
    return listed


def work(
    sandbox: Sandbox, config: Path, size: int, fill: Callable[[Path, int], Path] = fill
) -> float:
    """Let the service anchor all records to the last check, and sign that they are stored.

    Return the memory of the process that signed last.
    """
    anchord = [measure.PYTHON, "-m", "anchord", "-c", str(config)]
    listed = fill(config.parent, size)
    text = config.read_text("utf-8")
    measure.run([*anchord, "init", str(config.parent)])
    measure.run([*anchord, "add", str(listed)])
    config.write_text(text + QUICK, "utf-8")
    with App(load(str(config))) as app, serving(config) as process:
        until(lambda: app.store.counts.events() == size)
        sandbox.mine(120)
        until(lambda: app.store.counts.events() == 2 * size)
        until(lambda: app.store.counts.next_moment() is None)
    with App(load(str(config))) as app:
        left = complete(app, config.parent / "anchord.db")
        signed = app.store.counts.events() + left
        with serving(config) as process:
            until(lambda: app.store.counts.events() == signed)
            quiet(process.pid)
            memory = resident_mib(process.pid)
    config.write_text(text, "utf-8")
    return memory


def quiet(pid: int) -> None:
    """Wait until a process has next to nothing to do."""

    def is_quiet() -> bool:
        before = cpu_s(pid)
        time.sleep(3)
        return (cpu_s(pid) - before) / 3 < _QUIET

    until(is_quiet)


def idle(config: Path, seconds: float) -> dict[str, Any]:
    """Serve a store in which nothing is due, and return what that costs."""
    with serving(config) as process:
        time.sleep(5)
        quiet(process.pid)
        before, began = cpu_s(process.pid), time.monotonic()
        time.sleep(seconds)
        share = (cpu_s(process.pid) - before) / (time.monotonic() - began)
        return {"share of a core": round(share, 5), "idle, MiB": resident_mib(process.pid)}


def main(words: list[str]) -> int:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60)
    asked = parser.parse_args(words)
    with (
        tempfile.TemporaryDirectory() as folder,
        Sandbox(Path(folder), tick_s=0.1) as sandbox,
    ):
        config = sandbox.write_config()
        # What is written by hand below must not be done for real before.
        os.environ.update(dict.fromkeys(_NO_ARCHIVE, "false"))
        after = work(sandbox, config, asked.size)
        for name in _NO_ARCHIVE:
            del os.environ[name]
        found = {"records": asked.size, "after the work, MiB": after}
        found |= idle(config, asked.seconds)
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
