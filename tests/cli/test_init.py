from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest
from support.old_store import at_first_schema
from support.running import anchord

from anchord.adapters.store.schema import REVISION
from anchord.app.config import load


def test_init_makes_configuration_key_and_store(tmp_path: Path) -> None:
    ran = anchord("init", tmp_path / "new", "--signer-id", "registry.example.org", "--json")
    assert ran.code == 0
    config = load(str(tmp_path / "new" / "anchord.toml"))
    assert config.config.signer.signer_id == "registry.example.org"
    assert len(ran.json["made"]) == 3
    assert all(Path(name).exists() for name in ran.json["made"])
    keys = tmp_path / "new" / "keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "anchord.db").stat().st_mode) == 0o600
    for key in keys.glob("*.pem"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_init_again_changes_nothing(tmp_path: Path) -> None:
    anchord("init", tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    ran = anchord("init", tmp_path, "--json")
    assert (ran.code, ran.json["made"]) == (0, [])
    after = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert before == after


def test_init_keeps_a_configuration_that_is_there(tmp_path: Path) -> None:
    config = tmp_path / "anchord.toml"
    config.write_text('[signer]\nsigner_id = "mirror.example.org"\n')
    assert anchord("init", tmp_path).code == 0
    assert config.read_text() == '[signer]\nsigner_id = "mirror.example.org"\n'


def test_init_makes_its_key_with_the_configured_passphrase(tmp_path: Path) -> None:
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse\n")
    secret.chmod(0o600)
    (tmp_path / "anchord.toml").write_text('[signer]\npassphrase_file = "passphrase"\n')
    assert anchord("init", tmp_path).code == 0
    (key,) = (tmp_path / "keys").glob("*.pem")
    assert "ENCRYPTED" in key.read_text()


@pytest.mark.parametrize(
    ("revision", "words"),
    [("9999", "newer"), ("0000", "anchord db upgrade"), (None, "no anchord store")],
)
def test_a_store_of_another_schema_is_refused_with_what_to_do(
    tmp_path: Path, revision: str | None, words: str
) -> None:
    anchord("init", tmp_path)
    with sqlite3.connect(tmp_path / "anchord.db") as connection:
        if revision is None:
            connection.execute("DROP TABLE alembic_version")
        else:
            connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    connection.close()
    ran = anchord("run-once", config=tmp_path / "anchord.toml")
    assert ran.code == 2
    assert words in ran.err


def test_an_older_store_is_migrated_and_that_is_said(tmp_path: Path) -> None:
    anchord("init", tmp_path)
    (tmp_path / "anchord.db").unlink()
    at_first_schema(tmp_path / "anchord.db")
    assert anchord("status", config=tmp_path / "anchord.toml").code == 2
    ran = anchord("init", tmp_path, "--json")
    assert (ran.code, ran.json["made"]) == (0, [])
    assert ran.json["migrated"] == [str(tmp_path / "anchord.db")]
    assert anchord("status", config=tmp_path / "anchord.toml").code == 0
    assert anchord("init", tmp_path, "--json").json["migrated"] == []


def test_a_newer_store_is_not_touched_by_init(tmp_path: Path) -> None:
    anchord("init", tmp_path)
    with sqlite3.connect(tmp_path / "anchord.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert anchord("init", tmp_path).code == 2
    with sqlite3.connect(tmp_path / "anchord.db") as connection:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    assert found == ("9999",)
    assert REVISION != "9999"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "anchord.db").write_bytes(b"not a database, but long enough to look at" * 100)
    ran = anchord("init", tmp_path)
    assert ran.code in {2, 4}
    assert "anchord.db" in ran.err


def test_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    (tmp_path / "anchord.toml").write_text("")
    ran = anchord("run-once", config=tmp_path / "anchord.toml")
    assert ran.code == 2
    assert "anchord init" in ran.err


def test_no_configuration_says_how_to_make_one(tmp_path: Path) -> None:
    ran = anchord("run-once", config=tmp_path / "absent.toml")
    assert ran.code == 2
    assert "anchord init" in ran.err
