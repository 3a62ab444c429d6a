"""The files of the published log: tiles, entries, and every checkpoint with its proof.

A client that works with an older checkpoint may ask for the tile at the log's end as it was then.
It may be dropped once the full tile is there (c2sp.org/tlog-tiles, Partial Tiles), so those of
all checkpoints since the last full tile are written, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anchord.core.log_tree import WIDTH
from anchord.core.tlog_tile import TileName, entry_bundle, entry_tiles, tiles
from anchord.engine.proving import CheckpointProofs
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.ports.log import StoredCheckpoint
    from anchord.ports.store import Store


def log_files(store: Store, last: StoredCheckpoint) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of every file of the log, `log/checkpoint` at the end.

    Args:
        store: where the log is.
        last: its newest checkpoint.
    """
    for tile in _wanted(store, last.size):
        yield f"log/{tile.path}", _contents(store, tile)
    proofs = CheckpointProofs(store)
    for checkpoint in store.log.checkpoints():
        path = f"log/checkpoints/{checkpoint.size}"
        yield path, checkpoint.note
        proof = _proof(proofs, checkpoint)
        if proof is not None:
            yield f"{path}.ots", proof
    yield "log/checkpoint", last.note


def _wanted(store: Store, size: int) -> Iterator[TileName]:
    yield from tiles(size)
    yield from entry_tiles(size)
    ends = {(tile.level, tile.number) for tile in _ends(size)}
    given = set(_ends(size))
    for checkpoint in store.log.checkpoints():
        for tile in _ends(checkpoint.size):
            if (tile.level, tile.number) in ends and tile not in given:
                given.add(tile)
                yield tile


def _ends(size: int) -> Iterator[TileName]:
    """Yield the tiles at a log's end that are not full."""
    last = size // WIDTH * WIDTH
    for found in (*tiles(size, last), *entry_tiles(size, last)):
        if found.width < WIDTH:
            yield found


def _contents(store: Store, tile: TileName) -> bytes:
    if tile.level is None:
        return entry_bundle(store.log.entries(tile.start, tile.stop))
    if tile.level == 0:
        return store.log.leaf_hashes(tile.start, tile.stop)
    return store.log.nodes(tile.level, tile.start, tile.stop)


def _proof(proofs: CheckpointProofs, checkpoint: StoredCheckpoint) -> bytes | None:
    """Return a checkpoint's own `.ots`; None while no calendar has answered for it."""
    try:
        return proofs.ots(checkpoint)
    except RefusedError:
        return None
