"""The sandbox as a whole: its folder, its configuration, and the commands that drive it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anchord.app.config import load
from anchord.errors import ConfigError
from anchord.sandbox.run import Sandbox
from anchord.sandbox.state import ask, read_run_file

ANCHORD = Path(sys.executable).with_name("anchord")


def test_the_written_configuration_loads_and_names_every_service(sandbox):
    path = sandbox.write_config()
    assert path == sandbox.directory / "anchord.toml"
    loaded = load(str(path))
    config = loaded.config
    assert [c.url for c in config.anchoring.calendars] == [c.url for c in sandbox.calendars]
    assert [c.uris for c in config.anchoring.calendars] == [[c.uri] for c in sandbox.calendars]
    assert (config.anchoring.min_answers, config.anchoring.confirmations) == (2, 6)
    assert config.headers.network == "regtest"
    assert config.headers.sources == ["node", "explorers", "file"]
    assert config.headers.node.url == sandbox.node_url
    assert loaded.resolve(config.headers.node.cookie_file) == sandbox.cookie_file
    assert config.headers.explorers.urls == sandbox.explorer_urls
    assert config.headers.file.peers == sandbox.peer_addresses
    assert sandbox.peer_address == sandbox.peer_addresses[0]


@pytest.mark.parametrize(
    ("parts", "sources"),
    [
        ({"explorers": 0}, ["node", "file"]),
        ({"peers": 0}, ["node", "explorers"]),
        ({"explorers": 0, "peers": 0, "calendars": 1}, ["node"]),
    ],
)
def test_a_smaller_sandbox_has_a_configuration_that_loads(tmp_path, parts, sources):
    with Sandbox(tmp_path, **parts) as sandbox:
        config = load(str(sandbox.write_config())).config
    assert config.headers.sources == sources


def test_a_foreign_configuration_is_left_alone(sandbox):
    config = sandbox.directory / "anchord.toml"
    config.write_text("[anchoring]\n")
    with pytest.raises(ConfigError, match="left alone"):
        sandbox.write_config()
    assert config.read_text() == "[anchoring]\n"


def test_keys_and_store_in_the_folder_are_not_touched(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "key.pem").write_text("key")
    (tmp_path / "anchord.db").write_text("store")
    with Sandbox(tmp_path) as sandbox:
        sandbox.write_config()
        sandbox.mine(1)
    assert (tmp_path / "keys" / "key.pem").read_text() == "key"
    assert (tmp_path / "anchord.db").read_text() == "store"


def test_a_restart_has_the_same_addresses_chain_and_configuration(tmp_path):
    with Sandbox(tmp_path) as first:
        first.mine(3)
        before = (first.write_config().read_text(), first.chain.headers())
    with Sandbox(tmp_path) as second:
        assert (second.write_config().read_text(), second.chain.headers()) == before


def test_a_second_sandbox_in_the_same_folder_is_refused(sandbox):
    with pytest.raises(ConfigError, match="runs in"):
        Sandbox(sandbox.directory).start()
    assert sandbox.mine(1)


def test_the_run_file_is_there_while_it_runs_and_one_left_by_a_crash_is_no_hindrance(tmp_path):
    with Sandbox(tmp_path) as sandbox:
        left = read_run_file(tmp_path)
        assert left["pid"] == os.getpid()
        assert left["control"] == sandbox.control_url
        assert left["notice"] == "sandbox, not Bitcoin"
    with pytest.raises(ConfigError, match="no sandbox runs"):
        read_run_file(tmp_path)
    (tmp_path / "sandbox.json").write_text(json.dumps(left))
    with Sandbox(tmp_path) as sandbox:
        assert read_run_file(tmp_path)["control"] == sandbox.control_url


def test_stopping_twice_is_harmless_and_frees_the_ports(tmp_path):
    sandbox = Sandbox(tmp_path).start()
    sandbox.stop()
    sandbox.stop()
    Sandbox(tmp_path).start().stop()


def test_everything_listens_on_loopback_only(sandbox):
    addresses = {one.socket.getsockname()[0] for one in sandbox.acceptor._listeners}
    assert addresses == {"127.0.0.1"}


def test_it_mines_by_itself_only_while_something_is_pending(tmp_path, call):
    with Sandbox(tmp_path, tick_s=0.02, mine_every_s=0.02) as sandbox:
        time.sleep(0.1)
        assert sandbox.height == 130
        call(sandbox.calendars[0].url, "/digest", method="POST", body=b"x" * 32)
        deadline = time.monotonic() + 10
        while sandbox.pending() != (0, 0) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert sandbox.pending() == (0, 0)
        assert sandbox.height == 136


def test_the_control_address_refuses_in_words(sandbox):
    with pytest.raises(ConfigError, match="blocks to mine: 0"):
        ask(sandbox.control_url, "POST", "/mine", {"count": 0})
    with pytest.raises(ConfigError, match="no command"):
        ask(sandbox.control_url, "POST", "/nothing")
    with pytest.raises(ConfigError, match="unknown field"):
        ask(sandbox.control_url, "POST", "/mine", {"cuont": 1})


def test_the_seed_records_come_with_the_registrys_key():
    seed = Path(sys.modules["anchord.sandbox"].__file__).with_name("seed")
    lines = (seed / "seed-records.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 4
    assert all(len(json.loads(line)["canonical_sha256"]) == 64 for line in lines)
    key = json.loads((seed / "registry-public-key.json").read_text())
    raw = bytes.fromhex(key["public_key_hex"])
    assert hashlib.sha256(raw).hexdigest()[:32] == key["fingerprint_sha256_hex"]


@pytest.mark.shared_data
def test_the_seed_records_are_the_registrys_first_four(shared_data):
    seed = Path(sys.modules["anchord.sandbox"].__file__).with_name("seed")
    records = (shared_data / "pith-records.jsonl").read_bytes().splitlines(keepends=True)
    assert (seed / "seed-records.jsonl").read_bytes() == b"".join(records[:4])


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """Run `anchord sandbox` in a folder, as a person would, and end it by SIGINT."""
    folder = tmp_path_factory.mktemp("cli") / "made"
    process = subprocess.Popen(
        [ANCHORD, "sandbox", "--dir", folder, "--no-auto-mine", "--tick", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not (folder / "anchord.toml").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    yield folder
    process.send_signal(signal.SIGINT)
    out, words = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")
    assert words.startswith("sandbox, not Bitcoin")
    assert f"anchord init {folder}" in words.replace("\n", " ").replace("  ", " ")
    assert not (folder / "sandbox.json").exists()


def drive(*arguments, cwd=None, env=None):
    done = subprocess.run(
        [ANCHORD, "sandbox", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | (env or {}),
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_running_sandbox_is_driven_by_folder_configuration_or_place(running):
    config = {"ANCHORD_CONFIG": str(running / "anchord.toml")}
    heights = [
        json.loads(drive("mine", 2, "--json", "--dir", running)[1])["height"],
        json.loads(drive("--dir", running, "mine", "--json")[1])["height"],
        json.loads(drive("mine", "--json", env=config)[1])["height"],
        json.loads(drive("reorg", 2, "--json", cwd=running)[1])["height"],
    ]
    assert [height - heights[0] for height in heights] == [0, 1, 2, 3]
    status = json.loads(drive("status", "--json", "--dir", running)[1])
    assert status["height"] == heights[-1]
    assert set(status["calendars"]) == {"calendar-1", "calendar-2", "calendar-3"}
    assert "pending" in drive("status", "--dir", running)[1]


def test_faults_are_set_listed_and_cleared_by_command(running):
    code, out, _ = drive(
        "fault",
        "calendar-1",
        "slow",
        "--delay",
        2,
        "--count",
        3,
        "--json",
        "--on",
        "digest",
        "--dir",
        running,
    )
    assert code == 0
    fault = {
        "service": "calendar-1",
        "kind": "slow",
        "count": 3,
        "on": "digest",
        "options": {"delay_s": 2.0},
    }
    assert json.loads(out) == {"faults": [fault]}
    listed = json.loads(drive("fault", "--list", "--json", "--dir", running)[1])
    assert listed["faults"] == [fault]
    assert "does" in listed["kinds"]["dead"]
    assert "calendar-1  slow" in drive("fault", "--list", "--dir", running)[1]
    drive("fault", "calendar-2", "oversize", "--set", "size=20000", "--dir", running)
    assert json.loads(drive("fault", "--clear", "--json", "--dir", running)[1]) == {"faults": []}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fault", "node", "stall"), "that fault is for peer"),
        (("fault", "node"), "name SERVICE and KIND"),
        (("fault", "calendar-1", "oversize", "--set", "size"), "expected NAME=VALUE"),
        (("reorg", 1000), "blocks to replace: 1000"),
        (("mine", 0), "x>=1"),
    ],
)
def test_a_wrong_command_is_refused_with_exit_code_2(running, arguments, words):
    code, out, said = drive(*arguments, "--dir", running)
    assert (code, out) == (2, "")
    assert words in said


def test_without_a_running_sandbox_the_commands_say_how_to_start_one(tmp_path):
    code, out, words = drive("mine", "--dir", tmp_path)
    assert (code, out) == (2, "")
    assert "start one with" in words
    assert drive()[0] == 2
