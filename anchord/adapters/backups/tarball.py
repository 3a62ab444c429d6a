"""A backup as one uncompressed tar (POSIX.1-2001 pax): a manifest first, then the files it names.

The same files give the same bytes: owner, mode and time of members are constants, and they stand
in the order given. Whoever has no anchord can take it apart with `tar` and check it by the
manifest with `sha256sum`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from anchord.adapters.disk import TarHeader, sync_folder
from anchord.core.strictjson import UNREADABLE
from anchord.errors import ConfigError, DiskError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MANIFEST = "backup.json"
FORMAT = "anchord-backup-1"
_MAX_MANIFEST = 1 << 20
_MAX_FILES = 10_000
_CHUNK = 1 << 20
_MOMENT = 315_532_800
"""1980-01-01; members carry no time of their own."""
_PART = re.compile(r"[A-Za-z0-9_@:][A-Za-z0-9._@: +-]{0,199}")
"""One part of a member's name: nothing hidden, nothing that leaves the folder."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a backup."""

    name: str
    """Where it is put, relative to the folder that is restored to."""
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backup holds."""

    format: str
    created_at: str
    anchord: str
    """Version that wrote it."""
    schema: str
    """Revision of the store."""
    config: str
    """Name of the configuration among the files."""
    store: str
    keys: str
    """Folder of the keyring among the files."""
    events: int
    checkpoint: int
    """Events that the newest checkpoint covers; 0: there is none."""
    files: list[Entry]


def entry_of(name: str, path: Path) -> Entry:
    """Return what a manifest says of a file; one that grows meanwhile counts as it was read.

    Raises:
        RefusedError: the name cannot be one.
        ConfigError: the file cannot be read.
    """
    check_name(name)
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    return Entry(name, size, digest.hexdigest())


def check_name(name: str) -> None:
    """Refuse what could leave the folder it is restored to.

    Raises:
        RefusedError: absolute, hidden, or with parts no file of ours has.
    """
    if name == MANIFEST or not all(_PART.fullmatch(part) for part in name.split("/")):
        raise RefusedError(f"{name!r:.80} cannot be a file of a backup")


def write(
    out: IO[bytes],
    manifest: Manifest,
    sources: Mapping[str, Path],
    on_progress: Callable[[str, int, int], None],
) -> None:
    """Write the manifest and its files to an open file, and sync it.

    Raises:
        DiskError: it cannot be written.
    """
    head = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    total = sum(entry.size for entry in manifest.files)
    done = 0
    try:
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.addfile(_member(MANIFEST, len(head)), io.BytesIO(head))
            for entry in manifest.files:
                with sources[entry.name].open("rb") as file:
                    tar.addfile(_member(entry.name, entry.size), file)
                done += entry.size
                on_progress("write backup", done, total)
        out.flush()
        os.fsync(out.fileno())
    except OSError as error:
        raise DiskError(
            f"the backup cannot be written: {error.strerror or error}; make room, or name another "
            "disk"
        ) from None


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, _MOMENT
    return member


class Reader:
    """A backup that is read: the manifest at once, each file as it is asked for, in order.

    Args:
        path: the file.

    Raises:
        ConfigError: it cannot be opened.
        RefusedError: it is no backup, or of a later format.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._tar = tarfile.open(path, mode="r:", tarinfo=TarHeader)  # noqa: SIM115 - closed by `close`
        try:
            with self._told():
                self.manifest = self._manifest()
        except BaseException:
            self._tar.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._tar.close()

    def unpack(self, folder: Path, on_progress: Callable[[str, int, int], None]) -> None:
        """Write every file below a folder, whole, checked and synced.

        Raises:
            RefusedError: a file is missing, superfluous, or not what the manifest says.
            DiskError: the folder cannot be written.
        """
        self._each(lambda entry: _created(folder / entry.name), "unpack", on_progress)

    def check(self, on_progress: Callable[[str, int, int], None]) -> None:
        """Read every file and hold it against the manifest; nothing is written.

        Raises:
            RefusedError: as `unpack`.
        """
        self._each(lambda _entry: contextlib.nullcontext(), "check backup", on_progress)

    def _each(
        self,
        target: Callable[[Entry], contextlib.AbstractContextManager[IO[bytes] | None]],
        what: str,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        total, done = sum(entry.size for entry in self.manifest.files), 0
        for entry in self.manifest.files:
            with self._told():
                member = self._tar.next()
                if member is None or member.name != entry.name:
                    found = "its end" if member is None else f"{member.name!r:.80}"
                    raise self._refused(f"expected {entry.name!r}, found {found}")
                self._read(member, entry, target)
            done += entry.size
            on_progress(what, done, total)
        with self._told():
            if self._tar.next() is not None:
                raise self._refused("it holds files its manifest does not name")

    def _manifest(self) -> Manifest:
        first = self._tar.next()
        if first is None or first.name != MANIFEST or not first.isreg() or first.issparse():
            raise self._refused(f"expected {MANIFEST} first")
        if first.size > _MAX_MANIFEST:
            raise self._refused(f"its manifest has {first.size} bytes")
        file = self._tar.extractfile(first)
        raw = b"" if file is None else file.read()
        try:
            stated: Any = msgspec.json.decode(raw)
            if isinstance(stated, dict) and stated.get("format", FORMAT) != FORMAT:
                raise self._refused(f"format {stated['format']!r:.40}: install a newer anchord")
            manifest = msgspec.convert(stated, Manifest)
        except UNREADABLE as error:
            raise self._refused(f"its manifest cannot be read: {error}") from None
        names = [entry.name for entry in manifest.files]
        if len(set(names)) != len(names) or len(names) > _MAX_FILES:
            raise self._refused("its manifest names a file twice, or too many")
        for name in names:
            check_name(name)
        if sum(entry.size for entry in manifest.files) > self._path.stat().st_size:
            raise self._refused("its files would be longer than itself")
        if not {manifest.config, manifest.store} <= set(names):
            raise self._refused("its manifest does not name configuration and store")
        return manifest

    def _read(
        self,
        member: tarfile.TarInfo,
        entry: Entry,
        target: Callable[[Entry], contextlib.AbstractContextManager[IO[bytes] | None]],
    ) -> None:
        plain = member.isreg() and not member.issparse()
        source = self._tar.extractfile(member) if plain else None
        if source is None or member.size != entry.size:
            raise self._refused(f"{entry.name} is not a file of {entry.size} bytes")
        digest = hashlib.sha256()
        with target(entry) as out:
            while chunk := source.read(_CHUNK):
                digest.update(chunk)
                if out is not None:
                    out.write(chunk)
        if digest.hexdigest() != entry.sha256:
            raise self._refused(
                f"{entry.name} has the sha256 {digest.hexdigest()}, the manifest says "
                f"{entry.sha256}: it was damaged or changed"
            )

    def _refused(self, why: str) -> RefusedError:
        return RefusedError(f"{self._path} is no backup that can be used: {why}")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (tarfile.TarError, ValueError, OverflowError, EOFError) as error:
            # The library lets some of its own troubles with numbers and names through.
            raise self._refused(f"it cannot be read as a tar: {error}") from None
        except OSError as error:
            if error.filename == str(self._path):
                raise ConfigError(f"{self._path} cannot be read: {error.strerror}") from None
            raise DiskError(
                f"unpacking {self._path} failed: {error.strerror or error}; make room, or repair "
                "the disk"
            ) from None


@contextlib.contextmanager
def _created(path: Path) -> Iterator[IO[bytes]]:
    """Give a new file that only its owner may read; on the disk when the block ends."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
    sync_folder(path.parent)
