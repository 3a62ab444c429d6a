"""Secrets of outlets, read from private files when they are needed: never configured, never shown.

The file is read for every turn, so a secret that is replaced holds from then on.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from typing import TYPE_CHECKING

from anchord.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 64 * 1024
_PREFIX = "whsec_"
_KEY_BYTES = range(24, 65)
"""What Standard Webhooks asks of a secret: 192 to 512 bits."""


def read_lines(path: Path, what: str) -> list[str]:
    """Return the lines of a secret file; its mode is judged on the open file.

    Args:
        path: the file.
        what: what it holds, for messages.

    Raises:
        ConfigError: missing, open to everybody, too long, not UTF-8, or empty.
    """
    try:
        # A named pipe in its place would hold us for ever.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        why = error.strerror or "input/output error"
        raise ConfigError(f"{what} {path} cannot be read: {why}; check it") from None
    # A group may read it: systemd hands credentials over with mode 0440.
    if mode & stat.S_IRWXO:
        raise ConfigError(
            f"{what} {path} is open to everybody on this machine (mode {stat.S_IMODE(mode):04o}): "
            f"run chmod o= on it, and change the secret if others use the machine"
        )
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"{what} {path} is longer than {_MAX_BYTES:,} bytes: it is another file")
    try:
        lines = [line.strip() for line in data.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError(f"{what} {path} is not UTF-8 text: it is another file") from None
    lines = [line for line in lines if line]
    if not lines:
        raise ConfigError(f"{what} {path} is empty: expected it in line 1")
    return lines


def signing_keys(path: Path) -> list[bytes]:
    """Return the keys of a webhook's secret file: one a line, the newest first.

    Several are for the time a secret is changed: each request is signed with all of them.

    Raises:
        ConfigError: the file cannot be used, or a line is no secret.
    """
    return [_key(line, path) for line in read_lines(path, "the webhook's secret_file")]


def _key(line: str, path: Path) -> bytes:
    try:
        key = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _KEY_BYTES:
        raise ConfigError(
            f"{path}: expected {_PREFIX} and the base64 of 24 to 64 random bytes a line, as "
            f'`echo "{_PREFIX}$(openssl rand -base64 32)"` makes it; a line is something else'
        )
    return key
