"""A whole life on PostgreSQL through the command line, and the same bytes as on SQLite."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.audited import whole_place
from support.registry import SEED
from support.running import Ran, anchord
from support.serving import QUICK, Service, eventually
from support.stores import POSTGRES, SQLITE, keep_in, server
from support.workplace import sample

from anchord.app.wiring import SystemClock
from anchord.sandbox.run import Sandbox

MOMENT = 1_900_000_000
REASON = ("--reason", "a person looks at it")


class Life:
    """A folder with a sandbox and a configuration whose store is on PostgreSQL."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder, self.sandbox = folder, sandbox
        self.url = server().empty()
        self.config = sandbox.write_config()
        self.sandbox_config = self.config.read_text("utf-8")
        self.use(self.url)

    def use(self, url: str) -> None:
        """Let the configuration name another store."""
        table = f'\n[store]\nurl = "{url}"\n'
        self.config.write_text(self.sandbox_config + QUICK + table, "utf-8")

    def run(self, *words: str | Path, code: int = 0) -> Ran:
        ran = anchord(*words, config=self.config)
        assert ran.code == code, f"{words}: {ran.code} {ran.out} {ran.err}"
        return ran

    def json(self, *words: str | Path, code: int = 0) -> Any:
        return self.run(*words, "--json", code=code).json

    def file(self, path: Path) -> str:
        """Write and add a file; return its digest."""
        path.write_text(path.name, "utf-8")
        assert self.json("add", path)["new"] == 1
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def finish(self) -> None:
        """Pass until all is anchored and stored."""
        self.run("run-once")
        self.sandbox.mine(7)
        self.run("run-once", "--wait", "--deadline", "60")

    def beside(self, url: str, name: str) -> Path:
        """Return a configuration of the same keys and headers with another store."""
        path = self.folder / name
        path.write_text(self.sandbox_config + f'\n[store]\nurl = "{url}"\n', "utf-8")
        return path


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Four records, anchored and stored on PostgreSQL by nothing but commands."""
    folder = tmp_path_factory.mktemp("life")
    with Sandbox(folder, tick_s=0.05) as sandbox:
        life = Life(folder, sandbox)
        made = life.run("init", folder)
        assert f"the store's tables in {life.url}" in made.out
        assert "nothing to make" in life.run("init", folder).out
        assert life.json("add", SEED)["new"] == 4
        life.finish()
        yield life


def everything(config: Path, out: Path) -> dict[str, bytes]:
    """Write all that goes out of a store at one moment, and return it by name."""
    with pytest.MonkeyPatch.context() as patch:
        # A manifest states when it was made, and the index what the manifest's hash is.
        patch.setattr(SystemClock, "now", lambda _self: MOMENT)
        said("mirror", "publish", out / "tree", "--quiet", config=config)
    said("export", "--all", "-o", out / "ots", config=config)
    said("export", "--all", "--bundle", "-o", out / "bundles", config=config)
    for path in sorted((out / "bundles").iterdir()):
        name = json.loads(path.read_bytes())["canonical_sha256"]
        for words in (("bundle", name), ("state", name), ("show", name, "--full", "--json")):
            (out / f"{words[0]}-{name}").write_text(said(*words, config=config), "utf-8")
    return {str(one.relative_to(out)): one.read_bytes() for one in out.rglob("*") if one.is_file()}


def said(*words: str | Path, config: Path) -> str:
    ran = anchord(*words, config=config)
    assert ran.code == 0, (words, ran.err)
    return ran.out


def test_all_is_anchored_and_stored_and_every_command_says_so(life: Life) -> None:
    told = life.json("status")
    assert told["stored"]["records"]["by_capture"] == 4
    assert told["stored"]["records"]["by_item"] == 4
    for line in SEED.read_text("utf-8").splitlines():
        number = json.loads(line)["pith_number"]
        assert life.json("show", number)["strip"].split(" | ")[1:3] == ["anchored", "stored"]
        assert life.json("verify", number)["result"] == "proved"
        page = life.folder / "page.html"
        life.run("certificate", number, "--format", "html", "-o", page, "--force")
        assert number in page.read_text("utf-8")
        assert json.loads(life.run("state", number).out)["pith_number"] == number
    for words in (("status",), ("ledger", "check"), ("sources",), ("outlets",), ("metrics",),
                  ("config", "check"), ("headers", "status"), ("archive", "check")):  # fmt: skip
        life.run(*words)


def test_the_store_is_audited_and_sound_with_one_process_and_with_two(life: Life) -> None:
    one, two = life.json("audit", "--jobs", "1"), life.json("audit", "--jobs", "2")
    assert one["result"] == two["result"] == "sound"
    for key in ("coverage", "completeness", "counts", "findings"):
        assert one[key] == two[key], key


def test_the_published_tree_is_audited_and_sound(life: Life, tmp_path: Path) -> None:
    life.run("mirror", "publish", tmp_path / "tree", "--quiet")
    (tmp_path / "key.json").write_text(life.run("key", "public").out, "utf-8")
    ran = anchord(
        "audit", tmp_path / "tree", "--key", tmp_path / "key.json", "--network", "regtest",
        "--headers", life.folder / "headers.bin", "--json",
    )  # fmt: skip
    assert (ran.code, ran.json["result"]) == (0, "sound"), ran.err


def test_the_health_and_state_of_the_store_are_told(life: Life) -> None:
    told = life.json("db", "status")
    assert told["current"]
    assert told["store"] == life.url
    checks = life.json("doctor", code=4)["checks"]  # the server of tests is set up to be quick
    assert [one["what"] for one in checks if one["state"] == "fail"] == [
        "fsync is off: a power cut can take receipts that were confirmed"
    ], checks
    assert "already" in life.run("db", "upgrade").out


def test_a_backup_is_restored_and_audited_and_gives_the_same_bytes(
    life: Life, tmp_path: Path
) -> None:
    life.run("backup", tmp_path / "backup.tar")
    again = tmp_path / "again"
    assert anchord("restore", tmp_path / "backup.tar", again).code == 0
    config = life.beside(f"sqlite:///{again / 'anchord.db'}", "restored.toml")
    audit = anchord("audit", "--json", config=config)
    assert (audit.code, audit.json["result"]) == (0, "sound"), audit.err
    assert anchord("ledger", "check", config=config).code == 0
    assert everything(config, tmp_path / "a") == everything(life.config, tmp_path / "b")


def test_moved_to_sqlite_it_gives_the_same_bytes(life: Life, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'moved.db'}"
    life.run("migrate-store", url)
    config = life.beside(url, "moved.toml")
    assert everything(config, tmp_path / "a") == everything(life.config, tmp_path / "b")


def test_work_is_parked_and_brought_back(life: Life, tmp_path: Path) -> None:
    digest = life.file(tmp_path / "a file.txt")
    life.run("run-once")
    (number,) = life.json("park", digest, *REASON)["batches"]
    assert life.json("status")["parked"][0]["batch"] == number
    life.run("run-once", "--wait", "--deadline", "30")
    assert life.json("retry", str(number))["retried"] == [number]
    life.finish()
    assert life.json("verify", digest)["result"] == "proved"


def test_a_daemon_works_on_it_and_stops_when_it_is_told_to(life: Life, tmp_path: Path) -> None:
    with Service(life.config).started() as service:
        digest = life.file(tmp_path / "while it runs.txt")
        eventually(lambda: life.json("show", digest)["events"] != [])
        life.sandbox.mine(7)
        eventually(lambda: anchord("verify", digest, config=life.config).code == 0)
        assert "a service" in life.json("db", "status")["held_by"]
        refused = anchord("run", config=life.config)
        assert (refused.code, "is served already" in refused.err) == (3, True)
        assert service.stopped() == 0
        assert service.log[-1]["event"] == "stopped"
    life.run("ledger", "check")


def test_a_store_moved_to_postgresql_is_audited_there_and_goes_on(tmp_path: Path) -> None:
    """The whole life of the sandbox on SQLite first, with everything in the store."""
    with Sandbox(tmp_path, tick_s=0.05) as sandbox:
        life = Life(tmp_path, sandbox)
        life.use("sqlite:///anchord.db")
        life.run("init", tmp_path)
        life.run("add", SEED)
        life.finish()
        before = everything(life.config, tmp_path / "before")
        told = life.json("migrate-store", life.url)
        assert told["tables"]["captures"]["rows"] == told["tables"]["records"]["rows"] == 4
        life.use(life.url)
        assert (
            life.json("audit")["result"] == life.json("audit", "--jobs", "2")["result"] == "sound"
        )
        assert everything(life.config, tmp_path / "after") == before
        with Service(life.config).started() as service:
            digest = life.file(tmp_path / "later.txt")
            eventually(lambda: life.json("show", digest)["events"] != [])
            sandbox.mine(7)
            eventually(lambda: anchord("verify", digest, config=life.config).code == 0)
            assert service.stopped() == 0
        assert life.json("ledger", "check")["rows"] > told["events"]
        assert life.json("audit")["result"] == "sound"


def test_the_same_life_with_the_same_key_gives_the_same_bytes_on_both(tmp_path: Path) -> None:
    """Records, parties, clock and key are the same; only the database is another."""
    found = []
    for kind in (SQLITE, POSTGRES):
        keep_in(kind)
        folder = tmp_path / kind
        folder.mkdir()
        if found:
            shutil.copytree(tmp_path / SQLITE / "keys", folder / "keys")
        place = whole_place(folder)
        place.anchor(*map(sample, range(20, 24)))
        found.append(everything(place.config, tmp_path / f"out-{kind}"))
    keep_in(None)
    first, second = found
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def test_a_new_configuration_names_the_store_it_is_told_to(tmp_path: Path) -> None:
    url = server().empty()
    made = anchord("init", tmp_path, "--store", url)
    assert made.code == 0, made.err
    assert f"made  the store's tables in {url}" in made.out
    config = tmp_path / "anchord.toml"
    assert anchord("db", "status", "--json", config=config).json["store"] == url
    assert "nothing to make" in anchord("init", tmp_path, "--store", url).out
    other = anchord("init", tmp_path, "--store", server().empty())
    assert (other.code, "is kept as it is" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://a:hunter2@h/d", "passfile=FILE"),
        ("postgresql://a:hun/ter2@h/d", "passfile=FILE"),
        ("postgresql://a@h/d?password=hunter2", "passfile=FILE"),
        ("nonsense", "expected sqlite:///FILE"),
        ("postgresql://h/\x1b[31m", "expected sqlite:///FILE"),
    ],
)
def test_init_refuses_what_is_no_address_and_makes_nothing(
    tmp_path: Path, url: str, words: str
) -> None:
    ran = anchord("init", tmp_path / "new", "--store", url)
    assert (ran.code, words in ran.err) == (2, True), ran.err
    assert "ter2" not in ran.err
    assert not list((tmp_path / "new").iterdir())


def test_a_server_that_is_not_there_is_told_with_the_code_for_later(tmp_path: Path) -> None:
    ran = anchord("init", tmp_path, "--store", "postgresql://anchord@127.0.0.1:1/anchord")
    assert ran.code == 3
    assert "does not answer" in ran.err


def test_the_password_file_is_found_beside_the_configuration(tmp_path: Path) -> None:
    """Paths are relative to the configuration, wherever a command is run from."""
    (tmp_path / "anchord.toml").write_text(
        '[store]\nurl = "postgresql://anchord@127.0.0.1:1/anchord?passfile=pgpass"\n', "utf-8"
    )
    config = tmp_path / "anchord.toml"
    said = {
        one["name"]: one
        for one in anchord("config", "check", "--json", config=config).json["checks"]
    }
    assert said["store.url"]["state"] == "fail"
    assert str(tmp_path / "pgpass") in said["store.url"]["what"]
    (tmp_path / "pgpass").write_text("*:*:*:*:secret\n", "utf-8")
    (tmp_path / "pgpass").chmod(0o644)
    said = {
        one["name"]: one
        for one in anchord("config", "check", "--json", config=config).json["checks"]
    }
    assert said["store.url"]["state"] == "fail"
    assert "chmod 600" in said["store.url"]["todo"]
