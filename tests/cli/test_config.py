"""`anchord config`, and keys given by the environment: what is shown is what is in force."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.workplace import CONFIG, Workplace, run

from anchord.app.config import Config, load
from anchord.app.config_environment import laid_over, variable
from anchord.app.config_keys import Key, flat, keys, plain
from anchord.app.toml_text import value_text
from anchord.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
ALONE = [key for key in keys() if key.of_table is None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "anchord.toml"
    path.write_text(CONFIG, "utf-8")
    return path


# ---------------------------------------------------------------------- the environment


@pytest.mark.parametrize("key", ALONE, ids=lambda key: key.name)
def test_every_key_may_be_given_by_the_environment(
    key: Key, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its default is read back as itself, from text as a shell gives it."""
    name, default = key.name, key.default
    file.write_text("", "utf-8")
    text = default if isinstance(default, str) else value_text(default)
    if name == "headers.node.url":
        text = default = "http://127.0.0.1:9999"
    monkeypatch.setenv(variable(name), text)
    assert flat(load(str(file)).config)[name] == default


def test_the_environment_wins_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANCHORD__SIGNER__SIGNER_ID", "other.example.org")
    monkeypatch.setenv("ANCHORD__ANCHORING__MIN_ANSWERS", "1")
    loaded = load(str(file))
    assert loaded.config.signer.signer_id == "other.example.org"
    assert loaded.config.anchoring.min_answers == 1
    assert loaded.config.headers.network == "regtest"  # the rest of the file stands


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ANCHORD__ANCHORING__MIN_ANSWER", "2", "did you mean ANCHORD__ANCHORING__MIN_ANSWERS"),
        ("ANCHORD__NOTHING", "2", "no key"),
        ("ANCHORD__ANCHORING__MIN_ANSWERS", "two", "whole number"),
        ("ANCHORD__ANCHORING__MIN_ANSWERS", "2.0", "whole number"),
        ("ANCHORD__ANCHORING__MIN_ANSWERS", '"2"', "whole number"),
        ("ANCHORD__ANCHORING__MIN_ANSWERS", "2\ntimeout_s = 1", "whole number"),
        ("ANCHORD__ANCHORING__MIN_ANSWERS", "0", "from 1"),
        ("ANCHORD__ANCHORING__SIGN_SUBMITTED", "yes", "true or false"),
        ("ANCHORD__ANCHORING__SIGN_SUBMITTED", "1", "true or false"),
        ("ANCHORD__HEADERS__NETWORK", "bitcoin", "one of"),
        ("ANCHORD__HEADERS__SOURCES", "file", "list"),
        ("ANCHORD__ANCHORING__CALENDARS__URL", "https://x.example.org", "__CALENDARS"),
        ("ANCHORD__STORE__URL", "postgresql://me:secret@db.example.org/a", "password"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_what_was_expected(
    name: str, value: str, expected: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=re.escape(expected)) as caught:
        load(str(file))
    assert name in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[[sources]]\nname = "a"\nkind = "floder"', 'sources (number 1).kind: expected one of "f'),
        ('[[sources]]\nkind = "folder"', "sources (number 1).name must be given"),
        ('[[sources]]\nname = "a"\nkind = "sql"\nquerry = ""', "did you mean query?"),
        ('[sources]\nurl = "postgresql://me:secret@h/d"', "expected list of tables; got a table"),
        ("[anchoring]\nmin_answers = 0", "whole number from 1"),
        ("[service]\npass_every_s = false", "expected number above 0 up to 86400; got false"),
        ("[archive.captures.urls.arxiv]\nurl = 3", "archive.captures.urls.url: expected text"),
        ('[[outlets]]\nname = "a"\nkind = "sql"\nstatements = { foo = "secret" }',
         'each of its keys is one of "capture_stored"'),
        ("frobnicate = 1", "frobnicate is no key; see config/anchord.toml"),
    ],
)  # fmt: skip
def test_the_file_s_faults_are_told_by_key_with_what_was_expected_and_what_came(
    text: str, expected: str, file: Path
) -> None:
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=re.escape(expected)) as caught:
        load(str(file))
    assert "secret" not in str(caught.value)


def test_tables_are_given_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = '[{ url = "https://c.example.org", uris = ["https://d.example.org"] }]'
    monkeypatch.setenv("ANCHORD__ANCHORING__CALENDARS", one)
    monkeypatch.setenv("ANCHORD__ANCHORING__MIN_ANSWERS", "1")
    (calendar,) = load(str(file)).config.anchoring.calendars
    assert (calendar.url, calendar.uris) == ("https://c.example.org", ["https://d.example.org"])


def test_the_file_s_own_tables_are_left_as_they_were() -> None:
    raw = {"anchoring": {"min_answers": 1}}
    assert laid_over(raw, {"anchoring.min_answers": 2}) == {"anchoring": {"min_answers": 2}}
    assert raw == {"anchoring": {"min_answers": 1}}
    assert laid_over({"anchoring": 5}, {"anchoring.min_answers": 2}) == {"anchoring": 5}


# ---------------------------------------------------------------------- show


def test_what_is_shown_can_be_used_as_the_file(file: Path) -> None:
    shown = run("-c", str(file), "config", "show")
    assert shown.exit_code == 0
    assert msgspec.convert(tomllib.loads(shown.stdout), Config) == load(str(file)).config


def test_the_defaults_need_no_file(tmp_path: Path) -> None:
    shown = run("-c", str(tmp_path / "none.toml"), "config", "show", "--defaults")
    assert msgspec.convert(tomllib.loads(shown.stdout), Config) == Config()


def test_each_value_says_where_it_comes_from(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANCHORD__ANCHORING__TIMEOUT_S", "3.5")
    said = json.loads(run("-c", str(file), "config", "show", "--json").stdout)
    assert said["sources"].keys() == {key.name for key in ALONE}
    assert said["sources"]["signer.signer_id"] == "file"
    assert said["sources"]["anchoring.timeout_s"] == "environment"
    assert said["sources"]["store.url"] == "default"
    assert said["effective"] == json.loads(json.dumps(plain(load(str(file)).config)))


def test_only_what_was_changed_is_shown_when_that_is_asked(file: Path) -> None:
    shown = tomllib.loads(run("-c", str(file), "config", "show", "--changed").stdout)
    assert shown.keys() == {"signer", "headers", "anchoring"}
    assert shown["headers"] == {"network": "regtest"}


def test_a_password_in_the_store_s_address_is_refused_and_not_shown(file: Path) -> None:
    file.write_text('[store]\nurl = "postgresql://me:hunter2@db.example.org/a"\n' + CONFIG, "utf-8")
    for words in (["--json"], []):
        shown = run("-c", str(file), "config", "show", *words)
        assert shown.exit_code == 2
        assert "hunter2" not in shown.output + shown.stderr
        assert "?passfile=FILE" in shown.stderr


# ---------------------------------------------------------------------- check


def test_a_new_workplace_can_work(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    said = place.json("config", "check")
    assert said["path"] == str(place.config)
    assert {one["state"] for one in said["checks"]} == {"ok"}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            'anchoring = {min_answers = 1, calendars = [{url = "http://a.example.org", uris = ["u"]}]}',  # noqa: E501
            "anchoring.calendars",
        ),
        ('[signer]\npassphrase_file = "none"', "signer.passphrase_file"),
        ('[archive]\ncredentials_file = "none"', "archive.credentials_file"),
        ('[store]\nurl = "sqlite://"', "store.url"),
        ('[store]\nurl = "sqlite:////dev/null/anchord.db"', "store.url"),
        (
            '[[anchoring.authorities]]\nurl = "https://tsa.example.org"\ncertificates = "none.pem"',
            "anchoring.authorities",
        ),
        (
            '[headers]\nsources = ["node"]\n[headers.node]\ncookie_file = "none"',
            "headers.node.cookie_file",
        ),
    ],
)  # fmt: skip
def test_what_is_named_and_is_not_there_is_found(line: str, name: str, file: Path) -> None:
    file.write_text(line, "utf-8")
    result = run("-c", str(file), "config", "check", "--json")
    checks = json.loads(result.stdout)["checks"]
    assert result.exit_code == 2
    assert [one["name"] for one in checks if one["state"] == "fail"] == [name]
    assert all(one["todo"] for one in checks if one["state"] == "fail")


def test_a_file_that_others_may_write_is_named(file: Path) -> None:
    file.chmod(0o666)
    result = run("-c", str(file), "config", "check")
    assert "can be written by others" in result.stdout
    assert result.exit_code == 0


def test_a_password_that_others_may_read_is_a_failure(file: Path) -> None:
    file.write_text('[store]\nurl = "postgresql://me:hunter2@db.example.org/a"', "utf-8")
    file.chmod(0o644)
    result = run("-c", str(file), "config", "check")
    assert result.exit_code == 2
    assert "hunter2" not in result.output


# ---------------------------------------------------------------------- explain, and the documents


def test_every_key_is_explained() -> None:
    for key in keys():
        said = run("config", "explain", key.name)
        assert said.exit_code == 0
        assert key.meaning in said.stdout
        assert key.type in said.stdout


def test_a_table_explains_all_its_keys() -> None:
    said = json.loads(run("config", "explain", "archive.items", "--json").stdout)["keys"]
    assert [one["name"] for one in said] == [
        key.name for key in keys() if key.name.startswith("archive.items.")
    ]


def test_a_name_nearly_right_is_answered_with_the_right_one() -> None:
    result = run("config", "explain", "anchoring.min_answer")
    assert result.exit_code == 2
    assert "did you mean anchoring.min_answers" in result.stderr


ROWS = {
    name: (default, meaning)
    for name, default, meaning in re.findall(
        r"^\| `([a-z0-9_.]+)` \| (.*?) \| (.*) \|$",
        (ROOT / "docs/operations.md").read_text("utf-8"),
        re.MULTILINE,
    )
}


TOLD_ALONE = [key for key in ALONE if key.name in ROWS and key.name != "anchoring.calendars"]
"""Keys within tables are told there together with their table."""


@pytest.mark.parametrize("key", TOLD_ALONE, ids=lambda key: key.name)
def test_operations_and_explain_say_the_same(key: Key) -> None:
    assert ROWS[key.name] == (f"`{key.default_text}`", key.meaning)


def test_only_tables_are_left_out_of_operations() -> None:
    assert {key.name for key in keys()} - ROWS.keys() == {
        "anchoring.authorities",
        "archive.captures.urls",
        "archive.captures.extra_urls",
        "sources",
        "outlets",
    }


def test_the_example_shows_what_explain_says() -> None:
    read = load(str(ROOT / "config/anchord.toml")).config
    assert flat(read) == {key.name: key.default for key in ALONE}


values = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_values_are_written_as_toml_reads_them(value: object) -> None:
    assert tomllib.loads(f"value = {value_text(value)}")["value"] == value
