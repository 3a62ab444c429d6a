"""`anchord key` as people and scripts see it."""

from __future__ import annotations

import json
import stat

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from anchord.adapters.signers.file import open_signer
from anchord.adapters.signers.keyring import load_keyring
from anchord.app.cli.main import cli
from anchord.core.keyring import fingerprint, fingerprint_b32
from anchord.errors import ConfigError, RefusedError

CONFIG = '[signer]\nsigner_id = "example.org"\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "anchord.toml").write_text(CONFIG)
    return tmp_path


def key(*args, **kwargs):
    return CliRunner().invoke(cli, ["key", *map(str, args)], **kwargs)


def made(*args) -> str:
    result = key(*args)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def states(home) -> dict[str, tuple[bool, bool]]:
    return {
        one["key_id"]: (one["own"], one["active"]) for one in json.loads(made("list", "--json"))
    }


def test_a_new_key_is_named_on_stdout_and_signs(home):
    key_id = made("new")
    assert key_id.startswith("example.org-")
    signer = open_signer(home / "keys", None, {}, "example.org")
    assert signer.key_id == key_id
    assert states(home) == {key_id: (True, True), "pith-v1-2026-05": (False, False)}
    again = key("new")
    assert isinstance(again.exception, ConfigError)
    assert "key rotate" in str(again.exception)


def test_a_signer_that_the_configuration_does_not_name_is_told(home):
    result = key("new", "--signer-id", "other.example.org")
    assert result.exit_code == 0
    assert 'signer.signer_id = "other.example.org"' in result.stderr


def test_the_public_key_document_has_both_fingerprints(home):
    key_id = made("new")
    document = json.loads(made("public"))
    raw = load_keyring(home / "keys").active().public_key
    assert document["key_id"] == key_id
    assert (document["algorithm"], document["format"]) == ("ed25519", "raw")
    assert document["fingerprint_sha256_hex"] == fingerprint(raw)
    assert document["fingerprint_sha256_b32_first128bits"] == fingerprint_b32(raw)
    assert document["public_key_hex"] == raw.hex()
    assert json.loads(made("public", key_id, "--json")) == document
    pem = load_pem_public_key(made("public", "--pem").encode())
    assert pem.public_bytes_raw() == raw
    assert key("public", "--pem", "--json").exit_code == 2
    assert isinstance(key("public", "absent").exception, ConfigError)


@pytest.mark.shared_data
def test_the_registrys_document_is_the_published_one(home, shared_data):
    made("new")
    published = json.loads((shared_data / "pith-signatures.json").read_bytes())["public_key"]
    assert published.items() <= json.loads(made("public", "pith-v1-2026-05")).items()


def test_the_table_shows_whole_names(home):
    first = made("new")
    second = made("rotate")
    key("revoke", first, "--reason", "lost")
    table = made("list")
    assert first in table
    assert second in table
    for word in ("active", "revoked 2", "trusted"):
        assert word in table


def test_rotation_makes_another_key_active_and_keeps_the_old_one(home):
    first = made("new")
    second = made("rotate")
    assert states(home)[first] == (True, False)
    assert states(home)[second] == (True, True)
    assert (home / "keys" / f"{first}.pem").exists()
    third = made("rotate", "--destroy-old")
    assert not (home / "keys" / f"{second}.pem").exists()
    assert states(home)[third] == (True, True)


def test_a_revoked_active_key_asks_for_rotation(home):
    key_id = made("new")
    assert key("revoke", key_id).exit_code == 2
    result = key("revoke", key_id, "--reason", "laptop stolen")
    assert "anchord key rotate" in result.stderr
    document = json.loads(made("public", key_id))
    assert document["revocation_reason"] == "laptop stolen"
    assert document["revoked_at"].endswith("Z")
    made("rotate")
    assert open_signer(home / "keys", None, {}, "example.org").key_id != key_id


def test_a_passphrase_comes_from_a_file_never_from_the_command_line(home):
    secret = home / "passphrase"
    secret.write_text("correct horse\n")
    refused = key("new", "--passphrase-file", secret)
    assert "chmod 600" in str(refused.exception)
    secret.chmod(0o600)
    key_id = made("new", "--passphrase-file", secret)
    pem = home / "keys" / f"{key_id}.pem"
    assert b"ENCRYPTED" in pem.read_bytes()
    assert stat.S_IMODE(pem.stat().st_mode) == 0o600
    (home / "anchord.toml").write_text(CONFIG + 'passphrase_file = "passphrase"\n')
    second = made("rotate")
    assert b"ENCRYPTED" in (home / "keys" / f"{second}.pem").read_bytes()


def test_a_foreign_key_is_trusted_and_forgotten(home, tmp_path):
    made("new")
    document = json.loads(made("public", "pith-v1-2026-05"))
    made("untrust", "pith-v1-2026-05")
    assert "pith-v1-2026-05" not in states(home)
    result = key("trust", "-", "--target", "record", input=json.dumps(document))
    assert result.exit_code == 0
    assert "8d4b5ee74e4693bcd1df2446408b0d54" in result.stderr
    assert load_keyring(home / "keys").get("pith-v1-2026-05").targets == ("record",)


BAD = {
    "not JSON": "{",
    "not a key": "{}",
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("case", BAD)
def test_a_document_that_is_no_key_is_refused(home, case):
    (home / "key.json").write_text(BAD[case])
    result = key("trust", "key.json")
    assert isinstance(result.exception, RefusedError)
    assert not (home / "keys").exists()


def test_a_document_that_is_not_there_is_told(home):
    assert isinstance(key("trust", "absent.json").exception, ConfigError)


def test_a_mirror_trusts_keys_without_having_one(home):
    document = {
        "key_id": "k",
        "algorithm": "ed25519",
        "public_key_b64": "A" * 43 + "=",
        "targets": ["timestamp"],
    }
    (home / "key.json").write_text(json.dumps(document))
    made("trust", "key.json")
    assert set(states(home)) == {"k", "pith-v1-2026-05"}
    assert stat.S_IMODE((home / "keys").stat().st_mode) == 0o700
    assert isinstance(key("public").exception, ConfigError)


def test_a_key_that_is_trusted_already_is_not_called_two_keys(home):
    made("new")
    document = made("public", "pith-v1-2026-05")
    made("untrust", "pith-v1-2026-05")
    trust = ("trust", "-", "--target", "record")
    for _again in range(2):
        assert key(*trust, input=document).exit_code == 0
    kept = load_keyring(home / "keys").get("pith-v1-2026-05")
    other = key("trust", "-", "--target", "author", input=document)
    assert isinstance(other.exception, ConfigError)
    assert "trusted already, for record: to change that, `anchord key untrust" in str(
        other.exception
    )
    assert load_keyring(home / "keys").get("pith-v1-2026-05") == kept
