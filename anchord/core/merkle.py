"""The Merkle tree of a batch: flat bytes, no objects.

The rule is that of OpenTimestamps' `make_merkle_tree` (python-opentimestamps,
opentimestamps/core/timestamp.py), whose authors promise not to change it: a parent is
sha256(left || right), an odd node is carried up unchanged.

Level 0 is the leaves, the last level is the root; a level is the concatenation of its 32-byte
nodes. Because TILE is a power of two, the tree over all leaves is the trees within tiles of TILE
leaves and one tree over the tiles' roots. A tile is all that is needed to join its proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from anchord.errors import RefusedError, VerificationError

TILE = 1024
"""Leaves in a tile: a power of two, or the tiles would not be subtrees."""
NODE = 32
NONCE = 16

_APPEND = b"\xf0\x20"
_PREPEND = b"\xf1\x20"
_SHA256 = b"\x08"


class Step(msgspec.Struct, frozen=True):
    """One step from a node to its parent."""

    sibling: bytes
    left: bool
    """True when the sibling stands left: parent = sha256(sibling || node)."""


def leaves(digests: Sequence[bytes], nonces: bytes) -> bytes:
    """Return the leaves, leaf i = sha256(digest i || 16 bytes of nonce i).

    The nonce keeps a proof that is given away from telling anything about its neighbours.

    Raises:
        RefusedError: there are not 16 bytes of nonce for every digest.
    """
    if len(nonces) != NONCE * len(digests):
        raise RefusedError(
            f"expected {NONCE * len(digests)} bytes of nonces for {len(digests)} digests, "
            f"got {len(nonces)}"
        )
    starts = range(0, len(nonces), NONCE)
    return b"".join(
        [
            sha256(digest + nonces[start : start + NONCE]).digest()
            for digest, start in zip(digests, starts, strict=True)
        ]
    )


def levels(leaves: bytes) -> list[bytes]:
    """Return all levels of the tree over `leaves`, leaves first, the root last.

    Raises:
        RefusedError: no leaves, or not whole ones.
    """
    if not leaves or len(leaves) % NODE:
        raise RefusedError(f"expected one or more leaves of {NODE} bytes, got {len(leaves)} bytes")
    found = [leaves]
    level = leaves
    while len(level) > NODE:
        level = _parents(level)
        found.append(level)
    return found


def _parents(level: bytes) -> bytes:
    pair = 2 * NODE
    paired = len(level) - len(level) % pair
    parents = [sha256(level[at : at + pair]).digest() for at in range(0, paired, pair)]
    parents.append(level[paired:])  # the odd node, or nothing
    return b"".join(parents)


def root(leaves: bytes) -> bytes:
    """Return the root of the tree over `leaves`.

    Raises:
        RefusedError: no leaves, or not whole ones.
    """
    return levels(leaves)[-1]


def path(levels: list[bytes], index: int) -> list[Step]:
    """Return the steps from leaf `index` to the root.

    Raises:
        RefusedError: there is no such leaf.
    """
    _check_range(index, index + 1, len(levels[0]) // NODE)
    steps = []
    for level in levels[:-1]:
        at = NODE * (index ^ 1)
        if at < len(level):
            steps.append(Step(level[at : at + NODE], left=bool(index & 1)))
        index >>= 1
    return steps


def verify_path(leaf: bytes, index: int, size: int, path: Sequence[Step], root: bytes) -> None:
    """Check that `path` leads from `leaf`, number `index` of `size`, to `root`.

    Raises:
        VerificationError: it does not, or it is the path of another index or size.
    """
    if not 0 <= index < size:
        raise VerificationError(f"expected a leaf below {size}, got leaf {index}")
    sides = _sides(index, size)
    if [step.left for step in path] != sides:
        raise VerificationError(
            f"expected the {len(sides)} steps of leaf {index} in a tree of {size}, got a path of "
            f"{len(path)} steps with other sides: the proof belongs to another leaf or tree"
        )
    node = leaf
    for step in path:
        pair = step.sibling + node if step.left else node + step.sibling
        if len(pair) != 2 * NODE:
            raise VerificationError(f"expected nodes of {NODE} bytes, got a pair of {len(pair)}")
        node = sha256(pair).digest()
    if node != root:
        raise VerificationError(
            f"expected the path to end in root {root.hex()}, got {node.hex()}: "
            "the leaf, its path or the root was changed"
        )


def _sides(index: int, size: int) -> list[bool]:
    """Return, step by step, whether the sibling stands left."""
    sides = []
    while size > 1:
        if index ^ 1 < size:
            sides.append(bool(index & 1))
        index >>= 1
        size = (size + 1) // 2
    return sides


def suffixes(
    levels: list[bytes], tail: bytes, start: int = 0, stop: int | None = None
) -> list[bytes]:
    """Return, for each leaf of [start, stop), its serialised operations to the root, then `tail`.

    Each step is `f1 20 <sibling> 08` or `f0 20 <sibling> 08`: prepend or append, then sha256.
    Suffixes compose: one of a tile's root among the tile roots is the tail of the tile's leaves.
    Built from the root down, so what neighbours share is joined once.

    Raises:
        RefusedError: the range is not within the leaves.
    """
    size = len(levels[0]) // NODE
    stop = size if stop is None else stop
    _check_range(start, stop, size)
    found, first = [tail], 0
    for height in range(len(levels) - 2, -1, -1):
        low, high = start >> height, (stop - 1 >> height) + 1
        found = _descend(levels[height], found, first, low, high)
        first = low
    return found if stop > start else []


def _descend(level: bytes, above: list[bytes], first: int, low: int, high: int) -> list[bytes]:
    """Return the suffixes of nodes [low, high) of a level; above[0] is that of parent `first`."""
    found: list[bytes] = []
    for parent in range(low >> 1, (high + 1) >> 1):
        rest = above[parent - first]
        at = 2 * NODE * parent
        left, right = level[at : at + NODE], level[at + NODE : at + 2 * NODE]
        if right:
            found.append(b"".join((_APPEND, right, _SHA256, rest)))
            found.append(b"".join((_PREPEND, left, _SHA256, rest)))
        else:
            found.append(rest)
    skipped = low & 1
    return found[skipped : skipped + high - low]


def _check_range(start: int, stop: int, size: int) -> None:
    if not 0 <= start <= stop <= size:
        raise RefusedError(f"expected leaves within [0, {size}), got [{start}, {stop})")
