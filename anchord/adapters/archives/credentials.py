"""The key pair of an archive.org account: read from one private file, never shown.

A pair is made at https://archive.org/account/s3.php; `ia configure` writes it as an ini file with
a section [s3] (internetarchive documentation, "Configuration"). Anything else that can hold a key
(command line, environment, the tool's own stray files) is not read on purpose: others see the
first two, and the third may belong to another account.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec

from anchord.errors import ConfigError

CREDENTIAL = "anchord-archive"
"""Name of the systemd credential (`LoadCredential=anchord-archive:...`)."""
_MAX_BYTES = 64 * 1024
_OPEN_TO_OTHERS = 0o077
_KEY = re.compile(r"[A-Za-z0-9._~+/=-]{4,128}")
"""Real keys are 16 letters and digits; what HTTP headers and URLs carry unharmed is accepted."""
_PLACEHOLDER = re.compile(
    r"(?i)(your|my|replace|change|insert|example|placeholder|todo|access|secret|x{4,}|\.{3,})"
    r"([-_.]?(me|this|here|access|secret|s3|key|id)){0,4}|x{4,}|\.{3,}"
)
_EXPECTED = (
    "expected an ini file with [s3], access = ... and secret = ... (as `ia configure` writes it), "
    "or two lines: the access key, then the secret key"
)


class Keys(msgspec.Struct, frozen=True):
    """A key pair of an account. Neither key is in its repr, and so in no message by accident."""

    access: str
    secret: str

    def __repr__(self) -> str:
        return f"Keys(account {self.fingerprint})"

    __str__ = __repr__

    @property
    def fingerprint(self) -> str:
        """What the account is called where it must be told apart: 16 hex digits, no secret."""
        return hashlib.sha256(self.access.encode()).hexdigest()[:16]


def load_keys(path: Path | None, environ: Mapping[str, str]) -> Keys | None:
    """Return the keys in `path`, else in the systemd credential, else None.

    Args:
        path: the file named in the configuration.
        environ: where `CREDENTIALS_DIRECTORY` may stand; no key is read from it.

    Raises:
        ConfigError: the file is missing, open to other users, or does not hold two real keys.
    """
    if path is not None:
        return _keys(path, _read(path, private=True))
    folder = environ.get("CREDENTIALS_DIRECTORY")
    credential = Path(folder) / CREDENTIAL if folder else None
    if credential is None or not credential.exists():
        return None
    # systemd keeps the folder private; the group bits of the file may be an ACL's mask.
    return _keys(credential, _read(credential, private=False))


def _read(path: Path, *, private: bool) -> str:
    """Read the file; its mode is judged on the open file, so it cannot be swapped meanwhile."""
    try:
        # A named pipe in its place would hold us for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if private and mode & _OPEN_TO_OTHERS:
                raise ConfigError(
                    f"{path} is open to other users (mode {stat.S_IMODE(mode):04o}): "
                    f"expected 600; run: chmod 600 '{path}'"
                )
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"the archive.org keys {path} cannot be read: {error.strerror or 'input/output error'}"
        ) from None
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{path} is too big to be a key file: {_EXPECTED}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # The error would quote the bytes.
        raise ConfigError(f"{path} is not UTF-8: {_EXPECTED}") from None


def _keys(path: Path, text: str) -> Keys:
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and line[0] not in "#;"]
    pair = _from_ini(path, text) if any(line[0] == "[" for line in lines) else tuple(lines)
    if len(pair) != 2 or not all(pair):
        raise ConfigError(f"{path} does not hold two keys: {_EXPECTED}")
    access, secret = pair
    for name, key in (("access", access), ("secret", secret)):
        if _PLACEHOLDER.fullmatch(key):
            raise ConfigError(
                f"{path}: the {name} key is a placeholder; put in the one from "
                "https://archive.org/account/s3.php"
            )
        if not _KEY.fullmatch(key):
            raise ConfigError(
                f"{path}: the {name} key is none (white space, an odd character, or its length): "
                f"{_EXPECTED}"
            )
    if access == secret:
        raise ConfigError(f"{path}: access and secret key are the same; {_EXPECTED}")
    return Keys(access, secret)


def _from_ini(path: Path, text: str) -> tuple[str, ...]:
    parser = configparser.RawConfigParser(strict=True)
    try:
        parser.read_string(text)
        return tuple(parser.get("s3", name, fallback="").strip() for name in ("access", "secret"))
    except configparser.Error:
        # Its words quote the line that it could not read.
        raise ConfigError(f"{path} cannot be read as an ini file: {_EXPECTED}") from None
