"""A judge of logs: roots, signatures and trailers, derived again from stored bytes.

With `hashlib` and `cryptography` alone (RFC 6962, 2.1; c2sp.org/signed-note).
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anchord.adapters.store.sql import SqlStore


def check_log(store: SqlStore, public_key: bytes) -> int:
    """Judge the checkpoints of a store; return how many there are.

    None is lost or doubled, each has the root of the rows it covers, and each is carried by the
    first batch that was sealed after it, whose root says so.
    """
    with store._engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT event_id, signature FROM events ORDER BY seq"))
        leaves = [hashlib.sha256(b"\0" + row[0] + row[1]).digest() for row in rows]
        found = connection.execute(sa.text("SELECT * FROM checkpoints ORDER BY size")).all()
        batches = connection.execute(
            sa.text("SELECT * FROM batches WHERE kind = 'sealed' ORDER BY id")
        ).all()
    sizes = [one.size for one in found]
    assert len(set(sizes)) == len(sizes)
    carried: dict[int | None, list[bytes]] = defaultdict(list)
    for one in found:
        root = law(leaves[: one.size])
        text, _, signature = one.note.decode().partition("\n\n")
        assert one.root == root
        assert text.split("\n")[1:] == [str(one.size), base64.b64encode(root).decode()]
        raw = base64.b64decode(signature.split()[-1])[4:]
        Ed25519PublicKey.from_public_bytes(public_key).verify(raw, f"{text}\n".encode())
        carried[one.batch_id].append(hashlib.sha256(one.note).digest())
    order = [one.batch_id or 10**9 for one in found]
    assert order == sorted(order), "a batch passed a checkpoint by"
    for batch in batches:
        trailer = batch.trailer or b""
        notes = merkle(carried[batch.id]) if carried[batch.id] else b""
        block = b"" if batch.not_before_height is None else trailer[-32:]
        assert trailer == notes + block
        tree = merkle([batch.tile_roots[i : i + 32] for i in range(0, len(batch.tile_roots), 32)])
        assert batch.root == (hashlib.sha256(tree + trailer).digest() if trailer else tree)
    return len(found)


def law(leaves: list[bytes]) -> bytes:
    """Return the root over leaf hashes, as RFC 6962, 2.1 has it."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + law(leaves[:k]) + law(leaves[k:])).digest()


def merkle(nodes: list[bytes]) -> bytes:
    """Return the root of a tree of OpenTimestamps: pairs, what is left over goes up as it is."""
    while len(nodes) > 1:
        pairs = [nodes[i : i + 2] for i in range(0, len(nodes), 2)]
        nodes = [hashlib.sha256(b"".join(p)).digest() if len(p) == 2 else p[0] for p in pairs]
    return nodes[0]
