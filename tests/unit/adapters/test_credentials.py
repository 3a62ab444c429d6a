"""Keys are read from one private file and are shown nowhere."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.adapters.archives.credentials import CREDENTIAL, Keys, load_keys
from anchord.errors import ConfigError

ACCESS, SECRET = "AbCdEfGh12345678", "ZyXwVuTs87654321"
INI = f"[s3]\naccess = {ACCESS}\nsecret = {SECRET}\n\n[cookies]\nlogged-in-user = a%40example.org\n"


def _file(folder: Path, content: str | bytes, mode: int = 0o600) -> Path:
    path = folder / "archive-keys"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "content",
    [
        INI,
        INI.replace("\n", "\r\n"),
        "\ufeff" + INI,
        f"; made by hand\n[s3]\naccess={ACCESS}\nsecret={SECRET}\n",
        f"{ACCESS}\n{SECRET}\n",
        f"# the account of example.org\n\n  {ACCESS}  \r\n{SECRET}",
    ],
)
def test_both_forms_are_read(tmp_path: Path, content: str) -> None:
    assert load_keys(_file(tmp_path, content), {}) == Keys(ACCESS, SECRET)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "two keys"),
        (f"{ACCESS}\n", "two keys"),
        (f"{ACCESS}\n{SECRET}\nthird-line\n", "two keys"),
        (f"[s3]\naccess = {ACCESS}\n", "two keys"),
        (f"[other]\naccess = {ACCESS}\nsecret = {SECRET}\n", "two keys"),
        (f"[s3]\naccess = {ACCESS}\nsecret =\n", "two keys"),
        ("[s3]\naccess = YOUR_ACCESS_KEY\nsecret = YOUR_SECRET_KEY\n", "placeholder"),
        (f"{ACCESS}\nxxxxxxxx\n", "placeholder"),
        (f"ACCESS\n{SECRET}\n", "placeholder"),
        (f"{ACCESS}\nchange-me\n", "placeholder"),
        (f"{ACCESS}\nZyXw VuTs87654321\n", "white space"),
        (f"{ACCESS}\nZyXwVuTs8765432ü\n", "odd character"),
        (f"{ACCESS}\n{ACCESS}\n", "the same"),
        (f"[s3]\naccess = {ACCESS}\naccess = {ACCESS}\nsecret = {SECRET}\n", "ini"),
        (f"[s3]\n{ACCESS}\n", "ini"),
        (INI.encode("utf-16"), "UTF-8"),
        (b"\x00" * 70_000, "too big"),
    ],
)
def test_what_is_not_two_real_keys_is_refused_without_being_quoted(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        load_keys(_file(tmp_path, content), {})
    told = "".join(traceback.format_exception(caught.value))
    assert ACCESS not in told
    assert SECRET not in told
    assert "VuTs" not in told


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_file_that_others_may_touch_is_refused_with_the_way_out(
    tmp_path: Path, mode: int
) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        load_keys(_file(tmp_path, INI, mode), {})


def test_a_missing_file_is_refused_and_not_taken_for_no_account(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_keys(tmp_path / "absent", {"CREDENTIALS_DIRECTORY": str(tmp_path)})


@pytest.mark.timeout(10)
def test_a_pipe_in_its_place_does_not_hold_us(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="two keys"):
        load_keys(tmp_path / "pipe", {})


def test_the_file_goes_before_the_systemd_credential_and_none_is_none(tmp_path: Path) -> None:
    credential = tmp_path / CREDENTIAL
    credential.write_text("Systemd-access\nSystemd-secret\n")
    credential.chmod(0o440)
    environ = {
        "CREDENTIALS_DIRECTORY": str(tmp_path),
        "IA_ACCESS_KEY_ID": ACCESS,
        "IA_SECRET_ACCESS_KEY": SECRET,
    }
    assert load_keys(None, environ) == Keys("Systemd-access", "Systemd-secret")
    assert load_keys(_file(tmp_path, INI), environ) == Keys(ACCESS, SECRET)
    credential.unlink()
    assert load_keys(None, environ) is None
    assert load_keys(None, {}) is None


KEYS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=8)


@given(access=KEYS, secret=KEYS)
def test_no_way_of_printing_shows_a_key(access: str, secret: str) -> None:
    keys = Keys(access, secret)
    for text in (repr(keys), str(keys), f"{keys}", f"{keys!r}", "%s" % keys, repr([keys])):  # noqa: UP031
        assert access not in text
        assert secret not in text
    assert len(keys.fingerprint) == 16
    assert keys.fingerprint == Keys(access, "another").fingerprint
    with pytest.raises(AttributeError):
        keys.access = "x"  # type: ignore[misc]
    assert msgspec.structs.asdict(keys) == {"access": access, "secret": secret}
