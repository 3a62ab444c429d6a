"""Runs a command and says what it cost: wall, CPU and peak memory of it and its children.

Run as a script it is the launcher: a small fresh process that starts the command and waits for it.
The kernel counts a child's peak memory from the memory of the process that started it, so a
large benchmark process would hide how small its commands are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

PYTHON = sys.executable
ROOT = Path(__file__).resolve().parents[1]


class Cost(NamedTuple):
    """What one command cost."""

    wall_s: float
    cpu_s: float
    peak_kib: int
    code: int
    stdout: str
    stderr: str


class StageError(Exception):
    """A measured command failed, so its cost means nothing."""


def run(
    command: list[str],
    *,
    cwd: Path = ROOT,
    allowed: tuple[int, ...] = (0,),
    stdin: Path | None = None,
) -> Cost:
    """Run `command` to its end in `cwd`.

    Raises:
        StageError: it exited with a code that is not in `allowed`.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    launcher = [PYTHON, "-I", "-S", str(Path(__file__)), *command]
    with (stdin or Path(os.devnull)).open("rb") as source:
        done = subprocess.run(
            launcher, cwd=cwd, env=env, stdin=source, capture_output=True, text=True, check=False
        )
    stdout, _, figures = done.stdout.rpartition("\x1e")
    if not figures:
        raise StageError(f"{command[0]} could not be started: {done.stderr}")
    cost = Cost(**json.loads(figures), stdout=stdout, stderr=done.stderr)
    if cost.code not in allowed:
        shown = " ".join(command)[:200]
        raise StageError(f"`{shown}` exited with {cost.code}: {cost.stderr[-2000:]}")
    return cost


def anchord(*words: str, cwd: Path, allowed: tuple[int, ...] = (0,)) -> Cost:
    """Run an `anchord` command."""
    return run([PYTHON, "-m", "anchord", *words], cwd=cwd, allowed=allowed)


def workload(name: str, *words: str | int) -> tuple[Cost, dict[str, Any]]:
    """Run one of `benchmarks.workloads` and return its cost and what it says of itself."""
    cost = run([PYTHON, "-m", "benchmarks.workloads", name, *map(str, words)])
    found: dict[str, Any] = json.loads(cost.stdout)
    return cost, found


def bytes_under(folder: Path, pattern: str = "*") -> int:
    """Return the size of the files in and below `folder` whose names match."""
    return sum(file.stat().st_size for file in folder.rglob(pattern) if file.is_file())


def _launch(command: list[str]) -> None:
    """Start, wait, and append the figures to what the command printed."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    figures = {
        "wall_s": time.perf_counter() - began,
        "cpu_s": used.ru_utime + used.ru_stime,
        "peak_kib": used.ru_maxrss // (1024 if sys.platform == "darwin" else 1),
        "code": process.returncode,
    }
    sys.stdout.write("\x1e" + json.dumps(figures))


if __name__ == "__main__":
    _launch(sys.argv[1:])
