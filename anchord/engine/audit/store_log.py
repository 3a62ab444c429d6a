"""The ledger's chain and log, recomputed from all rows in one loop.

The log is the Merkle tree of RFC 6962, 2.1, over (event digest || signature). What is kept of it
while rows go by is the roots of its full subtrees, largest first, at most one a height.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from anchord.core.event import NO_CHAIN
from anchord.core.log import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.ports.reading import LedgerRow

TILE_HEIGHT = 8
"""A full tile of the log has 256 leaves (C2SP tlog-tiles)."""
_WITHIN = TILE_HEIGHT - 1


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
        peaks, size, full = self._peaks, self.size, self.full
        for leaf in leaves:
            node, left, height = leaf, size, 0
            while left & 1:
                node = sha256(b"\x01" + peaks.pop() + node).digest()
                height, left = height + 1, left >> 1
                if not height & _WITHIN:
                    full[height // TILE_HEIGHT, left] = node
            peaks.append(node)
            size += 1
        self.size = size

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
        self.by_series: dict[int, int] = {}
        self._chain = chain

    def take(self, rows: Sequence[LedgerRow]) -> None:
        """Take in rows in order."""
        counts, chain, expected = self.by_series, self._chain, self.seq
        leaves = []
        for seq, event_id, signature, stored, series_id in rows:
            expected += 1
            if seq != expected:
                self._gap(expected, seq)
                expected = seq
            entry = event_id + signature
            if len(event_id) != 32 or len(signature) != 64:
                self.faults.append((seq, "expected an id of 32 bytes and a signature of 64"))
            chain = sha256(chain + entry).digest()
            if chain != stored:
                self.faults.append((seq, _UNCHAINED))
                # Goes on from what is stored, so that one change is one finding, or two.
                chain = stored
            leaves.append(sha256(b"\x00" + entry).digest())
            counts[series_id] = counts.get(series_id, 0) + 1
        self.log.extend(leaves)
        self._chain, self.seq = chain, expected

    def _gap(self, expected: int, found: int) -> None:
        what = f"expected row {expected}, found {found}: rows were removed, repeated or reordered"
        self.faults.append((found, what))
