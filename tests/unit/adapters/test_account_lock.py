"""One process at a time uses an account, and one store at a time knows its pace."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anchord.adapters.archives.account import (
    OTHER_STORE_WAITS_S,
    AccountLock,
    default_directory,
)
from anchord.errors import ConfigError, StoreBusyError

ACCOUNT = "0123456789abcdef"
NOW = 1_800_000_000


def _lock(folder: Path, store: str = "one.sqlite", now: float = NOW) -> AccountLock:
    return AccountLock(folder, ACCOUNT, store, lambda: now)


@pytest.mark.parametrize("store", ["one.sqlite", "two.sqlite"])
def test_a_second_user_is_refused_and_told_who_is_the_first(tmp_path: Path, store: str) -> None:
    with (
        _lock(tmp_path),
        pytest.raises(StoreBusyError, match=rf"process {os.getpid()}, store one\.sqlite"),
    ):
        _lock(tmp_path, store)


def test_accounts_do_not_hinder_each_other(tmp_path: Path) -> None:
    with _lock(tmp_path), AccountLock(tmp_path, "f" * 16, "two.sqlite"):
        pass


def test_the_same_store_goes_on_at_once_and_another_waits(tmp_path: Path) -> None:
    _lock(tmp_path).close()
    _lock(tmp_path).close()
    with pytest.raises(StoreBusyError, match=r"store one\.sqlite") as caught:
        _lock(tmp_path, "two.sqlite", NOW + OTHER_STORE_WAITS_S - 1)
    assert caught.value.retry_after == 1
    _lock(tmp_path, "two.sqlite", NOW + OTHER_STORE_WAITS_S).close()
    with pytest.raises(StoreBusyError, match=r"store two\.sqlite"):
        _lock(tmp_path, "one.sqlite", NOW + OTHER_STORE_WAITS_S)


def test_a_refused_store_is_not_noted_and_does_not_push_the_end_away(tmp_path: Path) -> None:
    _lock(tmp_path).close()
    for later in range(0, OTHER_STORE_WAITS_S, 10):
        with pytest.raises(StoreBusyError, match=r"store one\.sqlite"):
            _lock(tmp_path, "two.sqlite", NOW + later)
    _lock(tmp_path, "two.sqlite", NOW + OTHER_STORE_WAITS_S).close()


def test_a_clock_that_ran_ahead_locks_nobody_out_for_years(tmp_path: Path) -> None:
    _lock(tmp_path, now=NOW * 2).close()
    with pytest.raises(StoreBusyError):
        _lock(tmp_path, "two.sqlite")
    _lock(tmp_path, "two.sqlite", NOW + OTHER_STORE_WAITS_S).close()


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"null", b"x" * 10_000])
def test_a_note_nobody_can_read_counts_from_now(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / f"account-{ACCOUNT}.lock").write_bytes(damage)
    with pytest.raises(StoreBusyError):
        _lock(tmp_path)
    _lock(tmp_path, now=NOW + OTHER_STORE_WAITS_S).close()


_HOLDER = """
import sys, time
from pathlib import Path
from anchord.adapters.archives.account import AccountLock
lock = AccountLock(Path(sys.argv[1]), sys.argv[2], "one.sqlite")
print("held", flush=True)
time.sleep(60)
"""


def test_whoever_is_killed_lets_go_and_another_store_waits_from_then(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path), ACCOUNT], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreBusyError, match=f"process {holder.pid}"):
            _lock(tmp_path)
        holder.send_signal(signal.SIGKILL)
    with pytest.raises(StoreBusyError, match=rf"try again in {OTHER_STORE_WAITS_S} s"):
        _lock(tmp_path, "two.sqlite")
    _lock(tmp_path).close()


def test_closing_twice_and_a_failed_start_let_go(tmp_path: Path) -> None:
    lock = _lock(tmp_path)
    lock.close()
    lock.close()
    with contextlib.suppress(StoreBusyError):
        _lock(tmp_path, "two.sqlite")
    with _lock(tmp_path):
        pass


def test_only_its_user_may_look_at_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with _lock(folder):
        (file,) = folder.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="XDG_STATE_HOME"):
        _lock(tmp_path / "file" / "anchord")
    (tmp_path / f"account-{ACCOUNT}.lock").symlink_to(tmp_path / "file")
    with pytest.raises(ConfigError):
        _lock(tmp_path)


def test_the_folder_is_the_users_whatever_the_store() -> None:
    home = Path("/home/someone")
    assert default_directory({"XDG_STATE_HOME": "/state"}, home) == Path("/state/anchord")
    for environ in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert default_directory(environ, home) == home / ".local" / "state" / "anchord"
