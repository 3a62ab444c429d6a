"""From records to captures: which URLs there are to capture.

Records are looked at batch by batch, and only as many as are needed to keep the submits busy, so
hundreds of thousands of records are no rows before their time.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from anchord.core.capture_page import fields_of, own_page, page_of
from anchord.core.storage import CaptureState, NewCapture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.core.capture_page import Page
    from anchord.core.model import Member, StoredRecord, Tile
    from anchord.engine.capture_glance import GlancedCaptures
    from anchord.engine.storing import StoringParts, UrlTemplate

SOURCE = "source"
EXTRA = "extra-"
_ENOUGH = 200
"""Captures waiting: more are not looked for."""
_TILES = 20
_TILE = 1024


class Claiming:
    """Looks at the members of batches for URLs to capture."""

    def __init__(self, parts: StoringParts, captures: GlancedCaptures) -> None:
        self._store = parts.parts.store
        self._captures = captures
        self._followed = False
        self._policy = parts.capture_policy

    def wanted(self) -> bool:
        """Tell whether few captures wait and there are members to look at."""
        left = self._captures.unclaimed() is not None
        return left and self._captures.few(CaptureState.WAITING, _ENOUGH)

    def claim(self, now: int) -> int:
        """Look at a bounded number of members; return how many new URLs there are.

        If we crash between tiles, the batch remembers how far it was looked at; a record's URL
        that is there already is left alone.
        """
        self._follow_templates(now)
        captures = self._captures
        found, tiles = 0, 0
        while tiles < _TILES and self.wanted():
            unclaimed = captures.unclaimed()
            if unclaimed is None:
                break
            batch_id, start, size = unclaimed
            stop = min(start - start % _TILE + _TILE, size)
            new: list[NewCapture] = []
            batch = self._store.batches.get(batch_id)
            for tile in self._store.batches.tiles(batch, start, stop):
                new += self._of_tile(batch_id, tile)
            found += captures.claim(batch_id, stop, new, now, start=start)
            tiles += 1
        return found

    def template(self, role: str, record: StoredRecord | None) -> UrlTemplate | None:
        """Return the template a capture's URL came of; None when it is configured no more."""
        if role == SOURCE:
            return self._policy.urls.get((record and record.source_kind) or "")
        number = int(role.removeprefix(EXTRA))
        extra = self._policy.extra_urls
        return extra[number - 1] if number <= len(extra) else None

    def _of_tile(self, batch_id: int, tile: Tile) -> Iterator[NewCapture]:
        ids = [member.record_id for member in tile.members]
        records, urls = self._store.lookup.records(ids), self._store.lookup.urls(ids)
        for member in tile.members:
            one = member.record_id
            yield from self._of_member(batch_id, member, records[one], urls.get(one))

    def _of_member(
        self, batch_id: int, member: Member, record: StoredRecord, url: str | None
    ) -> Iterator[NewCapture]:
        for role, page in self._pages(record, url):
            if page is not None:
                yield NewCapture(
                    record_id=record.id,
                    batch_id=batch_id,
                    place=member.index,
                    role=role,
                    url=page.url,
                    host=page.host,
                    contains=page.contains,
                )

    def _pages(self, record: StoredRecord, url: str | None) -> Iterator[tuple[str, Page | None]]:
        """Yield what is captured of a record; a page of its own goes before its kind's."""
        fields = fields_of(record)
        source = self._policy.urls.get(record.source_kind or "")
        if url is not None:
            yield SOURCE, own_page(url)
        elif source is not None:
            yield SOURCE, page_of(source.url, source.contains, fields)
        for number, one in enumerate(self._policy.extra_urls, 1):
            yield f"{EXTRA}{number}", page_of(one.url, one.contains, fields)

    def _follow_templates(self, now: int) -> None:
        """Have every member looked at once more when templates were added or changed.

        If we crash before the fingerprint is kept, they are looked at twice, to no effect.
        """
        if self._followed:
            return
        self._followed = True
        policy = self._policy
        texts = msgspec.json.encode((sorted(policy.urls.items()), policy.extra_urls))
        fingerprint = hashlib.sha256(texts).hexdigest().encode()
        storage = self._store.storage
        lane = storage.lanes.get("claims")
        if lane.seen == fingerprint:
            return
        if lane.seen is not None:
            self._captures.claim_again()
        storage.lanes.put(msgspec.structs.replace(lane, seen=fingerprint, changed_at=now))
