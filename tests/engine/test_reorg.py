"""Reorgs at every moment: before signing, in the middle of it, after it, and with other blocks."""

from __future__ import annotations

import pytest
from support.check_ledger import check_all_anchored, check_ledger, live_anchored
from support.parties import FakeChain, Stopping, make_parts, solve
from support.passes import Passes, bare

from anchord.core.header import block_hash, parse_header
from anchord.core.model import BatchState
from anchord.core.proof import attestations, parse_timestamp
from anchord.engine import ledger
from anchord.errors import ConfigError

pytestmark = pytest.mark.both_stores
MANY = 1024 + 10
"""More than one transaction's worth of events, when that is one tile."""


@pytest.fixture
def world(tmp_path):
    chain = FakeChain()
    signer = Stopping()
    parts = make_parts(tmp_path, headers=[chain], signer=signer)
    yield Passes(parts, chain), parts.calendars[0], chain, signer
    parts.store.close()


def rehash(chain: FakeChain, height: int) -> None:
    """Replace the blocks from `height` on by others; the first carries the same Merkle root."""
    root = parse_header(chain.headers[height]).merkle_root
    blocks = len(chain.headers) - height
    time = parse_header(chain.headers[height]).time + 7
    del chain.headers[height:]
    chain.headers.append(solve(block_hash(chain.headers[-1]), root, time))
    chain.grow(blocks)


def test_before_signing_nothing_is_signed_for_the_lost_block(world):
    go, a, chain, _ = world
    go.add(bare(2))
    go()
    a.mine(chain)
    go(60)
    assert go.parts.store.batches.get(1).state is BatchState.ATTESTED
    chain.reorg(1)
    go(300)
    batch = go.parts.store.batches.get(1)
    assert (batch.state, batch.block_height) == (BatchState.SUBMITTED, None)
    a.mine(chain)
    chain.grow(5)
    go(60)
    go(900, 2)
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]
    check_all_anchored(go.parts.store)


def test_after_signing_the_events_are_withdrawn_and_signed_again_for_the_new_block(world):
    go, a, chain, _ = world
    go.add(bare(2))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    chain.reorg(6)
    assert a.mine(chain) == 108
    go(6 * 3600)
    assert go.types(1)[-1] == "facet_withdrawn"
    assert live_anchored(go.parts.store)[1] == 0
    chain.grow(5)
    go(900, 3)
    assert go.types(1) == [
        "timestamp_submitted",
        "timestamp_anchored",
        "facet_withdrawn",
        "timestamp_anchored",
    ]
    check_all_anchored(go.parts.store)
    last = go.judge()[-1]["payload"]
    assert last["block_height"] == 108


def test_a_shallow_reorg_of_signed_events_is_not_acted_on_before_it_is_buried(world):
    go, a, chain, _ = world
    go.add(bare(1))
    go()
    height = a.mine(chain)
    chain.grow(5)
    go(60)
    kept = chain.headers[height:]
    del chain.headers[height:]
    chain.grow(2)
    go.chain = None
    go(6 * 3600)
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]
    chain.headers[height:] = kept
    go.chain = chain
    go(6 * 3600)
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]


def test_the_same_root_in_another_block_is_withdrawn_and_signed_again(world):
    go, a, chain, _ = world
    go.add(bare(2))
    go()
    height = a.mine(chain)
    chain.grow(5)
    go(60)
    old = go.judge()[-1]["payload"]["block_hash"]
    rehash(chain, height)
    go(6 * 3600)
    assert go.types(1)[-2:] == ["facet_withdrawn", "timestamp_anchored"]
    new = go.judge()[-1]["payload"]
    assert new["block_height"] == height
    assert new["block_hash"] != old
    check_all_anchored(go.parts.store)


def test_a_second_path_that_is_undone_spoils_no_event(tmp_path):
    """The block an event names stands; a younger one that its proof leads to, too, does not."""
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    a, b = parts.calendars
    go = Passes(parts, chain)
    go.add(bare(2))
    go()
    first = a.mine(chain)
    chain.grow(3)
    second = b.mine(chain)
    chain.grow(5)
    go(900, 2)
    assert parts.store.batches.get(1).block_height == first
    chain.reorg(len(chain.headers) - second)
    go.chain = None
    go(6 * 3600, 2)
    b.mine(chain)
    chain.grow(5)
    go.chain = chain
    go(6 * 3600, 2)
    assert go.types(1) == [
        "timestamp_submitted", "timestamp_anchored", "facet_withdrawn", "timestamp_anchored"
    ]  # fmt: skip
    last = go.judge()[-1]["payload"]
    assert last["block_height"] == first
    check_all_anchored(parts.store)
    parts.store.close()


def test_a_path_that_comes_late_is_looked_at_until_it_is_as_deep_as_the_first(tmp_path):
    """What is exported is the whole proof, so all of it must hold, however old the first path."""
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    a, b = parts.calendars
    go = Passes(parts, chain)
    go.add(bare(1))
    go()
    first = a.mine(chain)
    chain.grow(parts.policy.final_confirmations)
    go(6 * 3600, 2)
    assert parts.store.batches.get(1).final_at is not None
    late = b.mine(chain)
    go(6 * 3600, 2)
    assert heights(parts) == {first, late}
    chain.reorg(1)
    again = b.mine(chain)
    chain.grow(5)
    go(6 * 3600, 3)
    assert heights(parts) == {first, again}
    chain.grow(parts.policy.final_confirmations)
    go(6 * 3600, 2)
    batch = parts.store.batches.get(1)
    assert (batch.final_at is not None, batch.next_check_at) == (True, None)
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]
    parts.store.close()


def test_a_late_path_to_a_block_that_is_gone_already_is_taken_out_of_a_final_proof(tmp_path):
    """Nothing can be said of it at first: the block that took its place is not buried yet."""
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    a, b = parts.calendars
    go = Passes(parts, chain)
    go.add(bare(1))
    go()
    first = a.mine(chain)
    chain.grow(parts.policy.final_confirmations)
    go(6 * 3600, 2)
    late = b.mine(chain)
    chain.reorg(1)
    go(6 * 3600)
    assert heights(parts) == {first, late}
    chain.grow(parts.policy.confirmations)
    go(6 * 3600, 2)
    assert heights(parts) == {first}
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]
    parts.store.close()


def heights(parts) -> set[int]:
    """Return the blocks that the proof of the only batch leads to."""
    batch = parts.store.batches.get(1)
    found = attestations(parse_timestamp(batch.proof, batch.root))
    return {one.attestation.height for one in found if one.attestation.kind == "bitcoin"}


def test_a_deep_reorg_a_calendar_never_repairs_leads_to_a_new_submission(world):
    go, a, chain, _ = world
    go.add(bare(2))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    submits = [entry[0] for entry in a.log].count("submit")
    chain.reorg(7)
    go(6 * 3600)
    go(60)
    assert [entry[0] for entry in a.log].count("submit") == submits + 1
    # Whatever else it says, the old path is not taken again.
    go(900, 5)
    assert [entry[0] for entry in a.log].count("submit") == submits + 1
    fresh = [known for known in a.waiting(None) if known.path is None]
    assert len(fresh) == 1
    a.mine(chain)
    chain.grow(5)
    go(900, 2)
    check_all_anchored(go.parts.store)


def test_an_undone_path_stays_undone_through_failures_in_between(world):
    """An error must not make anchord forget that this very path was refuted."""
    from anchord.errors import NetworkError

    go, a, chain, _ = world
    go.add(bare(1))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    chain.reorg(7)
    go(6 * 3600)
    for _ in range(4):
        a.fail_upgrade = NetworkError("502")
        go(900)
        a.fail_upgrade = None
        go(900)
    upgraded = [w.status for w in go.parts.store.counts.waits() if w.where == a.uris[0]]
    assert "void" in upgraded
    assert go.types(1).count("facet_withdrawn") == 1
    assert [entry[0] for entry in a.log].count("submit") == 2


@pytest.mark.parametrize("half", ["anchored", "withdrawn"])
def test_while_a_series_is_half_appended(world, half, monkeypatch):
    monkeypatch.setattr(ledger, "_TILES_PER_TRANSACTION", 1)
    # One thread signs tile after tile, so that the key can fail at a chosen one.
    monkeypatch.setattr(ledger, "_SIGNING_THREADS", 1)
    go, a, chain, signer = world
    go.add(bare(MANY))
    go._judge["step"] = 200
    go()
    a.mine(chain)
    chain.grow(5)
    if half == "anchored":
        signer.left = 1024 + 5
        with pytest.raises(ConfigError):
            go(60)
        go.judge()
        assert sum(live_anchored(go.parts.store).values()) == 1024
        signer.left = 10**9
        chain.reorg(7)
    else:
        go(60)
        chain.reorg(7)
        signer.left = 1024 + 5
        with pytest.raises(ConfigError):
            go(6 * 3600)
        check_ledger(go.parts.store, step=200)
        signer.left = 10**9
    go(6 * 3600)
    counts = live_anchored(go.parts.store)
    assert not any(counts.values())
    go(60)
    a.mine(chain)
    chain.grow(5)
    go(900, 2)
    check_all_anchored(go.parts.store)


def test_nothing_appended_means_nothing_to_withdraw(world):
    go, a, chain, signer = world
    go.add(bare(2))
    go()
    a.mine(chain)
    chain.grow(5)
    signer.left = 0
    with pytest.raises(ConfigError):
        go(60)
    chain.reorg(7)
    signer.left = 10**9
    go(6 * 3600)
    assert go.types(1) == ["timestamp_submitted"]
    go(60)
    a.mine(chain)
    chain.grow(5)
    go(900, 2)
    check_all_anchored(go.parts.store)


def test_another_calendars_block_carries_on_when_the_first_is_lost(world):
    go, a, chain, _ = world
    b = go.parts.calendars[1]
    go.add(bare(2))
    go()
    b.mine(chain)
    chain.grow(2)
    a.mine(chain)
    chain.grow(3)
    go(60)
    # Only the upper block is lost, which was not deep enough to be signed for: the event stands.
    del chain.headers[104:]
    chain.grow(8)
    go(6 * 3600, 2)
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]
    check_all_anchored(go.parts.store)


def test_reorgs_again_and_again_leave_one_live_event(world):
    go, a, chain, _ = world
    go.add(bare(2))
    go()
    for _ in range(4):
        a.mine(chain)
        chain.grow(5)
        go(900, 2)
        go(6 * 3600)
        assert live_anchored(go.parts.store)[1] == 1
        chain.reorg(8)
        go(6 * 3600)
        assert live_anchored(go.parts.store)[1] == 0
        go(3600)
    a.mine(chain)
    chain.grow(5)
    go(900, 2)
    check_all_anchored(go.parts.store)
