"""Exports from the store: which proof, tile by tile, and nothing damaged leaves."""

from __future__ import annotations

import hashlib
import json

import pytest
import sqlalchemy as sa
from support.evidence import mined, waiting
from support.parties import FakeChain
from support.schemas import assert_valid
from support.workplace import Workplace, bare, sample

from anchord.core.bundle import read_bundle
from anchord.core.model import Adoption, Document
from anchord.core.proof import attestations, parse_detached
from anchord.engine.export import all_bundles, all_ots, bundle_of, ots_of, record_bundle
from anchord.errors import FatalError, LedgerError


@pytest.fixture
def place(tmp_path):
    return Workplace(tmp_path)


def digest_of(number: int) -> bytes:
    return hashlib.sha256(b"file %d" % number).digest()


def exported(app, kind):
    groups = all_ots(app.store) if kind == "ots" else all_bundles(app.store, app.keyring)
    return {item.stem: item for group in groups for item in group}


def singly(app, kind, every=1):
    found = {}
    for chunk in app.store.records.walk():
        for record in chunk:
            if record.id % every:
                continue
            item = (
                ots_of(app.store, record)
                if kind == "ots"
                else bundle_of(app.store, app.keyring, record)
            )
            if item is not None:
                found[item.stem] = item
    return found


@pytest.mark.parametrize("kind", ["ots", "bundle"])
def test_bulk_and_single_exports_agree_over_several_tiles(place, kind):
    place.anchor(
        *[sample(number) for number in range(10)], *[bare(digest_of(n)) for n in range(1040)]
    )
    with place.app() as app:
        everything = exported(app, kind)
        assert len(everything) == 1050
        assert all(item.anchored for item in everything.values())
        some = singly(app, kind, every=50)
        assert len(some) == 21
        assert all(everything[key] == item for key, item in some.items())


def test_every_exported_proof_starts_at_its_record_and_ends_in_the_block(place):
    height = place.anchor(*[bare(digest_of(number)) for number in range(7)])
    with place.app() as app:
        for stem, item in exported(app, "ots").items():
            detached = parse_detached(item.data)
            assert detached.digest.hex() == stem
            heights = {found.attestation.height for found in attestations(detached.timestamp)
                       if found.attestation.kind == "bitcoin"}  # fmt: skip
            assert heights == {height}


def test_records_without_a_proof_are_left_out(place):
    place.add(bare(digest_of(1)))
    with place.app() as app:
        assert exported(app, "ots") == {}
        assert exported(app, "bundle") == {}
    place.step()
    place.add(bare(digest_of(2)))
    with place.app() as app:
        assert list(exported(app, "ots")) == [digest_of(1).hex()]
        assert not exported(app, "ots")[digest_of(1).hex()].anchored
        assert list(all_ots(app.store, anchored_only=True)) == []


def test_an_adopted_proof_is_exported_as_it_came_until_our_own_is_there(place):
    digest = digest_of(1)
    foreign = FakeChain("elsewhere", height=3)
    for raw in (waiting(digest), mined(digest, foreign)):
        place.add(Adoption(record=bare(digest), ots=raw))
    with place.app() as app:
        both = {"ots": exported(app, "ots"), "single": singly(app, "ots")}
        assert both["ots"] == both["single"]
        assert len(both["ots"]) == 1


@pytest.mark.parametrize("kind", ["ots", "bundle"])
def test_each_record_leaves_once_whatever_proofs_were_brought_for_it(place, kind):
    chain = place.chain
    done, open_ = digest_of(1), digest_of(2)
    place.add(Adoption(record=bare(done), ots=mined(done, chain)))
    place.add(Adoption(record=bare(open_), ots=waiting(open_)), sample(1))
    place.write_headers()
    place.step()
    place.mine()
    place.step(1000)
    with place.app() as app:
        stems = [item.stem for group in (all_ots(app.store) if kind == "ots" else
                 all_bundles(app.store, app.keyring)) for item in group]  # fmt: skip
        assert len(stems) == len(set(stems)) == 3
        assert exported(app, kind) == singly(app, kind)


def test_events_of_a_batch_the_record_left_are_in_its_bundle(place):
    place.anchor(sample(1))
    place.chain.reorg(6)
    place.chain.grow(5)
    place.step(90_000)
    place.mine()
    place.step(90_000)
    place.step(90_000)
    with place.app() as app:
        (item,) = exported(app, "bundle").values()
        assert {item.stem: item} == singly(app, "bundle")
        types = [event["event_type"] for event in read_bundle(item.data).events]
    assert_valid("bundle", item.data)
    assert types.count("timestamp_anchored") == 2
    assert types.count("facet_withdrawn") == 1


def test_a_foreign_bundle_survives_import_and_export(place):
    record = sample(1)
    with place.app() as app:
        app.store.add([record], place.clock.now())
        (chunk,) = app.store.records.walk()
        plain = json.loads(record_bundle(app.store, app.keyring, chunk[0]))
    plain["mirrors"] = ["x"]
    plain["events"] = [{"event_type": "citation", "event_id": "sha256:cc", "payload": {"a": 1.5}}]
    raw = json.dumps(plain, indent=1).encode()
    place.anchor(Document(record=record, raw=raw))
    with place.app() as app:
        (item,) = exported(app, "bundle").values()
        assert {item.stem: item} == singly(app, "bundle")
    value = json.loads(item.data)
    assert value["mirrors"] == ["x"]
    assert b'"payload": {\n    "a": 1.5\n   }' in item.data
    assert [event["event_type"] for event in value["events"]] == [
        "citation",
        "timestamp_submitted",
        "timestamp_anchored",
    ]
    assert place.json("verify", "2507.00001")["result"] == "proved"


def test_a_damaged_store_gives_nothing_away(place):
    place.anchor(sample(1), sample(2))
    with place.app() as app:
        change = sa.text("UPDATE events SET event_id = zeroblob(32) WHERE seq = 3")
        with app.store._engine.begin() as connection:
            connection.execute(change)
        with pytest.raises(LedgerError):
            exported(app, "bundle")
        with app.store._engine.begin() as connection:
            connection.execute(sa.text("UPDATE tiles SET nonces = zeroblob(32)"))
        with pytest.raises(FatalError):
            exported(app, "ots")
    found = place.json("verify", "2507.00001", code=1)
    assert found["result"] == "failed"
