"""An audit beside passes sees one moment; its processes never outlive it."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.audited import audit, broken, database
from support.beside import Beside
from support.workplace import Workplace, bare

from anchord.app.audit_wiring import reading_store
from anchord.core.audit import AuditOptions
from anchord.engine.audit.processes import done_elsewhere
from anchord.engine.audit.store import audit_store
from anchord.engine.header_view import HeaderView
from anchord.errors import FatalError

NEVER = 10**9
TESTS = Path(__file__).resolve().parents[1]


def some(count: int, name: str) -> list[Any]:
    return [bare(hashlib.sha256(b"%s %d" % (name.encode(), n)).digest()) for n in range(count)]


@pytest.fixture
def place(tmp_path):
    place = Workplace(tmp_path)
    place.anchor(*some(5, "first"))
    place.step(1000)
    return place


def test_whatever_passes_write_between_two_questions_nothing_is_broken(place):
    url = f"sqlite:///{database(place)}"
    number = 0

    def live() -> None:
        nonlocal number
        number += 1
        place.add(*some(3, f"more {number}"))
        place.step()
        place.mine()
        place.step(1000)

    with place.app() as app:
        keyring = app.keyring

    def audited(at: int) -> tuple[int, int]:
        opened: list[Beside] = []

        def open_store() -> Any:
            opened.append(Beside(reading_store(url), live, at))
            return opened[-1]

        headers = HeaderView([place.chain], "bitcoin-regtest", 6)
        options = AuditOptions(now=place.clock.now())
        outcome, _ = audit_store(open_store, keyring, (), headers, options, lambda *_: None)
        return outcome.broken, at - opened[0].left

    _, questions = audited(NEVER)
    assert questions > 10
    for at in range(1, questions + 1, 2):
        assert audited(at)[0] == 0, f"a pass before question {at}"


def opened_later(url: str, later: str, main: str) -> Any:
    """Open a store; in another process, as it is after somebody wrote to it."""
    if multiprocessing.parent_process() is None:
        return reading_store(url)
    with sqlite3.connect(main) as writer:
        writer.execute("UPDATE records SET label = 'seen'")
    return reading_store(later)


def test_processes_that_opened_the_store_later_are_not_believed(place, tmp_path, monkeypatch):
    monkeypatch.setattr("anchord.engine.audit.store.ALONE", 0)
    main = database(place)
    later = tmp_path / "later.db"
    with sqlite3.connect(main) as source, sqlite3.connect(later) as writer:
        source.backup(writer)
        writer.execute("UPDATE events SET signature = zeroblob(64)")
    with place.app() as app:
        keyring = app.keyring
    opener = partial(opened_later, f"sqlite:///{main}", f"sqlite:///{later}", str(main))
    headers = HeaderView([place.chain], "bitcoin-regtest", 6)
    options = AuditOptions(now=place.clock.now(), jobs=2)
    outcome, _ = audit_store(opener, keyring, (), headers, options, lambda *_: None)
    assert outcome.broken == 0


def test_what_is_broken_stays_broken_in_many_processes(place, monkeypatch):
    monkeypatch.setattr("anchord.engine.audit.store.ALONE", 0)
    with sqlite3.connect(database(place)) as writer:
        writer.execute("UPDATE events SET signature = zeroblob(64) WHERE seq = 3")
    assert broken(audit(place, jobs=2))


def begin(_told: None) -> None:
    """Tell a process nothing."""


def die(_task: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def test_a_killed_process_is_an_error_that_says_what_to_do():
    with pytest.raises(FatalError, match="smaller --jobs"):
        list(done_elsewhere(2, begin, None, die, range(4)))


PARENT = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from audit.test_audit_beside_passes import begin, wait_long
from anchord.engine.audit.processes import done_elsewhere
if __name__ == "__main__":
    list(done_elsewhere(2, begin, None, wait_long, [sys.argv[2]] * 4))
"""


def wait_long(folder: str) -> None:
    """Say who we are, and work for a minute."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(60)


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_the_one_that_started_them(tmp_path, ends):
    script, said = tmp_path / "parent.py", tmp_path / "said"
    script.write_text(PARENT)
    said.mkdir()
    words = [sys.executable, str(script), str(TESTS), str(said)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as parent:
        wait_for(lambda: len(list(said.iterdir())) == 2)
        parent.send_signal(ends)
    wait_for(lambda: not any(alive(int(file.name)) for file in said.iterdir()))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(true: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 20
    while not true():
        assert time.monotonic() < ends_at
        time.sleep(0.05)
