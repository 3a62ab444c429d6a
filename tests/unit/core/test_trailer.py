"""What a batch carries: the same bytes the standard library writes for the same tree."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st
from opentimestamps.core.notary import PendingAttestation
from opentimestamps.core.op import OpAppend, OpPrepend, OpSHA256
from opentimestamps.core.timestamp import Timestamp, make_merkle_tree
from support.ots_oracle import read_file, written, written_file

from anchord.core import merkle, trailer
from anchord.core.proof import DETACHED_HEADER, join

hashes = st.binary(min_size=32, max_size=32)
blocks = st.none() | hashes
notes = st.lists(hashes, max_size=5, unique=True)
PENDING = PendingAttestation("https://alice.example.org")


def end(node: Timestamp) -> bytes:
    """Let a path end in an attestation; return what the library writes from there on."""
    node.attestations.add(PENDING)
    alone = Timestamp(node.msg)
    alone.attestations.add(PENDING)
    return written(alone)


@given(st.lists(hashes, min_size=1, max_size=7, unique=True), notes, blocks)
def test_a_record_of_a_batch_with_a_trailer_has_the_proof_the_library_writes(
    digests, carried, block
):
    beside = trailer.trailer(carried, block)
    nonces = bytes(range(16)) * len(digests)
    levels = merkle.levels(merkle.leaves(digests, nonces))
    stamps = [Timestamp(digest) for digest in digests]
    tip = make_merkle_tree(
        [one.ops.add(OpAppend(nonces[:16])).ops.add(OpSHA256()) for one in stamps]
    )
    if beside:
        tip = tip.ops.add(OpAppend(beside)).ops.add(OpSHA256())
    assert tip.msg == trailer.root_of(levels[-1], beside)
    tail = trailer.steps(beside) + end(tip)
    for place, stamp in enumerate(stamps):
        suffix = merkle.suffixes(levels, tail, place, place + 1)[0]
        ots = join(digests[place], nonces[:16], suffix)
        assert ots == written_file(stamp)
        assert [message for message, _ in read_file(ots).timestamp.all_attestations()] == [tip.msg]


@given(hashes, st.lists(hashes, min_size=1, max_size=9, unique=True), blocks)
def test_a_carried_checkpoint_has_the_proof_the_library_writes(tree_root, carried, block):
    beside = trailer.trailer(carried, block)
    assert beside is not None
    stamps = [Timestamp(digest) for digest in carried]
    tip = make_merkle_tree(stamps)
    if block is not None:
        tip = tip.ops.add(OpAppend(block))
    tip = tip.ops.add(OpPrepend(tree_root)).ops.add(OpSHA256())
    assert tip.msg == trailer.root_of(tree_root, beside)
    tail = end(tip)
    for place, stamp in enumerate(stamps):
        steps = trailer.checkpoint_steps(tree_root, carried, place, beside)
        assert DETACHED_HEADER + carried[place] + steps + tail == written_file(stamp)


@given(hashes, notes, blocks)
def test_a_trailer_is_one_hash_a_thing_and_ends_with_the_block(tree_root, carried, block):
    beside = trailer.trailer(carried, block)
    assert len(beside or b"") == 32 * (bool(carried) + (block is not None))
    assert (beside or b"").endswith(block or b"")
    if beside is None:
        assert trailer.root_of(tree_root, None) == tree_root
        assert trailer.steps(None) == b""
    else:
        assert trailer.root_of(tree_root, beside) == sha256(tree_root + beside).digest()
