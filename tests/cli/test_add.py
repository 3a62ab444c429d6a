"""`anchord add` as people and scripts see it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from anchord.adapters.sources.kinds import Kind
from anchord.app.cli.add import KINDS, own_files, shown
from anchord.app.cli.main import cli
from anchord.app.config import load
from anchord.app.wiring import open_app

SEEDS = [b'{"a": 1}', b'{"a": 2}', b'{"a": 3}']


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(cli, ["init", "--signer-id", "example.org"])
    assert made.exit_code == 0, made.output
    return tmp_path


def add(*args, **kwargs):
    return CliRunner().invoke(cli, ["add", *map(str, args)], **kwargs)


def counts(result) -> tuple[int, int, int, int]:
    found = json.loads(result.stdout)
    return found["new"], found["known"], found["adopted"], found["refused"]


@pytest.mark.shared_data
def test_the_60_real_records_go_in_once(home, shared_data):
    path = shared_data / "pith-records.jsonl"
    first = add(path)
    assert first.exit_code == 0
    assert "Next: anchord run-once" in first.stderr
    second = add(path)
    assert second.exit_code == 0
    assert second.stderr == "nothing changed\n"
    assert counts(add(path, "--json")) == (0, 60, 0, 0)
    with open_app(None) as app:
        assert app.store.records.waiting()[0] == 60


@pytest.mark.shared_data
def test_proofs_are_adopted_once_and_refused_ones_named(home, shared_data):
    folder = shared_data / "ots-vectors" / "pending"
    first = add(folder, "--json")
    assert first.exit_code == 1
    # Two of the 22 are about a file that another of them is about, too.
    assert counts(first) == (20, 2, 22, 2)
    for one in json.loads(first.stdout)["refusals"]:
        assert f"{one['where']}: {one['reason']}" in first.stderr
    assert counts(add(folder, "--json")) == (0, 22, 0, 2)


def test_a_bad_line_is_named_and_the_rest_goes_in(home):
    (home / "a.jsonl").write_bytes(b"\n".join([SEEDS[0], b"{", SEEDS[1]]))
    result = add("a.jsonl", "--json")
    assert result.exit_code == 1
    assert counts(result) == (2, 0, 0, 1)
    assert result.stderr.startswith("a.jsonl:2: expected one JSON value")
    (refusal,) = json.loads(result.stdout)["refusals"]
    assert (refusal["where"], refusal["line"]) == ("a.jsonl", 2)


def test_without_json_the_table_is_data_and_the_words_are_not(home):
    (home / "a.jsonl").write_bytes(SEEDS[0] + b"\nx\n")
    result = add("a.jsonl")
    rows = [line.rsplit(maxsplit=1) for line in result.stdout.splitlines()]
    assert rows == [["new", "1"], ["already there", "0"], ["proofs adopted", "0"], ["refused", "1"]]
    assert "a.jsonl:2:" in result.stderr


def test_quiet_leaves_only_the_refusals(home):
    (home / "a.jsonl").write_bytes(SEEDS[0] + b"\nx\n")
    result = add("a.jsonl", "--quiet")
    assert result.stdout == ""
    assert result.stderr.splitlines() == [result.stderr.strip()]


def test_refusals_beyond_the_limit_are_counted_not_named(home):
    (home / "a.jsonl").write_bytes(b"x\n" * 50 + SEEDS[0])
    result = add("a.jsonl", "--json", "--max-errors", 3)
    assert counts(result) == (1, 0, 0, 50)
    assert len(json.loads(result.stdout)["refusals"]) == 3
    assert result.stderr.splitlines()[3] == "47 more refused, not named (--max-errors)"


def test_a_wrong_name_stops_before_anything_goes_in(home):
    (home / "a.jsonl").write_bytes(SEEDS[0])
    result = add("a.jsonl", "absent")
    assert result.exception.exit_code == 2
    assert "absent: No such file" in str(result.exception)
    assert counts(add("a.jsonl", "--json")) == (1, 0, 0, 0)


@pytest.mark.parametrize("args", [[], ["-", "-"], ["--files-from", "-", "-"], ["--as", "x", "a"]])
def test_a_misuse_is_told_with_exit_code_2(home, args):
    assert add(*args).exit_code == 2


def test_standard_input_folders_and_lists_of_paths_come_together(home):
    (home / "folder").mkdir()
    (home / "folder" / "photo").write_bytes(b"photo")
    (home / "more").write_bytes(b"more")
    (home / "list").write_bytes(b"more\0gone\0")
    result = add("-", "folder", "--files-from", "list", "--json", input=b"\n".join(SEEDS))
    assert result.exit_code == 1
    assert counts(result) == (5, 0, 0, 1)


def test_a_kind_can_be_forced_and_the_scheme_chosen(home):
    (home / "a.json").write_bytes(b'{"a": 1.0}')
    add("a.json", "--as", "file")
    add("a.json", "--scheme", "rfc8785")
    with open_app(None) as app:
        found = [one.digest for chunk in app.store.records.walk() for one in chunk]
    assert found == [
        hashlib.sha256(b'{"a": 1.0}').digest(),
        hashlib.sha256(b'{"a":1}').digest(),
    ]


def test_adding_the_folder_anchord_lives_in_passes_over_its_own_files(home):
    (home / "photo").write_bytes(b"photo")
    assert counts(add(".", "--json")) == (1, 0, 0, 0)
    assert counts(add(".", "--json")) == (0, 1, 0, 0)


SECRETS = """
[signer]
passphrase_file = "passphrase"
[headers.node]
cookie_file = "cookie"
password_file = "node-password"
[archive]
credentials_file = "credentials"
[[sources]]
name = "registry"
kind = "sql"
url = "postgresql://reader@db.example.org/registry"
password_file = "registry-password"
table = "records"
[[outlets]]
name = "hook"
kind = "webhook"
url = "https://example.org/"
secret_file = "hook-secret"
[[outlets]]
name = "back"
kind = "sql"
url = "postgresql://writer@db.example.org/registry"
password_file = "back-password"
statements = { timestamp_anchored = "UPDATE records SET anchored = 1 WHERE id = :id" }
"""


def test_no_secret_that_the_configuration_names_is_taken_for_a_record(home):
    """Nor does any of them lie in a tree that is published or served: all ask `own_files`."""
    (home / "anchord.toml").write_text(SECRETS, "utf-8")
    named = [line.split('"')[1] for line in SECRETS.splitlines() if "_file = " in line]
    for name in named:
        (home / name).write_text("a secret\n", "utf-8")
        (home / name).chmod(0o600)
    assert len(named) == 7
    assert counts(add(".", "--json")) == (0, 0, 0, 0)
    store = (
        '[store]\nurl = "postgresql://anchord@db.example.org/a?sslmode=require&passfile=pgpass"\n'
    )
    (home / "anchord.toml").write_text(store, "utf-8")
    assert home / "pgpass" in own_files(load(None))


def test_names_that_would_move_the_cursor_are_escaped(home):
    (home / "red\x1b[31m\n.json").write_bytes(b"x")
    result = add(".")
    assert "\x1b" not in result.stderr
    assert "red\\x1b[31m\\n.json: expected" in result.stderr
    assert shown("plain zoë") == "plain zoë"


def test_the_exit_code_reaches_the_shell(home):
    (home / "a.jsonl").write_bytes(b"x")
    run = [sys.executable, "-m", "anchord", "add"]
    assert subprocess.run([*run, "a.jsonl"], check=False, capture_output=True).returncode == 1
    assert subprocess.run([*run, "absent"], check=False, capture_output=True).returncode == 2


def test_the_kinds_offered_are_the_kinds_there_are():
    assert set(KINDS) == set(Kind)
