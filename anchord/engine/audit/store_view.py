"""The records of one chunk with their places in batches, each leaf recomputed."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from anchord.core import merkle
from anchord.core.canonical import pith_number
from anchord.core.finding import Part, Severity
from anchord.core.merkle import NODE, NONCE, TILE
from anchord.core.model import Member, Tile
from anchord.engine.audit.store_frame import RESTORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.model import Batch, Series
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.store_frame import Job
    from anchord.ports.reading import Chunk, RawTile


class View:
    """One chunk, and what is broken of it.

    Args:
        chunk: the rows.
        outcome: where findings go.
    """

    def __init__(self, chunk: Chunk, outcome: Outcome) -> None:
        self.chunk = chunk
        self.outcome = outcome
        self.records = {record.id: record for record in chunk.records}
        self.numbers = {
            record.id: None if record.year is None else pith_number(record.digest, record.year)
            for record in chunk.records
        }
        self.places: dict[int, dict[int, Member]] = {key: {} for key in self.records}
        """Record -> batch -> its place there."""
        self.leaves: dict[tuple[int, int], bytes] = {}
        self.members: dict[tuple[int, int], dict[int, Member]] = {}
        """(batch, tile) -> leaf number -> member, of the records of this chunk."""
        self.trees: dict[tuple[int, int], list[bytes]] = {}
        """Levels over the leaves of tiles whose leaves and root are what they should be."""
        self._ids: dict[tuple[int, int], set[int]] = {}
        self.broken: set[int] = set()
        """Records something is wrong with."""

    def name(self, record_id: int) -> str:
        """Return what a person calls a record."""
        record = self.records.get(record_id)
        if record is None:
            return f"record {record_id}"
        return self.numbers[record_id] or f"sha256:{record.digest.hex()}"

    def find(
        self, code: str, part: Part, record_id: int, what: str, subject: str | None = None
    ) -> None:
        """Note something broken about a record, or about `subject` that is the record's."""
        self.broken.add(record_id)
        name = self.name(record_id)
        if subject is not None:
            what = f"{what} (record {name})"
        self.outcome.find(code, Severity.BROKEN, part, subject or name, what, RESTORE)

    # ------------------------------------------------------------------ places

    def place_all(self, job: Job) -> None:
        """Find the place of each record in each batch, and recompute the leaves."""
        for raw in self.chunk.tiles:
            self._place(raw, job)
        for key in set(job.tiles) - {(raw.batch_id, raw.tile) for raw in self.chunk.tiles}:
            self._tile_finding("tile-missing", key, "it was there when this audit began")
        for batch in self.chunk.batches.values():
            if batch.kind == "adopted" and batch.record_id in self.records:
                self._place_adopted(batch, batch.record_id or 0)

    def _place_adopted(self, batch: Batch, record_id: int) -> None:
        digest = self.records[record_id].digest
        member = Member(0, record_id, digest, self.numbers[record_id], b"")
        self.places[record_id][batch.id] = member
        self.members[batch.id, 0], self._ids[batch.id, 0] = {0: member}, {record_id}
        if digest != batch.root:
            what = f"its digest is {digest.hex()}, the file that was brought for it (batch "
            self.find("digest-differs", Part.RECORD, record_id,
                      f"{what}{batch.id}) is about {batch.root.hex()}")  # fmt: skip

    def _place(self, raw: RawTile, job: Job) -> None:
        key, batch = (raw.batch_id, raw.tile), self.chunk.batches.get(raw.batch_id)
        count = len(raw.record_ids) // 8
        if not len(raw.nonces) / NONCE == len(raw.leaves) / NODE == len(raw.record_ids) / 8 > 0:
            self._tile_finding("tile-damaged", key, "records, nonces and leaves differ in number")
            return
        ids = struct.unpack(f">{count}q", raw.record_ids)
        inside = [place for place, one in enumerate(ids) if job.low <= one <= job.high]
        if batch is None or not inside:
            return
        if job.low <= ids[0] <= job.high:
            self._check_tile(key, raw, batch, ids)
        self.leaves[key] = raw.leaves
        known = [place for place in inside if ids[place] in self.records]
        for place in set(inside) - set(known):
            what = f"leaf {raw.tile * TILE + place} is of record {ids[place]}, which is not there"
            self._tile_finding("record-missing", key, what)
        self._fill(key, raw, ids, known)

    def _fill(
        self, key: tuple[int, int], raw: RawTile, ids: Sequence[int], known: Sequence[int]
    ) -> None:
        first, records, numbers = raw.tile * TILE, self.records, self.numbers
        found = {}
        for place in known:
            record_id = ids[place]
            nonce = raw.nonces[NONCE * place : NONCE * place + NONCE]
            member = Member(
                first + place, record_id, records[record_id].digest, numbers[record_id], nonce
            )
            found[first + place] = member
            if raw.batch_id in self.places[record_id]:
                self.find("record-repeated", Part.RECORD, record_id,
                          f"it is in batch {raw.batch_id} twice")  # fmt: skip
            self.places[record_id][raw.batch_id] = member
        self.members[key] = found
        self._ids[key] = {ids[place] for place in known}
        members = list(found.values())
        nonces = b"".join([member.nonce for member in members])
        expected = merkle.leaves([member.digest for member in members], nonces)
        stored = b"".join([raw.leaves[NODE * place : NODE * place + NODE] for place in known])
        if expected != stored:
            self.trees.pop((raw.batch_id, raw.tile), None)
            self._name_leaves(raw, members, expected, stored)

    def _name_leaves(
        self, raw: RawTile, members: Sequence[Member], expected: bytes, stored: bytes
    ) -> None:
        for place, member in enumerate(members):
            at = NODE * place
            if expected[at : at + NODE] != stored[at : at + NODE]:
                what = f"leaf {member.index} of batch {raw.batch_id} is not the hash of the "
                what += "record's digest and nonce: digest, nonce or leaf were changed"
                self.find("leaf-differs", Part.RECORD, member.record_id, what)

    def _check_tile(
        self, key: tuple[int, int], raw: RawTile, batch: Batch, ids: Sequence[int]
    ) -> None:
        at = NODE * raw.tile
        expected = (batch.tile_roots or b"")[at : at + NODE]
        tree = merkle.levels(raw.leaves)
        if tree[-1] == expected:
            self.trees[key] = tree
        else:
            what = f"its leaves do not lead to {expected.hex() or 'a root of the batch'}"
            self._tile_finding("tile-root-differs", key, what)
        due = min(TILE, batch.size - TILE * raw.tile)
        if len(ids) != due:
            what = f"the batch has {batch.size} records, so this tile has {due}; it has {len(ids)}"
            self._tile_finding("tile-damaged", key, what)
        if list(ids) != sorted(set(ids)):
            self._tile_finding("tile-damaged", key, "its records do not stand in order, once each")

    def _tile_finding(self, code: str, key: tuple[int, int], what: str) -> None:
        name = f"batch {key[0]}, tile {key[1]}"
        self.outcome.find(code, Severity.BROKEN, Part.BATCH, name, what, RESTORE)

    def lacking(self, series: Series, have: set[int]) -> Iterator[Member]:
        """Yield the members that a series came past, and that are not in `have`."""
        for key, members in self.members.items():
            if key[0] != series.batch_id or have.issuperset(self._ids[key]):
                continue
            for index, member in members.items():
                if series.start <= index < series.next and member.record_id not in have:
                    yield member

    def run(self, batch_id: int, members: Sequence[Member]) -> Tile | None:
        """Return the neighbours in one tile that some members of it span; None: there are gaps."""
        tile = members[0].index // TILE
        known = self.members[batch_id, tile]
        if (batch_id, tile) not in self.leaves:  # adopted
            return Tile(0, b"", (members[0],))
        try:
            span = tuple([known[index] for index in range(members[0].index, members[-1].index + 1)])
        except KeyError:
            return None
        return Tile(tile, self.leaves[batch_id, tile], span)
