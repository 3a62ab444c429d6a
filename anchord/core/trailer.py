"""What a batch carries into Bitcoin beside its records: checkpoints of the log, and a block's hash.

A batch without either has the Merkle root of its tree as its root. With a trailer

    root = sha256(tree root || trailer)
    trailer = [32 bytes: root of the tree over each sha256(checkpoint)] || [32: block hash]

so a record's `.ots` shows the trailer as two ordinary operations (append, sha256), and the standard
client needs to know nothing. A checkpoint is timestamped as the file it is: its own `.ots` begins
at the SHA-256 of its text. The block's hash, in the order Bitcoin hashes it, proves that the root
was made after that block: nobody could have known the hash before.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from anchord.core import merkle
from anchord.core.merkle import NODE

APPEND = b"\xf0"
PREPEND = b"\xf1"
SHA256 = b"\x08"
"""Tags of OpenTimestamps' operations."""


def trailer(checkpoints: Sequence[bytes], block_hash: bytes | None) -> bytes | None:
    """Return a batch's trailer, None when there is nothing to carry.

    Args:
        checkpoints: SHA-256 of each signed checkpoint that waits, oldest first.
        block_hash: 32 bytes in the order Bitcoin hashes them (explorers print the reverse).
    """
    parts = b""
    if checkpoints:
        parts = merkle.root(b"".join(checkpoints))
    return (parts + (block_hash or b"")) or None


def root_of(tree_root: bytes, trailer: bytes | None) -> bytes:
    """Return the root that is handed to calendars."""
    return tree_root if not trailer else sha256(tree_root + trailer).digest()


def steps(trailer: bytes | None) -> bytes:
    """Return the serialised operations from the tree's root to the batch's root."""
    if not trailer:
        return b""
    return _step(APPEND, trailer)


def checkpoint_steps(
    tree_root: bytes, checkpoints: Sequence[bytes], place: int, trailer: bytes
) -> bytes:
    """Return the serialised operations from the SHA-256 of one checkpoint to the batch's root.

    Args:
        tree_root: Merkle root of the batch's records.
        checkpoints: SHA-256 of each checkpoint the batch carries, oldest first.
        place: which of them.
        trailer: as the batch has it.
    """
    return all_steps(tree_root, checkpoints, trailer, (place, place + 1))[0]


def all_steps(
    tree_root: bytes,
    checkpoints: Sequence[bytes],
    trailer: bytes,
    span: tuple[int, int] | None = None,
) -> list[bytes]:
    """Return the same for all checkpoints [start, stop) of `span` at once; None: for each."""
    above = _step(PREPEND, tree_root)
    if trailer[NODE:]:
        # One append for the block, one prepend for the tree: sha256 stands only at the end.
        above = APPEND + bytes([len(trailer) - NODE]) + trailer[NODE:] + above
    tree = merkle.levels(b"".join(checkpoints))
    start, stop = span or (0, len(checkpoints))
    return merkle.suffixes(tree, above, start, stop)


def _step(tag: bytes, argument: bytes) -> bytes:
    return tag + bytes([len(argument)]) + argument + SHA256
