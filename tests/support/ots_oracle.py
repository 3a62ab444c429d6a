"""The standard library as judge: the same proofs built with it and with anchord."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from hypothesis import strategies as st
from opentimestamps.core.dubious.notary import EthereumBlockHeaderAttestation
from opentimestamps.core.notary import (
    BitcoinBlockHeaderAttestation,
    LitecoinBlockHeaderAttestation,
    PendingAttestation,
    UnknownAttestation,
)
from opentimestamps.core.op import (
    OpAppend,
    OpHexlify,
    OpKECCAK256,
    OpPrepend,
    OpReverse,
    OpRIPEMD160,
    OpSHA1,
    OpSHA256,
)
from opentimestamps.core.serialize import BytesDeserializationContext, BytesSerializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile, Timestamp, make_merkle_tree

from anchord.core import proof, wire
from anchord.core.attestation import BITCOIN, ETHEREUM, LITECOIN, Attestation, bitcoin, pending

URIS = ["https://alice.example.org", "https://bob.example.org", "http://127.0.0.1:14788", ""]
_OPS: dict[int, type[Any]] = {
    0x02: OpSHA1,
    0x03: OpRIPEMD160,
    0x08: OpSHA256,
    0x67: OpKECCAK256,
    0xF0: OpAppend,
    0xF1: OpPrepend,
    0xF2: OpReverse,
    0xF3: OpHexlify,
}

Shape = tuple[list[Attestation], dict[proof.Op, Any]]
"""Attestations and operations of one node, before messages are computed."""

REVERSE_IS_FINE = "ignore:OpReverse may get removed:PendingDeprecationWarning"
"""For `filterwarnings`: the library warns whenever it runs an operation that proofs may hold."""

heights = st.one_of(st.integers(0, 300), st.sampled_from([358391, 2**31 - 1]))
attestations: st.SearchStrategy[Attestation] = st.one_of(
    st.sampled_from(URIS).map(pending),
    heights.map(bitcoin),
    st.builds(
        Attestation, st.sampled_from([LITECOIN, ETHEREUM]), st.integers(0, 2**20).map(wire.varuint)
    ),
    st.builds(
        Attestation,
        st.sampled_from([b"\x00" * 8, b"\x84" * 8, b"\xff" * 8]),
        st.binary(max_size=5),
    ),
)
arguments = st.binary(min_size=1, max_size=3)
ops: st.SearchStrategy[proof.Op] = st.one_of(
    st.builds(proof.Op, st.sampled_from([0xF0, 0xF1]), arguments),
    st.sampled_from([0x02, 0x03, 0x08, 0x67, 0xF2]).map(proof.Op),
)
shapes: st.SearchStrategy[Shape] = st.recursive(
    st.tuples(st.lists(attestations, min_size=1, max_size=3), st.just({})),
    lambda inner: st.tuples(
        st.lists(attestations, max_size=2),
        st.dictionaries(ops, inner, min_size=1, max_size=3),
    ),
    max_leaves=10,
)
digests = st.binary(min_size=32, max_size=32)


def ours(shape: Shape, message: bytes) -> proof.Timestamp:
    """Build a timestamp of anchord."""
    from anchord.core.operation import apply

    found, branches = shape
    children = {op: ours(inner, apply(op, message)) for op, inner in branches.items()}
    return proof.Timestamp(message, set(found), children)


def theirs(shape: Shape, message: bytes) -> Timestamp:
    """Build the same timestamp of the library."""
    timestamp = Timestamp(message)
    found, branches = shape
    timestamp.attestations.update(their_attestation(item) for item in found)
    for op, inner in branches.items():
        their_op = their_operation(op)
        timestamp.ops[their_op] = theirs(inner, their_op(message))
    return timestamp


def their_operation(op: proof.Op) -> Any:
    """Return the library's operation."""
    make = _OPS[op.tag]
    return make(op.argument) if op.tag in (0xF0, 0xF1) else make()


def their_attestation(item: Attestation) -> Any:
    """Return the library's attestation."""
    if item.uri is not None:
        return PendingAttestation(item.uri)
    chains = {
        BITCOIN: BitcoinBlockHeaderAttestation,
        LITECOIN: LitecoinBlockHeaderAttestation,
        ETHEREUM: EthereumBlockHeaderAttestation,
    }
    if item.tag in chains:
        return chains[item.tag](item.height)
    return UnknownAttestation(item.tag, item.payload)


def written(timestamp: Timestamp) -> bytes:
    """Return what the library writes for a timestamp."""
    ctx = BytesSerializationContext()
    timestamp.serialize(ctx)
    return ctx.getbytes()


def written_file(timestamp: Timestamp) -> bytes:
    """Return what the library writes for a whole `.ots` over a SHA-256."""
    ctx = BytesSerializationContext()
    DetachedTimestampFile(OpSHA256(), timestamp).serialize(ctx)
    return ctx.getbytes()


def read_file(raw: bytes) -> DetachedTimestampFile:
    """Return what the library reads."""
    return DetachedTimestampFile.deserialize(BytesDeserializationContext(raw))


def calendar_answer(digest: bytes, uri: str, seed: int) -> Timestamp:
    """Return what a calendar answers to a submitted digest, as otsserver builds it."""
    start = Timestamp(digest)
    salt = sha256(seed.to_bytes(4, "big")).digest()
    node = start.ops.add(OpAppend(salt[:16])).ops.add(OpSHA256())
    node = node.ops.add(OpPrepend(salt[16:20])).ops.add(OpAppend(salt[20:28]))
    node.attestations.add(PendingAttestation(uri))
    return start


def stamp(
    digests: Sequence[bytes], nonces: bytes, uris: Sequence[str]
) -> tuple[list[Timestamp], Timestamp]:
    """Stamp digests as the standard client does: nonce, tree, calendars.

    Returns:
        One timestamp per digest, all leading to the same root, and the timestamp of the root.
    """
    stamps = [Timestamp(digest) for digest in digests]
    tree_leaves = [
        item.ops.add(OpAppend(nonces[16 * at : 16 * at + 16])).ops.add(OpSHA256())
        for at, item in enumerate(stamps)
    ]
    tip = make_merkle_tree(tree_leaves)
    for seed, uri in enumerate(uris):
        tip.merge(calendar_answer(tip.msg, uri, seed))
    return stamps, tip
