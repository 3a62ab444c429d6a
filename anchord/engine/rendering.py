"""Rendering the bodies of a series: what all its events share, and what differs by record.

A body is never stored. It follows from the series' row, the record, the batch's leaves and proof,
and for files the hashes of their members; the event id proves that it was rendered exactly.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING

from anchord.core import event
from anchord.core.canonical import record_id as id_of
from anchord.core.moment import utc
from anchord.engine.proofs import Joiner
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.model import Batch, Member, Series, Tile
    from anchord.ports.store import Store

_HASH = 32


class Renderer:
    """Renders the bodies of one series."""

    def __init__(self, store: Store, batch: Batch, series: Series) -> None:
        self._store = store
        self._batch = batch
        self._series = series
        self._slots = _SLOTS[series.event_type]
        common = event.Common(
            event_type=series.event_type,
            created_at=utc(series.created_at),
            signer=json.loads(series.signer),
            payload=json.loads(series.payload),
            slots=self._slots,
            target=_target(store, series),
        )
        self._template = event.template(common)

    def bodies(
        self, tile: Tile, numbered: Sequence[bool], tree: list[bytes] | None = None
    ) -> list[bytes]:
        """Return the canonical bodies of a tile's members, to be signed.

        Args:
            tile: the members.
            numbered: which of them are named by their number.
            tree: levels over the tile's leaves; see `Joiner.join_tile`.

        Raises:
            FatalError: a member is not the record that was sealed, or the proof is damaged.
        """
        if self._series.proof is None:
            # Nothing is joined, but the subject still must be the record that was sealed.
            self._joiner.check(tile)
            return self.bare(tile.members, numbered)
        proofs = self._joiner.join_tile(tile, tree)
        sha256 = hashlib.sha256
        columns = {"proof_sha256": [sha256(proof).hexdigest().encode() for proof in proofs]}
        if "proof_b64" in self._slots:
            columns["proof_b64"] = [base64.b64encode(proof) for proof in proofs]
        return self._template.render(columns | self._names(tile.members, numbered))

    def bare(self, members: Sequence[Member], numbered: Sequence[bool]) -> list[bytes]:
        """Return the bodies of members of a series without a proof, to be held against their ids.

        Leaves are not looked at: whoever calls compares the id of each body with the ledger's.
        """
        columns = self._names(members, numbered)
        if self._series.withdraws is not None:
            columns["withdraws"] = self._withdrawn(members)
        if "member" in self._slots:
            columns["member"] = [event.member_name(member.digest).encode() for member in members]
            columns["member_sha256"] = self._member_hashes(members)
        return self._template.render(columns)

    @cached_property
    def _joiner(self) -> Joiner:
        return Joiner(self._batch, self._series.proof or b"")

    def _names(self, members: Sequence[Member], numbered: Sequence[bool]) -> dict[str, list[bytes]]:
        subjects = [
            _subject(member, by_number=by_number)
            for member, by_number in zip(members, numbered, strict=True)
        ]
        digests = [member.digest.hex().encode() for member in members]
        return {"subject": subjects, "canonical_sha256": digests}

    def _withdrawn(self, members: Sequence[Member]) -> list[bytes]:
        ids = [member.record_id for member in members]
        rows = self._store.ledger.ids_in_series(self._series.withdraws or 0, ids)
        missing = set(ids) - set(rows)
        if missing:
            raise self._damaged(f"withdraws events not in the ledger (record {min(missing)})")
        return [event.event_id(rows[key].event_id).encode() for key in ids]

    def _member_hashes(self, members: Sequence[Member]) -> list[bytes]:
        """Return what the bundles in the ZIP hashed to when it was packed."""
        found = []
        for member in members:
            hashes = self._places.get(member.index)
            if hashes is None:
                raise self._damaged(f"names leaf {member.index}, which is not in its file")
            found.append(hashes)
        return found

    @cached_property
    def _places(self) -> dict[int, bytes]:
        """By leaf number: the hash of the bundle in the series' file, in hex."""
        items, file_id = self._store.storage.items, self._series.file_id
        if file_id is None:
            raise self._damaged("names no file")
        hashes = items.member_sha256s(file_id)
        found = {}
        for stretch in items.ranges(file_id):
            if stretch.batch_id != self._series.batch_id:
                continue
            for index in range(stretch.start, stretch.stop):
                at = _HASH * (stretch.place + index - stretch.start)
                if len(hashes) < at + _HASH:
                    raise self._damaged("has a file with too few hashes of members")
                found[index] = hashes[at : at + _HASH].hex().encode()
        return found

    def _damaged(self, what: str) -> FatalError:
        return FatalError(f"series {self._series.id} {what}: the store is damaged, restore it")


_SLOTS = {
    event.SUBMITTED: ("canonical_sha256", "proof_sha256"),
    event.ANCHORED: ("canonical_sha256", "proof_b64", "proof_sha256"),
    event.CAPTURED: ("canonical_sha256",),
    event.ITEM_STORED: ("canonical_sha256", "member", "member_sha256"),
    event.WITHDRAWN: ("canonical_sha256", "withdraws"),
}
"""Payload fields that differ by record, by event type."""


def _target(store: Store, series: Series) -> str:
    """Return the target of a series: a withdrawal has that of what it withdraws."""
    kind = series.event_type
    if kind == event.WITHDRAWN and series.withdraws is not None:
        kind = store.ledger.get_series(series.withdraws).event_type
    return event.STORAGE if kind in (event.CAPTURED, event.ITEM_STORED) else event.TARGET


def _subject(member: Member, *, by_number: bool) -> bytes:
    number = member.number if by_number else None
    record_id = "" if number is not None else id_of(member.digest)
    return event.subject(number=number, record_id=record_id)
