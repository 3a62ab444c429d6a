"""What archive.org said about items, as values; `anchord.core.item_answer` reads into them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """What the upload service's limits leave."""

    over_limit: bool
    account_left: int | None
    """Tasks the account may still queue. None: the service did not say."""
    item_left: int | None
    global_left: int | None
    message: str = ""


class FileSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One file as the item's metadata lists it."""

    size: int | None
    md5: str | None
    sha1: str | None


class ItemSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What one metadata read says."""

    exists: bool
    dark: bool
    files: Mapping[str, FileSeen]
    pending_tasks: bool
    failed_tasks: bool
    """A task is in error or paused: only the archive's staff can go on."""
    uploader: str | None = None
    owned: bool | None = None
    """False: metadata shows that somebody else made it (our external-identifier is missing)."""


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """An upload was accepted into the queue, or skipped because it is there."""

    skipped: bool = False


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was downloaded."""

    size: int
    sha256: bytes
