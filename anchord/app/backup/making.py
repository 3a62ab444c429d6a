"""Making a backup while passes go on: copy the store, prove the copy, pack, read back, name.

Until the last step there is only a hidden `.part` beside the name. If we crash before it, the name
is not there; the next backup to the same folder takes away what was left.
"""

from __future__ import annotations

import contextlib
import errno
import os
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

from anchord import __version__
from anchord.adapters.backups.tarball import (
    FORMAT,
    Manifest,
    Reader,
    check_name,
    entry_of,
    write,
)
from anchord.adapters.disk import sync_folder
from anchord.adapters.outputs.part import clear_abandoned, hold, part_of
from anchord.adapters.store.copying import copy_store
from anchord.adapters.store.database import sqlite_path
from anchord.app.backup.proving import Proved, prove
from anchord.app.wiring import store_url
from anchord.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from anchord.app.config import Loaded
    from anchord.app.wiring import App

_BESIDE = ("-journal", "-wal", "-shm")
"""What SQLite may have beside a file that it writes."""


def make(
    app: App,
    file: Path,
    *,
    keys: tuple[Path, ...],
    headers: bool,
    on_progress: Callable[[str, int, int], None],
) -> Manifest:
    """Write one backup file; it has its name only when all of it was read back and holds.

    Args:
        app: whose store, keyring and configuration.
        file: must not be there yet.
        keys: files of private keys that are put in.
        headers: whether the header file is put in; it can be fetched again.
        on_progress: told (what, done, total).

    Raises:
        ConfigError: the file is there, or its folder cannot be written.
        FatalError: the store's ledger does not hold.
        DiskError: there is no room.
    """
    if os.path.lexists(file):
        raise ConfigError(f"{file} exists: a backup is never written over; name another file")
    keyring = app.keyring
    copied = file.with_name(f"{file.name}.db")
    with _part(copied) as (copy, _), _part(file) as (part, out):
        copy_store(store_url(app.loaded), copy, on_progress)
        proved = prove(copy, keyring, "the store", on_progress)
        sources = _sources(app.loaded, copy, keys, headers=headers)
        manifest = _manifest(app, proved, sources)
        write(out, manifest, sources, on_progress)
        _read_back(part, on_progress)
        _take_name(part, file)
    return manifest


def _sources(
    loaded: Loaded, copy: Path, keys: tuple[Path, ...], *, headers: bool
) -> dict[str, Path]:
    """Return what is packed, by the name it is restored under."""
    folder = loaded.resolve(loaded.config.signer.key_dir)
    keys_at = _place(loaded, folder, "keys")
    found = {
        "anchord.toml": loaded.path,
        f"{keys_at}/keyring.toml": folder / "keyring.toml",
        **{f"{keys_at}/{key.name}": key for key in sorted(keys)},
    }
    if headers:
        file = loaded.resolve(loaded.config.headers.file.path)
        found[_place(loaded, file, "headers.bin")] = file
    found[_store_name(loaded)] = copy
    return found


def _store_name(loaded: Loaded) -> str:
    path = sqlite_path(store_url(loaded))
    return "anchord.db" if path is None else _place(loaded, path, "anchord.db")


def _place(loaded: Loaded, path: Path, default: str) -> str:
    """Return a name at which the restored configuration finds the file, when that is possible."""
    try:
        name = path.relative_to(loaded.path.parent).as_posix()
        check_name(name)
    except (ValueError, RefusedError):
        return default
    return name


def _manifest(app: App, proved: Proved, sources: dict[str, Path]) -> Manifest:
    loaded = app.loaded
    return Manifest(
        format=FORMAT,
        created_at=datetime.fromtimestamp(app.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        anchord=__version__,
        schema=proved.schema,
        config="anchord.toml",
        store=_store_name(loaded),
        keys=_place(loaded, loaded.resolve(loaded.config.signer.key_dir), "keys"),
        events=proved.events or 0,
        checkpoint=proved.checkpoint or 0,
        files=[entry_of(name, path) for name, path in sources.items()],
    )


def _read_back(part: Path, on_progress: Callable[[str, int, int], None]) -> None:
    """Read what the disk holds; a file that changed while it was packed shows here."""
    with contextlib.closing(Reader(part)) as reader:
        reader.check(on_progress)


@contextlib.contextmanager
def _part(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Give a file to write, under the hidden name that `path` has until it is whole."""
    part = part_of(path)
    try:
        _clear_abandoned(path)
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"{part} cannot be made: {error.strerror}; check the folder and its permissions"
        ) from None
    try:
        with os.fdopen(handle, "wb") as out:
            hold(out)
            yield part, out
    finally:
        for suffix in ("", *_BESIDE):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _clear_abandoned(path: Path) -> None:
    """Take away what a killed backup to the same name left; a running one holds its lock."""
    names = [one.name for one in path.parent.iterdir()]
    for gone in clear_abandoned(path.parent, names, of=path.name):
        for suffix in _BESIDE:
            path.with_name(gone + suffix).unlink(missing_ok=True)


def _take_name(part: Path, file: Path) -> None:
    """Give the file its name unless somebody else took it meanwhile."""
    try:
        os.link(part, file)
    except FileExistsError:
        raise ConfigError(f"{file} was made by somebody else meanwhile: nothing is kept") from None
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        part.rename(file)  # no links here: it was not there a moment ago
    sync_folder(file.parent)


def private_keys(app: App, *, plain: bool) -> tuple[Path, ...]:
    """Return the files of our private keys that may go into a backup.

    Raises:
        ConfigError: one is not encrypted, and that was not said to be wanted; or it cannot be read.
    """
    from anchord.adapters.signers.private_key import is_encrypted

    paths = [app.key_dir / f"{key.key_id}.pem" for key in app.keyring if key.own]
    found = tuple(path for path in paths if path.exists())
    bare = [path.name for path in found if not is_encrypted(path)]
    if bare and not plain:
        raise ConfigError(
            f"{', '.join(bare)} is not encrypted: whoever gets the backup could sign as you. "
            "Make an encrypted key (anchord key rotate), leave the keys out and keep them "
            "elsewhere, or say --plain-keys if the backup goes where only you can read it"
        )
    return found
