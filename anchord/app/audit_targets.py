"""What an audit without a store is of: a folder, a packed folder, or bundles.

What is packed, or comes through a pipe, is laid into a folder of its own that is removed again, so
that the engine sees one kind of thing, and memory stays small.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import shutil
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from anchord.adapters.disk import TarHeader
from anchord.adapters.sources.streams import GZIP_MAGIC
from anchord.adapters.trees.folder import FolderTree
from anchord.core.bundle import MAX_BUNDLE_BYTES
from anchord.engine.audit.tree_survey import NAMED, Kind, kind_of
from anchord.errors import ConfigError

_PIECE = 1 << 20
_BEGINNING = 64
_UNPACKED, _RATIO = 1 << 30, 100
"""Most bytes that are unpacked: so many, or so many for each byte of the file. Bundles shrink to a
tenth or a twentieth; a file made to fill a disk shrinks to a thousandth."""
STDIN = "-"


@contextlib.contextmanager
def open_tree(targets: Sequence[str]) -> Iterator[FolderTree]:
    """Open what was named: one folder, or files; a context manager.

    Raises:
        ConfigError: a folder among others, a file of another kind, or none at all.
    """
    folders = [name for name in targets if name != STDIN and Path(name).is_dir()]
    if folders and len(targets) > 1:
        raise ConfigError(f"{folders[0]} is a folder: audit it alone, or name files only")
    if folders:
        yield FolderTree(Path(folders[0]))
        return
    with tempfile.TemporaryDirectory(prefix="anchord-audit-") as name:
        root = Path(name)
        for number, target in enumerate(targets):
            # Each in a folder of its own where there are several: names may be the same.
            folder = root if len(targets) == 1 else root / str(number + 1)
            folder.mkdir(exist_ok=True)
            _lay(target, folder)
        tree = FolderTree(_inner(root))
        names = ["standard input" if name == STDIN else name for name in targets]
        tree.name = ", ".join(names) if len(names) < 4 else f"{len(names):,} files"
        yield tree


def _inner(root: Path) -> Path:
    """Return the one folder that a packed tree consists of, as `tar cf tree.tar tree` makes it."""
    inside = list(root.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else root


def _lay(target: str, folder: Path) -> None:
    """Put what a file holds into a folder."""
    try:
        if target != STDIN:
            with Path(target).open("rb") as file:
                _lay_file(file, Path(target).name, target, folder)
            return
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(sys.stdin.buffer, file, _PIECE)
            file.seek(0)
            _lay_file(file, "standard-input.json", "standard input", folder)
    except OSError as error:
        raise ConfigError(f"{target} cannot be read: {error.strerror or error}") from None


def _lay_file(file: BinaryIO, name: str, shown: str, folder: Path) -> None:
    beginning = file.read(_BEGINNING).lstrip()
    file.seek(0)
    if beginning[:1] == b"{":
        _lay_bundles(file, name, folder)
    else:
        _unpack(file, shown, folder)


def _lay_bundles(file: BinaryIO, name: str, folder: Path) -> None:
    """Lay one bundle, or one a line as `anchord export --bundle -o -` writes them."""
    first = file.readline(MAX_BUNDLE_BYTES + 1)
    if not _is_json(first):
        file.seek(0)
        # What is named to be audited is said to be a bundle, whatever its file is called.
        named = (
            name
            if kind_of(name) is Kind.DAY or name.endswith(NAMED)
            else f"{name.removesuffix('.json')}{NAMED}"
        )
        with (folder / named).open("wb") as out:
            shutil.copyfileobj(file, out, _PIECE)
        return
    stem = name.partition(".")[0]
    number, line = 1, first
    while line:
        if line.strip():
            (folder / f"{stem}-{number:09d}{NAMED}").write_bytes(line)
        number, line = number + 1, file.readline(MAX_BUNDLE_BYTES + 1)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _unpack(file: BinaryIO, shown: str, folder: Path) -> None:
    """Unpack a tar archive, plain or compressed; nothing leaves the folder (PEP 706).

    A path that stands there twice is refused: one reader would see the first, another the last.
    """
    seen: set[str] = set()
    left = max(_UNPACKED, _RATIO * os.fstat(file.fileno()).st_size)

    def once(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        nonlocal left
        left -= member.size + tarfile.BLOCKSIZE
        if left < 0:
            raise tarfile.FilterError("it unpacks to far more than it is: unpack it by hand first")
        found = tarfile.data_filter(member, path)
        name = posixpath.normpath(found.name)
        if name in seen and not found.isdir():
            raise tarfile.FilterError(f"{name!r:.200} stands in it twice, with contents of its own")
        seen.add(name)
        return found

    try:
        mode = "r:gz" if file.read(2) == GZIP_MAGIC else "r:"
        file.seek(0)
        with tarfile.open(fileobj=file, mode=mode, tarinfo=TarHeader) as archive:  # type: ignore[call-overload]
            archive.extractall(folder, filter=once)  # noqa: S202 - `once` filters as "data" does
    except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
        why = "got none of these" if isinstance(error, tarfile.ReadError) and not seen else error
        raise ConfigError(
            f"{shown}: expected a folder, a bundle, bundles one a line, or a whole .tar or "
            f".tar.gz of a folder: {why}"
        ) from None
