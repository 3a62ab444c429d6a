"""The key folder: what is written, what is refused, and that no secret leaves it."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from anchord.adapters.signers.file import (
    create_key_dir,
    destroy_key,
    open_signer,
    open_signer_for,
    rotate_key,
)
from anchord.adapters.signers.keyring import (
    load_keyring,
    render,
    revoke_key,
    trust_key,
    untrust_key,
)
from anchord.adapters.signers.private_key import check_folder, read_passphrase, write_private_key
from anchord.core.keyring import REGISTRY_KEY, PublicKey, make_keyring
from anchord.errors import ConfigError, FatalError, SignatureError, UnknownKeyError

NOW = 1_780_000_000
SECRET = b"correct horse"
WHO = "example.org"
DIGEST = bytes(range(32))


@pytest.fixture
def folder(tmp_path):
    create_key_dir(tmp_path / "keys", WHO, None, NOW)
    return tmp_path / "keys"


@pytest.fixture
def passphrase_file(tmp_path):
    path = tmp_path / "passphrase"
    path.write_bytes(SECRET + b"\nsecond line\n")
    path.chmod(0o600)
    return path


def pem_of(folder):
    (path,) = folder.glob("*.pem")
    return path


def test_what_the_signer_signs_verifies_through_the_keyring(folder):
    signer = open_signer(folder, None, {}, WHO)
    signature = signer.sign(DIGEST)
    ring = load_keyring(folder)
    ring.verify(signer.key_id, DIGEST, signature, NOW, "timestamp")
    ring.verify(signer.key_id, DIGEST, signature, NOW, "storage")
    with pytest.raises(SignatureError):
        ring.verify(signer.key_id, DIGEST, signature, NOW, "record")
    assert signer.sign(DIGEST) == signature
    assert signer.signer_id == WHO
    assert signer.public_key == ring.active().public_key


def test_a_new_folder_holds_private_files_and_the_registrys_key(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(pem_of(folder).stat().st_mode) == 0o600
    key = load_keyring(folder).active()
    assert pem_of(folder).name == f"{key.key_id}.pem"
    assert key.key_id.startswith("example.org-2026-05-28-")
    assert load_keyring(folder).get("pith-v1-2026-05") == REGISTRY_KEY


def test_the_private_key_is_the_pkcs8_of_rfc_8410(folder):
    first, body, last = pem_of(folder).read_text().splitlines()
    assert (first, last) == ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
    der = base64.b64decode(body)
    assert der[:16] == bytes.fromhex("302e020100300506032b657004220420")
    private = Ed25519PrivateKey.from_private_bytes(der[16:])
    assert private.public_key().public_bytes_raw() == load_keyring(folder).active().public_key


def test_a_second_key_folder_in_the_same_place_is_refused(folder):
    before = (folder / "keyring.toml").read_bytes()
    with pytest.raises(ConfigError, match="key rotate"):
        create_key_dir(folder, WHO, None, NOW)
    assert (folder / "keyring.toml").read_bytes() == before
    assert len(list(folder.glob("*.pem"))) == 1


def test_a_private_key_is_never_overwritten(tmp_path):
    path = tmp_path / "a.pem"
    path.write_text("precious")
    with pytest.raises(ConfigError, match="never overwritten"):
        write_private_key(path, Ed25519PrivateKey.generate(), None)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_key_open_to_others_is_refused_with_the_chmod(folder, mode):
    pem_of(folder).chmod(mode)
    with pytest.raises(ConfigError, match=r"chmod 600 '.*\.pem'"):
        open_signer(folder, None, {}, WHO)


@pytest.mark.parametrize("mode", [0o750, 0o755, 0o701])
def test_a_folder_open_to_others_is_refused_with_the_chmod(folder, mode):
    folder.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 700"):
        open_signer(folder, None, {}, WHO)
    with pytest.raises(ConfigError, match="chmod 700"):
        rotate_key(folder, None, NOW + 1)
    load_keyring(folder)  # the public half may be read by anybody


def test_an_encrypted_key_opens_with_the_passphrase_only(tmp_path, passphrase_file):
    folder = tmp_path / "keys"
    create_key_dir(folder, WHO, SECRET, NOW)
    assert b"ENCRYPTED PRIVATE KEY" in pem_of(folder).read_bytes()
    assert len(open_signer(folder, passphrase_file, {}, WHO).sign(DIGEST)) == 64
    with pytest.raises(ConfigError, match="is encrypted"):
        open_signer(folder, None, {}, WHO)
    passphrase_file.write_bytes(b"Tr0ub4dor\n")
    with pytest.raises(ConfigError, match="passphrase is wrong") as caught:
        open_signer(folder, passphrase_file, {}, WHO)
    assert "Tr0ub4dor" not in str(caught.value)


def test_the_systemd_credential_is_used_when_no_file_is_named(tmp_path):
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "anchord-passphrase").write_bytes(SECRET)
    env = {"CREDENTIALS_DIRECTORY": str(credentials)}
    folder = tmp_path / "keys"
    create_key_dir(folder, WHO, read_passphrase(None, env), NOW)
    assert open_signer(folder, None, env, WHO).key_id
    assert read_passphrase(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)}) is None


def test_a_passphrase_file_is_refused_when_open_empty_or_missing(passphrase_file):
    passphrase_file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_passphrase(passphrase_file, {})
    passphrase_file.chmod(0o600)
    passphrase_file.write_bytes(b"\nsecond\n")
    with pytest.raises(ConfigError, match="is empty"):
        read_passphrase(passphrase_file, {})
    passphrase_file.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        read_passphrase(passphrase_file, {})


def test_a_passphrase_for_a_key_that_is_not_encrypted_is_told(folder, passphrase_file):
    with pytest.raises(ConfigError, match="not encrypted although"):
        open_signer(folder, passphrase_file, {}, WHO)


def test_another_kind_of_key_or_no_key_is_refused(folder):
    path = pem_of(folder)
    other = X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(other)
    with pytest.raises(ConfigError, match="expected Ed25519"):
        open_signer(folder, None, {}, WHO)
    path.write_bytes(b"-----BEGIN NONSENSE-----")
    with pytest.raises(ConfigError, match="PKCS#8 PEM"):
        open_signer(folder, None, {}, WHO)
    path.unlink()
    with pytest.raises(ConfigError, match="No such file"):
        open_signer(folder, None, {}, WHO)


def test_a_private_key_that_is_not_the_keyrings_is_refused(folder):
    path = pem_of(folder)
    path.unlink()
    write_private_key(path, Ed25519PrivateKey.generate(), None)
    with pytest.raises(ConfigError, match="not the private half"):
        open_signer(folder, None, {}, WHO)


def test_a_signer_of_another_name_is_refused(folder):
    with pytest.raises(ConfigError, match=r"signer\.signer_id is 'other'"):
        open_signer(folder, None, {}, "other")


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", "-x", "x" * 101])
def test_a_signer_id_that_cannot_name_a_file_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="signer_id is"):
        create_key_dir(tmp_path / "keys", name, None, NOW)


def test_only_digests_are_signed_and_nothing_secret_is_shown(folder):
    signer = open_signer(folder, None, {}, WHO)
    with pytest.raises(FatalError, match="32-byte digests"):
        signer.sign(b"some text")
    assert repr(signer) == f"FileSigner({signer.key_id!r})"


CHECKPOINT = b"log.example.org\n5\n" + base64.b64encode(bytes(32)) + b"\n"


def test_a_checkpoint_is_signed_as_the_text_it_is(folder):
    signer = open_signer(folder, None, {}, WHO)
    signature = signer.sign_note(CHECKPOINT)
    key = Ed25519PublicKey.from_public_bytes(signer.public_key)
    key.verify(signature, CHECKPOINT)
    assert signer.sign_note(CHECKPOINT) == signature


@pytest.mark.parametrize(
    "text",
    [b"", DIGEST, b"a letter\n", CHECKPOINT[:-1], CHECKPOINT + b"\n", b"\xff" + CHECKPOINT,
     CHECKPOINT.replace(b"5", b"05")],
)  # fmt: skip
def test_no_text_but_a_checkpoints_is_signed(folder, text):
    signer = open_signer(folder, None, {}, WHO)
    with pytest.raises(FatalError, match="only digests and checkpoints"):
        signer.sign_note(text)


def test_threads_share_a_signer(folder):
    signer = open_signer(folder, None, {}, WHO)
    digests = [bytes([n]) * 32 for n in range(200)]
    expected = [signer.sign(digest) for digest in digests]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(signer.sign, digests)) == expected


def test_rotation_ends_the_old_key_and_keeps_what_it_signed(folder):
    old = open_signer(folder, None, {}, WHO)
    signature = old.sign(DIGEST)
    new = rotate_key(folder, None, NOW + 100)
    ring = load_keyring(folder)
    assert open_signer(folder, None, {}, WHO).key_id == new.key_id != old.key_id
    assert [key.key_id for key in ring if key.active] == [new.key_id]
    ring.verify(old.key_id, DIGEST, signature, NOW + 100, "timestamp")
    with pytest.raises(SignatureError, match="was valid until"):
        ring.verify(old.key_id, DIGEST, signature, NOW + 101, "timestamp")


def test_a_series_is_finished_by_the_key_that_began_it(folder):
    old = open_signer(folder, None, {}, WHO)
    rotate_key(folder, None, NOW + 100)
    again = open_signer_for(folder, old.key_id, None, {})
    assert again.sign(DIGEST) == old.sign(DIGEST)
    assert again.signer_id == WHO
    with pytest.raises(ConfigError, match="not one of the own keys"):
        open_signer_for(folder, "pith-v1-2026-05", None, {})


def test_a_key_that_had_ended_finishes_nothing_that_was_begun_later(folder):
    old = open_signer(folder, None, {}, WHO)
    rotate_key(folder, None, NOW + 100)
    assert open_signer_for(folder, old.key_id, None, {}, NOW + 100).key_id == old.key_id
    with pytest.raises(ConfigError, match="had ended") as caught:
        open_signer_for(folder, old.key_id, None, {}, NOW + 101)
    assert not isinstance(caught.value, UnknownKeyError), "the active key relieves it"


def test_a_rotation_to_encrypted_keys_still_opens_the_older_one(folder, passphrase_file):
    old = open_signer(folder, None, {}, WHO)
    rotate_key(folder, SECRET, NOW + 100)
    assert open_signer(folder, passphrase_file, {}, WHO).key_id != old.key_id
    assert open_signer_for(folder, old.key_id, passphrase_file, {}).key_id == old.key_id


def test_a_destroyed_key_is_gone_but_still_verifies(folder):
    old = open_signer(folder, None, {}, WHO)
    signature = old.sign(DIGEST)
    rotate_key(folder, None, NOW + 100, destroy_old=True)
    assert not (folder / f"{old.key_id}.pem").exists()
    load_keyring(folder).verify(old.key_id, DIGEST, signature, NOW, "timestamp")
    with pytest.raises(ConfigError, match="No such file"):
        open_signer_for(folder, old.key_id, None, {})


def test_a_revoked_key_signs_no_more_and_the_first_revocation_stands(folder):
    signer = open_signer(folder, None, {}, WHO)
    revoked = revoke_key(folder, signer.key_id, 'laptop "stolen"\n\x7f', NOW + 5)
    assert load_keyring(folder).get(signer.key_id) == revoked
    with pytest.raises(ConfigError, match="key rotate"):
        open_signer(folder, None, {}, WHO)
    with pytest.raises(ConfigError, match="is revoked"):
        open_signer_for(folder, signer.key_id, None, {})
    with pytest.raises(ConfigError, match="revoked before"):
        revoke_key(folder, signer.key_id, "again", NOW + 9)
    rotate_key(folder, None, NOW + 10)
    assert load_keyring(folder).get(signer.key_id).revoked_at == NOW + 5
    assert open_signer(folder, None, {}, WHO).key_id != signer.key_id


def test_foreign_keys_come_and_go_but_own_keys_stay(folder):
    foreign = PublicKey(key_id="mirror", public_key=bytes(32), signer_id="mirror.example.org")
    trust_key(folder, foreign)
    assert load_keyring(folder).get("mirror") == foreign
    trust_key(folder, foreign)
    assert load_keyring(folder).get("mirror") == foreign, "twice is once"
    other = msgspec.structs.replace(foreign, public_key=bytes(31) + b"\1")
    with pytest.raises(ConfigError, match="mirror"):
        trust_key(folder, other)
    assert load_keyring(folder).get("mirror") == foreign
    untrust_key(folder, "mirror")
    assert load_keyring(folder).get("mirror") is None
    with pytest.raises(ConfigError, match="not in the keyring"):
        untrust_key(folder, "mirror")
    own = load_keyring(folder).active().key_id
    with pytest.raises(ConfigError, match="own key"):
        untrust_key(folder, own)


def test_the_keyring_file_reads_back_as_it_was(tmp_path):
    odd = PublicKey(
        key_id='odd "name"\n',
        public_key=bytes(range(32)),
        signer_id="zo\u00eb \U0001f600\x7f\x1b",
        targets=(),
        valid_from=0,
        valid_until=NOW,
        revoked_at=NOW,
        revocation_reason="\\ \t",
    )
    ring = make_keyring([REGISTRY_KEY, odd])
    (tmp_path / "keyring.toml").write_text(render(ring), "utf-8")
    assert load_keyring(tmp_path) == ring


DAMAGES = {
    "not TOML": ("[[keys", "TOML"),
    "unknown field": ("[[keys]]\nkey_idd = 1\n", "keyring.toml: Object"),
    "no keys": ("", "keys"),
    "not text": ("\udcff", "TOML"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_keyring_is_refused(tmp_path, case):
    text, words = DAMAGES[case]
    (tmp_path / "keyring.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=words):
        load_keyring(tmp_path)


EDITS = {
    "other fingerprint": ('fingerprint = "8d4b', 'fingerprint = "0000', "states the fingerprint"),
    "other algorithm": ('algorithm = "ed25519"', 'algorithm = "rsa"', "only ed25519"),
    "two active": (
        'signer_id = "pith.science"',
        'signer_id = "x"\nown = true\nactive = true',
        "all active",
    ),
    "no zone": (
        'signer_id = "pith.science"',
        'signer_id = "x"\nvalid_from = 2026-01-01T00:00:00',
        "time zone",
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edited_keyring_that_contradicts_itself_is_refused(folder, case):
    before, after, words = EDITS[case]
    path = folder / "keyring.toml"
    text = path.read_text()
    head, tail = text[: text.index("pith-v1")], text[text.index("pith-v1") :]
    assert before in tail
    path.write_text(head + tail.replace(before, after))
    with pytest.raises(ConfigError, match=words):
        load_keyring(folder)


def test_a_failed_change_leaves_the_old_keyring_and_no_temporary_file(folder):
    before = (folder / "keyring.toml").read_bytes()
    with pytest.raises(ConfigError, match="not valid text"):
        trust_key(folder, PublicKey(key_id="\ud800", public_key=bytes(32), signer_id="x"))
    assert (folder / "keyring.toml").read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "keyring.toml",
        pem_of(folder).name,
    }


def test_two_processes_that_trust_keys_lose_none(folder):
    program = (
        "import sys; from pathlib import Path\n"
        "from anchord.adapters.signers.keyring import trust_key\n"
        "from anchord.core.keyring import PublicKey\n"
        "for n in range(10):\n"
        "    name = f'{sys.argv[2]}{n}'\n"
        "    key = PublicKey(key_id=name, public_key=name.encode().ljust(32), signer_id='x')\n"
        "    trust_key(Path(sys.argv[1]), key)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(folder), name], env=os.environ)
        for name in "ab"
    ]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(load_keyring(folder)) == 22


def test_missing_folders_say_what_to_run(tmp_path):
    with pytest.raises(ConfigError, match="anchord key new"):
        open_signer(tmp_path / "none", None, {}, WHO)
    trust_key(tmp_path / "ring", PublicKey(key_id="a", public_key=bytes(32), signer_id="x"))
    with pytest.raises(ConfigError, match="no active key"):
        open_signer(tmp_path / "ring", None, {}, WHO)
    with pytest.raises(ConfigError, match="no active key"):
        rotate_key(tmp_path / "ring", None, NOW)
    assert create_key_dir(tmp_path / "ring", WHO, None, NOW).active


def test_what_is_no_folder_or_cannot_be_written_is_told(tmp_path, folder):
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be made"):
        create_key_dir(file, WHO, None, NOW)
    with pytest.raises(ConfigError, match="cannot be made"):
        create_key_dir(file / "keys", WHO, None, NOW)
    with pytest.raises(ConfigError, match="is not a folder"):
        check_folder(file)
    with pytest.raises(ConfigError, match="no key folder"):
        check_folder(tmp_path / "absent")
    (folder / ".lock").unlink()
    (folder / ".lock").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        rotate_key(folder, None, NOW)
    (tmp_path / "ring" / "keyring.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_keyring(tmp_path / "ring")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_private_key(tmp_path / "absent" / "a.pem", Ed25519PrivateKey.generate(), None)
    path = pem_of(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        open_signer(folder, None, {}, WHO)
    with pytest.raises(ConfigError, match="cannot be deleted"):
        destroy_key(folder, path.stem)


def test_an_own_key_id_cannot_lead_out_of_the_folder(folder):
    path = folder / "keyring.toml"
    key_id = load_keyring(folder).active().key_id
    path.write_text(path.read_text().replace(key_id, "../elsewhere"))
    with pytest.raises(ConfigError, match="cannot name a file"):
        open_signer(folder, None, {}, WHO)


def test_the_keyring_is_toml_with_moments_people_can_read(folder):
    raw = tomllib.loads((folder / "keyring.toml").read_text())
    own = next(row for row in raw["keys"] if row.get("active"))
    assert own["valid_from"].isoformat() == "2026-05-28T20:26:40+00:00"
    assert own["targets"] == ["timestamp", "storage"]


def test_a_clock_before_the_key_began_neither_rotates_nor_signs(folder):
    before = (folder / "keyring.toml").read_bytes()
    with pytest.raises(ConfigError, match="clock"):
        rotate_key(folder, None, NOW - 1)
    with pytest.raises(ConfigError, match="clock"):
        open_signer(folder, None, {}, WHO, NOW - 1)
    assert (folder / "keyring.toml").read_bytes() == before
    assert len(list(folder.glob("*.pem"))) == 1
    assert open_signer(folder, None, {}, WHO, NOW).sign(DIGEST)


def test_a_key_that_could_not_be_written_leaves_no_file(tmp_path, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        write_private_key(tmp_path / "a.pem", Ed25519PrivateKey.generate(), None)
    assert list(tmp_path.iterdir()) == []
