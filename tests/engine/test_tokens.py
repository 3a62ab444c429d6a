"""Further witnesses of batches: asked for in time, signed for, and never in anybody's way."""

from __future__ import annotations

import json

import pytest
from support.authorities import FakeAuthority, LocalAuthority, openssl_accepts
from support.check_ledger import check_all_anchored
from support.parties import FakeChain, make_parts
from support.passes import Passes, bare

from anchord.core.header import block_hash
from anchord.core.trust import Keys
from anchord.core.verify_event import read_event as prove
from anchord.engine import tokens
from anchord.engine.event_reader import read_event
from anchord.errors import NetworkError, ProtocolError, RateLimitedError, RefusedError

OTHER = "https://other.example.org/tsr"


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return LocalAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def world(tmp_path, local):
    """Return a function that makes passes over a store with some authorities."""
    opened = []

    def make(*authorities, not_before=True, chain=None):
        parts = make_parts(
            tmp_path, headers=[chain or FakeChain()], not_before=not_before,
            authorities=tuple(one.url for one in authorities),
        )  # fmt: skip
        opened.append(parts.store)
        parts = replaced(parts, authorities=authorities)
        return Passes(parts, parts.headers[0])

    yield make
    for store in opened:
        store.close()


def replaced(parts, **changes):
    import msgspec

    return msgspec.structs.replace(parts, **changes)


def anchor(go, *, wait=60):
    """Bring what waits into a block and pass."""
    go.parts.calendars[0].mine(go.chain)
    go.chain.grow(5)
    return go(wait)


def claims(go, record_id=1):
    """Return what a record's last anchored event says, proved as a stranger would."""
    store, signer = go.parts.store, go.parts.signer
    record = store.records.get(record_id)
    row = store.ledger.of_record(record_id)[-1]
    event = read_event(store, record, row)
    assert event["event_type"] == "timestamp_anchored"
    found = prove(event, record.digest, None, Keys(signer.keyring()))
    return event["payload"], found.claims.witnessed


def test_events_carry_the_block_they_are_younger_than_and_the_token(world, local, tmp_path):
    authority = FakeAuthority(local)
    go = world(authority)
    go.add(bare(3))
    go()
    batch = go.parts.store.batches.get(1)
    assert authority.asked == [batch.root]
    anchor(go)
    payload, witnessed = claims(go)
    height = batch.not_before_height
    assert go.chain.headers[height + 5] is not None  # six confirmations when it was sealed
    assert witnessed.not_before.height == height
    assert payload["not_before"]["block_hash"] == block_hash(go.chain.headers[height])[::-1].hex()
    (token,) = witnessed.tokens
    assert token.url == authority.url
    assert openssl_accepts(token.token.raw, batch.root, local.root_file, tmp_path)
    assert [claims(go, record)[1] for record in (2, 3)] == [witnessed] * 2
    check_all_anchored(go.parts.store)


def test_without_them_the_events_are_what_they_always_were(world):
    go = world(not_before=False)
    go.add(bare(1))
    go()
    anchor(go)
    payload, witnessed = claims(go)
    assert set(payload) == {
        "protocol", "chain", "block_height", "block_hash", "block_merkle_root", "block_time",
        "confirmations", "checked_with", "canonical_sha256", "proof_b64", "proof_sha256",
    }  # fmt: skip
    assert (witnessed.not_before, witnessed.tokens) == (None, ())
    assert go.parts.store.batches.get(1).not_before_height is None


FAILURES = [
    NetworkError("down"),
    ProtocolError("not a token"),
    RefusedError("no token: rejection"),
    RateLimitedError("less", retry_after=400),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda error: type(error).__name__)
def test_an_authority_that_fails_holds_up_nothing_and_is_asked_again(world, local, failure):
    good, bad = FakeAuthority(local), FakeAuthority(local, OTHER)
    bad.fail_with = failure
    go = world(good, bad)
    go.add(bare(1))
    report = go()
    assert (report.submitted, report.failed_calls) == (2, 1)
    waiting = {one.url: one for one in go.parts.store.tokens.of_batch(1)}
    assert waiting[good.url].raw is not None
    assert waiting[OTHER].last_error == str(failure)
    due = waiting[OTHER].next_attempt_at - go.clock.now()
    assert due == (400 if isinstance(failure, RateLimitedError) else 60)
    go(due - 1)
    assert len(bad.asked) == 1
    bad.fail_with = None
    go(1)
    anchor(go)
    assert {one.url for one in claims(go)[1].tokens} == {good.url, OTHER}


def test_a_batch_that_is_anchored_asks_for_no_token_any_more(world, local):
    bad = FakeAuthority(local)
    bad.fail_with = NetworkError("down")
    go = world(bad)
    go.add(bare(1))
    go()
    anchor(go)
    asked = len(bad.asked)
    bad.fail_with = None
    go(3600, 3)
    assert len(bad.asked) <= asked + 1  # the pass that anchored it had asked once more
    (intent,) = go.parts.store.tokens.of_batch(1)
    assert intent.next_attempt_at is None
    assert claims(go)[1].tokens == ()


def test_an_authority_that_is_configured_no_more_is_given_up(world, local):
    authority = FakeAuthority(local)
    authority.fail_with = NetworkError("down")
    go = world(authority)
    go.add(bare(1))
    go()
    go.parts = replaced(go.parts, authorities=())
    go(3600)
    (intent,) = go.parts.store.tokens.of_batch(1)
    assert intent.next_attempt_at is None
    assert "not configured any more" in intent.last_error
    assert "down" in intent.last_error


def test_a_dead_authority_is_asked_once_a_pass_however_many_batches_wait(world, local):
    bad = FakeAuthority(local)
    bad.fail_with = NetworkError("down")
    go = world(bad)
    for number in range(3):
        go.add(bare(1, f"batch {number}"))
        go(1000)
    # Two calls may be in flight to one host before the first failure is known.
    assert len(bad.asked) <= 2 * 3
    health = go.parts.store.tokens.health()
    assert [(one.kept, one.pending, one.last_error) for one in health] == [(0, 3, "down")]


def test_what_piled_up_comes_in_bits(world, local, monkeypatch):
    monkeypatch.setattr(tokens, "AT_ONCE", 3)
    authority = FakeAuthority(local)
    go = world(authority, not_before=False)
    go.parts = replaced(go.parts, authorities=())
    for number in range(5):
        go.add(bare(1, f"batch {number}"))
        go.parts.store.tokens.intend(1 + number, [authority.url], go.clock.now() + 10**4)
        go(1)
    go.parts = replaced(go.parts, authorities=(authority,))
    go.parts.store.tokens.bring_forward(go.clock.now(), go.clock.now())
    go()
    assert len(authority.asked) == 3
    go()
    assert len(set(authority.asked)) == 5


def test_a_block_that_a_reorg_replaced_is_not_signed_for(world):
    go = world()
    go.add(bare(1))
    go()
    height = go.parts.store.batches.get(1).not_before_height
    go.chain.reorg(len(go.chain.headers) - height)
    anchor(go)
    payload, witnessed = claims(go)
    assert "not_before" not in payload
    assert witnessed.not_before is None


def test_a_block_is_carried_only_when_the_witnesses_agree(tmp_path):
    one, two = FakeChain("own headers"), FakeChain("bitcoin node")
    two.reorg(20)
    parts = make_parts(tmp_path, headers=[one, two], not_before=True)
    go = Passes(parts)
    go.add(bare(1, "disagreed"))
    go()
    assert parts.store.batches.get(1).not_before_height is None
    two.fail_with = NetworkError("away")
    go.add(bare(1, "one is away"))
    go(1000)
    assert parts.store.batches.get(2).not_before_height == len(one.headers) - 6
    one.fail_with = NetworkError("away")
    go.add(bare(1, "nobody"))
    go(1000)
    assert parts.store.batches.get(3).not_before_height is None
    parts.store.close()


def test_a_young_chain_has_no_block_to_carry(world):
    go = world(chain=FakeChain(height=5))
    go.add(bare(1))
    go()
    assert go.parts.store.batches.get(1).not_before_height is None


def test_nobody_is_asked_for_a_block_when_nothing_waits(world):
    go = world()
    go.add(bare(1))
    go()
    refreshed = go.chain.refreshed
    go(60, 5)
    assert go.chain.refreshed == refreshed


def test_what_a_clock_that_ran_ahead_put_off_comes_forward(world, local):
    authority = FakeAuthority(local)
    authority.fail_with = NetworkError("down")
    go = world(authority)
    go.add(bare(1))
    go(10 * 365 * 86_400)
    authority.fail_with = None
    go(-10 * 365 * 86_400 + 61)
    assert go.parts.store.tokens.of_batch(1)[0].raw is not None


def test_the_payload_is_json_of_the_strict_profile(world, local):
    go = world(FakeAuthority(local))
    go.add(bare(1))
    go()
    anchor(go)
    payload, _ = claims(go)
    assert json.loads(json.dumps(payload)) == payload
    assert set(payload["rfc3161"][0]) == {"url", "token_b64", "commitment", "time"}
    assert set(payload["not_before"]) == {"block_height", "block_hash"}
