"""What people see on a narrow and on a wide terminal, and what a pipe gets."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from support.workplace import Workplace, sample

from anchord.core.keyring import fingerprint

STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp("place"))
    place.anchor(sample(1))
    return place


def seen(place: Workplace, columns: int, *words: str, piped: bool = False) -> tuple[str, str]:
    """Return what a terminal shows, and what stdout gave when it is a pipe beside a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-m", "anchord", "-c", str(place.config), *words]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE if piped else theirs, stderr=theirs,
        env=environment | {"TERM": "xterm"},
    ) as process:  # fmt: skip
        os.close(theirs)
        out = process.stdout.read().decode() if process.stdout else ""
        shown = b"".join(iter(lambda: _read(ours), b"")).decode()
    os.close(ours)
    return STYLE.sub("", shown), out


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # Linux says so when the other side is closed
        return b""


@pytest.mark.parametrize("columns", [80, 200])
def test_key_ids_and_fingerprints_stay_whole_and_lines_fit(place: Workplace, columns: int) -> None:
    shown, _ = seen(place, columns, "key", "list")
    with place.app() as app:
        for key in app.keyring:
            assert key.key_id in shown
            assert fingerprint(key.public_key) in shown
    assert max(len(line.rstrip("\r")) for line in shown.split("\n")) <= columns


@pytest.mark.parametrize("words", [("show", "2507.00001"), ("verify", "2507.00001")])
def test_a_hash_is_never_folded(place: Workplace, words: tuple[str, ...]) -> None:
    shown, _ = seen(place, 40, *words)
    assert sample(1).digest.hex() in shown


def test_progress_goes_to_the_terminal_and_data_to_the_pipe(
    place: Workplace, tmp_path: Path
) -> None:
    (tmp_path / "a.bin").write_bytes(b"a")
    shown, out = seen(place, 80, "add", str(tmp_path / "a.bin"), piped=True)
    assert "taking in" in shown
    assert "taking in" not in out
    assert "\x1b" not in out
    assert out.splitlines()[0].split() == ["new", "1"]


@pytest.mark.parametrize("words", [("key", "list"), ("status",), ("show", "2507.00001")])
def test_a_pipe_gets_one_line_a_row_and_no_blanks_at_its_end(
    place: Workplace, words: tuple[str, ...]
) -> None:
    text = place.run(*words).stdout
    assert all(line == line.rstrip() for line in text.splitlines())
    if words == ("key", "list"):
        assert len(text.splitlines()) == 3  # the head, our key, the registry's
