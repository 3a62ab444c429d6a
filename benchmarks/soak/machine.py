"""The machine the service runs on: starts it, gives it the time, kills it, and looks at it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_START_S = 60.0
_ANSWER_S = 300.0


class StuckError(Exception):
    """The service did not answer for minutes: it hangs."""


class Machine:
    """One service process, started anew whenever it is gone.

    Args:
        config: of the service.
        log: its log goes here.
    """

    def __init__(self, config: Path, log: Path) -> None:
        self._config, self._log = config, log
        self._process: subprocess.Popen[str] | None = None
        self.starts = 0
        self.kills = 0
        self.ends: list[str] = []
        """What the service said when it ended by itself."""
        self.vitals_of_life: list[dict[str, int]] = []
        """Memory and handles of the process that runs now."""

    @property
    def runs(self) -> bool:
        """Whether the service runs."""
        return self._process is not None

    def start(self, now: int) -> bool:
        """Start the service, unless it runs; False when it could not be started."""
        if self._process is not None:
            return True
        self.starts += 1
        self.vitals_of_life = []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.soak.service", str(self._config), str(now)],
                cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        return self._read(_START_S) is not None

    def ask(self, do: str, meanwhile: Callable[[], None] | None = None, **words: Any) -> Any:
        """Give a command and return its answer; None when the service is not there, or died.

        Args:
            do: the command.
            meanwhile: called while the service works.
            **words: of the command.
        """
        if self._process is None or self._process.stdin is None:
            return None
        try:
            self._process.stdin.write(json.dumps({"do": do, **words}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._read(0.1)
        if meanwhile is not None:
            meanwhile()
        answer = self._read(_ANSWER_S)
        if answer is not None and answer.get("ended"):
            self.ends.append(answer["ended"])
            self.stop()
        return answer

    def kill(self, after_s: float = 0.0) -> None:
        """Kill -9, some real time from now."""
        time.sleep(after_s)
        process, self._process = self._process, None
        if process is not None:
            self.kills += 1
            process.send_signal(signal.SIGKILL)
            _close(process)

    def stop(self) -> None:
        """Have the service end as on SIGTERM."""
        if self._process is not None:
            self.ask("stop")
        process, self._process = self._process, None
        if process is not None:
            _close(process)

    def look(self) -> None:
        """Remember what the service holds."""
        answer = self.ask("vitals")
        if answer is not None:
            self.vitals_of_life.append(answer)

    def _read(self, patience_s: float) -> dict[str, Any] | None:
        process = self._process
        if process is None or process.stdout is None:
            return None
        if not select.select([process.stdout], [], [], patience_s)[0]:
            raise StuckError(f"the service did not answer within {patience_s:.0f} s")
        line = process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self._process = None
        self.ends.append(f"exit code {_close(process)} without a word")
        return None


def _close(process: subprocess.Popen[str]) -> int:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    try:
        return process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
