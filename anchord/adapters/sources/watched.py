"""A watched folder: files that were put there, taken in when nobody changes them any more.

Polling, because notifications do not come from network file systems and are lost while nobody
listens. Files are taken in the order of the moment their inode changed (ctime), which no program
can set: writing, renaming and moving a file there all change it, so nothing that comes later can
stand before what was taken. A folder that is moved in whole keeps the moments of its files; so each
folder comes in right behind what was taken before, and no file in it counts as older.

Links are not followed: who may write into the folder could have anchord read what only it may.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from anchord.adapters.sources.folder import identities, shown
from anchord.adapters.sources.held import Held
from anchord.adapters.sources.inputs import items_of
from anchord.adapters.sources.kinds import Kind, kind_of
from anchord.adapters.sources.readers import Piece
from anchord.adapters.sources.streams import HEAD, READ_ERRORS, why
from anchord.adapters.sources.watched_scan import Found, Mark, Scan
from anchord.core.model import Incoming, Record, Rejection, Scheme
from anchord.errors import TransientError
from anchord.ports.source import Step

STEP_ITEMS = 2_000
"""Files, or records in them, that are taken in at once."""
STEP_BYTES = 16 * 1024 * 1024
"""Bytes of what they hold."""
_PIECE = 1024 * 1024
_PART = 256 * _PIECE
"""Bytes of a big file that are hashed before others get a turn."""

_NOT_THE_FILE = frozenset((
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ESTALE, errno.ETIMEDOUT,
    errno.ENOTCONN, errno.ENODEV, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN,
))  # fmt: skip
"""What is wrong with this machine or a server of files, and passes: no file is refused for it."""


class WatchedFolder:
    """One folder, with the folders in it.

    Args:
        name: the source's.
        every_s: seconds between two looks.
        folder: where to look.
        settle_s: a file is taken when nothing about it changed for this long, seconds.
        scheme: how JSON records are made canonical.
        skip: files and folders passed over, such as the store itself.
    """

    kind = "folder"

    def __init__(
        self,
        name: str,
        every_s: int,
        folder: Path,
        *,
        settle_s: int,
        scheme: Scheme = Scheme.PITH_JSON_V1,
        skip: Collection[Path] = (),
    ) -> None:
        self.name, self.every_s = name, every_s
        self._folder, self._settle_s, self._scheme, self._skip = folder, settle_s, scheme, skip

    def place(self, cursor: bytes | None) -> str:
        """Return what a cursor means, in words for people."""
        mark = Mark.read(cursor, self._folder)
        if mark is None or not mark.at:
            return "at the start"
        return f"after {shown(Path(os.fsdecode(mark.path)))}"

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        """Yield files that came or changed since the cursor, oldest first."""
        scan = Scan(self._folder, Mark.read(cursor, self._folder), identities(self._skip))
        found = scan.oldest((now - self._settle_s) * 1_000_000_000)
        mark, held = scan.mark, Held(STEP_ITEMS, STEP_BYTES)
        for one in found:
            for item in self._read(one):
                if item is not None:
                    held.put(item)
                if item is None or held.full:
                    yield Step(items=held.taken())  # within a file is no place to stop
            held.count()
            mark = mark.after(one)
            if held.full:
                yield Step(items=held.taken(), cursor=mark.written(), pause=held.late)
        if found or scan.changed:
            yield Step(items=held.taken(), cursor=mark.written(), pause=scan.more)
        if scan.trouble is not None:
            raise TransientError(
                f"{scan.unreadable:,} folder(s) cannot be read, first "
                f"{scan.trouble}; all else was. Check their permissions"
            )

    def _read(self, found: Found) -> Iterator[Incoming | None]:
        """Yield what a file holds, and None now and then while a big one is hashed.

        A file that changed, or went away, since it was found has a later moment, and comes again.
        """
        path = self._folder / os.fsdecode(found.path)
        label = shown(Path(os.fsdecode(found.path)))
        piece = Piece(where=shown(path), label=label, scheme=self._scheme)
        try:
            with _opened(path) as stream:
                if _moment(stream) != found.changed_ns:
                    return
                head = stream.read(HEAD)
                stream.seek(0)
                if kind_of(path.name, head, named=False) is Kind.FILE:
                    yield from _hashed(stream, label, found.changed_ns)
                else:
                    yield from items_of(stream, piece, path.name, named=False)
        except FileNotFoundError:
            return
        except READ_ERRORS as error:
            if isinstance(error, OSError) and error.errno in _NOT_THE_FILE:
                raise TransientError(
                    f"source {self.name}: {piece.where} {why(error)}; it and what came after it is "
                    "read later"
                ) from None
            yield Rejection(where=piece.where, line=None, reason=why(error))


def _opened(path: Path) -> BinaryIO:
    """Open a regular file; a link or a pipe that took its place meanwhile is not followed."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileNotFoundError
    return os.fdopen(number, "rb")


def _moment(stream: BinaryIO) -> int:
    return os.fstat(stream.fileno()).st_ctime_ns


def _hashed(stream: BinaryIO, label: str, changed_ns: int) -> Iterator[Incoming | None]:
    """Hash a file of any size; one that changes meanwhile gives nothing, its digest means nothing.

    Yields None after each part, so that whoever waits sees life, and may stop.
    """
    digest, done = hashlib.sha256(), 0
    while part := stream.read(_PIECE):
        digest.update(part)
        done += len(part)
        if done % _PART == 0:
            yield None
    if _moment(stream) == changed_ns:
        yield Record(digest=digest.digest(), scheme=Scheme.SHA256, label=label)
