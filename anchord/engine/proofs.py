"""Joining one record's `.ots` from the stored leaves and the batch's proof.

The joined file is byte for byte what the standard library would have written for the same tree.
Before anything is joined, the leaves are recomputed from digests and nonces and the tile's root is
held against the batch, so a damaged store raises instead of giving away a wrong proof.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from anchord.core import trailer
from anchord.core.merkle import NODE, TILE, leaves, levels, suffixes
from anchord.core.model import BatchState
from anchord.core.proof import (
    DETACHED_HEADER,
    Timestamp,
    attestations,
    join,
    parse_timestamp,
    serialise,
)
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from anchord.core.model import Batch, Tile
    from anchord.ports.store import Store


_tree = lru_cache(maxsize=8)(levels)
"""Levels over a batch's tile roots, or a tile's leaves: its members, and what is signed of one, are
asked for one after the other."""


def check_root(batch: Batch) -> None:
    """Hold a batch's root against what lies under it, before anything is decided on its word.

    Raises:
        FatalError: the stored root is not the one of the tiles, or of the file that was adopted.
    """
    if batch.kind == "adopted":
        if not (batch.adopted_raw or b"").startswith(DETACHED_HEADER + batch.root):
            raise FatalError(f"batch {batch.id}: its root is not the adopted file's: damaged")
        return
    roots = batch.tile_roots or b""
    tiles, rest = divmod(len(roots), NODE)
    whole = not rest and tiles == -(-batch.size // TILE) and tiles > 0
    if (
        not whole
        or trailer.root_of(_tree(batch.tile_roots or b"")[-1], batch.trailer) != batch.root
    ):
        raise FatalError(f"batch {batch.id}: tile roots do not lead to its root: damaged")


def proof_of(batch: Batch) -> Timestamp | None:
    """Return what is known of a batch's root so far; None before the first answer.

    Raises:
        FatalError: the stored proof or root is damaged.
    """
    check_root(batch)
    if batch.proof is None:
        return None
    try:
        return parse_timestamp(batch.proof, batch.root)
    except RefusedError as error:
        raise FatalError(f"batch {batch.id}: its proof is damaged: {error}") from error


_NODE_STEP = b"\xf1\x20" + bytes(NODE) + b"\x08"
_ABOVE = b"\xf0\x10" + bytes(16) + b"\x08" + 30 * _NODE_STEP + trailer.steps(bytes(2 * NODE))
"""The longest way from a record to its batch's root: a nonce, a billion leaves, a whole trailer."""


def written(timestamp: Timestamp, kind: str) -> bytes:
    """Return a merged proof's bytes, once each record's `.ots` made of it will be readable.

    Two proofs within the limits can make one that is not: too long, or too deep. The way from a
    record up to the root of a sealed batch comes on top.

    Raises:
        RefusedError: what came does not fit in.
    """
    raw = serialise(timestamp)
    if kind == "sealed":
        # What the steps hash differs from record to record; their number and length do not.
        parse_timestamp(_ABOVE + raw, bytes(NODE))
    else:
        parse_timestamp(raw, timestamp.message)
    return raw


def check_proof(batch: Batch) -> None:
    """Hold an anchored batch's proof against the block stored with it, before it is given away.

    Raises:
        FatalError: the stored proof does not lead to the Merkle root of the stored block.
    """
    timestamp = proof_of(batch)
    if timestamp is None or batch.state not in (BatchState.ANCHORED, BatchState.ATTESTED):
        return
    wanted = (batch.block_height, (batch.block_merkle_root or b"")[::-1])
    if wanted not in {(item.attestation.height, item.message) for item in attestations(timestamp)}:
        raise FatalError(
            f"batch {batch.id}: its proof does not lead to block {batch.block_height} as stored: "
            "the store is damaged, restore it from a backup"
        )


class Joiner:
    """Joins the proofs of a batch's members to one proof of its root.

    Args:
        batch: the batch; its root is checked here, once.
        proof: serialised timestamp from the root on; may be empty when only `check` is used.

    Raises:
        FatalError: the stored tile roots do not lead to the batch's root.
    """

    def __init__(self, batch: Batch, proof: bytes) -> None:
        check_root(batch)
        self._batch = batch
        self._proof = proof
        self._upper = _tree(batch.tile_roots or b"") if batch.kind == "sealed" else []

    def join_tile(self, tile: Tile, tree: list[bytes] | None = None) -> list[bytes]:
        """Return the `.ots` bytes of a tile's members, in order.

        Args:
            tile: the members, with all leaves of the tile.
            tree: all levels over the leaves, where the caller has checked what `check` does.
        """
        if tree is None:
            self.check(tile)
        if self._batch.kind == "adopted":
            return [join(member.digest, b"", self._proof) for member in tile.members]
        above = trailer.steps(self._batch.trailer) + self._proof
        tail = suffixes(self._upper, above, tile.tile, tile.tile + 1)[0]
        first = tile.members[0].index - tile.tile * TILE
        stop = first + len(tile.members)
        ends = suffixes(tree or _tree(tile.leaves), tail, first, stop)
        return [
            join(member.digest, member.nonce, end)
            for member, end in zip(tile.members, ends, strict=True)
        ]

    def check(self, tile: Tile) -> None:
        """Recompute what the leaves claim: digests and nonces below, the tile's root above.

        Raises:
            FatalError: a digest, a nonce or a leaf is not the one that was sealed.
        """
        if self._batch.kind == "adopted":
            if [member.digest for member in tile.members] != [self._batch.root]:
                raise FatalError(
                    f"batch {self._batch.id}: its record has not the digest that the adopted "
                    "file is about: the store is damaged"
                )
            return
        self._check_sealed(tile)

    def _check_sealed(self, tile: Tile) -> None:
        place = NODE * tile.tile
        expected = (self._batch.tile_roots or b"")[place : place + NODE]
        if not tile.leaves or len(tile.leaves) % NODE or _tree(tile.leaves)[-1] != expected:
            raise FatalError(
                f"batch {self._batch.id}, tile {tile.tile}: leaves do not lead to its root"
            )
        first = NODE * (tile.members[0].index - tile.tile * TILE)
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
        check_proof(batch)
        proof = batch.proof
    if proof is None:
        raise RefusedError(
            "no calendar has answered yet, so there is no proof: run `anchord run-once` again"
        )
    index = store.batches.index_of(batch, record_id)
    tile = next(iter(store.batches.tiles(batch, index, index + 1)))
    return Joiner(batch, proof).join_tile(tile)[0]
