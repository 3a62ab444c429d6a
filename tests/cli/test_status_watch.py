"""`anchord status --watch` follows the store for next to nothing, and leaves a clean terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.workplace import Workplace, sample

from anchord.app.cli.status_watch import AGES_S, Pace

ENTERS, LEAVES = "\x1b[?1049h", "\x1b[?1049l"
STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal with `anchord status --watch` on it."""

    def __init__(self, place: Workplace, lines: int = 40, columns: int = 100) -> None:
        self.ours, self.theirs = pty.openpty()
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.seen = ""
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "anchord", "-c", str(place.config), "status", "--watch"],
            stdin=self.theirs, stdout=self.theirs, stderr=self.theirs,
            env=environment | {"TERM": "xterm"}, start_new_session=True,
        )  # fmt: skip

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds: float) -> str:
        """Return what comes within some time."""
        came, end = "", time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            if not select.select([self.ours], [], [], rest)[0]:
                break
            came += os.read(self.ours, 65536).decode()
        self.seen += came
        return came

    def until(self, words: str, seconds: float = 30) -> str:
        """Return what came up to when `words` were shown."""
        came, end = "", time.monotonic() + seconds
        while words not in STYLE.sub("", came):
            assert time.monotonic() < end, f"{words!r} was not shown: {came[-2000:]!r}"
            came += self.read(0.2)
        return came

    def left(self, code: int) -> None:
        """Expect the process to end, and the terminal to be as it was."""
        assert self.process.wait(30) == code
        self.read(0.2)
        assert self.seen.count(ENTERS) == self.seen.count(LEAVES) == 1
        assert self.seen.rindex("\x1b[?25h") > self.seen.index("\x1b[?25l")  # the cursor is back
        assert termios.tcgetattr(self.theirs) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def place(tmp_path):
    found = Workplace(tmp_path)
    found.add(sample(1))
    return found


@pytest.fixture
def terminal(place):
    with contextlib.closing(Terminal(place)) as found:
        yield found


def test_what_is_written_is_seen_and_q_leaves(place, terminal):
    terminal.until("0 of 1")
    place.add(sample(2), sample(3))
    came = STYLE.sub("", terminal.until("0 of 3"))
    assert "seal 3 waiting record(s)" in came + terminal.read(0.5)
    os.write(terminal.ours, b"xq")
    terminal.left(0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_clean_terminal(terminal, number):
    terminal.until("0 of 1")
    os.kill(terminal.process.pid, number)
    terminal.left(0)


def test_nothing_is_drawn_while_nothing_happens_and_a_new_size_is_followed(terminal):
    terminal.until("0 of 1")
    terminal.read(1.0)
    used, began = _processor_s(terminal.process.pid), time.monotonic()
    came = terminal.read(4.0)
    frames = came.count("anchord status  ")
    assert frames <= (time.monotonic() - began) / AGES_S + 1
    assert bool(came) == bool(frames)
    assert _processor_s(terminal.process.pid) - used < 0.2
    terminal.resize(12, 60)
    came = STYLE.sub("", terminal.until("0 of 1"))
    assert max(map(len, came.splitlines())) <= 60


def test_a_pipe_and_other_forms_are_refused_with_words(place):
    for words in (["--watch"], ["--watch", "--json"], ["--watch", "--online"]):
        done = place.run("status", *words)
        assert done.exit_code == 2
        assert done.stdout == ""


def _processor_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@given(
    st.lists(st.tuples(st.floats(0, 3), st.booleans(), st.floats(0, 2)), min_size=1, max_size=60)
)
def test_counting_takes_a_small_share_of_time_and_misses_nothing(steps):
    now, mark, counted_mark, spent, began = 0.0, 0, None, 0.0, 0.0
    pace = Pace(lambda: now)
    last = 0.0
    for passing, written, cost in steps:
        now += passing
        mark += written
        if not pace.is_due(mark):
            continue
        if began:
            assert now - began >= 20 * last
        pace.begins(mark)
        counted_mark, began, last = mark, now, cost
        now += cost
        spent += cost
        pace.ends()
    now += 60
    assert pace.is_due(mark)  # ages
    assert pace.is_due(mark + 1)
    assert counted_mark is None or counted_mark <= mark
    assert spent <= last + now / 20
