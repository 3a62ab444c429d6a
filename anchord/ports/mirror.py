"""What the engine asks of a place where a tree is published, and of a mirror it is read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.tree_index import IndexLine, Shard


class TreeSink(Protocol):
    """A folder a static web server serves. Paths are relative, with "/", and safe.

    Raises (all methods):
        FatalError: the disk refused; what was there before is still there.
    """

    def put(self, path: str, data: bytes) -> str:
        """Write one file whole or not at all; say whether it is "new", "updated" or the "same".

        It is listed in the index to come.
        """
        ...

    def link(self, path: str, of: str, data: bytes) -> str:
        """Let `path` be the file `of`, which was put with `data`, if can be without a second copy.

        It is listed in the index to come; what comes back is as of `put`.
        """
        ...

    def read(self, path: str) -> bytes | None:
        """Return what lies there, None when nothing does."""
        ...

    def recall(self, shards: Sequence[Shard]) -> None:
        """Go by what an earlier index says, whose signature the caller has checked."""
        ...

    def keep(self, path: str) -> bytes | None:
        """Let a file be as the recalled index has it, and return its bytes.

        It is listed in the index to come, unless it is put after all. None: it is not there, not
        so, or no index was recalled.
        """
        ...

    def shards(self) -> Iterator[tuple[str, list[IndexLine]]]:
        """Yield each shard's name and the lines of all that was put, one shard in memory."""
        ...

    def stage(self, path: str, data: bytes) -> None:
        """Write an index file beside its name, to be given it by `commit`; not listed."""
        ...

    def commit(self, path: str, data: bytes) -> None:
        """Write `path`, which speaks for all the rest, last.

        Before, all that was put and staged is on the disk, and what was staged has its name.
        """
        ...

    def strays(self) -> tuple[int, Sequence[str]]:
        """Return how many files lie there that nobody put, and the first of them.

        Known only after `shards`. Tiles of the log that a fuller one replaces are no strays, nor
        are assets of earlier pages: they are taken away by `commit`.
        """
        ...


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A file came."""

    data: bytes
    etag: str | None = None
    last_modified: str | None = None


class NotModified(msgspec.Struct, frozen=True):
    """The file is still the one that was fetched before."""


class Absent(msgspec.Struct, frozen=True):
    """The mirror has no such file: a value, not an error."""


class MirrorSource(Protocol):
    """Files of one mirror. One thread asks; an implementation keeps to its pace by itself.

    Raises:
        TransientError: unreachable, slow, cut short, 429, 5xx; `retry_after` where it was said.
        ProtocolError: a redirect, an answer over the limit, an address that leads elsewhere.
    """

    @property
    def name(self) -> str:
        """What the mirror is called in the store: its address."""
        ...

    @property
    def at_once(self) -> int:
        """How many files may have to be fetched again after a crash: few where that is dear."""
        ...

    def get(
        self, name: str, etag: str | None, last_modified: str | None, limit: int
    ) -> Fetched | NotModified | Absent:
        """Return one file of at most `limit` bytes.

        Args:
            name: a URL, or a path within the mirror.
            etag: of the copy that is there; None: there is none.
            last_modified: of the copy that is there.
            limit: most bytes that are read.
        """
        ...
