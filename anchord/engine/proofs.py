"""Joining one record's `.ots` from the stored leaves and the batch's proof.

The joined file is byte for byte what the standard library would have written for the same tree.
Before anything is joined, the leaves are recomputed from digests and nonces and the tile's root is
held against the batch, so a damaged store raises instead of giving away a wrong proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.merkle import TILE, leaves, levels, root, suffixes
from anchord.core.proof import DETACHED_HEADER, join
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from anchord.core.model import Batch, Member, Tile
    from anchord.ports.store import Store


class Joiner:
    """Joins the proofs of a batch's members to one proof of its root.

    Args:
        batch: the batch; its tile roots are checked against its root once, here.
        proof: serialised timestamp from the root on.

    Raises:
        FatalError: the stored tile roots do not lead to the batch's root.
    """

    def __init__(self, batch: Batch, proof: bytes) -> None:
        self._batch = batch
        self._proof = proof
        self._upper: list[bytes] = []
        if batch.kind == "sealed":
            self._upper = levels(batch.tile_roots or b"")
            if self._upper[-1] != batch.root:
                raise FatalError(f"batch {batch.id}: tile roots do not lead to its root: damaged")

    def join_tile(self, tile: Tile) -> list[bytes]:
        """Return the `.ots` bytes of a tile's members, in order."""
        if self._batch.kind == "adopted":
            return [self._adopted(member) for member in tile.members]
        self._check(tile)
        tail = suffixes(self._upper, self._proof, tile.tile, tile.tile + 1)[0]
        first = tile.members[0].index - tile.tile * TILE
        stop = first + len(tile.members)
        ends = suffixes(levels(tile.leaves), tail, first, stop)
        return [
            join(member.digest, member.nonce, end)
            for member, end in zip(tile.members, ends, strict=True)
        ]

    def _adopted(self, member: Member) -> bytes:
        """Return the file as it came while nothing was added to it."""
        raw = self._batch.adopted_raw or b""
        whole = DETACHED_HEADER + member.digest + self._proof
        if raw.endswith(self._proof) and len(raw) >= len(whole):
            return raw
        return whole

    def _check(self, tile: Tile) -> None:
        """Recompute what the leaves claim: digests and nonces below, the tile's root above."""
        place = 32 * tile.tile
        expected = (self._batch.tile_roots or b"")[place : place + 32]
        if root(tile.leaves) != expected:
            raise FatalError(
                f"batch {self._batch.id}, tile {tile.tile}: leaves do not lead to its root"
            )
        first = 32 * (tile.members[0].index - tile.tile * TILE)
        nonces = b"".join(member.nonce for member in tile.members)
        found = leaves([member.digest for member in tile.members], nonces)
        if tile.leaves[first : first + len(found)] != found:
            raise FatalError(
                f"batch {self._batch.id}, tile {tile.tile}: a record's digest or nonce is not "
                "the one that was sealed: the store is damaged"
            )


def record_ots(store: Store, batch: Batch, record_id: int, proof: bytes | None = None) -> bytes:
    """Return one record's whole `.ots`.

    Args:
        store: where the leaves are.
        batch: a batch of the record.
        record_id: the record.
        proof: another proof of the batch's root than today's, e.g. a series' snapshot.

    Raises:
        RefusedError: no calendar has answered yet, so there is no proof.
    """
    if proof is None:
        proof = batch.proof
    if proof is None:
        raise RefusedError(
            "no calendar has answered yet, so there is no proof: run `anchord run-once` again"
        )
    index = store.batches.index_of(batch, record_id)
    tile = next(iter(store.batches.tiles(batch, index, index + 1)))
    return Joiner(batch, proof).join_tile(tile)[0]
