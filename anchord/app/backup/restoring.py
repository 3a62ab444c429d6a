"""Restoring a backup: unpack beside, prove, then give the folder its name in one step.

If we crash, the folder is not there, or empty as before; a hidden `.part` folder is left, which the
next restore to the same name takes away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from typing import TYPE_CHECKING

import msgspec

from anchord.adapters.backups.tarball import Manifest, Reader
from anchord.adapters.disk import sync_folder
from anchord.adapters.signers.keyring import load_keyring
from anchord.app.backup.proving import Proved, prove
from anchord.errors import ConfigError, FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of a backup."""

    manifest: Manifest
    proved: Proved
    private_keys: int


def restore(file: Path, folder: Path, on_progress: Callable[[str, int, int], None]) -> Restored:
    """Put a backup into a folder that is empty or not there yet; nothing is ever written over.

    Raises:
        ConfigError: the folder holds something or cannot be made, or the file cannot be read.
        RefusedError: the file is no backup, or was damaged or changed.
        FatalError: its store does not hold.
        DiskError: there is no room.
    """
    _check_empty(folder)
    with contextlib.closing(Reader(file)) as reader, _beside(folder) as part:
        manifest = reader.manifest
        reader.unpack(part, on_progress)
        keyring = load_keyring(part / manifest.keys)
        proved = prove(part / manifest.store, keyring, "the backup's store", on_progress)
        _check_same(manifest, proved)
        _take_name(part, folder)
    keys = f"{manifest.keys}/"
    pems = [e for e in manifest.files if e.name.startswith(keys) and e.name.endswith(".pem")]
    return Restored(manifest=manifest, proved=proved, private_keys=len(pems))


def _check_same(manifest: Manifest, proved: Proved) -> None:
    """What was proved when it was made must be proved now."""
    found = (proved.events, proved.checkpoint)
    stated = (manifest.events, manifest.checkpoint)
    if manifest.schema != proved.schema or (proved.events is not None and found != stated):
        raise FatalError(
            f"the backup's store has {proved.events} events and a checkpoint of "
            f"{proved.checkpoint}, its manifest says {manifest.events} and {manifest.checkpoint}: "
            "it was changed; use another backup"
        )


def _check_empty(folder: Path) -> None:
    try:
        if os.path.lexists(folder) and next(folder.iterdir(), None) is not None:
            raise ConfigError(
                f"{folder} is not empty: a restore writes nothing over; name a new one"
            )
    except OSError as error:
        raise ConfigError(f"{folder} cannot be restored to: {error.strerror}") from None


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """Give a hidden folder on the same disk; it is gone at the end unless it got its name."""
    whole = folder.absolute()
    part = whole.with_name(f".{whole.name}.{os.getpid()}.part")
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        _clear_abandoned(whole)
        part.mkdir(mode=0o700)
        handle = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(
            f"{part} cannot be made: {error.strerror}; check the folder and its permissions"
        ) from None
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield part
    finally:
        os.close(handle)
        shutil.rmtree(part, ignore_errors=True)


def _clear_abandoned(folder: Path) -> None:
    """Take away what a killed restore to the same name left; a running one holds its lock."""
    named = re.compile(rf"\.{re.escape(folder.name)}\.[0-9]+\.part")
    for part in [one for one in folder.parent.iterdir() if named.fullmatch(one.name)]:
        with contextlib.suppress(OSError):
            handle = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(part, ignore_errors=True)
            finally:
                os.close(handle)


def _take_name(part: Path, folder: Path) -> None:
    try:
        part.rename(folder.absolute())  # over an empty folder too, and over nothing else
        sync_folder(folder.absolute().parent)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot take the restored files: {error.strerror}; name a folder that is "
            "not there yet"
        ) from None
