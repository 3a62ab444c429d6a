"""The keyring file: `keyring.toml` in the key folder, the public half of all keys.

People may read and edit it. anchord replaces it whole (temporary file, fsync, rename) under a
lock, so a crash leaves the old or the new one, and two writers do not lose each other's change.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from anchord.adapters.disk import read_small, sync_folder
from anchord.core import stricttoml
from anchord.core.key_document import decode_key
from anchord.core.keyring import (
    ALGORITHM,
    REGISTRY_KEY,
    Keyring,
    PublicKey,
    fingerprint,
    make_keyring,
)
from anchord.errors import ConfigError, RefusedError

FILE = "keyring.toml"
_HEADER = """\
# anchord's keyring: the public half of every key whose signatures are believed.
# Written by `anchord key`; a comment you add is lost at the next change.
"""


_MAX_BYTES = 16 << 20
"""About 40,000 keys."""


class _Row(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One [[keys]] table."""

    key_id: str
    algorithm: str
    public_key_b64: str
    fingerprint: str
    signer_id: str
    signer_type: str
    targets: list[str]
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    revoked_at: datetime | None = None
    revocation_reason: str | None = None
    own: bool = False
    active: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    keys: list[_Row]


def load_keyring(folder: Path) -> Keyring:
    """Read `folder`/keyring.toml.

    Raises:
        ConfigError: missing, not TOML, an unknown field, a fingerprint that is another key's,
            one key twice, or two active keys.
    """
    path = folder / FILE
    try:
        raw = stricttoml.parse(read_small(path, _MAX_BYTES))
        rows = msgspec.convert(raw, _File).keys
        return make_keyring([_from_row(row) for row in rows])
    except FileNotFoundError:
        raise ConfigError(
            f"no keyring at {path}: make one with `anchord init` or `anchord key new`"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.ValidationError, RefusedError) as error:
        raise ConfigError(f"{path}: {error}") from None


def change_keyring(folder: Path, change: Callable[[list[PublicKey]], list[PublicKey]]) -> None:
    """Replace the keys by what `change` returns of them, under the folder's lock.

    A keyring that is not there yet begins with the registry's published key.

    Raises:
        ConfigError: the old keyring cannot be read, the new one contradicts itself, or the
            folder cannot be written.
    """
    _make_folder(folder)
    with _locked(folder):
        old = list(load_keyring(folder)) if (folder / FILE).exists() else [REGISTRY_KEY]
        try:
            text = render(make_keyring(change(old)))
        except RefusedError as error:
            raise ConfigError(f"{folder / FILE}: {error}") from None
        _replace(folder / FILE, text)


def revoke_key(folder: Path, key_id: str, reason: str, now: int) -> PublicKey:
    """Say that nothing `key_id` signs after `now` counts; return it as it is now.

    Raises:
        ConfigError: unknown, or revoked before (the first moment and reason stand).
    """
    found: list[PublicKey] = []

    def revoke(keys: list[PublicKey]) -> list[PublicKey]:
        old = _named(keys, key_id)
        if old.revoked_at is not None:
            raise ConfigError(
                f"key {key_id} was revoked before, at {_moment(old.revoked_at)} "
                f"({old.revocation_reason}): nothing is changed"
            )
        new = msgspec.structs.replace(old, revoked_at=now, revocation_reason=reason)
        found.append(new)
        return [new if key is old else key for key in keys]

    change_keyring(folder, revoke)
    return found[0]


def trust_key(folder: Path, key: PublicKey) -> None:
    """Add a foreign key; one that is trusted in this very way already stays.

    Raises:
        ConfigError: its name or the key itself is in the keyring already, and says something else.
    """

    def add(keys: list[PublicKey]) -> list[PublicKey]:
        old = next((one for one in keys if one.public_key == key.public_key), None)
        if old is None or old.key_id != key.key_id:
            return [*keys, key]
        if old == key or old.own:
            return keys
        raise ConfigError(
            f"key {key.key_id} is trusted already, for {', '.join(old.targets)}: to change that, "
            f"`anchord key untrust {key.key_id}` first"
        )

    change_keyring(folder, add)


def untrust_key(folder: Path, key_id: str) -> None:
    """Take a foreign key out.

    Raises:
        ConfigError: unknown, or an own key: what it signed must stay verifiable.
    """

    def forget(keys: list[PublicKey]) -> list[PublicKey]:
        old = _named(keys, key_id)
        if old.own:
            raise ConfigError(
                f"key {key_id} is an own key: end it with `anchord key rotate` or `revoke`"
            )
        return [key for key in keys if key is not old]

    change_keyring(folder, forget)


def _named(keys: list[PublicKey], key_id: str) -> PublicKey:
    for key in keys:
        if key.key_id == key_id:
            return key
    raise ConfigError(f"key {key_id!r} is not in the keyring: see `anchord key list`")


def _make_folder(folder: Path) -> None:
    try:
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
    except OSError as error:
        raise ConfigError(f"the key folder {folder} cannot be made: {error.strerror}") from None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; a second writer waits. The system drops it when we crash."""
    try:
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"the key folder {folder} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Put `text` in the place of `path`, whole or not at all, durable when this returns."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None


def render(keyring: Keyring) -> str:
    """Return the text of keyring.toml."""
    return _HEADER + "".join(f"\n[[keys]]\n{_table(key)}" for key in keyring)


def _table(key: PublicKey) -> str:
    fields: dict[str, str | None] = {
        "key_id": _text(key.key_id),
        "algorithm": _text(ALGORITHM),
        "public_key_b64": _text(base64.b64encode(key.public_key).decode("ascii")),
        "fingerprint": _text(fingerprint(key.public_key)),
        "signer_id": _text(key.signer_id),
        "signer_type": _text(key.signer_type),
        "targets": f"[{', '.join(_text(target) for target in key.targets)}]",
        "valid_from": _moment(key.valid_from),
        "valid_until": _moment(key.valid_until),
        "revoked_at": _moment(key.revoked_at),
        "revocation_reason": None
        if key.revocation_reason is None
        else _text(key.revocation_reason),
        "own": "true" if key.own else None,
        "active": "true" if key.active else None,
    }
    return "".join(f"{name} = {value}\n" for name, value in fields.items() if value is not None)


def _text(value: str) -> str:
    """Return a TOML basic string: JSON's escapes are TOML's, but TOML also escapes DEL."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RefusedError(f"{value!r:.80} is not valid text: expected Unicode") from None
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _moment(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _from_row(row: _Row) -> PublicKey:
    if row.algorithm != ALGORITHM:
        raise RefusedError(f"key {row.key_id!r} is {row.algorithm!r}: only {ALGORITHM} is known")
    raw = decode_key(row.public_key_b64, row.key_id)
    if fingerprint(raw) != row.fingerprint:
        raise RefusedError(
            f"key {row.key_id!r} states the fingerprint {row.fingerprint!r:.80} but its key has "
            f"{fingerprint(raw)}: somebody changed one of them; restore the keyring from a copy"
        )
    return PublicKey(
        key_id=row.key_id,
        public_key=raw,
        signer_id=row.signer_id,
        signer_type=row.signer_type,
        valid_from=_seconds(row.valid_from, row.key_id),
        valid_until=_seconds(row.valid_until, row.key_id),
        revoked_at=_seconds(row.revoked_at, row.key_id),
        revocation_reason=row.revocation_reason,
        targets=tuple(row.targets),
        own=row.own,
        active=row.active,
    )


def _seconds(moment: datetime | None, key_id: str) -> int | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise RefusedError(f"key {key_id!r}: {moment} has no time zone; write e.g. {moment}Z")
    return int(moment.timestamp())
