"""A machine's bad week: whatever breaks, people get one line and the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import anchord

from anchord.app.cli import ending
from anchord.app.cli.main import cli, main
from anchord.app.config import load
from anchord.errors import ConfigError


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `$A` is anchord."""
    return subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "A": f"{sys.executable} -m anchord", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    assert anchord("init", tmp_path).code == 0
    return tmp_path / "anchord.toml"


@pytest.mark.parametrize("command", ["status", "status --json", "key list", "headers status"])
def test_a_reader_that_goes_away_is_no_failure(ready: Path, command: str) -> None:
    ran = shell(f"$A {command} | true; echo ${{PIPESTATUS[0]}}", ANCHORD_CONFIG=str(ready))
    assert ran.stdout.strip() in {"0", "141"}
    assert ran.stderr == ""


def test_an_export_into_a_closed_pipe_says_so_by_its_code(ready: Path) -> None:
    ran = shell("(sleep 1; $A status; echo $? >&2) | true", ANCHORD_CONFIG=str(ready))
    assert ran.stderr.strip() == "141"


@pytest.mark.parametrize("command", ["status", "--help", "key list"])
def test_a_full_disk_behind_standard_output_is_said(ready: Path, command: str) -> None:
    ran = shell(f"$A {command} > /dev/full", ANCHORD_CONFIG=str(ready))
    assert ran.returncode == 4
    assert ran.stderr.startswith("anchord: No space left on device; make room")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    ["$A status >&-", "$A status --json >&- 2>&-", "$A status <&-", "$A export --all -o - >&-"],
)
def test_closed_streams_are_the_null_device(ready: Path, line: str) -> None:
    ran = shell(line, ANCHORD_CONFIG=str(ready))
    assert ran.returncode == 0
    assert "Traceback" not in ran.stderr


def test_closed_standard_input_is_empty(ready: Path) -> None:
    ran = shell("$A add - <&-; $A export --from-file - -o - <&-", ANCHORD_CONFIG=str(ready))
    assert "Traceback" not in ran.stderr


def test_an_error_nobody_foresaw_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("what\nnobody foresaw")

    monkeypatch.setattr(type(cli), "main", broken)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 4
    words = capsys.readouterr().err
    assert words.count("\n") == 1
    assert "KeyError" in words
    assert ending.DEBUG in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[store]\nurl = ""\n', "store.url"),
        ('[store]\nurl = "nonsense"\n', "store.url"),
        ('[store]\nurl = "sqlite://"\n', "store.url"),
        ('[store]\nurl = "sqlite:///absent/folder/a.db"\n', "cannot be made"),
        ('[signer]\nkey_dir = "a\\u0000b"\n', "signer.key_dir"),
        ("[anchoring]\ntimeout_s = inf\n", "anchoring.timeout_s"),
        ("[anchoring]\npoll_max_s = 99999999999999\n", "anchoring.poll_max_s"),
    ],
)
def test_init_names_the_setting_that_cannot_be(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "anchord.toml").write_text(text)
    ran = anchord("init", tmp_path)
    assert ran.code == 2
    assert words in ran.err


def test_a_byte_order_mark_and_foreign_line_ends_are_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "anchord.toml"
    file.write_bytes(b"\xef\xbb\xbf[signer]\r\nsigner_id = 'mirror.example.org'\r\n")
    assert load(str(file)).config.signer.signer_id == "mirror.example.org"


def test_a_password_in_the_address_of_the_store_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "anchord.toml"
    file.write_text('[store]\nurl = "postgresql://u:hunter2\\u0007@h/d"\n')
    with pytest.raises(ConfigError) as refused:
        load(str(file))
    assert "hunter2" not in str(refused.value)


def test_a_folder_in_the_place_of_the_header_file_is_said(ready: Path) -> None:
    (ready.parent / "headers.bin").mkdir()
    ran = anchord("headers", "status", config=ready)
    assert ran.code == 2
    assert "headers.file.path" in ran.err


def test_a_folder_whose_name_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    ran = anchord("init", os.fsdecode(folder))
    assert ran.code == 2
    assert "UTF-8" in ran.err


def test_a_list_of_references_in_another_encoding_refuses_its_lines(ready: Path) -> None:
    names = ready.parent / "names"
    names.write_bytes(b"caf\xe9\n")
    ran = anchord("export", "--from-file", str(names), "-o", str(ready.parent), config=ready)
    assert ran.code == 1
    assert "caf\\xe9" in ran.err


def test_init_leaves_no_half_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        ran = anchord("init", tmp_path)
    assert ran.code == 2
    assert "No space left" in ran.err
    assert list(tmp_path.iterdir()) == []
    assert anchord("init", tmp_path, "--signer-id", "me").code == 0
    assert 'signer_id = "me"' in (tmp_path / "anchord.toml").read_text()
