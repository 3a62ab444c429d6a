"""The merge: a function of the set of events, in which nobody speaks for anybody else."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.crowd import (
    CONTRADICTIONS,
    KEYRING,
    KEYS,
    NUMBER,
    OTHER,
    OWN,
    POWERLESS,
    RECORD,
    STRANGER,
    VALID,
    citation,
    stated,
)
from support.evidence import body_of, sign, stored_event
from support.parties import START, FakeSigner

from anchord.core.bundle_text import render_bundle
from anchord.core.event import CAPTURED
from anchord.core.key_document import to_document
from anchord.core.keyring import make_keyring
from anchord.core.merge import Merged, merge
from anchord.core.state import completeness, state_bytes, state_of
from anchord.core.trust import Keys
from anchord.errors import DigestMismatchError

AT = "2024-08-01T12:00:00Z"
ALL = {**VALID, **POWERLESS}
names = st.lists(st.sampled_from(sorted(ALL)), max_size=12)
valid_names = st.lists(st.sampled_from(sorted(VALID)), max_size=10)
powerless_names = st.lists(st.sampled_from(sorted(POWERLESS)), max_size=8)
slow = settings(max_examples=60, deadline=None, derandomize=True)


def merged(*events, keys=KEYS) -> Merged:
    return merge(RECORD.digest, NUMBER, RECORD.canonical, events, keys)


def of(*chosen) -> Merged:
    return merged(*(ALL[name] for name in chosen))


def bundle(*chosen, documents=()) -> bytes:
    events = [json.dumps(ALL[name]).encode() for name in chosen]
    return render_bundle(RECORD, AT, events, [to_document(OWN.public())], documents)


def said(found: Merged):
    """What the signed events of the keyring's signers come to."""
    signed = [one.event for one in found.valid if one.signed]
    return (signed, found.withdrawn, found.equivocations, found.anchored, found.stored,
            [one.event for one in found.standing], completeness(found))  # fmt: skip


# ------------------------------------------------------------------ one state for one set


@slow
@given(chosen=names, data=st.data())
def test_neither_order_nor_repetition_matters(chosen, data):
    again = data.draw(st.permutations([*chosen, *chosen[:3]]))
    assert of(*chosen) == of(*again)


@slow
@given(chosen=names, data=st.data())
def test_whatever_way_events_were_put_together_the_bytes_are_the_same(chosen, data):
    """Commutative and associative: a tree of merged bundles in any shape is the whole."""
    whole = bundle(*chosen)
    cut = data.draw(st.integers(0, len(chosen)))
    other = data.draw(st.integers(cut, len(chosen)))
    a, b, c = bundle(*chosen[:cut]), bundle(*chosen[cut:other]), bundle(*chosen[other:])
    left = bundle(documents=[bundle(documents=[a, b]), c])
    right = bundle(documents=[bundle(documents=[c, b]), a])
    assert left == right == whole
    assert bundle(documents=[whole, a, whole]) == whole
    assert state_bytes(left, KEYS) == state_bytes(whole, KEYS)


@slow
@given(chosen=valid_names, more=powerless_names)
def test_what_has_no_power_changes_nothing_of_what_the_valid_ones_say(chosen, more):
    before, after = of(*chosen), of(*chosen, *more)
    quiet = {"a rival withdraws", "a withdrawal of nothing"}
    kept = [one.event for one in after.valid if one.signed]
    assert [one.event for one in before.valid if one.signed] == [
        event for event in kept if event not in [POWERLESS[name] for name in quiet]
    ]
    assert said(before)[1:5] == said(after)[1:5]
    assert completeness(before) == completeness(after)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(name=st.sampled_from(sorted(VALID)), value=json_values, data=st.data())
def test_a_changed_field_is_never_believed(name, value, data):
    """Nor does it raise, whatever stands there; what nobody signed is at most counted."""
    event = json.loads(json.dumps(VALID[name]))
    holder = data.draw(st.sampled_from([event, event["payload"], event["signer"]]))
    key = data.draw(st.sampled_from(sorted(holder)))
    holder[key] = value
    found = merged(event)
    if json.dumps(event, sort_keys=True) != json.dumps(VALID[name], sort_keys=True):
        assert not any(one.signed for one in found.valid)
    assert found.event_count == 1


@settings(max_examples=80, deadline=None, derandomize=True)
@given(event=st.dictionaries(
    st.sampled_from(["event_type", "event_id", "target", "payload", "created_at", "signer",
                     "signature_b64", "subject_pith_number", "subject_record_id", "x"]),
    json_values))  # fmt: skip
def test_whatever_stands_among_the_events_the_others_say_the_same(event):
    assert said(merged(VALID["anchored"], event)) == said(of("anchored"))


@slow
@given(posed=st.sampled_from(sorted(VALID)), chosen=valid_names)
def test_nobody_without_the_key_advances_or_withdraws_anything(posed, chosen):
    """A stranger signs again, under everybody's name and under his own, whatever they signed."""
    body = {k: v for k, v in VALID[posed].items() if k not in ("event_id", "signature_b64")}
    own = {**body, "signer": {**body["signer"], "key_id": STRANGER.key_id}}
    dated = [{**one, "created_at": "2024-08-01T13:00:00Z"} for one in (body, own)]
    forged = [sign(one, STRANGER) for one in (own, *dated) if _signable(one)]
    before = of(*chosen)
    after = merged(*(VALID[name] for name in chosen), *forged)
    assert said(before) == said(after)
    assert completeness(merged(*forged)) == completeness(merged())


def _signable(body):
    return "nodes" not in str(body)


def test_each_event_is_counted_once_in_one_place():
    found = of(*ALL, *ALL)
    assert found.event_count == len({json.dumps(one, sort_keys=True) for one in ALL.values()})


# ------------------------------------------------------------------ valid or not, and why


@pytest.mark.parametrize("name", sorted(VALID))
def test_each_right_event_is_valid_by_itself(name):
    found = of(name)
    assert (len(found.valid), found.invalid, found.unverified) == (1, (), ())
    assert found.valid[0].signed == ("signature_b64" in VALID[name])


UNVERIFIED = {
    "unknown key": "is not known",
    "unknown key withdraws": "is not known",
    "note": "no rule",
    "graph by another signer": "other.example.org",
    "graph of no day": "yesterday",
    "forged receipt": "is not in the keyring",
}
REASONS = {
    "payload changed": "it was changed",
    "payload retyped": "float",
    "signed by a thief": "was not made by key",
    "signature of another": "was not made by key",
    "of another record": "not about this record",
    "proof of another record": "the proof is about",
    "only pending": "does not lead there",
    "another height": "does not lead there",
    "revoked": "was revoked",
    "expired": "was valid until",
    "not permitted": "may sign author, citation, replication, not storage",
    "claims permission": "not author",
    "wrong target": "expected timestamp",
    "unsigned": "lacks what a signed event has",
    "unsigned withdrawal": "lacks what a signed event has",
    "graph of another": "not about this record",
    "graph by nobody": "has the fingerprint None",
    "receipt of another": "was not made by key",
    "record changed": "was changed",
    "bad relation": "expected one of supports",
    "submits nothing": "lacks a field",
}


@pytest.mark.parametrize("name", sorted(REASONS))
def test_each_wrong_event_is_listed_with_its_reason(name):
    found = of(name)
    doubted = found.invalid
    assert [one.event_id for one in doubted] == [POWERLESS[name].get("event_id", "")]
    assert REASONS[name] in doubted[0].reason
    assert found.valid == ()


@pytest.mark.parametrize("name", sorted(UNVERIFIED))
def test_what_cannot_be_checked_is_kept_and_is_no_lie(name):
    found = of(name)
    assert (found.valid, found.invalid) == ((), ())
    assert UNVERIFIED[name] in found.unverified[0].reason


def test_a_copied_id_is_that_of_the_event_that_recomputes():
    found = of("under a copied id", "anchored", "payload changed", "signature of another")
    assert [one.proved.event_id for one in found.valid] == [VALID["anchored"]["event_id"]]
    assert {one.event_id for one in found.invalid} == {VALID["anchored"]["event_id"]}
    assert len(found.invalid) == 3
    assert of("under a copied id").invalid == ()


def test_a_key_that_only_the_evidence_states_makes_nothing_valid():
    keys = Keys(KEYRING, (), [stated(STRANGER)])
    found = merged(POWERLESS["unknown key"], POWERLESS["unknown key withdraws"], keys=keys)
    assert (found.valid, found.invalid) == ((), ())
    assert all("only the evidence states it" in one.reason for one in found.unverified)


def test_a_key_that_was_given_counts_like_one_of_the_keyring():
    found = merged(POWERLESS["unknown key"], keys=Keys(KEYRING, [stated(STRANGER)]))
    assert found.anchored is not None


def test_canonical_bytes_of_another_record_are_refused():
    with pytest.raises(DigestMismatchError, match="not of"):
        merge(RECORD.digest, NUMBER, OTHER.canonical, [], KEYS)


# ------------------------------------------------------------------ what stands


def test_the_earliest_block_stands_for_the_record():
    found = of("anchored later", "anchored")
    assert found.anchored is not None
    assert found.anchored.event_id == VALID["anchored"]["event_id"]


def test_a_withdrawn_event_stands_for_nothing():
    found = of("anchored", "withdraws anchored")
    assert found.anchored is None
    assert list(found.withdrawn) == [VALID["anchored"]["event_id"]]
    assert len(found.valid) == 2


def test_a_withdrawal_that_comes_first_waits_for_its_event():
    alone = of("withdraws capture")
    assert (len(alone.valid), alone.withdrawn) == (1, {})
    assert of("withdraws capture", "capture").stored == ()


def test_a_withdrawal_cannot_be_taken_back():
    gone = VALID["withdraws anchored"]
    payload = {"withdraws": gone["event_id"], "reason": "x"}
    back = sign(body_of(RECORD, OWN, payload, event_type="facet_withdrawn"), OWN)
    assert merged(VALID["anchored"], gone, back).anchored is None


PAIRS = {
    "anchored elsewhere": "anchored",
    "other content": "capture",
    "other file": "item",
    "refutes": "supports",
}


@pytest.mark.parametrize("second", CONTRADICTIONS)
def test_of_two_statements_that_cannot_both_be_true_neither_counts(second):
    first = PAIRS[second]
    found = of(first, second)
    assert len(found.valid) == 2
    assert found.standing == ()
    ids = tuple(sorted(ALL[name]["event_id"] for name in (first, second)))
    assert {one.event_ids for one in found.equivocations} == {ids}
    assert completeness(found) == completeness(merged())


def test_a_contradiction_ends_when_its_signer_takes_one_back():
    found = of("anchored", "anchored elsewhere", "withdraws anchored")
    assert found.equivocations == ()
    assert found.anchored is not None
    assert found.anchored.event_id == VALID["anchored elsewhere"]["event_id"]
    assert of("anchored", "anchored elsewhere", "withdraws anchored",
              "withdraws anchored elsewhere").anchored is None  # fmt: skip


OLD, OLDER = FakeSigner("old-2024"), FakeSigner("older-2024")
"""Keys of the signer that were revoked, later than what is signed with them says."""


def with_revoked(*events) -> Merged:
    gone = [key.public(revoked_at=START + 86_400) for key in (OLD, OLDER)]
    return merged(*events, keys=Keys(make_keyring([*KEYRING, *gone])))


def test_a_stolen_key_that_was_revoked_contradicts_nothing_away():
    forged = stored_event(RECORD, OLD, sha256="00" * 32)
    found = with_revoked(VALID["capture"], forged)
    assert [one.event_id for one in found.stored] == [VALID["capture"]["event_id"]]
    (twice,) = found.equivocations
    assert set(twice.event_ids) == {VALID["capture"]["event_id"], forged["event_id"]}
    assert twice.fallen == (forged["event_id"],)
    assert len(found.valid) == 2, "both are listed and counted"


def test_what_a_revoked_key_says_stands_where_nothing_contradicts_it():
    alone = stored_event(RECORD, OLD, sha256="00" * 32)
    assert [one.event_id for one in with_revoked(alone).stored] == [alone["event_id"]]


def test_of_two_revoked_keys_neither_is_believed_against_the_other():
    one, other = (
        stored_event(RECORD, key, sha256=n * 32) for key, n in ((OLD, "00"), (OLDER, "11"))
    )
    found = with_revoked(one, other)
    assert found.stored == ()
    assert found.equivocations[0].fallen == found.equivocations[0].event_ids


def test_two_signers_may_say_two_things():
    found = of("anchored", "anchored by a rival")
    assert (found.equivocations, len(found.standing)) == ((), 2)


def test_citations_of_two_works_contradict_nothing():
    other = citation("refutes", doi="10.1000/183")
    assert len(merged(VALID["supports"], other).standing) == 2


def test_a_capture_that_says_the_same_twice_contradicts_nothing():
    later = body_of(RECORD, OWN, VALID["capture"]["payload"], event_type=CAPTURED,
                    target="storage", created_at="2024-08-02T00:00:00Z")  # fmt: skip
    assert len(merged(VALID["capture"], sign(later, OWN)).stored) == 2


# ------------------------------------------------------------------ the state


def test_a_state_says_what_was_merged():
    state = state_of(bundle(*ALL), KEYS)
    found = of(*ALL)
    assert (state["event_count"], state["valid_event_count"], state["invalid_event_count"]) == (
        found.event_count, len(found.valid), len(found.invalid),
    )  # fmt: skip
    assert state["event_count"] == sum(
        state[f"{name}_event_count"] for name in ("valid", "invalid", "unverified")
    )
    assert state["equivocation_count"] == len(state["equivocations"])
    assert len(state["invalid_events"]) == state["invalid_event_count"]
    current = state["current"]
    assert [one["event_id"] for one in current["graph_snapshots"]] == ["sha256:" + "b2" * 32]
    assert set(current["citations"]) == {"extends"}
    assert [one["payload"]["kind"] for one in current["replications"]] == ["replication"]
    assert [one["event_type"] for one in current["other"]] == ["blessing"]
    assert current["withdrawn"][0]["reason"] == "reorg"
    assert "proof_b64" not in json.dumps(state)


def test_completeness_has_the_words_of_the_record_page():
    nothing = {"attested": "not attested", "anchored": "not anchored", "stored": "not stored",
               "refs": "refs pending"}  # fmt: skip
    assert completeness(merged()) == nothing
    assert completeness(of("submitted")) == {**nothing, "anchored": "submitted"}
    assert completeness(of("submitted", "anchored", "item", "author", "extends")) == {
        "attested": "attested", "anchored": "anchored", "stored": "stored", "refs": "refs",
    }  # fmt: skip


def test_state_bytes_are_canonical_and_one_line():
    raw = state_bytes(bundle("anchored", "graph"), KEYS)
    text = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert raw == text.encode() + b"\n"


# ------------------------------------------------------------------ one event, two signatures

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE = (
    15112221349535400772501151409588531511454012693041857206046113283949847762202,
    4 * pow(5, P - 2, P) % P,
)


def times(count, point):
    """Multiply a point of edwards25519 (RFC 8032, 5.1.4, in affine coordinates)."""
    found = (0, 1)
    while count:
        if count & 1:
            found = plus(found, point)
        point, count = plus(point, point), count >> 1
    return found


def plus(one, other):
    (a, b), (c, d) = one, other
    k = D * a * b * c * d % P
    return (a * d + b * c) * pow(1 + k, P - 2, P) % P, (b * d + a * c) * pow(1 - k, P - 2, P) % P


def signed_otherwise(event, signer):
    """Sign an event again with another nonce, as only the holder of the key can."""
    seed = hashlib.sha512(signer._private.private_bytes_raw()).digest()[:32]
    secret = int.from_bytes(seed, "little") & (2**254 - 8) | 2**254
    x, y = times(4711, BASE)
    r = (y | (x & 1) << 255).to_bytes(32, "little")
    digest = bytes.fromhex(event["event_id"].removeprefix("sha256:"))
    h = int.from_bytes(hashlib.sha512(r + signer.public_key + digest).digest(), "little")
    raw = r + ((4711 + h * secret) % L).to_bytes(32, "little")
    return {**event, "signature_b64": base64.b64encode(raw).decode()}


def test_an_event_that_was_signed_twice_is_one_event():
    again = signed_otherwise(VALID["anchored"], OWN)
    assert again["signature_b64"] != VALID["anchored"]["signature_b64"]
    assert merged(again).anchored is not None
    found, turned = merged(VALID["anchored"], again), merged(again, VALID["anchored"])
    assert found == turned
    assert (len(found.valid), len(found.standing)) == (1, 1)
    assert "a second time" in found.invalid[0].reason
