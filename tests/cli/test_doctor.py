"""`anchord doctor`: each fault is found, told with what to do, and weighed by consequence."""

from __future__ import annotations

import contextlib
import email.utils
import fcntl
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.http_server import Asked, Script, ScriptedServer, reply
from support.parties import START
from support.workplace import CONFIG, Workplace, run, sample

from anchord.app.doctor.examination import CHECKS, examine, worst_first
from anchord.app.doctor.patient import Patient
from anchord.app.doctor.result import Result, State, exit_code, fail, ok, warn

DAY = 86_400


@pytest.fixture(scope="module")
def anchored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workplace with one anchored batch, to be copied."""
    place = Workplace(tmp_path_factory.mktemp("doctor"))
    place.anchor(sample(1), sample(2))
    return place.folder


@pytest.fixture
def place(anchored: Path, tmp_path: Path) -> Path:
    shutil.copytree(anchored, tmp_path, dirs_exist_ok=True, copy_function=shutil.copy2)
    return tmp_path


def examined(folder: Path, *, now: int = START + 3 * 3600, full: bool = False) -> list[Result]:
    """Examine at a moment of the workplace's own time, offline."""
    from support.parties import FakeClock

    from anchord.app.config import load
    from anchord.app.wiring import App

    patient = Patient(
        App(load(str(folder / "anchord.toml")), FakeClock(now)), online=False, full=full
    )
    try:
        return worst_first(examine(patient))
    finally:
        patient.close()


def faults(results: list[Result]) -> dict[str, Result]:
    return {one.name: one for one in results if one.state in (State.FAIL, State.WARN)}


def sql(folder: Path, statement: str, *values: Any) -> None:
    with sqlite3.connect(folder / "anchord.db") as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize("full", [False, True])
def test_a_sound_workplace_is_well(place: Path, full: bool) -> None:
    results = examined(place, full=full)
    assert faults(results) == {}
    assert exit_code(results) == 0
    assert {name for name, _, _ in CHECKS} <= {one.name.partition(":")[0] for one in results}


def test_nothing_is_written(place: Path) -> None:
    def state() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in place.rglob("*") if p.is_file()}

    before = state()
    examined(place, full=True)
    assert state() == before


def _revoke(folder: Path) -> None:
    (key,) = (folder / "keys").glob("*.pem")
    words = ["key", "revoke", key.stem, "--reason", "x"]
    assert run("-c", str(folder / "anchord.toml"), *words).exit_code == 0


def _end_key(moment: str) -> Callable[[Path], None]:
    def end(folder: Path) -> None:
        path = folder / "keys/keyring.toml"
        text = path.read_text("utf-8")
        path.write_text(text.replace("own = true", f"valid_until = {moment}\nown = true"), "utf-8")

    return end


def _park(folder: Path) -> None:
    sql(folder, "UPDATE batches SET state = 'parked', note = 'why'")


def _tear(folder: Path) -> None:
    path = folder / "anchord.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name='bodies'")
        (page,), (size,) = root.fetchone(), connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 64)


SCHEMA = "UPDATE alembic_version SET version_num = '{}'"
CHANGE_ROW = "UPDATE events SET signature = zeroblob(64) WHERE seq = ?"
LATER = "UPDATE batches SET created_at = ?"
HALF = '\n[archive]\ncontact = "https://example.org/"\n'
FAULTS: list[tuple[str, Callable[[Path], object], str, State, int]] = [
    ("no headers", lambda f: (f / "headers.bin").unlink(), "headers: file", State.FAIL, 2),
    (
        "empty headers",
        lambda f: (f / "headers.bin").write_bytes(b""),
        "headers: file",
        State.FAIL,
        2,
    ),
    ("no keyring", lambda f: (f / "keys/keyring.toml").unlink(), "key", State.FAIL, 2),
    (
        "no keyring",
        lambda f: (f / "keys/keyring.toml").unlink(),
        "ledger: checkpoint",
        State.FAIL,
        2,
    ),
    ("no key", lambda f: next((f / "keys").glob("*.pem")).unlink(), "key", State.FAIL, 2),
    ("open key", lambda f: next((f / "keys").glob("*.pem")).chmod(0o644), "key", State.FAIL, 2),
    ("revoked key", _revoke, "key", State.FAIL, 2),
    ("ended key", _end_key("2024-08-01T12:30:00Z"), "key", State.FAIL, 2),
    ("key ends soon", _end_key("2024-08-20T12:00:00Z"), "key", State.WARN, 0),
    ("stray key", lambda f: (f / "keys/stray.pem").write_text("x"), "key", State.WARN, 0),
    ("no store", lambda f: (f / "anchord.db").unlink(), "store", State.FAIL, 2),
    ("no database", lambda f: (f / "anchord.db").write_bytes(b"x" * 5000), "store", State.FAIL, 4),
    (
        "old schema",
        lambda f: sql(f, SCHEMA.format("0001")),
        "store",
        State.FAIL,
        2,
    ),
    (
        "new schema",
        lambda f: sql(f, SCHEMA.format("9999")),
        "store",
        State.FAIL,
        2,
    ),
    ("torn page", _tear, "store: pages", State.FAIL, 4),
    ("parked", _park, "store: parked", State.FAIL, 2),
    (
        "row changed",
        lambda f: sql(f, CHANGE_ROW, 2),
        "ledger: checkpoint",
        State.FAIL,
        4,
    ),
    ("row gone", lambda f: sql(f, "DELETE FROM events WHERE seq = 2"), "ledger", State.FAIL, 4),
    (
        "checkpoint signed by nobody",
        lambda f: sql(f, "UPDATE checkpoints SET key_id = 'other'"),
        "ledger: checkpoint",
        State.FAIL,
        4,
    ),
    (
        "clock went back",
        lambda f: sql(f, LATER, START + 9 * DAY),
        "clock",
        State.FAIL,
        2,
    ),
    ("leftover", lambda f: _old(f / ".anchord.toml.12.part"), "leftovers", State.WARN, 0),
    ("wide open file", lambda f: (f / "anchord.toml").chmod(0o666), "configuration", State.WARN, 0),
    (
        "half an archive",
        lambda f: _more(f, HALF),
        "archive",
        State.FAIL,
        2,
    ),
    ("other chain", lambda f: _swap(f, '"regtest"', '"signet"'), "store: chain", State.FAIL, 2),
]


def _old(path: Path) -> None:
    path.write_text("x")
    os.utime(path, (START - DAY, START - DAY))


def _more(folder: Path, text: str) -> None:
    with (folder / "anchord.toml").open("a") as file:
        file.write(text)


def _swap(folder: Path, old: str, new: str) -> None:
    path = folder / "anchord.toml"
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("spoil", "name", "state", "code"),
    [row[1:] for row in FAULTS],
    ids=[row[0] for row in FAULTS],
)
def test_a_fault_is_found_and_told_with_what_to_do(
    spoil: Callable[[Path], None], name: str, state: State, code: int, place: Path
) -> None:
    spoil(place)
    results = examined(place)
    found = faults(results)
    assert name in found, found
    assert found[name].state is state
    assert found[name].what
    assert found[name].todo
    assert exit_code(results) == code


def test_old_headers_are_worth_a_look_except_on_a_chain_one_mines_alone(place: Path) -> None:
    assert "headers: file" not in faults(examined(place, now=START + 9 * DAY))
    _swap(place, '"regtest"', '"testnet4"')
    assert faults(examined(place, now=START + 9 * DAY))["headers: file"].state is State.WARN


def test_a_clock_behind_the_newest_block_is_found(place: Path) -> None:
    results = examined(place, now=START - 400 * DAY)
    assert any(one.name == "clock" and "it is behind" in one.what for one in results)


def test_a_row_deep_in_the_ledger_is_found_by_the_full_examination(place: Path) -> None:
    sql(place, "UPDATE events SET signature = zeroblob(64) WHERE seq = 1")
    found = faults(examined(place, full=True))
    assert found["ledger"].code == 4


@pytest.mark.parametrize("full", [False, True])
def test_a_keyring_that_is_gone_is_no_changed_history(place: Path, full: bool) -> None:
    (place / "keys/keyring.toml").unlink()
    results = examined(place, full=full)
    assert exit_code(results) == 2
    assert not any("history" in one.todo for one in results)


def test_a_header_that_was_changed_is_found_by_the_full_examination(place: Path) -> None:
    path = place / "headers.bin"
    headers = bytearray(path.read_bytes())
    assert "headers: file" not in faults(examined(place, full=True))
    headers[80 * 2 + 40] ^= 1
    path.write_bytes(headers)
    found = faults(examined(place, full=True))["headers: file"]
    assert (found.state, found.code) == (State.FAIL, 2)
    assert "headers sync" in found.todo


def test_who_runs_a_pass_is_told(place: Path) -> None:
    with (place / "anchord.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (said,) = [one for one in examined(place) if one.name == "store: passes"]
    assert str(os.getpid()) in said.what
    assert said.state is State.OK


def test_a_disk_that_is_nearly_full_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(place)
    for free, state in ((1 << 20, State.FAIL), (100 << 20, State.WARN)):
        shown = usage._replace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, shown=shown: shown)
        assert faults(examined(place))["disk: store"].state is state


def test_a_parked_batch_is_what_a_person_reads_first(place: Path) -> None:
    _park(place)
    results = examined(place)
    assert results[0].name == "store: parked"


def test_a_configuration_that_cannot_be_read_is_one_failure(tmp_path: Path) -> None:
    (tmp_path / "anchord.toml").write_text("[store]\nulr = 1\n", "utf-8")
    result = run("-c", str(tmp_path / "anchord.toml"), "doctor", "--json")
    (check,) = json.loads(result.stdout)["checks"]
    assert (result.exit_code, check["name"], check["state"]) == (2, "configuration", "fail")


@pytest.mark.parametrize(
    ("codes", "expected"), [((), 0), ((3,), 3), ((3, 2), 2), ((2, 4, 3), 4), ((0, 0), 0)]
)
def test_the_worst_consequence_is_the_exit_code(codes: tuple[int, ...], expected: int) -> None:
    results = [fail("x", "y", "z", code) if code else warn("x", "y", "z") for code in codes]
    assert exit_code([ok("a", "b"), *results]) == expected


# ---------------------------------------------------------------------- online


def asked_online(folder: Path, *scripts: Script) -> tuple[dict[str, Result], list[ScriptedServer]]:
    """Examine with calendars that follow these scripts; return what is said, by name."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(ScriptedServer(script)) for script in scripts]
        tables = [f'[[anchoring.calendars]]\nurl = "{one.url}"\nuris = ["x"]\n' for one in servers]
        text = CONFIG.partition("[[anchoring.calendars]]")[0] + "".join(tables)
        (folder / "anchord.toml").write_text(text, "utf-8")
        said = json.loads(run("-c", str(folder / "anchord.toml"), "doctor", "--json").stdout)
    found = {one["name"]: msgspec.convert(one, Result) for one in said["checks"]}
    return found, servers


def answers(_asked: Asked) -> Iterator[bytes]:
    yield reply(b"a page for people" * 1000)


def overloaded(_asked: Asked) -> Iterator[bytes]:
    yield reply(b"", "503 Service Unavailable")


def test_calendars_that_answer_anything_are_there(place: Path) -> None:
    said, servers = asked_online(place, answers, answers)
    assert said["calendars"].state is State.OK
    assert [len(one.asked) for one in servers] == [1, 1]


def test_one_calendar_away_is_an_ordinary_week(place: Path) -> None:
    said, _ = asked_online(place, answers, answers, overloaded)
    assert (said["calendars"].state, said["calendars"].code) == (State.WARN, 0)
    assert "503" in said["calendars"].what


def test_too_few_calendars_is_temporary(place: Path) -> None:
    said, _ = asked_online(place, answers, overloaded)
    assert (said["calendars"].state, said["calendars"].code) == (State.FAIL, 3)


def dated(ahead_s: int) -> Script:
    def script(_asked: Asked) -> Iterator[bytes]:
        date = email.utils.formatdate(time.time() + ahead_s, usegmt=True)
        yield reply(b"a page", headers=f"Date: {date}\r\n")

    return script


@pytest.mark.parametrize(
    ("clocks", "found"),
    [
        ((0, 0), None),
        ((7200, 0), None),
        ((7200, 0, 0), None),
        ((7200, -7200), None),
        ((7200, 7200), "behind"),
        ((-7200, -7200, 0), "ahead"),
    ],
)
def test_a_clock_that_two_calendars_contradict_is_found(
    clocks: tuple[int, ...], found: str | None, place: Path
) -> None:
    said, _ = asked_online(place, *map(dated, clocks))
    assert ("clock: calendars" in said) == (found is not None)
    assert found is None or found in said["clock: calendars"].what


def test_offline_opens_no_connection(place: Path) -> None:
    with ScriptedServer(answers) as server:
        text = CONFIG.partition("[[anchoring.calendars]]")[0]
        text += f'[anchoring]\nmin_answers = 1\n[[anchoring.calendars]]\nurl = "{server.url}"\n'
        (place / "anchord.toml").write_text(text + 'uris = ["x"]\n', "utf-8")
        run("-c", str(place / "anchord.toml"), "doctor", "--offline")
        assert server.connections == 0
