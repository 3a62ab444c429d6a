"""One private key in one file: PKCS#8 PEM, refused when anybody else can read it.

No message and no repr holds key material or a passphrase. A key file is written once, with
O_EXCL, and never changed or overwritten.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from anchord.adapters.disk import sync_folder
from anchord.errors import ConfigError

CREDENTIAL = "anchord-passphrase"
"""Name of the systemd credential (`LoadCredential=anchord-passphrase:...`)."""
_MAX_BYTES = 64 * 1024
_READABLE_BY_OTHERS = 0o077


def check_private(path: Path, mode: int, right: str) -> None:
    """Refuse a file or folder that its group or others may touch.

    Raises:
        ConfigError: with the chmod to run.
    """
    if mode & _READABLE_BY_OTHERS:
        raise ConfigError(
            f"{path} is open to other users (mode {stat.S_IMODE(mode):04o}): "
            f"expected {right}; run: chmod {right} '{path}'"
        )


def check_folder(folder: Path) -> None:
    """Refuse a key folder that its group or others may touch.

    Raises:
        ConfigError: missing, no folder, or open to others.
    """
    try:
        found = folder.stat()
    except OSError as error:
        raise ConfigError(
            f"no key folder at {folder} ({error.strerror}): make one with `anchord key new`"
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"{folder} is not a folder: signer.key_dir names the folder of the keys")
    check_private(folder, found.st_mode, "700")


def read_passphrase(file: Path | None, env: Mapping[str, str]) -> bytes | None:
    """Return the first line of `file`, else of the systemd credential, else None.

    Raises:
        ConfigError: the file is missing, empty, or open to other users.
    """
    if file is not None:
        return _first_line(file, private=True)
    folder = env.get("CREDENTIALS_DIRECTORY")
    credential = Path(folder) / CREDENTIAL if folder else None
    if credential is None or not credential.exists():
        return None
    # systemd keeps the folder private; the group bits of the file may be an ACL's mask.
    return _first_line(credential, private=False)


def _first_line(path: Path, *, private: bool) -> bytes:
    line = _read(path, "passphrase file", private=private).split(b"\n", 1)[0].rstrip(b"\r")
    if not line:
        raise ConfigError(f"{path} is empty: expected the key's passphrase on its first line")
    return line


def _read(path: Path, what: str, *, private: bool) -> bytes:
    """Read a small secret file; its mode is judged on the open file, so it cannot be swapped."""
    try:
        with path.open("rb") as file:
            if private:
                check_private(path, os.fstat(file.fileno()).st_mode, "600")
            return file.read(_MAX_BYTES)
    except OSError as error:
        raise ConfigError(
            f"the {what} {path} cannot be read: {error.strerror or 'input/output error'}"
        ) from None


def write_private_key(path: Path, key: Ed25519PrivateKey, passphrase: bytes | None) -> None:
    """Write `key` to a new file, mode 0600, durable when this returns.

    Raises:
        ConfigError: the file exists, or the folder cannot be written.
    """
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption(),
    )
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            # No key yet that anything could refer to: a full disk leaves no empty file.
            path.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except FileExistsError:
        raise ConfigError(f"{path} exists: a private key is never overwritten") from None
    except OSError as error:
        raise ConfigError(f"the private key {path} cannot be written: {error.strerror}") from None


def is_encrypted(path: Path) -> bool:
    """Tell whether a private key's file is of use to nobody without its passphrase.

    Raises:
        ConfigError: it cannot be read, or others can read it.
    """
    return b"BEGIN ENCRYPTED PRIVATE KEY" in _read(path, "private key", private=True)


def read_private_key(
    path: Path, passphrase: bytes | None, *, encrypted_if_asked: bool = False
) -> Ed25519PrivateKey:
    """Return the Ed25519 key in `path`.

    Args:
        path: PKCS#8 PEM file.
        passphrase: for an encrypted key; an unencrypted one is read all the same.
        encrypted_if_asked: refuse an unencrypted key when there is a passphrase, because whoever
            set one believes the key to be encrypted.

    Raises:
        ConfigError: missing, open to others, wrong or missing passphrase, not an Ed25519 key.
    """
    pem = _read(path, "private key", private=True)
    encrypted = b"BEGIN ENCRYPTED PRIVATE KEY" in pem
    if encrypted and passphrase is None:
        raise ConfigError(
            f"{path} is encrypted: set signer.passphrase_file, or give systemd the "
            f"credential {CREDENTIAL}"
        )
    if passphrase is not None and not encrypted and encrypted_if_asked:
        raise ConfigError(
            f"{path} is not encrypted although a passphrase is set: "
            "run `anchord key rotate` for an encrypted key, or clear signer.passphrase_file"
        )
    return _decode(path, pem, passphrase if encrypted else None)


def _decode(path: Path, pem: bytes, passphrase: bytes | None) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The library's own words are left out: they may quote what was read.
        problem = "the passphrase is wrong or the file is damaged" if passphrase else "it is not"
        raise ConfigError(
            f"{path} cannot be read as a PKCS#8 PEM private key: {problem}"
            + ("" if passphrase else " one; restore it from a copy")
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(
            f"{path} holds another kind of key ({type(key).__name__}): expected Ed25519"
        )
    return key
