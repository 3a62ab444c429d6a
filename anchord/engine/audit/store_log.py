"""The ledger's chain and log, recomputed from all rows in one loop.

The log is the Merkle tree of RFC 6962, 2.1, over (event digest || signature). What is kept of it
while rows go by is the roots of its full subtrees, largest first, at most one a height.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from operator import add
from typing import TYPE_CHECKING

from anchord.core.event import NO_CHAIN
from anchord.core.log import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.ports.reading import LedgerRow

TILE_HEIGHT = 8
"""A full tile of the log has 256 leaves (C2SP tlog-tiles)."""
_WITHIN = TILE_HEIGHT - 1
_TILE = 1 << TILE_HEIGHT
_IN_TILE = _TILE - 1


class Growing:
    """A log that grows by rows.

    Args:
        size: how many rows it has already.
        peaks: the roots of its full subtrees, largest first, as the bits of `size` say.
    """

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        self.size = size
        self._peaks = list(peaks)
        self.full: dict[tuple[int, int], bytes] = {}
        """(level, place) -> root, of every tile that became full."""

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Take in more leaf hashes."""
        at, count = 0, len(leaves)
        while at < count:
            if not self.size & _IN_TILE and count - at >= _TILE:
                self._push(_tile_root(leaves[at : at + _TILE]), TILE_HEIGHT)
                at += _TILE
            else:
                self._push(leaves[at], 0)
                at += 1

    def _push(self, node: bytes, height: int) -> None:
        """Take in the root of a full subtree that begins where the log ends."""
        peaks, left = self._peaks, self.size >> height
        self.size += 1 << height
        if height:
            self.full[1, left] = node
        while left & 1:
            node = sha256(b"\x01" + peaks.pop() + node).digest()
            height, left = height + 1, left >> 1
            if not height & _WITHIN:
                self.full[height // TILE_HEIGHT, left] = node
        peaks.append(node)

    def root(self) -> bytes:
        """Return the log's root so far."""
        return fold(self._peaks)


_UNCHAINED = "its chain hash does not follow from the row before it, its id and its signature"


class Walk:
    """Chain and log over the rows as they are stored.

    Args:
        log: where it begins.
        chain: chain hash of the row before.
    """

    def __init__(self, log: Growing, chain: bytes = NO_CHAIN) -> None:
        self.log = log
        self.seq = log.size
        self.faults: list[tuple[int, str]] = []
        """(sequence number, what is wrong)."""
        self.by_series: Counter[int] = Counter()
        self._chain = chain

    def take(self, rows: Sequence[LedgerRow]) -> None:
        """Take in rows in order."""
        if not rows:
            return
        seqs, ids, signatures, stored, series = zip(*rows, strict=True)
        self._check_order(seqs)
        entries = list(map(add, ids, signatures))
        if {*map(len, ids)} != {32} or {*map(len, signatures)} != {64}:
            self._check_lengths(rows)
        # Each row is held against what is stored of the one before it, so that one change is one
        # finding, or two.
        before = (self._chain, *stored[:-1])
        chained = zip(before, entries, strict=True)
        found = [sha256(chain + entry).digest() for chain, entry in chained]
        if found != [*stored]:
            pairs = zip(seqs, found, stored, strict=True)
            self.faults += [(seq, _UNCHAINED) for seq, one, said in pairs if one != said]
        self.log.extend([sha256(b"\x00" + entry).digest() for entry in entries])
        self._chain = stored[-1]
        self.by_series.update(series)

    def _check_order(self, seqs: Sequence[int]) -> None:
        expected = self.seq + 1
        self.seq = seqs[-1]
        if seqs == tuple(range(expected, expected + len(seqs))):
            return
        for seq in seqs:
            if seq != expected:
                what = f"expected row {expected}, found {seq}: rows were removed, repeated or "
                self.faults.append((seq, what + "reordered"))
            expected = seq + 1

    def _check_lengths(self, rows: Sequence[LedgerRow]) -> None:
        for seq, event_id, signature, *_ in rows:
            if len(event_id) != 32 or len(signature) != 64:
                self.faults.append((seq, "expected an id of 32 bytes and a signature of 64"))


def _tile_root(nodes: Sequence[bytes]) -> bytes:
    """Return the root over a full tile's leaves."""
    while len(nodes) > 1:
        pairs = zip(nodes[::2], nodes[1::2], strict=True)
        nodes = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
    return nodes[0]
