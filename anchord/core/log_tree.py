"""Proofs out of a stored log, and the full tiles that a log gains as it grows.

A stored log is read in the tiles of C2SP tlog-tiles (https://c2sp.org/tlog-tiles): 256 hashes of a
level, where a hash of level L stands for 256**L leaves. Trees within tiles are kept for a while, so
proofs of neighbours cost one look at the tile they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Protocol

from anchord.core.log import (
    HASH,
    Frontier,
    consistency_ranges,
    fold,
    inclusion_ranges,
    node_hash,
    peaks_of,
)
from anchord.core.log import root as root_of
from anchord.errors import RefusedError

HEIGHT = 8
WIDTH = 1 << HEIGHT
"""Hashes in a full tile."""
_FULL = HASH * WIDTH
_TILES_KEPT = 256
_RANGES_KEPT = 4096
_SHARED_KEPT = 64


class NodeReader(Protocol):
    """Where the hashes of a log are."""

    def leaf_hashes(self, start: int, stop: int) -> bytes:
        """Return leaf hashes [start, stop), 32 bytes each."""
        ...

    def nodes(self, level: int, start: int, stop: int) -> bytes:
        """Return roots of full tiles: hashes [start, stop) of a level from 1 on."""
        ...


class LogTree:
    """The tree over the first `size` leaves of a stored log; all smaller trees are within it.

    Args:
        reader: where its hashes are.
        size: leaves; the reader must have the full tiles below it.
    """

    def __init__(self, reader: NodeReader, size: int) -> None:
        self.size = size
        self._reader = reader
        self._tile = lru_cache(_TILES_KEPT)(self._read_tile)
        self._range = lru_cache(_RANGES_KEPT)(self._hash_range)
        self._above = lru_cache(_RANGES_KEPT)(self._hash_above)

    def root(self, size: int) -> bytes:
        """Return the root of the first `size` leaves."""
        return self.frontier(size).root()

    def frontier(self, size: int) -> Frontier:
        """Return the frontier of the first `size` leaves."""
        self._check(size)
        return Frontier(size, [self._subtree(*peak) for peak in peaks_of(0, size)])

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Return the proof that leaf `index` is in the tree of the first `size` leaves.

        Raises:
            RefusedError: there is no such leaf or tree.
        """
        self._check(size)
        if not 0 <= index < size:
            raise RefusedError(f"expected an index below the log's size {size}, got {index}")
        number = index // WIDTH
        first = number * WIDTH
        # Within a tree the leaves of a tile, or what a cut-off tile has of them, are one node.
        width = min(WIDTH, size - first)
        if width < WIDTH:
            inner = inclusion_ranges(index - first, width)
            within = [self._range(first + start, first + stop) for start, stop in inner]
        else:
            levels = self._tile(0, number)
            place = index - first
            within = [_at(levels[up], place >> up ^ 1) for up in range(HEIGHT)]
        return within + self._above(number, size)

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the first `old` leaves begin the tree of the first `new`.

        Raises:
            RefusedError: the old tree is the larger one.
        """
        self._check(new)
        return [self._range(start, stop) for start, stop in consistency_ranges(old, new)]

    def _hash_above(self, number: int, size: int) -> list[bytes]:
        """Return the part of a proof above tile `number`: all leaves of the tile share it."""
        first = number * WIDTH
        stop = min(first + WIDTH, size)
        ranges = inclusion_ranges(first, size)
        return [self._range(*found) for found in ranges if found[1] <= first or found[0] >= stop]

    def _hash_range(self, start: int, stop: int) -> bytes:
        return fold([self._subtree(*peak) for peak in peaks_of(start, stop)])

    def _subtree(self, height: int, place: int) -> bytes:
        """Return the root of full subtree `place` of 2**height leaves."""
        level, up = divmod(height, HEIGHT)
        first = place << up
        return _at(self._tile(level, first // WIDTH)[up], place - (first // WIDTH * WIDTH >> up))

    def _read_tile(self, level: int, number: int) -> list[bytes]:
        """Return the levels of the tree within a tile, as far as this log fills it."""
        start = number * WIDTH
        stop = min(start + WIDTH, self.size >> HEIGHT * level)
        if level:
            return _shared_levels(self._reader.nodes(level, start, stop))
        return _levels(self._reader.leaf_hashes(start, stop))

    def _check(self, size: int) -> None:
        if not 0 <= size <= self.size:
            raise RefusedError(f"expected a size of at most {self.size}, got {size}")


def _levels(hashes: bytes) -> list[bytes]:
    levels = [hashes]
    for _ in range(HEIGHT - 1):
        below, pair = levels[-1], 2 * HASH
        starts = range(0, len(below) - len(below) % pair, pair)
        levels.append(b"".join([_joined(below, at) for at in starts]))
    return levels


_shared_levels = lru_cache(_SHARED_KEPT)(_levels)
"""Of tiles above the leaves: few, and every proof leads through some of them."""


def _joined(level: bytes, at: int) -> bytes:
    return node_hash(level[at : at + HASH], level[at + HASH : at + 2 * HASH])


def _at(level: bytes, place: int) -> bytes:
    return level[HASH * place : HASH * (place + 1)]


class Growth:
    """A log that takes in new leaves and says which tiles become full; memory stays flat.

    Args:
        size: leaves so far.
        tails: by level, the hashes that the last tile of that level has so far.
    """

    def __init__(self, size: int = 0, tails: Iterable[bytes] = ()) -> None:
        self.size = size
        self._tails = [bytearray(tail) for tail in tails]

    @classmethod
    def of(cls, reader: NodeReader, size: int) -> Growth:
        """Continue a stored log of `size` leaves.

        Whoever goes on from here holds the frontier's root against the one that was signed before.
        """
        tails: list[bytes] = []
        while stop := size >> HEIGHT * len(tails):
            start, level = stop - stop % WIDTH, len(tails)
            tails.append(
                reader.nodes(level, start, stop) if level else reader.leaf_hashes(start, stop)
            )
        return cls(size, tails)

    def frontier(self) -> Frontier:
        """Return the frontier of the log so far."""
        peaks = []
        for tail in reversed(self._tails):
            for height, place in peaks_of(0, len(tail) // HASH):
                first = HASH * (place << height)
                peaks.append(root_of(bytes(tail[first : first + (HASH << height)])))
        return Frontier(self.size, peaks)

    def extend(self, leaves: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Take in leaf hashes; yield (level, place, hash) of each tile that they fill."""
        at = 0
        while at < len(leaves):
            tail = self._tail(0)
            part = leaves[at : at + _FULL - len(tail)]
            tail += part
            at += len(part)
            self.size += len(part) // HASH
            yield from self._fill()

    def _fill(self) -> Iterator[tuple[int, int, bytes]]:
        """Put the root of each tile that is full now into the tile above it."""
        level = 0
        while len(self._tails[level]) == _FULL:
            node = root_of(bytes(self._tails[level]))
            self._tails[level].clear()
            level += 1
            self._tail(level).extend(node)
            yield level, (self.size >> HEIGHT * level) - 1, node

    def _tail(self, level: int) -> bytearray:
        if level == len(self._tails):
            self._tails.append(bytearray())
        return self._tails[level]
