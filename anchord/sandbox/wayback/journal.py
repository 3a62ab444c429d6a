"""What the archive keeps on disk: jobs and captures, one JSON line each, never changed.

A later line of the same job or capture replaces the earlier one; a line that a crash cut short is
not there, and what it said was never answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from anchord.sandbox.wayback.captures import Capture
from anchord.sandbox.wayback.jobs import Job


class Line(msgspec.Struct, omit_defaults=True):
    """One of the two."""

    job: Job | None = None
    capture: Capture | None = None


class Journal:
    """A file of lines; None: nothing is kept."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._out: BinaryIO | None = None
        self._encode = msgspec.json.Encoder().encode

    def lines(self) -> Iterator[Line]:
        """Yield every whole line, first to last, and cut what a crash left."""
        if self._file is None or not self._file.exists():
            return
        decode, whole = msgspec.json.Decoder(Line).decode, 0
        with self._file.open("rb+") as stream:
            for raw in stream:
                if not raw.endswith(b"\n"):
                    break
                whole += len(raw)
                yield decode(raw)
            stream.truncate(whole)

    def job(self, job: Job) -> None:
        """Keep a job as it now is."""
        self._write(Line(job=job))

    def capture(self, capture: Capture) -> None:
        """Keep a capture as it now is."""
        self._write(Line(capture=capture))

    def close(self) -> None:
        """Write out what waits, and keep nothing more."""
        self._file = None
        if self._out is not None:
            self._out.close()
            self._out = None

    def flush(self) -> None:
        """Hand what was written to the system, before an answer tells of it."""
        if self._out is not None:
            self._out.flush()

    def _write(self, line: Line) -> None:
        if self._file is None:
            return
        if self._out is None:
            self._out = self._file.open("ab")
        self._out.write(self._encode(line) + b"\n")
