"""Signed events and receipts: every obligation, broken one at a time, fails."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from support.evidence import anchored_payload, body_of, mined, sign, waiting, withdrawal
from support.parties import START, FakeChain, FakeSigner
from support.workplace import sample

from anchord.core.event import WITHDRAWN
from anchord.core.keyring import REGISTRY_KEY, make_keyring
from anchord.core.moment import seconds, utc
from anchord.core.receipt import check_receipt
from anchord.core.trust import Keys, Trust
from anchord.core.verify_event import read_event, withdrawn
from anchord.errors import (
    AttestationError,
    DigestMismatchError,
    RefusedError,
    SignatureError,
    VerificationError,
)

RECORD, OTHER = sample(1), sample(2)
NUMBER = "pith:2001:UFMYT6GU4RRBK3Y42U62UU2RE5"
SIGNER, STRANGER = FakeSigner(), FakeSigner("stranger", "elsewhere.example.org")
CHAIN = FakeChain(height=3)
OTS = mined(RECORD.digest, CHAIN)
PAYLOAD = anchored_payload(OTS, CHAIN)
KEYS = Keys(SIGNER.keyring())


def prove(event, keys=KEYS):
    return read_event(event, RECORD.digest, NUMBER, keys)


def made(payload=None, **more):
    return sign(body_of(RECORD, SIGNER, {**PAYLOAD, **(payload or {})}, **more), SIGNER)


def test_a_right_event_proves_its_proof_and_its_block():
    found = prove(made())
    assert found.trust is Trust.KEYRING
    assert found.claims is not None
    assert found.claims.height == found.proof.bitcoin[0].attestation.height


def test_an_event_by_record_id_is_about_the_same_record():
    event = made(subject_pith_number=None, subject_record_id="sha256:" + RECORD.digest.hex())
    assert prove(event).trust is Trust.KEYRING


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (DigestMismatchError, {**made(), "created_at": "2024-08-01T12:00:01Z"}),
        (DigestMismatchError, {**made(), "event_id": "sha256:" + "00" * 32}),
        (DigestMismatchError, {**made(), "event_id": made()["event_id"].upper()}),
        (DigestMismatchError, {**made(), "extra": 1}),
        (VerificationError, {k: v for k, v in made().items() if k != "signature_b64"}),
        (VerificationError, {k: v for k, v in made().items() if k != "signer"}),
        (SignatureError, {**made(), "signature_b64": made({"confirmations": 7})["signature_b64"]}),
        (SignatureError, {**made(), "signature_b64": "AAAA"}),
        (SignatureError, {**made(), "signature_b64": made()["signature_b64"][:-3] + "x=="}),
        (DigestMismatchError, made(subject_pith_number="pith:2002:" + "A" * 26)),
        (DigestMismatchError, made(subject_pith_number=NUMBER.replace("2001", "2002"))),
        (VerificationError, made(subject_pith_number=None)),
        (VerificationError, made(subject_record_id="sha256:" + RECORD.digest.hex())),
        (
            DigestMismatchError,
            made(subject_pith_number=None, subject_record_id="sha256:" + "00" * 32),
        ),
        (DigestMismatchError, made({"canonical_sha256": OTHER.digest.hex()})),
        (VerificationError, made({"canonical_sha256": None, "proof_b64": 3})),
        (DigestMismatchError, made({"protocol": "other"})),
        (DigestMismatchError, made({"proof_sha256": "00" * 32})),
        (AttestationError, made({"block_height": PAYLOAD["block_height"] + 1})),
        (AttestationError, made({"block_merkle_root": "00" * 32})),
        (AttestationError, made({"block_merkle_root": "not hex"})),
        (VerificationError, made({"block_height": "101"})),
        (VerificationError, made(created_at="2024-08-01 12:00:00")),
        (SignatureError, made(target="record")),
        (SignatureError, made(signer={**made()["signer"], "public_key_fingerprint": "00" * 16})),
        (SignatureError, made(signer={**made()["signer"], "key_id": "stranger"})),
    ],
)
def test_whatever_is_wrong_fails(error, event):
    keys = Keys(SIGNER.keyring(STRANGER.public()))
    with pytest.raises(error):
        prove(event, keys)


@pytest.mark.parametrize("raw", [mined(OTHER.digest, CHAIN), waiting(RECORD.digest), b"junk"])
def test_the_proof_inside_must_be_of_this_record_and_lead_to_the_block(raw):
    inside = {
        "proof_sha256": hashlib.sha256(raw).hexdigest(),
        "proof_b64": base64.b64encode(raw).decode(),
    }
    with pytest.raises((VerificationError, RefusedError)):
        prove(made(inside))


@pytest.mark.parametrize(
    "limits", [{"valid_from": START + 1}, {"valid_until": START - 1}, {"revoked_at": START - 1}]
)
def test_a_key_counts_only_in_its_time(limits):
    with pytest.raises(SignatureError):
        prove(made(), Keys(make_keyring([SIGNER.public(**limits)])))


def test_an_unknown_key_leaves_the_event_unchecked():
    found = prove(made(), Keys(make_keyring([REGISTRY_KEY])))
    assert found.trust is None
    assert "not known" in found.reason


def test_a_key_the_evidence_itself_states_is_only_claimed():
    found = prove(made(), Keys(make_keyring([REGISTRY_KEY]), (), [SIGNER.public()]))
    assert found.trust is Trust.CLAIMED
    found = prove(made(), Keys(make_keyring([]), [SIGNER.public()], [SIGNER.public()]))
    assert found.trust is Trust.GIVEN


def test_one_key_id_never_stands_for_two_keys():
    forged = STRANGER.public(key_id=SIGNER.key_id)
    with pytest.raises(SignatureError, match="forged"):
        Keys(SIGNER.keyring(), [forged])


def test_a_key_that_evidence_states_stands_in_the_way_of_none_that_is_trusted():
    forged = STRANGER.public(key_id=SIGNER.key_id)
    for claimed in ([forged], [SIGNER.public(), forged], [forged, SIGNER.public()]):
        keys = Keys(SIGNER.keyring(), (), claimed)
        assert prove(made(), keys).trust is Trust.KEYRING
        assert "forged" in keys.disputed[0]
    two = Keys(make_keyring([]), (), [SIGNER.public(), forged])
    assert two.find(SIGNER.key_id) is None
    assert prove(made(), two).trust is None


def test_a_key_that_evidence_states_refutes_nothing():
    wrong = STRANGER.public(key_id=SIGNER.key_id)
    late = SIGNER.public(valid_from=2**31)
    for key in (wrong, late, SIGNER.public(targets=("record",)), SIGNER.public(signer_id="x")):
        found = prove(made(), Keys(make_keyring([]), (), [key]))
        assert (found.trust, "only the evidence" in found.reason) == (None, True)


def test_a_second_name_of_a_key_does_not_outlive_its_revocation():
    revoked = SIGNER.public(revoked_at=START - 1)
    renamed = SIGNER.public(key_id="again")
    for keys in (
        Keys(make_keyring([revoked]), [renamed]),
        Keys(make_keyring([renamed]), [revoked]),
    ):
        assert {key.revoked_at for key, _ in keys} == {START - 1}


def test_events_of_others_are_shown_and_prove_nothing():
    event = {"event_type": "citation", "event_id": "sha256:1", "payload": {"relation": "cites"}}
    found = prove(event)
    assert (found.trust, found.proof) == (None, None)
    with pytest.raises(DigestMismatchError):
        prove({**event, "payload": {"canonical_sha256": OTHER.digest.hex()}})


def test_a_type_of_ours_without_a_signature_fails():
    for event_type in ("timestamp_anchored", "facet_withdrawn", "item_stored"):
        with pytest.raises(VerificationError):
            prove({"event_type": event_type, "event_id": "sha256:1"})


def test_the_same_signer_withdraws():
    event = made()
    both = [prove(event), prove(withdrawal(RECORD, SIGNER, event["event_id"]))]
    assert withdrawn(both) == {both[0].event_id: both[1].event_id}
    assert withdrawn(both[:1]) == {}


@pytest.mark.parametrize(("before", "gone"), [(7_200, True), (7_201, False), (-86_400, True)])
def test_nobody_withdraws_what_he_could_not_know_yet(before, gone):
    """Else a key of the signer that was revoked long ago could take back all that came since."""
    event = made()
    made_at = seconds(event["created_at"])
    payload = {"withdraws": event["event_id"], "reason": "so"}
    body = body_of(RECORD, SIGNER, payload, event_type=WITHDRAWN, created_at=utc(made_at - before))
    both = [prove(event), prove(sign(body, SIGNER))]
    assert bool(withdrawn(both)) == gone


def test_nobody_else_withdraws():
    event = made()
    keys = Keys(SIGNER.keyring(STRANGER.public()))
    both = [prove(event, keys), prove(withdrawal(RECORD, STRANGER, event["event_id"]), keys)]
    assert withdrawn(both) == {}


def test_a_key_that_is_not_trusted_cannot_withdraw_what_a_trusted_one_signed():
    event, mallory = made(), FakeSigner("mallory", SIGNER.signer_id)
    keys = Keys(SIGNER.keyring(), (), [mallory.public()])
    both = [prove(event, keys), prove(withdrawal(RECORD, mallory, event["event_id"]), keys)]
    assert both[1].trust is Trust.CLAIMED
    assert withdrawn(both) == {}


def test_the_examples_of_the_protocol_page_are_proved():
    page = (Path(__file__).parents[3] / "docs/protocol.md").read_text("utf-8")
    events = [
        json.loads(text)
        for text in re.findall(
            r"<!-- example: event-\w+ -->\n+```json\n(.*?)\n```", page, re.DOTALL
        )
    ]
    raw = base64.b64decode("A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=")
    key = SIGNER.public(key_id="example-2026", public_key=raw)
    digest = bytes.fromhex(events[0]["payload"]["canonical_sha256"])
    found = [read_event(event, digest, None, Keys(make_keyring([key]))) for event in events]
    assert [event.event_type for event in found] == [
        "timestamp_submitted",
        "timestamp_anchored",
        "facet_withdrawn",
        "capture_stored",
        "item_stored",
    ]
    assert withdrawn(found) == {found[1].event_id: found[2].event_id}


# ---------------------------------------------------------------------- receipts


@pytest.mark.shared_data
def test_the_registrys_real_signatures_are_receipts_of_its_key(shared_data):
    samples = json.loads((shared_data / "pith-signatures.json").read_bytes())["signatures"]
    keys = Keys(make_keyring([REGISTRY_KEY]))
    assert len(samples) == 7
    for one in samples:
        digest = bytes.fromhex(one["canonical_sha256"])
        receipt = {
            "key_id": "pith-v1-2026-05",
            "algorithm": "ed25519",
            "signed_at": "2026-07-04T16:09:46Z",
            "signature_b64": one["signature_b64"],
            "unknown": [1],
        }
        assert check_receipt(receipt, digest, keys).trust is Trust.KEYRING
        with pytest.raises(SignatureError):
            check_receipt(receipt, hashlib.sha256(digest).digest(), keys)
        with pytest.raises(SignatureError):
            check_receipt({**receipt, "algorithm": "rsa"}, digest, keys)
        with pytest.raises(SignatureError):
            check_receipt({"key_id": "pith-v1-2026-05"}, digest, keys)
        unknown = check_receipt({**receipt, "key_id": "other"}, digest, keys)
        assert unknown.trust is None


@pytest.mark.parametrize("text", ["", "2024-08-01", "2024-08-01T12:00:00+00:00", "x" * 20])
def test_a_moment_is_written_one_way(text):
    with pytest.raises(VerificationError):
        seconds(text)
    assert seconds("2024-08-01T12:00:00Z") == START


def test_an_event_of_a_kind_that_is_no_text_is_carried_as_a_foreign_one():
    for kind in ([], {}, 5, None):
        found = prove({"event_type": kind, "event_id": "x"})
        assert (found.trust, found.event_type) == (None, "")


def test_a_key_signs_only_under_its_signers_name():
    body = body_of(RECORD, STRANGER, PAYLOAD)
    body["signer"]["signer_id"] = SIGNER.signer_id
    keys = Keys(make_keyring([SIGNER.public(), STRANGER.public()]))
    with pytest.raises(SignatureError, match="belongs to"):
        prove(sign(body, STRANGER), keys)


def test_a_block_itself_is_the_first_confirmation():
    assert prove(made({"confirmations": 1})).claims.confirmations == 1
    for count in (0, -1):
        with pytest.raises(AttestationError, match="the first"):
            prove(made({"confirmations": count}))


def test_moments_are_written_one_way():
    for text in ("2024-8-1T12:0:0Z", "\uff12024-08-01T12:00:00Z", "2024-08-01T12:00:00Z\n"):
        with pytest.raises(VerificationError):
            seconds(text)


def test_a_document_from_before_a_revocation_does_not_undo_it():
    revoked = make_keyring([SIGNER.public(revoked_at=START - 1, revocation_reason="stolen")])
    with pytest.raises(SignatureError, match="stolen"):
        prove(made(), Keys(revoked, [SIGNER.public()]))
    with pytest.raises(SignatureError, match="revoked"):
        prove(made(), Keys(SIGNER.keyring(), [SIGNER.public(revoked_at=START - 1)]))
    narrow = make_keyring([SIGNER.public(targets=("record",))])
    with pytest.raises(SignatureError, match="may sign record"):
        prove(made(), Keys(narrow, [SIGNER.public()]))


def test_what_a_bundle_claims_revokes_no_trusted_key():
    claimed = SIGNER.public(revoked_at=START - 1)
    assert prove(made(), Keys(SIGNER.keyring(), (), [claimed])).trust is Trust.KEYRING
