"""Which uploads are taken, and what taking one does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from urllib.parse import unquote

import msgspec

from anchord.sandbox.items import headers as said
from anchord.sandbox.items import s3
from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.s3 import S3Error
from anchord.sandbox.items.store import Item
from anchord.sandbox.items.target import Target
from anchord.sandbox.items.tasks import Version
from anchord.sandbox.web import Request

_IDENTIFIER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{4,100}")


class Wish(msgspec.Struct):
    """One upload as it is asked for."""

    identifier: str
    key: str
    length: int
    headers: Message
    left: int
    """Bytes of the body that were not read yet."""

    @classmethod
    def of(cls, request: Request, target: Target, length: int) -> Wish:
        """Read an upload's address and headers."""
        identifier, key = cls.names(target)
        return cls(identifier, key, length, request.headers, length)

    @staticmethod
    def names(target: Target) -> tuple[str, str]:
        """Return item and file of an address."""
        identifier, _, key = target.path.lstrip("/").partition("/")
        return unquote(identifier), unquote(key)

    def read(self, request: Request) -> Callable[[int], bytes]:
        """Return what reads the body and keeps count of what is left."""

        def counted(most: int) -> bytes:
            piece = request.read(most)
            self.left -= len(piece)
            return piece

        return counted


class Admission:
    """The door of the upload host."""

    def __init__(self, archive: ItemsArchive) -> None:
        self._archive = archive

    @contextmanager
    def admitted(self, wish: Wish) -> Iterator[None]:
        """Let an upload in, and hold the name of a new item until its first file is taken.

        Raises:
            S3Error: it is refused.
        """
        archive = self._archive
        with archive.settled() as state:
            item = state.items.get(wish.identifier)
            self._check(wish, item)
            if item is None:
                archive.making.add(wish.identifier)
        try:
            yield
        finally:
            if item is None:
                with archive.settled():
                    archive.making.discard(wish.identifier)

    def accept(self, wish: Wish, version: Version) -> None:
        """Put a file that came whole behind the item's other tasks."""
        archive = self._archive
        file_metadata = said.metadata(wish.headers, "filemeta")
        version = msgspec.structs.replace(version, metadata=file_metadata)
        with archive.settled() as state:
            if wish.identifier not in state.items:
                archive.make(wish.identifier, said.metadata(wish.headers, "meta"))
            item = state.items[wish.identifier]
            self._count(item, version)
            keep_old = said.flag(wish.headers, "keep-old-version")
            archive.queue(wish.identifier, "archive.php", wish.key, version, keep_old=keep_old)
            archive.count_file(item)
            if wish.headers.get("x-archive-queue-derive", "1").strip() != "0":
                archive.tally.add("derives_requested")
                archive.queue(wish.identifier, "derive.php")

    def _check(self, wish: Wish, item: Item | None) -> None:
        """Check in the order of the real host: who, where, how much, then the item itself."""
        archive = self._archive
        if not archive.knows(said.credentials(wish.headers)):
            raise S3Error("AccessDenied", wish.identifier)
        if not _IDENTIFIER.fullmatch(wish.identifier):
            raise S3Error("InvalidBucketName", s3.BUCKET_RULE)
        if not wish.key:
            raise S3Error("InvalidURI", wish.identifier)
        if archive.spammer:
            raise s3.spam(wish.identifier, archive.username)
        reason = archive.limits(wish.identifier)["limit_reason"]
        if reason:
            archive.tally.add("puts_while_over_limit")
            raise S3Error("SlowDown", reason)
        if item is None:
            self._check_new(wish)
        else:
            self._check_there(wish, item)

    def _check_new(self, wish: Wish) -> None:
        archive = self._archive
        if not said.flag(wish.headers, "auto-make-bucket"):
            raise S3Error("NoSuchBucket", wish.identifier)
        if wish.identifier in archive.making:
            archive.tally.add("first_puts_in_parallel")
            raise S3Error("OperationAborted", s3.LOCKED)
        wanted = said.metadata(wish.headers, "meta").get("collection", "opensource")
        names = {wanted} if isinstance(wanted, str) else set(wanted)
        if not names <= archive.rules.collections:
            raise S3Error("AccessDenied", s3.NO_COLLECTION)
        if archive.items_today() >= archive.rules.items_per_day:
            archive.spammer = True
            raise s3.spam(wish.identifier, archive.username)

    def _check_there(self, wish: Wish, item: Item) -> None:
        archive, rules = self._archive, self._archive.rules
        if item.uploader != archive.username or item.dark:
            raise S3Error("AccessDenied", s3.NOT_YOURS)
        if not item.shown:
            archive.tally.add("puts_before_item_visible")
            young = archive.clock.now() - item.made < rules.first_put_s
            if young and said.flag(wish.headers, "auto-make-bucket"):
                raise S3Error("BucketAlreadyExists", "auto_make_bucket requested")
        names = item.all_names()
        too_many = wish.key not in names and len(names) >= rules.item_max_files
        if too_many or item.size() + wish.length > rules.item_max_bytes:
            raise S3Error("AccessDenied", f"{item.identifier} is too large: no more files")

    def _count(self, item: Item, version: Version) -> None:
        tally, seen = self._archive.tally, item.files.get(version.name)
        coming = item.coming(version.name)
        tally.add("puts_accepted")
        tally.add("bytes", version.size)
        if coming is None:
            return
        if coming.md5 != version.md5:
            tally.add("overwrites")
        elif seen is not None and seen.md5 == version.md5:
            tally.add("put_twice")
        else:
            tally.add("put_again_before_visible")
