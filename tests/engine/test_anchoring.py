"""Sealing, proofs like the library's, and how calendars are asked over days."""

from __future__ import annotations

from collections import Counter

import pytest
from opentimestamps.core.timestamp import make_merkle_tree
from support.check_ledger import check_all_anchored
from support.ots_oracle import read_file, written_file
from support.ots_oracle import stamp as library_stamp
from support.parties import FakeChain, make_parts, mine_together
from support.passes import Passes, bare

from anchord.core.model import BatchChange
from anchord.engine.proofs import record_ots
from anchord.engine.run import run_pass

DAY = 86_400


@pytest.fixture
def world(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    yield Passes(parts, chain, step=50), *parts.calendars, chain
    parts.store.close()


def library_proofs(store, batch):
    """Build all proofs of a batch with the library, from digests, nonces and calendars' answers."""
    from opentimestamps.core.op import OpAppend, OpSHA256
    from opentimestamps.core.serialize import BytesDeserializationContext
    from opentimestamps.core.timestamp import Timestamp

    members = [m for tile in store.batches.tiles(batch, 0, batch.size) for m in tile.members]
    stamps, tip = library_stamp([m.digest for m in members], b"".join(m.nonce for m in members), [])
    if batch.trailer:  # checkpoints of the log go along
        tip = tip.ops.add(OpAppend(batch.trailer)).ops.add(OpSHA256())
    assert tip.msg == batch.root
    tip.merge(Timestamp.deserialize(BytesDeserializationContext(batch.proof), batch.root))
    return {m.record_id: written_file(stamp) for m, stamp in zip(members, stamps, strict=True)}


@pytest.mark.parametrize("size", [1, 2, 1023, 1024, 1025, 2049])
def test_root_and_every_proof_are_those_of_the_library(world, size):
    go, a, b, chain = world
    go.add(bare(size))
    go()
    mine_together(chain, a, b)
    chain.grow(5)
    go(60)
    store = go.parts.store
    batch = store.batches.get(1)
    assert batch.size == size
    expected = library_proofs(store, batch)
    every = max(size // 97, 1)
    for record_id in [*range(1, size + 1, every), size]:
        assert record_ots(store, batch, record_id) == expected[record_id]


def test_the_root_is_make_merkle_tree_of_digest_and_nonce(world):
    from opentimestamps.core.op import OpAppend, OpSHA256
    from opentimestamps.core.timestamp import Timestamp

    go, *_ = world
    go.add(bare(77))
    go()
    batch = go.parts.store.batches.get(1)
    members = [m for t in go.parts.store.batches.tiles(batch, 0, 77) for m in t.members]
    assert len({m.nonce for m in members}) == 77
    leaves = [Timestamp(m.digest).ops.add(OpAppend(m.nonce)).ops.add(OpSHA256()) for m in members]
    assert make_merkle_tree(leaves).msg == batch.root


def test_released_records_are_resealed_with_holes_between_their_ids(world):
    """Ids of a later batch need not be neighbours: one far record among many near ones."""
    go, a, _b, chain = world
    store = go.parts.store
    go.add(bare(1, "far"))
    go()
    go.add(bare(2000, "between"))
    go()
    store.batches.change([BatchChange(batch_id=1, release=True)])
    go.add(bare(1030, "last"))
    assert go().sealed == 1031
    a.mine(chain)
    chain.grow(5)
    go(60)
    batch = store.batches.get(3)
    expected = library_proofs(store, batch)
    for record_id in (1, 2002, 2500, 3031):
        assert record_ots(store, batch, record_id) == expected[record_id]


def test_every_calendar_path_stays_even_when_two_stand_in_one_block(world):
    """The standard client drops the second (opentimestamps-client issue 27)."""
    go, a, b, chain = world
    go.add(bare(2))
    go()
    height = mine_together(chain, a, b)
    chain.grow(5)
    assert go(60).upgraded == 2
    store = go.parts.store
    ots = read_file(record_ots(store, store.batches.get(1), 1))
    found = [item for _, item in ots.timestamp.all_attestations() if hasattr(item, "height")]
    assert [item.height for item in found] == [height, height]


def test_one_question_per_commitment_and_calendar_whatever_the_batch(world):
    go, a, b, chain = world
    go.add(bare(5000))
    go()
    a.mine(chain)
    b.mine(chain)
    go(60)
    assert Counter(entry[0] for entry in a.log) == {"submit": 1, "upgrade": 1}
    assert Counter(entry[0] for entry in b.log) == {"submit": 1, "upgrade": 1}
    # What is asked for is the commitment at the pending attestation, not the digest.
    assert {entry[2] for entry in a.log if entry[0] == "upgrade"} == {
        message
        for message, item in read_file(
            record_ots(go.parts.store, go.parts.store.batches.get(1), 1)
        ).timestamp.all_attestations()
        if getattr(item, "uri", None) == a.uris[0]
    }


@pytest.mark.parametrize("status", ["journal", "transaction", "unknown"])
def test_what_a_calendar_says_is_shown(world, status):
    go, a, _b, _chain = world
    go.add(bare(1))
    go()
    if status == "unknown":
        a.forgets = True
    a.status = status
    go(60)
    (wait,) = [w for w in go.parts.store.counts.waits() if w.where == a.uris[0]]
    assert (wait.what, wait.status, wait.attempts) == ("upgrade", status, 1)
    assert wait.detail


def asked_at(go, calendar, seconds, step=20):
    """Return when a calendar was asked, in seconds from now."""
    start, seen, moments = go.clock.now(), len(calendar.log), []
    while go.clock.now() - start < seconds:
        run_pass(go.parts, go.clock.advance(step))
        moments += [go.clock.now() - start] * (len(calendar.log) - seen)
        seen = len(calendar.log)
    return moments


def test_questions_are_a_minute_apart_and_back_off_to_the_longest_wait(world):
    go, a, _b, _chain = world
    go.add(bare(1))
    go()
    moments = asked_at(go, a, 7200)
    gaps = [late - early for early, late in zip([0, *moments], moments, strict=False)]
    assert gaps[0] == 60
    assert min(gaps) >= 60
    assert gaps == sorted(gaps)
    assert gaps[-1] == 900


def test_once_anchored_the_other_calendars_are_asked_rarely_and_still_merged(world):
    go, a, b, chain = world
    go.add(bare(1))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    go(3600)
    assert len(asked_at(go, b, 2 * DAY, step=600)) <= 15
    b.mine(chain)
    assert sum(run_pass(go.parts, go.clock.advance(6 * 3600)).upgraded for _ in range(2)) == 1
    go.judge()


def test_a_forgotten_commitment_leads_to_one_new_submission(world):
    go, a, b, chain = world
    go.add(bare(1))
    go()
    a.forgets = b.forgets = True
    for _ in range(24 * 4 - 1):
        run_pass(go.parts, go.clock.advance(900))
    assert Counter(entry[0] for entry in a.log)["submit"] == 1
    for _ in range(8):
        run_pass(go.parts, go.clock.advance(900))
    assert Counter(entry[0] for entry in a.log)["submit"] == 2
    go.judge()
    a.forgets = False
    a.mine(chain)
    chain.grow(5)
    for _ in range(48):
        run_pass(go.parts, go.clock.advance(1800))
    check_all_anchored(go.parts.store)


def test_a_calendar_that_forgets_everything_for_a_month_is_not_flooded(world):
    go, a, b, chain = world
    go.add(bare(1))
    go()
    a.forgets = True
    per_day = []
    for _ in range(30):
        before = len(a.log)
        for _ in range(8):
            run_pass(go.parts, go.clock.advance(3 * 3600))
        per_day.append(len(a.log) - before)
    submits = Counter(entry[0] for entry in a.log)["submit"]
    assert 2 <= submits <= 7
    assert max(per_day[5:]) <= 40
    assert len(go.parts.store.batches.get(1).proof) < 4000
    go.judge()
    b.mine(chain)
    chain.grow(5)
    assert go(3600).anchored == 1


def test_a_dead_calendar_is_left_alone_once_a_batch_is_final(tmp_path):
    from anchord.errors import NetworkError

    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], min_answers=1)
    a, b = parts.calendars
    go = Passes(parts, chain)
    b.fail_with = NetworkError("gone for ever")
    go.add(bare(1))
    go()
    a.mine(chain)
    chain.grow(120)
    go(60)
    go(6 * 3600, 3)
    before = len(b.log)
    go(DAY, 5)
    assert len(b.log) == before
    assert parts.store.counts.next_moment() is None
    parts.store.close()
