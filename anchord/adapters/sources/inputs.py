"""`source_for`: a path, or "-" for standard input, as a `RecordSource`."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from anchord.adapters.sources.folder import identities, shown, walk
from anchord.adapters.sources.kinds import Kind, is_zipped, kind_of
from anchord.adapters.sources.readers import READERS, Piece
from anchord.adapters.sources.streams import (
    GZIP_MAGIC,
    READ_ERRORS,
    look,
    standard_input,
    unzipped,
    why,
)
from anchord.core.model import Incoming, Rejection, Scheme
from anchord.errors import ConfigError
from anchord.ports import RecordSource

STDIN = "-"
_LIST_CAP = 256 << 20
_NEVER_ZIPPED = (Kind.FILE, Kind.OTS)


def source_for(
    path: str,
    *,
    kind: str | None = None,
    scheme: Scheme = Scheme.PITH_JSON_V1,
    skip: Collection[Path] = (),
) -> RecordSource:
    """Return the records in a file, a folder or standard input.

    Args:
        path: file, folder, named pipe, or "-" for standard input (which can be read once only).
        kind: a word of `kinds.Kind` to force; None: by content, then by name (see `kinds`). In a
            folder it is forced on every file.
        scheme: how JSON records are made canonical.
        skip: files and folders passed over when they are met inside a folder, such as the
            store itself.

    Raises:
        ConfigError: no such path, a device or socket, an unknown kind, or a scheme without JSON.
    """
    if scheme is Scheme.SHA256:
        raise ConfigError("scheme sha256 is for files and digests: use --as file or --as list")
    try:
        forced = None if kind is None else Kind(kind)
    except ValueError:
        raise ConfigError(f"kind {kind!r} is unknown: expected {', '.join(Kind)}") from None
    if path == STDIN:
        return _Stdin(forced, scheme)
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {_reason(error)}") from None
    if stat.S_ISDIR(mode):
        return _Folder(place, forced, scheme, skip)
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise ConfigError(f"{path} is a device or a socket: expected a file, folder or pipe")
    return _File(place, forced, scheme)


def source_from_list(
    path: str,
    *,
    kind: str | None = None,
    scheme: Scheme = Scheme.PITH_JSON_V1,
    skip: Collection[Path] = (),
) -> RecordSource:
    """Return the records in all paths that the file `path` ("-": standard input) names.

    One path a line, or ended by NUL as `find -print0` writes them. A path that is not there is a
    `Rejection`: with thousands of names one typing mistake should not stop the rest.

    Raises:
        ConfigError: the list itself cannot be read.
    """
    try:
        raw = _list(path)
    except OSError as error:
        raise ConfigError(f"{path}: {_reason(error)}") from None
    if len(raw) > _LIST_CAP:
        raise ConfigError(
            f"{path} is longer than {_LIST_CAP >> 20} MiB: expected a list of paths; break it up"
        )
    if b"\0" in raw:
        names = raw.split(b"\0")
    else:
        names = [name.removesuffix(b"\r") for name in raw.split(b"\n")]
    return _Listed([os.fsdecode(name) for name in names if name], kind, scheme, skip)


def _list(path: str) -> bytes:
    if path == STDIN:
        return standard_input().read(_LIST_CAP + 1)
    with Path(path).open("rb") as file:
        return file.read(_LIST_CAP + 1)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "not a path"


class _Stdin:
    """Standard input."""

    def __init__(self, kind: Kind | None, scheme: Scheme) -> None:
        self._kind = kind
        self._scheme = scheme

    def __iter__(self) -> Iterator[Incoming]:
        piece = Piece(where=STDIN, label=None, scheme=self._scheme)
        return _read(standard_input, piece, STDIN, self._kind, named=True)


class _File:
    """One file that was named."""

    def __init__(self, path: Path, kind: Kind | None, scheme: Scheme) -> None:
        self._path = path
        self._kind = kind
        self._scheme = scheme

    def __iter__(self) -> Iterator[Incoming]:
        label = shown(Path(self._path.name))
        piece = Piece(where=shown(self._path), label=label, scheme=self._scheme)
        return _read(_opener(self._path), piece, self._path.name, self._kind, named=True)


class _Folder:
    """All files of a folder; one is open at a time."""

    def __init__(
        self, path: Path, kind: Kind | None, scheme: Scheme, skip: Collection[Path]
    ) -> None:
        self._path = path
        self._kind = kind
        self._scheme = scheme
        self._skip = skip

    def __iter__(self) -> Iterator[Incoming]:
        # Only now: the store's side files come into being when it is opened.
        for found in walk(self._path, identities(self._skip)):
            if isinstance(found, Rejection):
                yield found
                continue
            label = shown(found.relative_to(self._path))
            piece = Piece(where=shown(found), label=label, scheme=self._scheme)
            yield from _read(_opener(found), piece, found.name, self._kind, named=False)


class _Listed:
    """Every path of a list."""

    def __init__(
        self, names: list[str], kind: str | None, scheme: Scheme, skip: Collection[Path]
    ) -> None:
        self._names = names
        self._kind = kind
        self._scheme = scheme
        self._skip = skip

    def __iter__(self) -> Iterator[Incoming]:
        for name in self._names:
            path = f"./{name}" if name == STDIN else name
            try:
                yield from source_for(path, kind=self._kind, scheme=self._scheme, skip=self._skip)
            except ConfigError as error:
                yield Rejection(where=shown(Path(name)), line=None, reason=str(error))


def _opener(path: Path) -> Callable[[], BinaryIO]:
    return lambda: path.open("rb")


def _read(
    opener: Callable[[], BinaryIO], piece: Piece, name: str, kind: Kind | None, *, named: bool
) -> Iterator[Incoming]:
    """Open one piece of input, tell what it is, and read it; a failure refuses this piece only."""
    stream: BinaryIO | None = None
    piped = piece.label is None
    try:
        stream = opener()
        yield from items_of(stream, piece, name, kind, named=named)
    except READ_ERRORS as error:
        yield Rejection(where=piece.where, line=None, reason=why(error))
    finally:
        if stream is not None and not piped:
            stream.close()


def items_of(
    stream: BinaryIO, piece: Piece, name: str, kind: Kind | None = None, *, named: bool
) -> Iterator[Incoming]:
    """Tell what an open piece of input is, and read it; reading may raise READ_ERRORS."""
    head, body = look(stream)
    if not head and piece.label is None:
        yield Rejection(where=STDIN, line=None, reason="is empty: expected records")
        return
    found = kind or kind_of(name, head, named=named)
    if found not in _NEVER_ZIPPED and (
        is_zipped(name, head) or (kind is not None and head.startswith(GZIP_MAGIC))
    ):
        body = unzipped(body)
    yield from READERS[found](body, piece)
