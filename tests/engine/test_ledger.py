"""The ledger: keys that change in the middle, writers that collide, and stores that are damaged."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from support.check_ledger import check_all_anchored, live_anchored
from support.parties import FakeCalendar, FakeChain, FakeSigner, Stopping, make_parts
from support.passes import Passes, adoption, bare, numbered
from support.stores import worded

from anchord.core.model import NewSeries
from anchord.core.moment import utc
from anchord.engine import ledger
from anchord.engine.event_reader import read_event
from anchord.engine.run import run_pass
from anchord.errors import AnchordError, ConfigError, FatalError, LedgerError, StoreBusyError

pytestmark = pytest.mark.both_stores
MANY = 1024 + 10


def rotated(parts, signer, signer_for):
    names = [n for n in parts.__struct_fields__ if n not in ("signer", "signer_for")]
    return parts.__class__(
        **{n: getattr(parts, n) for n in names}, signer=signer, signer_for=signer_for
    )


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "_TILES_PER_TRANSACTION", 1)
    # One thread signs tile after tile, so that the key can fail at a chosen one.
    monkeypatch.setattr(ledger, "_SIGNING_THREADS", 1)
    chain, old, new = FakeChain(), Stopping("old-key"), FakeSigner("new-key")
    parts = make_parts(tmp_path, headers=[chain], signer=old)
    go = Passes(parts, chain, signers=[old, new])
    yield go, parts.calendars[0], chain, old, new
    parts.store.close()


def half_signed(go, old):
    go.add(bare(MANY))
    go._judge["step"] = 150
    old.left = 1024 + 5
    with pytest.raises(ConfigError, match="locked"):
        go()
    old.left = 10**9
    assert go.parts.store.ledger.head()[0] == 1024


def test_a_failure_to_sign_raises_and_the_next_pass_goes_on_where_the_ledger_ends(world):
    go, _a, _chain, old, _new = world
    half_signed(go, old)
    assert go(60).signed == MANY - 1024
    assert len({e["created_at"] for e in go.judge()}) == 1


def test_a_key_rotated_in_the_middle_finishes_what_it_began(world):
    go, a, chain, old, new = world
    half_signed(go, old)
    go.parts = rotated(go.parts, new, lambda key_id, _at: {"old-key": old}[key_id])
    assert go(60).signed == MANY - 1024
    assert {e["signer"]["key_id"] for e in go.judge()} == {"old-key"}
    a.mine(chain)
    chain.grow(5)
    assert go(60).signed == MANY
    assert {e["signer"]["key_id"] for e in go.judge()} == {"old-key", "new-key"}
    check_all_anchored(go.parts.store)


def test_a_key_that_is_gone_is_relieved_by_the_new_one_with_the_date_of_now(world):
    go, _a, _chain, old, new = world
    half_signed(go, old)

    def gone(key_id, _at):
        raise ConfigError(f"{key_id} is revoked")

    go.parts = rotated(go.parts, new, gone)
    go.clock.advance(5000)
    assert go().signed == MANY - 1024
    first, *_, last = go.judge()
    assert first["signer"]["key_id"] == "old-key"
    store = go.parts.store
    row = store.ledger.of_record(MANY)[0]
    event = read_event(store, store.records.get(MANY), row)
    assert event["signer"]["key_id"] == "new-key"
    assert event["created_at"] == utc(go.clock.now()) > last["created_at"]
    assert go(1).signed == 0


def test_a_withdrawal_begun_by_a_key_that_is_gone_is_finished_by_the_new_one(world):
    go, a, chain, old, new = world
    go.add(bare(2))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    chain.reorg(7)
    old.left = 0
    with pytest.raises(ConfigError):
        go(6 * 3600)

    def gone(key_id, _at):
        raise ConfigError(f"{key_id} is revoked")

    go.parts = rotated(go.parts, new, gone)
    assert go(1).signed == 2
    assert not any(live_anchored(go.parts.store).values())
    assert go.judge()[-1]["signer"]["key_id"] == "new-key"


def test_another_writer_is_noticed_and_nothing_is_appended(world):
    go, *_ = world
    go.add(bare(3))
    store = go.parts.store
    real = store.ledger.append

    def behind_our_back(moves, rows):
        store.ledger.append = real
        run_pass_inside(go, moves, rows, real)
        real(moves, rows)

    store.ledger.append = behind_our_back
    with pytest.raises(FatalError, match="two passes wrote at once"):
        go()
    go.judge()
    assert store.ledger.head()[0] == 3
    assert go(60).signed == 0


def run_pass_inside(go, moves, rows, real):
    """Another process appends the same rows first."""
    real(moves, rows)


def test_a_handover_of_a_series_that_moved_is_refused(world):
    go, _a, _chain, _old, new = world
    go.add(bare(2))
    go()
    store = go.parts.store
    done = store.ledger.series_of(1)[0]
    stale = done.__class__(**{**{n: getattr(done, n) for n in done.__struct_fields__}, "next": 0})
    rest = NewSeries(
        event_type=done.event_type, created_at=1, payload=done.payload, proof=done.proof,
        signer=done.signer, key_id=new.key_id, start=0, stop=2,
    )  # fmt: skip
    with pytest.raises(StoreBusyError):
        store.ledger.split(stale, rest)
    go.judge()


def damage(store, statement):
    with store._engine.begin() as connection:
        assert connection.exec_driver_sql(worded(store, statement)).rowcount >= 1


FLIP = "UPDATE {0} SET {1} = CAST(substr({1}, 1, {2}) || x'FF' || substr({1}, {2} + 2) AS BLOB)"

DAMAGES = {
    "digest": FLIP.format("records", "digest", 5) + " WHERE id = 2",
    "nonce": FLIP.format("tiles", "nonces", 20),
    "leaf": FLIP.format("tiles", "leaves", 40),
    "tile root": FLIP.format("batches", "tile_roots", 3),
    "batch root": FLIP.format("batches", "root", 3),
    "proof": "UPDATE batches SET proof = substr(proof, 1, 20)",
    "lost record": "DELETE FROM records WHERE id = 2",
    "lost tile": "DELETE FROM tiles",
    "short nonces": "UPDATE tiles SET nonces = substr(nonces, 1, 30)",
    "short leaves": "UPDATE tiles SET leaves = substr(leaves, 1, 33)",
    "record ids": "UPDATE tiles SET record_ids = substr(record_ids, 1, 9)",
    "size": "UPDATE batches SET size = 5000",
}


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_on_the_word_of_a_damaged_store_nothing_is_signed(world, statement):
    go, a, chain, *_ = world
    go.add(numbered(5))
    go()
    a.mine(chain)
    chain.grow(5)
    damage(go.parts.store, statement)
    before = go.parts.store.ledger.head()
    with pytest.raises((FatalError, LedgerError)):
        run_pass(go.parts, go.clock.advance(60))
    assert go.parts.store.ledger.head() == before


@pytest.mark.both_stores(False)  # the same damages as above
@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_store_withdraws_nothing(world, statement):
    go, a, chain, *_ = world
    go.add(bare(5))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    chain.reorg(7)
    damage(go.parts.store, statement)
    before = go.parts.store.ledger.head()
    with pytest.raises((FatalError, LedgerError)):
        run_pass(go.parts, go.clock.advance(6 * 3600))
    assert go.parts.store.ledger.head() == before


@pytest.mark.parametrize(
    "name", ["digest", "nonce", "leaf", "tile root", "batch root", "record ids"]
)
def test_an_event_of_a_damaged_store_is_not_shown(world, name):
    go, *_ = world
    go.add(numbered(5))
    go()
    store = go.parts.store
    damage(store, DAMAGES[name])
    record = store.records.get(2)
    with pytest.raises((FatalError, LedgerError)):
        read_event(store, record, store.ledger.of_record(2)[0])


def test_a_changed_payload_proof_or_signer_of_a_series_is_noticed_when_read(world):
    go, *_ = world
    go.add(bare(2))
    go()
    store = go.parts.store
    damage(store, "UPDATE series SET created_at = created_at + 1")
    with pytest.raises(LedgerError, match="does not recompute"):
        read_event(store, store.records.get(1), store.ledger.of_record(1)[0])


def test_a_changed_digest_of_an_adopted_record_stops_its_events(world):
    from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
    from opentimestamps.core.op import OpSHA256
    from opentimestamps.core.timestamp import Timestamp
    from support.ots_oracle import written_file

    go, _a, chain, *_ = world
    stamp = Timestamp(bare(1)[0].digest)
    end = stamp.ops.add(OpSHA256())
    end.attestations.add(BitcoinBlockHeaderAttestation(chain.mine(end.msg)))
    chain.grow(5)
    go.add([adoption(written_file(stamp), stamp.msg)])
    damage(go.parts.store, FLIP.format("records", "digest", 5))
    with pytest.raises(AnchordError, match="damaged"):
        run_pass(go.parts, go.clock.now())
    assert go.parts.store.ledger.head()[0] == 0


def test_withdrawing_what_the_ledger_does_not_hold_stops(world):
    go, a, chain, old, _new = world
    go.add(bare(2))
    go()
    a.mine(chain)
    chain.grow(5)
    go(60)
    chain.reorg(7)
    old.left = 0
    with pytest.raises(ConfigError):
        go(6 * 3600)
    old.left = 9
    damage(go.parts.store, "DELETE FROM events WHERE seq = 4")
    with pytest.raises(FatalError, match="not in the ledger"):
        run_pass(go.parts, go.clock.now())
    with pytest.raises(FatalError, match="not in the ledger"):
        ledger.append_all(go.parts, go.clock.now())


def test_signing_hundreds_of_adopted_proofs_takes_few_transactions(tmp_path):
    from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
    from opentimestamps.core.op import OpSHA256
    from opentimestamps.core.timestamp import Timestamp, make_merkle_tree
    from support.ots_oracle import written_file

    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], calendars=[FakeCalendar()])
    go = Passes(parts, chain, step=100)
    stamps = [Timestamp(record.digest) for record in bare(400)]
    tip = make_merkle_tree([s.ops.add(OpSHA256()) for s in stamps])
    tip.attestations.add(BitcoinBlockHeaderAttestation(chain.mine(tip.msg)))
    chain.grow(5)
    go.add([adoption(written_file(s), s.msg) for s in stamps])
    commits = []
    sa.event.listen(parts.store._engine, "commit", commits.append)
    assert go().signed == 400
    writes = [c for c in commits if c.get_execution_options().get("writes")]
    assert len(writes) <= 8
    parts.store.close()
