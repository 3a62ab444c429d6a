"""The key folder: signing keys in files, one of them active (`anchord.ports.Signer`).

    keys/                mode 0700
      keyring.toml       public half of own and foreign keys
      <key_id>.pem       private half of own keys, PKCS#8 PEM, mode 0600

A private key is written before the keyring names it. A crash in between leaves a `.pem` that
nothing refers to; the next try makes another key, and the orphan may be deleted.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from anchord.adapters.disk import sync_folder
from anchord.adapters.signers.keyring import change_keyring, load_keyring
from anchord.adapters.signers.private_key import (
    check_folder,
    read_passphrase,
    read_private_key,
    write_private_key,
)
from anchord.adapters.signers.worker import Worker
from anchord.core.checkpoint import parse_text
from anchord.core.keyring import Keyring, PublicKey, fingerprint
from anchord.errors import ConfigError, FatalError, RefusedError, UnknownKeyError

_WORTH_A_PROCESS = 8_192
"""Signatures after which a process of its own pays for its start."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}")


class FileSigner:
    """Signs with one key read from the key folder. Threads may share it.

    `cryptography` releases the interpreter lock while it signs, so threads sign in parallel.
    """

    def __init__(self, public: PublicKey, private: Ed25519PrivateKey) -> None:
        self._public = public
        self._private = private
        self._workers: list[Worker] = []
        self._signed = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"FileSigner({self.key_id!r})"

    @property
    def key_id(self) -> str:
        """Name of the key, as events state it."""
        return self._public.key_id

    @property
    def public_key(self) -> bytes:
        """Return the 32 raw bytes of the public key."""
        return self._public.public_key

    @property
    def signer_id(self) -> str:
        """Who signs, e.g. a host name."""
        return self._public.signer_id

    def sign(self, digest: bytes) -> bytes:
        """Sign 32 raw bytes (RFC 8032 Ed25519: deterministic).

        Raises:
            FatalError: anything but 32 bytes; nothing else is ever signed.
        """
        if len(digest) != 32:
            raise FatalError(f"asked to sign {len(digest)} bytes: only 32-byte digests are signed")
        return self._private.sign(digest)

    def sign_note(self, text: bytes) -> bytes:
        """Sign the text of a checkpoint: at least three lines, so never 32 bytes of a digest.

        Raises:
            FatalError: anything but a checkpoint's text; nothing else is ever signed.
        """
        try:
            parse_text(text.decode("utf-8"))
        except (RefusedError, UnicodeDecodeError):
            raise FatalError(
                f"asked to sign {len(text)} bytes that are no checkpoint: only digests and "
                "checkpoints are signed"
            ) from None
        return self._private.sign(text)

    def sign_many(self, digests: list[bytes]) -> list[bytes]:
        """Sign as `sign` does, in processes of their own once there is much to sign.

        Two threads may call at once; each gets a process. A process that is gone is done without.
        """
        worker = None
        if all(len(digest) == 32 for digest in digests):
            worker = self._borrow(len(digests))
        if worker is not None:
            signatures = worker.sign(digests)
            if signatures is not None:
                with self._lock:
                    self._workers.append(worker)
                return signatures
            worker.close()
        return [self.sign(digest) for digest in digests]

    def close(self) -> None:
        """End the signing processes; may be called twice."""
        with self._lock:
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()

    def _borrow(self, count: int) -> Worker | None:
        """Return a process nobody uses now; None while starting one is not worth it."""
        with self._lock:
            self._signed += count
            if self._workers:
                return self._workers.pop()
            if self._signed < _WORTH_A_PROCESS or not sys.executable:
                return None
        try:
            return Worker(self._private.private_bytes_raw())
        except OSError:
            return None


def create_key_dir(folder: Path, signer_id: str, passphrase: bytes | None, now: int) -> PublicKey:
    """Make the key folder with a first, active key; what is already in a keyring is kept.

    Raises:
        ConfigError: there is an active key already, the folder is open to others or cannot be
            written, or `signer_id` cannot be part of a file name.
    """

    def add_first(keys: list[PublicKey]) -> list[PublicKey]:
        active = Keyring({key.key_id: key for key in keys}).active()
        if active is not None:
            raise ConfigError(
                f"{folder} already has the active key {active.key_id}: "
                "`anchord key rotate` makes the next one"
            )
        return [_new_key(folder, signer_id, passphrase, now), *keys]

    change_keyring(folder, add_first)
    return _active(folder)


def rotate_key(
    folder: Path,
    passphrase: bytes | None,
    now: int,
    *,
    signer_id: str | None = None,
    destroy_old: bool = False,
) -> PublicKey:
    """Make a new key active; the old one ends at `now` and keeps verifying what it signed.

    The keyring is replaced in one step, so there is never none and never two active keys.

    Args:
        folder: the key folder.
        passphrase: for the new private key; None leaves it unencrypted.
        now: Unix seconds.
        signer_id: who signs from now on; None: as before.
        destroy_old: delete the old private key once the new one is active.

    Raises:
        ConfigError: no active key, the clock is before the old key's beginning, or the folder is
            open to others or cannot be written.
    """
    ended: list[str] = []

    def turn(keys: list[PublicKey]) -> list[PublicKey]:
        old = next((key for key in keys if key.active), None)
        if old is None:
            raise ConfigError(f"{folder} has no active key: make one with `anchord key new`")
        _check_clock(old, now)
        ended.append(old.key_id)
        new = _new_key(folder, signer_id or old.signer_id, passphrase, now)
        past = msgspec.structs.replace(old, active=False, valid_until=now)
        return [new, *(past if key is old else key for key in keys)]

    change_keyring(folder, turn)
    if destroy_old:
        destroy_key(folder, ended[0])
    return _active(folder)


def _check_clock(key: PublicKey, now: int) -> None:
    """Refuse a moment before a key began: what it signed, or signs, would count as never valid.

    Raises:
        ConfigError: one of two clocks was wrong, this one or the one the key was made by.
    """
    if key.valid_from is not None and now < key.valid_from:
        begun, here = (datetime.fromtimestamp(at, UTC).isoformat() for at in (key.valid_from, now))
        raise ConfigError(
            f"key {key.key_id} is valid from {begun}, but this machine's clock says {here}: set "
            "the clock right; if the key was made while the clock was ahead and has signed "
            "nothing, correct valid_from in keyring.toml"
        )


def destroy_key(folder: Path, key_id: str) -> None:
    """Delete a private key; backups and the disk's spare blocks may still hold it.

    Raises:
        ConfigError: the file cannot be deleted.
    """
    try:
        _pem(folder, key_id).unlink(missing_ok=True)
        sync_folder(folder)
    except OSError as error:
        raise ConfigError(f"key {key_id} cannot be deleted: {error.strerror}") from None


def open_signer(
    folder: Path,
    passphrase_file: Path | None,
    env: Mapping[str, str],
    signer_id: str,
    now: int | None = None,
) -> FileSigner:
    """Return the signer of the active key.

    Args:
        folder: the key folder.
        passphrase_file: first line is the passphrase; None: the systemd credential, if any.
        env: the environment, for CREDENTIALS_DIRECTORY.
        signer_id: who the configuration says signs; it must be who the key was published for.
        now: Unix seconds; when given, the key must have begun.

    Raises:
        ConfigError: no active key, or it is revoked, another signer's, unreadable or unsafe.
    """
    key = _active(folder)
    if key.revoked_at is not None:
        raise ConfigError(f"the active key {key.key_id} is revoked: run `anchord key rotate`")
    if key.signer_id != signer_id:
        raise ConfigError(
            f"signer.signer_id is {signer_id!r} but the active key was published for "
            f"{key.signer_id!r}: set it back, or run `anchord key rotate`"
        )
    if now is not None:
        _check_clock(key, now)
    return _open(folder, key, read_passphrase(passphrase_file, env), encrypted_if_asked=True)


def open_signer_for(
    folder: Path,
    key_id: str,
    passphrase_file: Path | None,
    env: Mapping[str, str],
    at: int | None = None,
) -> FileSigner:
    """Return the signer of an own key, active or not: who began a series of events finishes it.

    Args:
        folder: the key folder.
        key_id: whose.
        passphrase_file: as in `open_signer`.
        env: as in `open_signer`.
        at: when the series was begun, Unix seconds; what a key signs beyond its end never counts.

    Raises:
        UnknownKeyError: not an own key.
        ConfigError: revoked, ended before `at`, or its private half is gone, unreadable or unsafe.
    """
    key = load_keyring(folder).get(key_id)
    if key is None or not key.own:
        raise UnknownKeyError(
            f"key {key_id!r} is not one of the own keys in {folder}, and signs for this store "
            "elsewhere: copy the key folder from the machine that has it; nothing is signed before"
        )
    if key.revoked_at is not None:
        raise ConfigError(f"key {key_id!r} is revoked: nothing is signed with it any more")
    if at is not None and key.valid_until is not None and at > key.valid_until:
        raise ConfigError(f"key {key_id!r} had ended when this was begun: the active one signs it")
    return _open(folder, key, read_passphrase(passphrase_file, env), encrypted_if_asked=False)


def _open(
    folder: Path, key: PublicKey, passphrase: bytes | None, *, encrypted_if_asked: bool
) -> FileSigner:
    check_folder(folder)
    path = _pem(folder, key.key_id)
    private = read_private_key(path, passphrase, encrypted_if_asked=encrypted_if_asked)
    if private.public_key().public_bytes_raw() != key.public_key:
        raise ConfigError(
            f"{path} is not the private half of {key.key_id} in the keyring: "
            "restore both from the same copy"
        )
    return FileSigner(key, private)


def _active(folder: Path) -> PublicKey:
    key = load_keyring(folder).active()
    if key is None:
        raise ConfigError(f"{folder} has no active key: make one with `anchord key new`")
    return key


def _new_key(folder: Path, signer_id: str, passphrase: bytes | None, now: int) -> PublicKey:
    """Make and write a private key; return its public half, active."""
    if not _NAME.fullmatch(signer_id):
        raise ConfigError(
            f"signer_id is {signer_id!r}: expected up to 100 of letters, digits and . _ : @ -"
        )
    check_folder(folder)
    private = Ed25519PrivateKey.generate()
    raw = private.public_key().public_bytes_raw()
    day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
    key_id = f"{signer_id}-{day}-{fingerprint(raw)[:8]}"
    write_private_key(_pem(folder, key_id), private, passphrase)
    return PublicKey(
        key_id=key_id,
        public_key=raw,
        signer_id=signer_id,
        valid_from=now,
        own=True,
        active=True,
    )


def _pem(folder: Path, key_id: str) -> Path:
    """Return the private key's file; an id that would leave the folder is refused."""
    if "/" in key_id or "\0" in key_id or key_id.startswith("."):
        raise ConfigError(f"key_id {key_id!r} cannot name a file in {folder}")
    return folder / f"{key_id}.pem"
