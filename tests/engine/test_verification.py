"""Reports: several witnesses, several paths, and attestations nobody judges."""

from __future__ import annotations

import hashlib
import json

import pytest
from support.evidence import (
    anchored_payload,
    body_of,
    bundle_with,
    mined,
    sign,
    waiting,
    withdrawal,
)
from support.parties import FakeChain, FakeSigner
from support.workplace import sample

from anchord.core.keyring import REGISTRY_KEY, make_keyring
from anchord.core.proof import merge, parse_detached, serialise_detached
from anchord.engine.dossier import Expected
from anchord.engine.header_view import HeaderView
from anchord.engine.verification import verify_bundle, verify_ots
from anchord.errors import NetworkError, ProtocolError

DIGEST = hashlib.sha256(b"a record").digest()
SIGNER = FakeSigner()


def named(algorithm: str, digest: bytes) -> Expected:
    return Expected(digest, "what was asked for")


def ots(raw: bytes, *sources: FakeChain, confirmations: int = 6):
    return verify_ots("x.ots", raw, named, HeaderView(sources, "bitcoin-regtest", confirmations))


def bundle(raw: bytes, *sources: FakeChain, keyring=None):
    view = HeaderView(sources, "bitcoin-regtest", 6)
    return verify_bundle("x", raw, keyring or SIGNER.keyring(), (), lambda _a, _d: None, view)


@pytest.fixture
def chain():
    return FakeChain(height=3)


@pytest.fixture
def node():
    return FakeChain("bitcoin node", height=3)


def test_all_witnesses_that_agree_are_named(chain, node):
    raw = mined(DIGEST, chain)
    node.headers = chain.headers[:-1]
    found = ots(raw, chain, node, confirmations=5)
    assert (found.result, found.checked_with) == ("proved", ("own headers", "bitcoin node"))
    assert found.confirmations == 5


def test_witnesses_that_disagree_prove_nothing_yet(chain, node):
    raw = mined(DIGEST, chain)
    node.grow(20)
    found = ots(raw, chain, node)
    assert (found.result, found.temporary) == ("not proved", True)
    assert "disagree" in (found.reason or "")


@pytest.mark.parametrize("error", [NetworkError("away"), ProtocolError("nonsense")])
def test_a_witness_that_is_away_is_left_out(chain, node, error):
    raw = mined(DIGEST, chain)
    node.fail_with = error
    assert ots(raw, chain, node).checked_with == ("own headers",)
    alone = ots(raw, node)
    assert (alone.result, alone.temporary) == ("not proved", True)


def test_the_lowest_block_is_reported_and_all_paths_are_listed(chain):
    first, second = mined(DIGEST, chain), mined(DIGEST, chain)
    timestamp = merge(parse_detached(first).timestamp, parse_detached(second).timestamp)
    found = ots(serialise_detached(DIGEST, timestamp), chain)
    assert [path.outcome for path in found.paths if path.kind == "bitcoin"] == ["verified"] * 2
    assert found.block_height == 4


def test_one_false_path_fails_whatever_the_others_prove(chain):
    elsewhere = FakeChain(height=5)
    first, second = mined(DIGEST, chain), mined(DIGEST, elsewhere)
    timestamp = merge(parse_detached(first).timestamp, parse_detached(second).timestamp)
    found = ots(serialise_detached(DIGEST, timestamp), chain)
    assert found.result == "failed"
    assert found.existed_before is None
    assert {path.outcome for path in found.paths} == {"verified", "does not hold"}


def test_a_pending_proof_says_where_it_waits(chain):
    found = ots(waiting(DIGEST), chain)
    assert (found.result, found.temporary) == ("pending", False)
    assert "waiting at https://alice" in (found.reason or "")


def test_an_event_that_names_another_block_than_the_chain_has_fails(chain):
    record = sample(1)
    payload = anchored_payload(mined(record.digest, chain), chain)
    assert (
        bundle(bundle_with(record, [sign(body_of(record, SIGNER, payload), SIGNER)]), chain).result
        == "proved"
    )
    for wrong in ({"block_hash": "00" * 32}, {"block_time": "2024-01-01T00:00:00Z"}):
        event = sign(body_of(record, SIGNER, {**payload, **wrong}), SIGNER)
        found = bundle(bundle_with(record, [event]), chain)
        assert found.result == "failed"
        assert "another chain" in (found.reason or "")


def test_only_the_event_that_stands_proves(chain):
    record = sample(1)
    events = []
    for _ in range(2):
        payload = anchored_payload(mined(record.digest, chain), chain)
        events.append(sign(body_of(record, SIGNER, payload), SIGNER))
    gone = withdrawal(record, SIGNER, events[0]["event_id"])
    found = bundle(bundle_with(record, [*events, gone]), chain)
    assert (found.result, found.block_height) == ("proved", 10)
    assert bundle(bundle_with(record, [events[0], gone]), chain).reason == (
        "its timestamp was withdrawn"
    )


def test_a_bundle_without_events_proves_nothing(chain):
    found = bundle(bundle_with(sample(1), []), chain)
    assert (found.result, found.reason) == ("not proved", "no proof in it")


def test_a_forged_receipt_fails_the_bundle(chain):
    record = sample(1)
    payload = anchored_payload(mined(record.digest, chain), chain)
    raw = bundle_with(record, [sign(body_of(record, SIGNER, payload), SIGNER)])
    receipt = {
        "kind": "pith_receipt",
        "key_id": REGISTRY_KEY.key_id,
        "algorithm": "ed25519",
        "signed_at": "2024-08-01T12:00:00Z",
        "signature_b64": "A" * 86 + "==",
    }
    keyring = make_keyring([REGISTRY_KEY, SIGNER.public()])
    value = {**json.loads(raw), "receipt": receipt}
    assert bundle(json.dumps(value).encode(), chain, keyring=keyring).result == "failed"
    value["receipt"] = {**receipt, "key_id": "somebody"}
    found = bundle(json.dumps(value).encode(), chain, keyring=keyring)
    assert found.result == "proved"
    assert [c.outcome for c in found.checks if c.check == "receipt"] == ["not checked"]


@pytest.mark.shared_data
def test_no_real_vector_is_proved_without_its_header(shared_data, chain):
    folder = shared_data / "ots-vectors"
    results = {}
    for vector in json.loads((folder / "index.json").read_bytes())["vectors"]:
        found = ots((folder / vector["name"]).read_bytes(), chain)
        results.setdefault(vector["expected"], set()).add(found.result)
    assert results["pending"] <= {"pending", "not proved"}
    assert results["malformed"] == {"failed"}
    assert not any("proved" in outcomes for outcomes in results.values())


@pytest.mark.shared_data
def test_unknown_attestations_are_listed_as_not_understood(shared_data, chain):
    folder = shared_data / "ots-vectors"
    found = ots((folder / "pending/known-and-unknown-notary.txt.ots").read_bytes(), chain)
    assert "not understood" in {path.outcome for path in found.paths}
    assert found.result == "pending"
    found = ots((folder / "mixed/hello-world.txt.ltc.ots").read_bytes(), chain)
    assert {path.kind: path.outcome for path in found.paths}["litecoin"] == "not understood"


@pytest.mark.parametrize("first", [True, False])
def test_an_unsigned_event_never_stands_in_the_place_of_a_signed_one(chain, first):
    record = sample(1)
    event = sign(
        body_of(record, SIGNER, anchored_payload(mined(record.digest, chain), chain)), SIGNER
    )
    gone = withdrawal(record, SIGNER, event["event_id"])
    for events, result in (([event], "proved"), ([event, gone], "not proved")):
        named = [{name: one[name] for name in ("event_id", "created_at")} for one in events]
        copies = [{**names, "event_type": "note"} for names in named]
        whole = json.loads(bundle_with(record, events))
        whole["events"] = copies + events if first else events + copies
        assert bundle(json.dumps(whole).encode(), chain).result == result


def test_a_key_that_takes_another_signers_name_withdraws_nothing(chain):
    record, thief = sample(1), FakeSigner("thief", SIGNER.signer_id + ".evil")
    event = sign(
        body_of(record, SIGNER, anchored_payload(mined(record.digest, chain), chain)), SIGNER
    )
    body = body_of(record, thief, {"withdraws": event["event_id"], "reason": "x"},
                   event_type="facet_withdrawn")  # fmt: skip
    body["signer"]["signer_id"] = SIGNER.signer_id
    ring = make_keyring([SIGNER.public(), thief.public()])
    found = bundle(bundle_with(record, [event, sign(body, thief)]), chain, keyring=ring)
    assert [one.withdrawn_by for one in found.events] == [None]
    assert found.result == "failed"


def test_an_event_dated_before_its_block_was_there_is_not_believed(chain):
    record = sample(1)
    payload = anchored_payload(mined(record.digest, chain), chain)
    early = sign(body_of(record, SIGNER, payload, created_at="2020-01-01T00:00:00Z"), SIGNER)
    found = bundle(bundle_with(record, [early]), chain)
    assert found.result == "failed"
    assert "signed later than it says" in (found.reason or "")
