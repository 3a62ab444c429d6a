"""The Merkle log of RFC 6962 (and RFC 9162, 2.1): hashes, a frontier, proofs and their checks.

A leaf is sha256(0x00 || entry), a node sha256(0x01 || left || right), a tree of n leaves splits at
the largest power of two below n. Entries of anchord's log are a ledger row's event digest and
signature, 96 bytes. Nothing here reads a log: `anchord.core.log_tree` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

from anchord.errors import RefusedError, VerificationError

HASH = 32
EMPTY = sha256(b"").digest()
"""The root of a log without entries."""
MAX_SIZE = 2**63 - 1
_LEAF, _NODE = b"\x00", b"\x01"


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(_LEAF + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node from those of its children."""
    return sha256(_NODE + left + right).digest()


def entry_of(digest: bytes, signature: bytes) -> bytes:
    """Return the entry of a signed event: its 32-byte digest, then its 64-byte signature.

    Raises:
        RefusedError: other lengths.
    """
    if len(digest) != HASH or len(signature) != 2 * HASH:
        raise RefusedError(
            f"expected a digest of 32 bytes and a signature of 64, got {len(digest)} and "
            f"{len(signature)}"
        )
    return digest + signature


class Frontier:
    """The right edge of a growing log: the roots of its full subtrees, O(log n) hashes.

    Args:
        size: leaves so far.
        peaks: root of each full subtree, from left to right: one for each 1 in the binary size.

    Raises:
        RefusedError: not as many hashes as a log of that size has.
    """

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        if not 0 <= size <= MAX_SIZE or len(peaks) != size.bit_count():
            raise RefusedError(
                f"expected {max(size, 0).bit_count()} hashes for a log of {size}, got {len(peaks)}"
            )
        if any(len(peak) != HASH for peak in peaks):
            raise RefusedError(f"expected hashes of {HASH} bytes")
        self.size = size
        self._peaks = list(peaks)

    @classmethod
    def from_nodes(cls, size: int, peaks: Sequence[bytes]) -> Frontier:
        """Return the frontier of an existing log; hold its `root` against one that is trusted."""
        return cls(size, peaks)

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The roots of the full subtrees, from left to right."""
        return tuple(self._peaks)

    def append(self, leaf: bytes) -> None:
        """Take in the hash of one more leaf."""
        self.append_subtree(leaf, 0)

    def extend(self, leaves: bytes) -> None:
        """Take in more leaf hashes, 32 bytes each."""
        for at in range(0, len(leaves), HASH):
            self.append_subtree(leaves[at : at + HASH], 0)

    def append_subtree(self, node: bytes, height: int) -> None:
        """Take in the root of a full subtree of 2**height leaves.

        Raises:
            RefusedError: it does not begin where such a subtree can.
        """
        if self.size & (1 << height) - 1 or len(node) != HASH:
            raise RefusedError(
                f"a subtree of {1 << height} leaves cannot stand behind {self.size} others"
            )
        size = self.size + (1 << height)
        while self.size >> height & 1:
            node = node_hash(self._peaks.pop(), node)
            height += 1
        self._peaks.append(node)
        self.size = size

    def root(self) -> bytes:
        """Return the root of the log so far."""
        return fold(self._peaks)


def fold(peaks: Sequence[bytes]) -> bytes:
    """Return the root over the roots of full subtrees, the largest first."""
    if not peaks:
        return EMPTY
    node = peaks[-1]
    for peak in reversed(peaks[:-1]):
        node = node_hash(peak, node)
    return node


def root(leaves: bytes) -> bytes:
    """Return the root over leaf hashes, 32 bytes each."""
    level = [leaves[at : at + HASH] for at in range(0, len(leaves), HASH)]
    if not level:
        return EMPTY
    while len(level) > 1:
        # A node without a partner goes up unchanged: that is the split at a power of two.
        odd = level[len(level) & ~1 :]
        pairs = zip(level[0::2], level[1::2], strict=False)
        level = [sha256(_NODE + left + right).digest() for left, right in pairs] + odd
    return level[0]


# ---------------------------------------------------------------------- which subtrees prove what


def peaks_of(start: int, stop: int) -> list[tuple[int, int]]:
    """Return the full subtrees that make up leaves [start, stop), as (height, place).

    `start` must be a multiple of the largest power of two in the range, as it is in every range
    that a proof names.
    """
    found = []
    while start < stop:
        height = (stop - start).bit_length() - 1
        found.append((height, start >> height))
        start += 1 << height
    return found


def inclusion_ranges(index: int, size: int) -> list[tuple[int, int]]:
    """Return the leaves under each hash of an inclusion proof, from the leaf up (RFC 6962, 2.1.1).

    Raises:
        RefusedError: there is no such leaf in a log of that size.
    """
    if not 0 <= index < size <= MAX_SIZE:
        raise RefusedError(f"expected an index below the log's size {size}, got {index}")
    found, start, stop = [], 0, size
    while stop - start > 1:
        middle = start + _split(stop - start)
        if index < middle:
            found.append((middle, stop))
            stop = middle
        else:
            found.append((start, middle))
            start = middle
    return found[::-1]


def consistency_ranges(old: int, new: int) -> list[tuple[int, int]]:
    """Return the leaves under each hash of a consistency proof (RFC 6962, 2.1.2).

    Raises:
        RefusedError: the old log is the larger one.
    """
    if not 0 <= old <= new <= MAX_SIZE:
        raise RefusedError(f"expected an old size of at most {new}, got {old}")
    if old in (0, new):
        return []
    found, start, stop = [], 0, new
    while old != stop:
        middle = start + _split(stop - start)
        if old <= middle:
            found.append((middle, stop))
            stop = middle
        else:
            found.append((start, middle))
            start = middle
    if start:  # otherwise the old root itself begins the proof, and is known
        found.append((start, stop))
    return found[::-1]


def _split(size: int) -> int:
    """Return the largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


# ---------------------------------------------------------------------- checks


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Prove that a leaf stands at `index` in the log with that root (RFC 9162, 2.1.3.2).

    Args:
        leaf: its hash.
        index: 0-based.
        size: of the log.
        proof: hashes from the leaf's sibling up.
        root: of the log.

    Raises:
        VerificationError: it does not, or the proof is of another place or size.
    """
    _check_hashes(leaf, root, *proof)
    if not 0 <= index < size:
        raise VerificationError(f"a log of {size} has no entry {index}")
    last, node = _rise(index, size - 1, leaf, tuple(proof))
    if last == _BEYOND:
        raise VerificationError(f"the proof of entry {index} of {size} has too many hashes")
    if last:
        raise VerificationError(f"the proof of entry {index} of {size} has too few hashes")
    if node != root:
        raise VerificationError(
            f"the proof of entry {index} ends in {node.hex()}, the log of {size} has the root "
            f"{root.hex()}: the entry, its proof or the log was changed"
        )


_PIECE = 4
"""Hashes of a proof that are followed, and remembered, at once."""
_BEYOND = -1
"""Stands for the last place of a level above the root."""


def _rise(place: int, last: int, node: bytes, proof: tuple[bytes, ...]) -> tuple[int, bytes]:
    """Return the last place of the level that a proof leads to, and the hash it leads to there."""
    for sibling in proof[:_PIECE]:
        if not last:
            return _BEYOND, node
        if place & 1 or place == last:
            node = node_hash(sibling, node)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        place, last = place >> 1, last >> 1
    if len(proof) > _PIECE:
        return _rise_shared(place, last, node, proof[_PIECE:])
    return last, node


_rise_shared = lru_cache(maxsize=512)(_rise)
"""Entries of a log share the upper part of their proofs; the same is not computed twice."""


def verify_consistency(
    old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Prove that the old log is the beginning of the new one (RFC 9162, 2.1.4.2).

    Raises:
        VerificationError: it is not, or the proof is of other sizes.
    """
    _check_hashes(old_root, new_root, *proof)
    if not 0 <= old <= new:
        raise VerificationError(f"a log of {new} cannot follow from one of {old}")
    if old in (0, new):
        _check_trivial(old, new, old_root, new_root, proof)
        return
    if not proof:
        raise VerificationError(f"the proof from {old} to {new} has no hashes")
    if not old & old - 1:
        proof = [old_root, *proof]
    below, above = _climb(old, new, proof)
    if below != old_root or above != new_root:
        which = "old" if below != old_root else "new"
        raise VerificationError(
            f"the proof from {old} to {new} does not lead to the {which} root: the log was "
            "rewritten, or the proof was changed"
        )


def _climb(old: int, new: int, proof: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return the old and the new root that a consistency proof leads to."""
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    below = above = proof[0]
    for sibling in proof[1:]:
        if not last:
            raise VerificationError(f"the proof from {old} to {new} has too many hashes")
        if place & 1 or place == last:
            below, above = node_hash(sibling, below), node_hash(sibling, above)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            above = node_hash(above, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise VerificationError(f"the proof from {old} to {new} has too few hashes")
    return below, above


def _check_trivial(
    old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    if proof:
        raise VerificationError(f"from {old} to {new} nothing is to be proved, got hashes")
    if old == new and old_root != new_root:
        raise VerificationError(
            f"two logs of {new} have the roots {old_root.hex()} and {new_root.hex()}: the log "
            "was rewritten"
        )
    if not old and old_root != EMPTY:
        raise VerificationError(f"an empty log has the root {EMPTY.hex()}, not {old_root.hex()}")


def _check_hashes(*hashes: bytes) -> None:
    if set(map(len, hashes)) != {HASH}:
        raise VerificationError(f"expected hashes of {HASH} bytes")
