"""What the storing stages work with: parts, and the numbers of the configuration's [archive]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anchord.core.keyring import Keyring
    from anchord.core.storage import StoredWhen
    from anchord.engine.parts import Parts
    from anchord.ports.archive import CaptureArchive, ItemArchive, Spool


class UrlTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """How a record's URL comes about.

    `{id}`, `{version}`, `{digest}`, `{number}`, `{suffix}` stand for what the record has; a record
    that lacks one of them has no such URL.
    """

    url: str
    contains: str = ""
    """Text (a template too) that the replayed bytes must hold; empty: nothing is asked for."""
    plain: bool = False
    """Fetched without a browser: JSON, PDF, static files."""


class CapturePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of [archive.captures]."""

    urls: Mapping[str, UrlTemplate]
    """By source kind."""
    extra_urls: tuple[UrlTemplate, ...]
    """For every record, opted in."""
    adopt_younger_than_s: int
    submits_per_minute: int
    parallel: int
    daily_share: float
    """Of the account's daily captures; the rest is left to people."""
    status_per_day: int
    index_per_minute: int
    replays_per_minute: int
    first_poll_s: int
    poll_s: int
    slot_poll_s: int
    job_deadline_s: int
    check_after_s: tuple[int, ...]
    """Looks for a reported capture, seconds after the report; after the last it is made anew."""
    confirm_after_s: tuple[int, ...]
    """Later replays, seconds after it was stored."""


class ItemPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of [archive.items]."""

    prefix: str
    """Identifiers are `<prefix>-YYYY-MM-DD`, `<prefix>-YYYY-MM-DD-02`, ..."""
    metadata: Mapping[str, str]
    """collection, title, creator, licenseurl, subject, ... of new items; title and description
    may hold {day}."""
    max_members: int
    max_bytes: int
    item_max_files: int
    item_max_bytes: int
    flush_after_s: int
    """A file that is not full is packed when its oldest member has waited this long."""
    wait_for_anchor_s: int
    """A record is packed without its Bitcoin proof after this long."""
    check_after_s: tuple[int, ...]
    """Metadata reads after an upload, seconds after it."""
    confirm_after_s: int
    sample_every: int
    """One file in so many is downloaded whole at confirmation; the first of an item always is."""
    account_headroom: int
    """Tasks that must be left to the account before an upload."""
    item_headroom: int


class StoringParts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the storing stages touch, beside the parts of a pass."""

    parts: Parts
    stored_when: StoredWhen
    keyring: Keyring
    """Public keys, for the bundles that are packed."""
    captures: CaptureArchive | None
    """None: captures are off, or credentials are missing."""
    capture_policy: CapturePolicy
    items: ItemArchive | None
    spool: Spool
    item_policy: ItemPolicy
    jitter: Callable[[float], float]
    """Spreads a wait by up to a fifth, so that clients do not come back together."""
