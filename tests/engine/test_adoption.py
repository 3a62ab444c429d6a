"""Existing `.ots` files: complete, pending, lying, shared, forgotten, brought twice."""

from __future__ import annotations

import hashlib
from collections import Counter

import msgspec
import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpSHA256
from opentimestamps.core.timestamp import Timestamp, make_merkle_tree
from support.check_ledger import check_all_anchored
from support.ots_oracle import read_file, written_file
from support.parties import URI_A, FakeCalendar, FakeChain, make_parts
from support.passes import Passes, adoption, bare
from support.stores import dumped

from anchord.core.model import BatchState, Record, Scheme
from anchord.engine.proofs import record_ots
from anchord.errors import RefusedError

DAY = 86_400


@pytest.fixture
def world(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    yield Passes(parts, chain), *parts.calendars, chain
    parts.store.close()


def pending_files(calendar: FakeCalendar, count: int) -> list[tuple[bytes, bytes]]:
    """Return (digest, .ots) of files stamped together, as the standard client makes them."""
    stamps = [Timestamp(hashlib.sha256(b"file %d" % n).digest()) for n in range(count)]
    leaves = [s.ops.add(OpAppend(bytes([7]) * 16)).ops.add(OpSHA256()) for s in stamps]
    tip = make_merkle_tree(leaves)
    from opentimestamps.core.serialize import BytesDeserializationContext

    answer = calendar.submit(tip.msg)
    tip.merge(Timestamp.deserialize(BytesDeserializationContext(answer.raw), tip.msg))
    return [(s.msg, written_file(s)) for s in stamps]


def complete_file(chain: FakeChain, name: str, *, lie: bool = False) -> tuple[bytes, bytes]:
    """Return (digest, .ots) with a Bitcoin attestation and nothing pending."""
    stamp = Timestamp(hashlib.sha256(name.encode()).digest())
    end = stamp.ops.add(OpSHA256())
    height = 5 if lie else chain.mine(end.msg)
    end.attestations.add(BitcoinBlockHeaderAttestation(height))
    return stamp.msg, written_file(stamp)


def test_a_complete_proof_is_anchored_without_asking_anybody(world):
    go, a, b, chain = world
    digest, ots = complete_file(chain, "complete")
    chain.grow(5)
    go.add([adoption(ots, digest)])
    report = go()
    assert (report.sealed, report.anchored, report.signed) == (0, 1, 1)
    assert not a.log
    assert not b.log
    check_all_anchored(go.parts.store)
    assert record_ots(go.parts.store, go.parts.store.batches.get(1), 1) == ots


def test_pending_proofs_that_share_a_commitment_are_asked_for_once(world):
    go, a, _b, chain = world
    files = pending_files(a, 300)
    a.log.clear()
    go.add([adoption(ots, digest) for digest, ots in files])
    go()
    assert Counter(entry[0] for entry in a.log) == {"upgrade": 1}
    a.mine(chain)
    chain.grow(5)
    report = go(120)
    assert Counter(entry[0] for entry in a.log) == {"upgrade": 2}
    assert (report.anchored, report.signed) == (300, 300)
    check_all_anchored(go.parts.store)
    store = go.parts.store
    found = read_file(record_ots(store, store.batches.get(17), 17)).timestamp.all_attestations()
    assert {type(item) for _, item in found} == {
        PendingAttestation,
        BitcoinBlockHeaderAttestation,
    }


def test_the_same_file_twice_changes_nothing(world):
    go, a, _b, _chain = world
    ((digest, ots),) = pending_files(a, 1)
    go.add([adoption(ots, digest)])
    go()
    before = dumped(go.parts.store)
    added = go.parts.store.add([adoption(ots, digest)] * 3, go.clock.now())
    assert (added.new, added.adopted) == (0, 0)
    assert dumped(go.parts.store) == before


def test_a_proof_of_another_digest_is_refused_and_nothing_of_the_chunk_goes_in(world):
    go, a, *_ = world
    ((_, ots),) = pending_files(a, 1)
    with pytest.raises(RefusedError):
        go.add([*bare(2), adoption(ots, bytes(32))])
    assert go.parts.store.records.waiting() == (0, None)


def test_a_forgotten_commitment_frees_its_record_for_a_batch_of_our_own(world):
    go, a, b, chain = world
    ((digest, ots),) = pending_files(a, 1)
    go.add([adoption(ots, digest)])
    a.forgets = True
    go()
    go(900, 95)
    assert go.parts.store.counts.by_state()["submitted"] == 1
    assert go.parts.store.records.get(1).batch_id == 1
    go(1800, 2)
    assert go.parts.store.records.get(1).batch_id == 2
    assert go.types(1) == ["timestamp_submitted"]
    b.mine(chain)
    chain.grow(5)
    go(1800)
    check_all_anchored(go.parts.store)


def test_a_complete_proof_that_lies_is_parked_and_its_record_gets_its_own_batch(world):
    go, a, _b, chain = world
    digest, ots = complete_file(chain, "liar", lie=True)
    go.add([adoption(ots, digest)])
    report = go()
    assert report.signed == 0
    batch = go.parts.store.batches.get(1)
    assert batch.state is BatchState.PARKED
    assert "block 5" in batch.note
    assert "does not hold" in batch.note
    assert go(60).sealed == 1
    a.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 1
    check_all_anchored(go.parts.store)
    assert record_ots(go.parts.store, batch, 1) == ots, "the file is kept as it came"


def test_a_refuted_proof_that_only_waits_for_strangers_is_parked_too(world):
    """Nobody who is configured could ever finish it."""
    go, a, _b, chain = world
    stamp = Timestamp(hashlib.sha256(b"mixed").digest())
    end = stamp.ops.add(OpSHA256())
    end.attestations.add(BitcoinBlockHeaderAttestation(5))
    stamp.attestations.add(PendingAttestation("https://stranger.example.org"))
    go.add([adoption(written_file(stamp), stamp.msg)])
    go()
    assert go.parts.store.batches.get(1).state is BatchState.PARKED
    assert go(60).sealed == 1
    a.mine(chain)
    chain.grow(5)
    go(60)
    check_all_anchored(go.parts.store)


def test_a_proof_that_waits_for_strangers_leaves_its_record_to_us(world):
    go, *_ = world
    stamp = Timestamp(hashlib.sha256(b"foreign").digest())
    stamp.attestations.add(PendingAttestation("https://stranger.example.org"))
    go.add([adoption(written_file(stamp), stamp.msg)])
    assert go().sealed == 1


def test_a_proof_for_a_record_in_a_sealed_batch_takes_over_when_it_is_first(world):
    go, a, b, chain = world
    digest, ots = complete_file(chain, "late file")
    chain.grow(5)
    go.add([Record(digest=digest, scheme=Scheme.SHA256), *bare(4)])
    go()
    go.add([adoption(ots, digest)])
    report = go(60)
    assert (report.anchored, report.signed) == (1, 1)
    assert go.parts.store.records.get(1).batch_id == 2
    assert go.parts.store.batches.get(1).driving == 4
    b.mine(chain)
    chain.grow(5)
    assert go(120).anchored == 1
    check_all_anchored(go.parts.store)
    assert a.log


def test_a_proof_for_a_record_that_is_anchored_already_is_signed_for_and_nothing_moves(world):
    go, a, _b, chain = world
    digest, ots = complete_file(chain, "second proof")
    go.add([Record(digest=digest, scheme=Scheme.SHA256)])
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    go.add([adoption(ots, digest)])
    go(1)
    assert go.parts.store.records.get(1).batch_id == 1
    assert go.types(1).count("timestamp_anchored") == 2
    check_all_anchored(go.parts.store)


def test_two_pending_files_of_one_record_make_one_event_each(world):
    go, a, b, chain = world
    ((digest, first),) = pending_files(a, 1)
    ((_, second),) = pending_files(b, 1)
    go.add([adoption(first, digest), adoption(second, digest)])
    go()
    a.mine(chain)
    b.mine(chain)
    chain.grow(5)
    go(120)
    check_all_anchored(go.parts.store)
    assert go.parts.store.records.get(1).batch_id == 1


def test_an_adopted_complete_proof_that_a_reorg_undoes_is_withdrawn_and_parked(world):
    go, a, _b, chain = world
    digest, ots = complete_file(chain, "undone")
    chain.grow(5)
    go.add([adoption(ots, digest)])
    go()
    chain.reorg(7)
    go(6 * 3600)
    assert go.types(1)[:2] == ["timestamp_anchored", "facet_withdrawn"]
    batch = go.parts.store.batches.get(1)
    assert (batch.state, batch.block_height) == (BatchState.PARKED, None)
    go(60)
    a.mine(chain)
    chain.grow(5)
    go(60)
    check_all_anchored(go.parts.store)


def test_a_proof_with_no_room_for_its_path_frees_its_record(world):
    go, a, _b, chain = world
    digest = hashlib.sha256(b"deep").digest()
    stamp = Timestamp(digest)
    node = stamp
    for _ in range(246):
        node = node.ops.add(OpSHA256())
    from opentimestamps.core.serialize import BytesDeserializationContext

    answer = a.submit(node.msg)
    node.merge(Timestamp.deserialize(BytesDeserializationContext(answer.raw), node.msg))
    go.add([adoption(written_file(stamp), digest)])
    a.mine(chain)
    chain.grow(5)
    report = go()
    assert (report.upgraded, report.failed_calls) == (0, 1)
    assert go(1).sealed == 1
    a.mine(chain)
    chain.grow(5)
    go(120)
    check_all_anchored(go.parts.store)


def test_a_commitment_answered_before_is_asked_for_again_for_a_newcomer(world):
    go, a, _b, chain = world
    files = pending_files(a, 2)
    (one, first), (two, second) = files
    go.add([adoption(first, one)])
    a.mine(chain)
    chain.grow(5)
    go()
    go.add([adoption(second, two)])
    assert go(60).anchored == 1
    check_all_anchored(go.parts.store)
    assert {entry[1] for entry in a.log if entry[0] == "upgrade"} == {URI_A}


def test_a_proof_whose_calendar_is_taken_out_frees_its_record(world):
    go, a, b, chain = world
    ((digest, ots),) = pending_files(a, 1)
    go.add([adoption(ots, digest)])
    assert go().sealed == 0
    names = [n for n in go.parts.__struct_fields__ if n not in ("calendars", "policy")]
    policy = msgspec.structs.replace(go.parts.policy, min_answers=1)
    go.parts = go.parts.__class__(
        **{n: getattr(go.parts, n) for n in names}, calendars=[b], policy=policy
    )
    assert go(900).sealed == 1
    b.mine(chain)
    chain.grow(5)
    go(60)
    check_all_anchored(go.parts.store)
    assert go(900).sealed == 0
