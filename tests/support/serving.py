"""A running `anchord run` in a process of its own, with its log read as it comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

QUICK = "\n[service]\npass_every_s = 0.2\nstoring_every_s = 0.2\n"


class Service:
    """Starts the service; ends it with the block."""

    def __init__(self, config: Path, **environment: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "anchord", "-c", str(config), "run", "--log-format", "json"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ended()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in list(self.lines) if line.startswith("{")]

    def until(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float = 30) -> None:
        """Wait for a line of the log."""
        end = time.monotonic() + timeout_s
        while not any(map(wanted, self.log)):
            assert time.monotonic() < end, self.lines
            assert self.process.poll() is None or any(map(wanted, self.log)), self.lines
            time.sleep(0.02)

    def started(self) -> Service:
        self.until(lambda line: line["event"] == "started")
        return self

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ended(self, timeout_s: float = 30) -> int:
        """Return the exit code; all of the log is there then."""
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def stopped(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.send(number)
        return self.ended()


def eventually(question: Callable[[], bool], timeout_s: float = 30) -> None:
    """Wait until a question is answered with yes."""
    end = time.monotonic() + timeout_s
    while not question():
        assert time.monotonic() < end
        time.sleep(0.05)
