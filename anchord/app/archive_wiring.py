"""Putting together what stores records at the Internet Archive, and telling what is missing.

Nothing is opened before it is known that something may be sent: keys, a contact, and a lane.
"""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import sqlalchemy as sa

from anchord.app.archive_config import ArchiveConfig, CapturesConfig, ItemsConfig, item_metadata
from anchord.core.storage import StoredWhen
from anchord.engine.storing import CapturePolicy, ItemPolicy, StoringParts, UrlTemplate
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.adapters.archives.credentials import Keys
    from anchord.adapters.archives.item import ArchiveOrg
    from anchord.adapters.archives.wayback import Wayback
    from anchord.app.config import Loaded
    from anchord.app.wiring import App
    from anchord.engine.archiving import Archiving
    from anchord.engine.parts import Parts
    from anchord.ports.storage import LaneTable

_MARKS = "marks"
"""The row of the store that remembers what our items were marked with."""
_SPREAD = 0.2
"""Waits are made longer by up to a fifth, never shorter: what a service asked for is kept."""


# ---------------------------------------------------------------------- what is missing

CHOSEN = ("no page is captured", "no item is made")
"""How gaps begin that a person may want: one of the two ways is off."""


def captures_on(archive: ArchiveConfig) -> bool:
    """Tell whether pages would be captured, if anything may be sent."""
    captures = archive.captures
    return captures.enabled and bool(captures.templates() or captures.extra_urls)


def items_on(archive: ArchiveConfig) -> bool:
    """Tell whether bundles would be uploaded, if anything may be sent."""
    return archive.items.enabled and bool(archive.items.prefix)


def keys_of(loaded: Loaded) -> Keys | None:
    """Return the account's keys; None when none are configured.

    Raises:
        ConfigError: they are configured and cannot be used.
    """
    from anchord.adapters.archives.credentials import load_keys

    name = loaded.config.archive.credentials_file
    return load_keys(loaded.resolve(name) if name else None, os.environ)


def gaps(loaded: Loaded) -> list[str]:
    """Return what keeps records from being stored, in words that say what to set.

    Empty: everything that is on can work. No file but the credentials is looked at.
    """
    archive = loaded.config.archive
    found = []
    if captures_on(archive) or items_on(archive):
        found += _sender_gaps(loaded)
    if not captures_on(archive):
        key = "urls" if archive.captures.enabled else "enabled"
        found.append(f"no page is captured: see archive.captures.{key}")
    if not items_on(archive):
        key = "prefix is empty" if archive.items.enabled else "enabled is false"
        found.append(f"no item is made: archive.items.{key}")
    return found + _policy_gaps(archive)


def _sender_gaps(loaded: Loaded) -> list[str]:
    found = []
    try:
        if keys_of(loaded) is None:
            found.append("nothing is sent: no keys; set archive.credentials_file")
    except ConfigError as error:
        found.append(f"nothing is sent: {error}")
    if not loaded.config.archive.contact:
        found.append("nothing is sent: set archive.contact, a URL or mail address")
    return found


def _policy_gaps(archive: ArchiveConfig) -> list[str]:
    possible = {
        StoredWhen.CAPTURE: captures_on(archive),
        StoredWhen.ITEM: items_on(archive),
        StoredWhen.BOTH: captures_on(archive) and items_on(archive),
        StoredWhen.EITHER: captures_on(archive) or items_on(archive),
    }
    if possible[archive.stored_when]:
        return []
    return [f'no record can become stored: archive.stored_when is "{archive.stored_when.value}"']


def may_send(loaded: Loaded) -> Keys | None:
    """Return the keys when something may be sent; None when anything is missing for it.

    Raises:
        ConfigError: the keys cannot be used.
    """
    archive = loaded.config.archive
    if not archive.contact or not (captures_on(archive) or items_on(archive)):
        return None
    return keys_of(loaded)


# ---------------------------------------------------------------------- policies


def capture_policy(captures: CapturesConfig) -> CapturePolicy:
    """Return the numbers of [archive.captures] for the engine."""
    return CapturePolicy(
        urls={
            kind: UrlTemplate(url=one.url, contains=one.contains, plain=one.plain)
            for kind, one in captures.templates().items()
        },
        extra_urls=tuple(
            UrlTemplate(url=one.url, contains=one.contains, plain=one.plain)
            for one in captures.extra_urls
        ),
        adopt_younger_than_s=captures.adopt_younger_than_s,
        submits_per_minute=captures.submits_per_minute,
        parallel=captures.parallel,
        daily_share=captures.daily_share,
        status_per_day=captures.status_per_day,
        index_per_minute=captures.index_per_minute,
        replays_per_minute=captures.replays_per_minute,
        first_poll_s=captures.first_poll_s,
        poll_s=captures.poll_s,
        slot_poll_s=captures.slot_poll_s,
        job_deadline_s=captures.job_deadline_s,
        check_after_s=captures.check_after_s,
        confirm_after_s=captures.confirm_after_s,
    )


def item_policy(items: ItemsConfig) -> ItemPolicy:
    """Return the numbers of [archive.items] for the engine."""
    return ItemPolicy(
        prefix=items.prefix,
        metadata=item_metadata(items),
        max_members=items.max_members,
        max_bytes=items.max_bytes,
        item_max_files=items.item_max_files,
        item_max_bytes=items.item_max_bytes,
        flush_after_s=items.flush_after_s,
        wait_for_anchor_s=items.wait_for_anchor_s,
        check_after_s=items.check_after_s,
        confirm_after_s=items.confirm_after_s,
        sample_every=items.sample_every,
        account_headroom=items.account_headroom,
        item_headroom=items.item_headroom,
    )


# ---------------------------------------------------------------------- the parts


@contextlib.contextmanager
def open_archiving(app: App, parts: Parts) -> Iterator[Archiving | None]:
    """Open the way to the archive, with the account's lock held; None when nothing may be sent.

    Raises:
        ConfigError: keys, folder or addresses cannot be used.
        TransientError: another process uses the account.
    """
    archive = app.config.archive
    keys = may_send(app.loaded)
    if keys is None:
        yield None
        return
    from anchord.adapters.archives.account import AccountLock
    from anchord.adapters.archives.spool import FolderSpool
    from anchord.app.wiring import store_url
    from anchord.engine.archiving import Archiving

    with contextlib.ExitStack() as stack:
        store = sa.make_url(store_url(app.loaded)).render_as_string(hide_password=True)
        stack.enter_context(AccountLock(account_dir(app.loaded), keys.fingerprint, store))
        marks = remembered_marks(app.store.storage.lanes, keys)
        items = item_archive(app.loaded, keys, marks) if items_on(archive) else None
        if items is not None:
            stack.callback(items.close)
        storing = StoringParts(
            parts=parts,
            stored_when=archive.stored_when,
            keyring=app.keyring,
            captures=capture_archive(app.loaded, keys) if captures_on(archive) else None,
            capture_policy=capture_policy(archive.captures),
            items=items,
            spool=FolderSpool(app.loaded.resolve(archive.items.spool_dir)),
            item_policy=item_policy(archive.items),
            jitter=_spread,
        )
        yield stack.enter_context(Archiving(storing))


def capture_archive(loaded: Loaded, keys: Keys) -> Wayback:
    """Return the Wayback Machine as configured; its index gets more time, for it is slow."""
    from anchord.adapters.archives.wayback import INDEX_TIMEOUT_S, Wayback

    archive = loaded.config.archive
    return Wayback(
        archive.captures.web_url,
        keys,
        contact=archive.contact,
        timeout_s=archive.captures.timeout_s,
        index_timeout_s=max(archive.captures.timeout_s, INDEX_TIMEOUT_S),
        max_replay_bytes=archive.captures.max_replay_bytes,
    )


def remembered_marks(lanes: LaneTable, keys: Keys) -> tuple[str, ...]:
    """Return what items of this store may be marked with: by these keys, and by all before them.

    Kept in the store before anything is marked, so that items stay ours when keys are renewed.
    """
    from anchord.adapters.archives.item import mark_of

    lane = lanes.get(_MARKS)
    known = msgspec.json.decode(lane.seen or b"[]", type=tuple[str, ...])
    marks = tuple(dict.fromkeys((mark_of(keys), *known)))
    if not set(marks) <= set(known):
        lanes.put(msgspec.structs.replace(lane, seen=msgspec.json.encode(marks)))
    return marks


def item_archive(loaded: Loaded, keys: Keys, marks: tuple[str, ...] = ()) -> ArchiveOrg:
    """Return archive.org's items as configured."""
    from anchord.adapters.archives.item import ArchiveOrg, Limits

    archive = loaded.config.archive
    return ArchiveOrg(
        keys,
        contact=archive.contact,
        api_url=archive.items.api_url,
        s3_url=archive.items.s3_url,
        marks=marks,
        limits=Limits(ask_s=archive.items.timeout_s),
    )


def account_dir(loaded: Loaded) -> Path:
    """Return the folder of the account's locks: one for all stores of a user, if none is named.

    Raises:
        ConfigError: the user has no home, as a service may.
    """
    from anchord.adapters.archives.account import default_directory

    name = loaded.config.archive.account_dir
    if name:
        return loaded.resolve(name)
    try:
        return default_directory(os.environ, Path.home())
    except RuntimeError:
        raise ConfigError(
            f"{loaded.path}: this user has no home folder for the lock of the archive.org account: "
            "set archive.account_dir"
        ) from None


def _spread(wait_s: float) -> float:
    return wait_s * (1 + _SPREAD * random.random())  # noqa: S311 - nothing secret hangs on it
