"""`anchord backup` and `restore`: what comes back is what was there, or nothing comes back."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import workplace as workplaces
from support.old_store import at_first_schema
from support.parties import START
from support.workplace import Workplace, run, sample

from anchord.adapters.backups.tarball import Reader
from anchord.adapters.store import copying
from anchord.app.wiring import open_app
from anchord.errors import RefusedError


@pytest.fixture(scope="module")
def anchored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workplace with one anchored batch, to be copied."""
    place = Workplace(tmp_path_factory.mktemp("backup"))
    place.anchor(sample(1), sample(2))
    return place.folder


@pytest.fixture
def place(anchored: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(anchored, folder, copy_function=shutil.copy2)
    return folder


def anchord(folder: Path, *words: str) -> Any:
    return run("-c", str(folder / "anchord.toml"), *words)


def backed_up(folder: Path, *words: str) -> Path:
    file = folder.parent / "backup.tar"
    result = anchord(folder, "backup", str(file), *words)
    assert result.exit_code == 0, result.output
    return file


def rows(store: Path) -> dict[str, list[Any]]:
    """Return everything that is in a store."""
    with sqlite3.connect(store) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        found = {n: sorted(connection.execute(f"SELECT * FROM {n}"), key=repr) for (n,) in names}  # noqa: S608
    connection.close()
    return found


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


def repacked(file: Path, contents: dict[str, bytes]) -> None:
    with tarfile.open(file, "w") as tar:
        for name, raw in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            tar.addfile(member, io.BytesIO(raw))


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


# ---------------------------------------------------------------------- there and back


def test_what_is_restored_is_what_was_there(place: Path) -> None:
    file = backed_up(place, "--plain-keys", "--with-headers")
    back = place.parent / "back"
    result = run("restore", str(file), str(back))
    assert result.exit_code == 0, result.output
    assert rows(back / "anchord.db") == rows(place / "anchord.db")
    for name in ("anchord.toml", "headers.bin", "keys/keyring.toml"):
        assert (back / name).read_bytes() == (place / name).read_bytes()
    assert anchord(back, "ledger", "check", "--offline").exit_code == 0
    assert left(place.parent) == []


def test_what_is_restored_goes_on(place: Path) -> None:
    """The keys sign, and the next pass finds its store."""
    back = place.parent / "back"
    assert run("restore", str(backed_up(place, "--plain-keys")), str(back)).exit_code == 0
    record = json.dumps({"metadata": {}, "schema_version": "1.0"}).encode()
    assert run("-c", str(back / "anchord.toml"), "add", "-", stdin=record).exit_code in (0, 1)
    with open_app(str(back / "anchord.toml")) as app:
        assert app.signer.key_id in {key.key_id for key in app.keyring}


def test_nobody_else_may_read_a_backup_or_what_comes_out_of_it(place: Path) -> None:
    file = backed_up(place, "--plain-keys")
    back = place.parent / "back"
    run("restore", str(file), str(back))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for path in (back, *back.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_the_same_state_gives_the_same_bytes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: START)
    first = backed_up(place)
    second = place.parent / "second.tar"
    assert anchord(place, "backup", str(second)).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_tar_and_sha256sum_are_enough_to_check_one(place: Path) -> None:
    found = members(backed_up(place))
    manifest = json.loads(found.pop("backup.json"))
    assert [one["name"] for one in manifest["files"]] == list(found)
    for one in manifest["files"]:
        assert hashlib.sha256(found[one["name"]]).hexdigest() == one["sha256"]


def test_files_elsewhere_are_restored_under_their_usual_names(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    text = place.config.read_text("utf-8").replace(
        "[signer]", f'[store]\nurl = "sqlite:///{tmp_path}/far/a.db"\n[signer]\nkey_dir = "in/keys"'
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "far").mkdir()
    (tmp_path / "keys").rename(tmp_path / "in/keys")
    (tmp_path / "anchord.db").rename(tmp_path / "far/a.db")
    (tmp_path / "etc").mkdir()
    text = text.replace("in/keys", f"{tmp_path}/in/keys")
    (tmp_path / "etc/anchord.toml").write_text(text, "utf-8")
    assert anchord(tmp_path / "etc", "backup", str(tmp_path / "b.tar")).exit_code == 0
    said = json.loads(run("restore", str(tmp_path / "b.tar"), str(tmp_path / "r"), "--json").stdout)
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == [
        "anchord.db",
        "anchord.toml",
        "keys",
    ]
    assert sum("names another place" in note for note in said["notes"]) == 2


# ---------------------------------------------------------------------- while others write


def test_a_copy_is_of_one_moment_though_others_write(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records keep coming in while pages are copied; the copy has a whole number of chunks."""
    monkeypatch.setattr(copying, "_PAGES_AT_ONCE", 8)
    added: list[int] = []
    stop = threading.Event()

    def write() -> None:
        with open_app(str(place / "anchord.toml")) as app:
            while not stop.is_set():
                first = 100 + 50 * len(added)
                app.store.add([sample(first + n) for n in range(50)], START)
                added.append(first)

    def waited(_what: str, _done: int, _total: int) -> None:
        have = len(added)
        deadline = time.monotonic() + 5
        while len(added) == have and time.monotonic() < deadline:
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copy = place.parent / "copy.db"
        copying.copy_store(f"sqlite:///{place / 'anchord.db'}", copy, waited)
    finally:
        stop.set()
        writer.join(10)
    assert len(added) > 5
    with sqlite3.connect(copy) as connection:
        (records,) = connection.execute("SELECT count(*) FROM records").fetchone()
        (bodies,) = connection.execute("SELECT count(*) FROM bodies").fetchone()
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert records == bodies
    assert (records - 2) % 50 == 0
    assert not copy.with_name("copy.db-wal").exists()


def test_what_stands_only_in_the_write_ahead_log_is_in_the_copy(place: Path) -> None:
    with open_app(str(place / "anchord.toml")) as app:
        app.store.add([sample(77)], START)
        assert (place / "anchord.db-wal").stat().st_size
        backed_up(place)
    back = place.parent / "back"
    run("restore", str(place.parent / "backup.tar"), str(back))
    with sqlite3.connect(back / "anchord.db") as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (3,)
    connection.close()


def test_a_pass_may_hold_the_store_meanwhile(place: Path) -> None:
    with open_app(str(place / "anchord.toml")) as app, app.store.exclusive():
        backed_up(place)


# ---------------------------------------------------------------------- what is refused


def test_nothing_is_written_over(place: Path) -> None:
    file = backed_up(place)
    before = file.read_bytes()
    assert anchord(place, "backup", str(file)).exit_code == 2
    assert file.read_bytes() == before
    target = place.parent / "full"
    target.mkdir()
    (target / "mine").write_text("x")
    result = run("restore", str(file), str(target))
    assert result.exit_code == 2
    assert "not empty" in result.stderr
    assert [path.name for path in target.iterdir()] == ["mine"]


def test_an_empty_folder_may_be_restored_to(place: Path) -> None:
    target = place.parent / "empty"
    target.mkdir()
    assert run("restore", str(backed_up(place)), str(target)).exit_code == 0


def test_keys_go_along_only_when_asked_and_encrypted(place: Path) -> None:
    assert not [name for name in members(backed_up(place)) if name.endswith(".pem")]
    refused = anchord(place, "backup", "--with-keys", str(place.parent / "k.tar"))
    assert refused.exit_code == 2
    assert "not encrypted" in refused.stderr
    (place.parent / "pass").write_text("words\n")
    (place.parent / "pass").chmod(0o600)
    shutil.rmtree(place / "keys")
    words = ["key", "new", "--passphrase-file", str(place.parent / "pass")]
    assert anchord(place, *words).exit_code == 0
    sql = (
        "DELETE FROM events; DELETE FROM checkpoints; DELETE FROM log_nodes;"
        "UPDATE batches SET trailer = NULL;"
    )
    with sqlite3.connect(place / "anchord.db") as connection:
        connection.executescript(sql)
    connection.close()
    done = anchord(place, "backup", "--with-keys", str(place.parent / "k.tar"))
    assert done.exit_code == 0, done.output
    pems = [raw for name, raw in members(place.parent / "k.tar").items() if name.endswith(".pem")]
    assert [b"ENCRYPTED" in raw for raw in pems] == [True]


def test_a_store_whose_ledger_does_not_hold_gives_no_backup(place: Path) -> None:
    with sqlite3.connect(place / "anchord.db") as connection:
        connection.execute("UPDATE events SET signature = zeroblob(64) WHERE seq = 2")
    connection.close()
    result = anchord(place, "backup", str(place.parent / "backup.tar"))
    assert result.exit_code == 4
    assert "ledger" in result.stderr
    assert sorted(path.name for path in place.parent.iterdir()) == ["here"]


def test_a_server_that_does_not_answer_leaves_no_backup(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    text = '[store]\nurl = "postgresql://127.0.0.1:1/a"\n' + place.config.read_text("utf-8")
    place.config.write_text(text, "utf-8")
    result = place.run("backup", str(tmp_path / "b.tar"))
    assert result.exit_code == 3
    assert "does not answer" in result.stderr
    assert not list(tmp_path.glob("*b.tar*"))


def _flip(name: str) -> Callable[[dict[str, bytes]], None]:
    def flip(contents: dict[str, bytes]) -> None:
        raw = bytearray(contents[name])
        raw[len(raw) // 2] ^= 1
        contents[name] = bytes(raw)

    return flip


def _restate(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def restate(contents: dict[str, bytes]) -> None:
        contents["backup.json"] = json.dumps(json.loads(contents["backup.json"]) | changes).encode()

    return restate


def _rename(new: str) -> Callable[[dict[str, bytes]], None]:
    """Let the manifest and the archive agree on another name for the configuration."""

    def rename(contents: dict[str, bytes]) -> None:
        manifest = json.loads(contents["backup.json"])
        manifest["files"][0]["name"] = manifest["config"] = new
        rest = {new if name == "anchord.toml" else name: raw for name, raw in contents.items()}
        contents.clear()
        contents.update(rest | {"backup.json": json.dumps(manifest).encode()})

    return rename


TAMPERED: list[tuple[str, Callable[[dict[str, bytes]], object]]] = [
    ("a bit of the store", _flip("anchord.db")),
    ("a bit of the configuration", _flip("anchord.toml")),
    ("a bit of the keyring", _flip("keys/keyring.toml")),
    ("a file is gone", lambda c: c.pop("anchord.db")),
    ("a file too many", lambda c: c.update(more=b"x")),
    ("no manifest", lambda c: c.pop("backup.json")),
    ("manifest is no JSON", lambda c: c.update({"backup.json": b"{"})),
    ("another format", _restate(format="anchord-backup-9")),
    ("an unknown key", _restate(more=1)),
    ("fewer events", _restate(events=1)),
    ("another checkpoint", _restate(checkpoint=1)),
    ("no files", _restate(files=[])),
    ("out of the folder", _rename("../anchord.toml")),
    ("absolute", _rename("/etc/anchord.toml")),
    ("hidden", _rename(".profile")),
]


@pytest.mark.parametrize("spoil", [row[1] for row in TAMPERED], ids=[row[0] for row in TAMPERED])
def test_a_backup_that_was_changed_is_not_restored(
    spoil: Callable[[dict[str, bytes]], object], place: Path
) -> None:
    file = backed_up(place)
    contents = members(file)
    spoil(contents)
    repacked(file, contents)
    before = sorted(path.name for path in place.parent.iterdir())
    result = run("restore", str(file), str(place.parent / "back"))
    assert result.exit_code in (1, 4)
    assert sorted(path.name for path in place.parent.iterdir()) == before


def test_a_backup_that_is_cut_anywhere_is_not_restored(place: Path) -> None:
    file = backed_up(place)
    whole = file.read_bytes()
    for size in (0, 1, 511, 512, 2000, len(whole) // 2, whole.rindex(b"\0" * 1024) // 2):
        file.write_bytes(whole[:size])
        assert run("restore", str(file), str(place.parent / "back")).exit_code == 1
        assert not (place.parent / "back").exists()


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_bytes_come_they_are_refused_or_they_are_the_backup(
    data: st.DataObject, place: Path
) -> None:
    """A few bytes changed anywhere before the store, whose own bytes are held by their hash."""
    file = place.parent / "backup.tar"
    if not file.exists():
        backed_up(place)
    whole = bytearray(file.read_bytes())
    head = whole.index(b"SQLite format 3")
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, head - 1))] = data.draw(st.integers(0, 255))
    other = place.parent / "other.tar"
    other.write_bytes(whole)
    try:
        with contextlib.closing(Reader(other)) as reader:
            reader.check(lambda *_: None)
    except RefusedError:
        return
    stated = {one.name: one.sha256 for one in reader.manifest.files}
    found = {name: hashlib.sha256(raw).hexdigest() for name, raw in members(other).items()}
    assert found.items() >= stated.items()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_links_and_folders_are_never_made(kind: bytes, place: Path) -> None:
    file = backed_up(place)
    contents = members(file)
    with tarfile.open(file, "w") as tar:
        for name, raw in contents.items():
            member = tarfile.TarInfo(name)
            if name == "anchord.toml":
                member.type, member.linkname = kind, "/etc/passwd"
            else:
                member.size = len(raw)
            tar.addfile(member, io.BytesIO(raw))
    assert run("restore", str(file), str(place.parent / "back")).exit_code == 1
    assert not (place.parent / "back").exists()


def test_a_store_of_an_older_schema_is_kept_and_its_migration_asked_for(tmp_path: Path) -> None:
    at_first_schema(tmp_path / "anchord.db")
    (tmp_path / "anchord.toml").write_text(workplaces.CONFIG, "utf-8")
    assert anchord(tmp_path, "key", "new").exit_code == 0
    file = tmp_path / "backup.tar"
    assert anchord(tmp_path, "backup", str(file)).exit_code == 0
    result = run("restore", str(file), str(tmp_path / "back"))
    assert result.exit_code == 0
    assert "anchord db upgrade" in result.stderr


# ---------------------------------------------------------------------- kill -9, disk full

KILLED = """
import os, signal, sys
from anchord.app.backup import making, restoring
from anchord.app.cli.main import cli
part, at = sys.argv[1], int(sys.argv[2])
seen = 0
def die(*_):
    global seen
    seen += 1
    if seen == at:
        os.kill(os.getpid(), signal.SIGKILL)
def before(module, name):
    whole = getattr(module, name)
    def wrapped(*args, **kwargs):
        die()
        return whole(*args, **kwargs)
    setattr(module, name, wrapped)
if part == "copy":
    from anchord.adapters.store import copying
    copying._PAGES_AT_ONCE = 8
    copy_store = making.copy_store
    making.copy_store = lambda url, target, tell: copy_store(url, target, die)
else:
    for module, names in ((making, ("copy_store", "prove", "write", "_read_back", "_take_name")),
                          (restoring, ("load_keyring", "prove", "_take_name"))):
        for name in names:
            before(module, name)
cli.main(sys.argv[3:], standalone_mode=False)
"""


def killed(at: int, *words: str, part: str = "steps") -> int:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, part, str(at), *words], check=False, capture_output=True
    )
    return done.returncode


@pytest.mark.parametrize(
    ("part", "at"), [*(("steps", at) for at in range(1, 6)), ("copy", 1), ("copy", 4)]
)
def test_a_killed_backup_leaves_no_file_under_the_name(part: str, at: int, place: Path) -> None:
    file = place.parent / "backup.tar"
    words = ["-c", str(place / "anchord.toml"), "backup", str(file)]
    assert killed(at, *words, part=part) == -signal.SIGKILL
    assert not file.exists()
    for beside in place.parent.glob(".*.part"):
        os.utime(beside, (START, START))  # an hour later
    backed_up(place)
    assert left(place.parent) == []


@pytest.mark.parametrize("at", range(1, 4))
def test_a_killed_restore_leaves_no_folder_under_the_name(at: int, place: Path) -> None:
    file, back = backed_up(place), place.parent / "back"
    assert killed(at, "restore", str(file), str(back)) == -signal.SIGKILL
    assert not back.exists()
    assert run("restore", str(file), str(back)).exit_code == 0
    assert left(place.parent) == []


def test_a_full_disk_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> Iterator[None]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    result = anchord(place, "backup", str(place.parent / "backup.tar"))
    assert result.exit_code == 4
    assert "make room" in result.stderr
    assert sorted(path.name for path in place.parent.iterdir()) == ["here"]
