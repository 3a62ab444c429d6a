"""Proofs out of the store: of events, of sizes, and of checkpoints into Bitcoin."""

from __future__ import annotations

import base64
import hashlib
import json

import msgspec
import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
from support.ots_oracle import read_file
from support.parties import FakeChain, FakeSigner, make_parts, mine_together
from support.passes import Passes, bare
from support.workplace import Workplace, sample
from support.workplace import bare as bare_file

from anchord.core import tlog_proof
from anchord.core.bundle import read_bundle
from anchord.core.checkpoint import open_checkpoint
from anchord.core.header import parse_header
from anchord.core.log import entry_of, leaf_hash, verify_consistency, verify_inclusion
from anchord.core.note import make_verifier
from anchord.core.verify import read_proof
from anchord.engine.export import all_bundles, record_bundle
from anchord.engine.inclusion import Placing, inclusion_of
from anchord.engine.proving import (
    checkpoint_ots,
    consistency,
    covering,
    event_proof,
    event_proof_text,
    root,
)
from anchord.errors import FatalError, RefusedError

ORIGIN = "log.example.org"
LOG_KEY = make_verifier(ORIGIN, FakeSigner().public_key)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "with a block's hash"])
def world(tmp_path_factory, request):
    """Return a store with three batches in blocks, two of which carry checkpoints."""
    tmp_path = tmp_path_factory.mktemp("world")
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], origin=ORIGIN, not_before=request.param)
    go = Passes(parts, chain, step=50)
    go.add(bare(300, "first"))
    go()
    go.add(bare(5, "second"))
    go(60)
    mine_together(chain, *parts.calendars)
    chain.grow(5)
    go(60)
    go.add(bare(4, "third"))
    go(60)
    mine_together(chain, *parts.calendars)
    chain.grow(5)
    go(900)
    yield go, chain
    parts.store.close()


def test_every_event_is_proved_in_every_checkpoint_that_covers_it(world):
    go, _ = world
    store = go.parts.store
    found = list(store.log.checkpoints())
    assert len(found) >= 4
    rows = [row for chunk in store.ledger.walk() for row in chunk]
    for checkpoint in found:
        for row in rows[: checkpoint.size : 37]:
            proof = event_proof(store, row.seq, checkpoint)
            leaf = leaf_hash(entry_of(row.event_id, row.signature))
            assert tlog_proof.verify(proof, leaf, [LOG_KEY]).root == checkpoint.root
            verify_inclusion(leaf, row.seq - 1, checkpoint.size, proof.hashes, checkpoint.root)


def test_a_proof_is_of_the_oldest_checkpoint_unless_another_is_asked_for(world):
    go, _ = world
    store = go.parts.store
    sizes = [one.size for one in store.log.checkpoints()]
    assert covering(store, 1).size == sizes[0] == 300
    assert covering(store, 300).size == 300
    assert covering(store, 301).size == sizes[1]
    assert covering(store, 1, sizes[-1]).size == sizes[-1]
    proof = tlog_proof.parse(event_proof_text(store, 1, sizes[-1]))
    assert open_checkpoint(proof.note, [LOG_KEY]).size == sizes[-1]
    for seq, size in ((1, 299), (301, 300), (sizes[-1] + 1, None)):
        with pytest.raises(RefusedError):
            covering(store, seq, size)


def test_every_checkpoint_continues_every_earlier_one(world):
    store = world[0].parts.store
    found = list(store.log.checkpoints())
    for old in found:
        assert root(store, old.size) == old.root
        for new in [one for one in found if one.size >= old.size]:
            proof = consistency(store, old.size, new.size)
            verify_consistency(old.size, new.size, old.root, new.root, proof)
    with pytest.raises(RefusedError):
        consistency(store, 5, found[-1].size + 1)


def test_a_checkpoints_ots_leads_the_library_from_its_text_into_the_block(world):
    go, chain = world
    store = go.parts.store
    carried = [one for one in store.log.checkpoints() if one.batch_id is not None]
    batches = {one.batch_id for one in carried}
    assert batches == {2, 3}
    assert len(carried) > len(batches), "one batch carries several"
    for checkpoint in carried:
        raw = checkpoint_ots(store, checkpoint)
        batch = store.batches.get(checkpoint.batch_id)
        ots = read_file(raw)
        assert ots.file_digest == hashlib.sha256(checkpoint.note).digest()
        merkle_root = parse_header(chain.headers[batch.block_height]).merkle_root
        assert merkle_root in [
            message
            for message, item in ots.timestamp.all_attestations()
            if isinstance(item, BitcoinBlockHeaderAttestation) and item.height == batch.block_height
        ]
        assert batch.root in _messages(ots.timestamp), "the path goes through the batch's root"
        assert read_proof(raw, hashlib.sha256(checkpoint.note).digest()).bitcoin


def _messages(timestamp):
    found = {timestamp.msg}
    for after in timestamp.ops.values():
        found |= _messages(after)
    return found


def test_a_checkpoint_that_waits_has_no_ots(world):
    go, _ = world
    waiting = go.parts.store.log.waiting()[0]
    with pytest.raises(RefusedError, match="waits for the next batch"):
        checkpoint_ots(go.parts.store, waiting)


def test_a_checkpoint_in_the_wrong_batch_has_none_either(world):
    store = world[0].parts.store
    first, *_, last = store.log.checkpoints()
    for wrong in (
        msgspec.structs.replace(last, batch_id=2),
        msgspec.structs.replace(first, batch_id=3),
        msgspec.structs.replace(first, batch_id=1),
    ):
        with pytest.raises(FatalError, match="other checkpoints"):
            checkpoint_ots(store, wrong)


# ---------------------------------------------------------------------- bundles


def proved(raw: bytes, key=None) -> list[tuple[int, int]]:
    """Verify each inclusion a bundle states; return (index, size)."""
    bundle = read_bundle(raw)
    events = {event["event_id"]: event for event in json.loads(raw)["events"]}
    found = []
    for item in bundle.inclusion:
        stated = open_checkpoint(item.checkpoint.encode(), [key or LOG_KEY])
        for one in item.events:
            event = events[one.event_id]
            digest = bytes.fromhex(event["event_id"].removeprefix("sha256:"))
            leaf = leaf_hash(digest + base64.b64decode(event["signature_b64"]))
            verify_inclusion(leaf, one.index, stated.size, one.hashes, stated.root)
            found.append((one.index, stated.size))
    return found


@pytest.fixture
def place(tmp_path):
    return Workplace(tmp_path)


def key_of(app):
    return make_verifier("anchord", app.keyring.active().public_key)


def test_a_bundle_carries_the_proof_that_its_events_are_in_the_log(place):
    place.anchor(sample(1), *[bare_file(hashlib.sha256(b"%d" % n).digest()) for n in range(400)])
    with place.app() as app:
        record = app.store.records.get(1)
        raw = record_bundle(app.store, app.keyring, record)
        assert proved(raw, key_of(app)) == [(0, 401), (401, 802)]


def test_the_bundle_stays_the_same_bytes_when_the_log_grows(place):
    place.anchor(sample(1))
    with place.app() as app:
        before = record_bundle(app.store, app.keyring, app.store.records.get(1))
    place.anchor(*[sample(number) for number in range(2, 9)])
    with place.app() as app:
        assert app.store.log.last().size > 2
        assert record_bundle(app.store, app.keyring, app.store.records.get(1)) == before


def test_all_bundles_at_once_carry_the_same_proofs_as_one_by_one(place):
    place.anchor(*[bare_file(hashlib.sha256(b"%d" % n).digest()) for n in range(700)])
    place.anchor(sample(1), sample(2))
    with place.app() as app:
        items = [item for group in all_bundles(app.store, app.keyring) for item in group]
        assert len(items) == 702
        for item in items[::70]:
            assert len(proved(item.data, key_of(app))) == 2
        records = {
            record.digest.hex(): record for chunk in app.store.records.walk() for record in chunk
        }
        for item in items[:700:100]:
            assert record_bundle(app.store, app.keyring, records[item.stem]) == item.data


def test_placing_many_neighbours_reads_each_row_about_once(world, monkeypatch):
    store = world[0].parts.store
    rows = [row for chunk in store.ledger.walk() for row in chunk]
    read, asked = [], []
    leaf_hashes, find = type(store.log).leaf_hashes, type(store.log).covering

    def counting(self, start, stop):
        read.append(stop - start)
        return leaf_hashes(self, start, stop)

    def finding(self, size):
        asked.append(size)
        return find(self, size)

    monkeypatch.setattr(type(store.log), "leaf_hashes", counting)
    monkeypatch.setattr(type(store.log), "covering", finding)
    placing = Placing(store)
    found = [placing.of([row]) for row in rows]
    assert sum(read) <= len(rows)
    assert len(asked) <= len(list(store.log.checkpoints()))
    assert found[::60] == [inclusion_of(store, [row]) for row in rows[::60]]
    # In any other order it is the same.
    backwards = Placing(store)
    assert [backwards.of([row]) for row in reversed(rows)] == found[::-1]


def test_events_that_no_checkpoint_covers_yet_are_left_out(tmp_path, monkeypatch):
    parts = make_parts(tmp_path, origin=ORIGIN)
    go = Passes(parts)
    go.add(bare(3, "first"))
    go()
    go.add(bare(2, "second"))
    monkeypatch.setattr("anchord.engine.run.checkpoint_if_due", lambda *_: None)
    monkeypatch.setattr("anchord.engine.anchoring.checkpoint_of", lambda *_: None)
    go(60)
    rows = [row for chunk in parts.store.ledger.walk() for row in chunk]
    (found,) = inclusion_of(parts.store, rows)
    assert [event.index for event in found.events] == [0, 1, 2]
    assert inclusion_of(parts.store, rows[3:]) == []
    parts.store.close()
