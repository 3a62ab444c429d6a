"""Proofs and headers: what is claimed, what a header confirms, and every way to be wrong."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.evidence import mined, waiting
from support.parties import FakeChain

from anchord.core.moment import utc
from anchord.core.proof import Found, parse_detached
from anchord.core.verify import Claims, check_claims, check_depth, confirm, read_proof
from anchord.errors import AnchordError, AttestationError, DigestMismatchError, RefusedError

DIGEST = hashlib.sha256(b"a record").digest()
CHAIN = FakeChain(height=3)
OTS = mined(DIGEST, CHAIN)
(FOUND,) = read_proof(OTS).bitcoin
HEADER = CHAIN.headers[FOUND.attestation.height]
TIP = len(CHAIN.headers) - 1


def test_a_path_is_confirmed_by_the_header_that_carries_its_end():
    block = confirm(FOUND, {"own headers": HEADER}, TIP)
    assert (block.height, block.confirmations) == (4, 6)
    assert block.merkle_root[::-1] == FOUND.message
    check_depth(block, 6)
    with pytest.raises(AttestationError):
        check_depth(block, 7)


def test_no_header_is_a_failure():
    with pytest.raises(AttestationError):
        confirm(FOUND, {}, TIP)


def test_witnesses_that_disagree_are_a_failure():
    with pytest.raises(AttestationError, match="disagree"):
        confirm(FOUND, {"own headers": HEADER, "bitcoin node": CHAIN.headers[1]}, TIP)


def test_another_blocks_header_is_a_failure():
    with pytest.raises(AttestationError):
        confirm(FOUND, {"own headers": CHAIN.headers[1]}, TIP)


def test_pending_and_other_attestations_are_confirmed_by_nothing():
    (pending,) = read_proof(waiting(DIGEST)).pending
    with pytest.raises(AttestationError):
        confirm(pending, {"own headers": HEADER}, TIP)


def test_a_message_of_another_length_is_no_merkle_root():
    longer = Found(FOUND.message + b"\x00", FOUND.attestation)
    with pytest.raises(AttestationError):
        confirm(longer, {"own headers": HEADER}, TIP)


def test_what_an_event_says_of_its_block_must_be_so():
    block = confirm(FOUND, {"own headers": HEADER}, TIP)
    right = Claims(
        chain="bitcoin",
        height=4,
        hash=block.hash.hex(),
        time=utc(block.time),
        confirmations=6,
        signed_at=block.time - 7200,
    )
    check_claims(right, block)
    wrongs = ({"hash": "00" * 32}, {"time": utc(block.time + 1)}, {"signed_at": block.time - 7201})
    for wrong in wrongs:
        with pytest.raises(AttestationError):
            check_claims(msgspec.structs.replace(right, **wrong), block)


def test_a_proof_of_something_else_is_refused():
    assert read_proof(OTS, DIGEST).bitcoin == (FOUND,)
    with pytest.raises(DigestMismatchError):
        read_proof(OTS, hashlib.sha256(b"another").digest())
    with pytest.raises(DigestMismatchError):
        read_proof(OTS, DIGEST, "sha1")


def test_a_calendar_whose_path_is_there_owes_nothing():
    assert read_proof(waiting(DIGEST)).pending
    assert not read_proof(OTS).pending


def prove_all(raw):
    proof = read_proof(raw, DIGEST)
    if not proof.bitcoin:
        raise AttestationError("nothing attests")
    for found in proof.bitcoin:
        height = found.attestation.height
        headers = {"own headers": CHAIN.headers[height]} if height <= TIP else {}
        confirm(found, headers, TIP)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(bit=st.integers(0, 8 * len(OTS) - 1))
def test_any_flipped_bit_of_a_proof_fails(bit):
    raw = bytearray(OTS)
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(AnchordError):
        prove_all(bytes(raw))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(raw=st.binary(max_size=200))
def test_random_bytes_raise_only_refusals(raw):
    for text in (raw, OTS[:65] + raw):
        try:
            read_proof(text)
        except (RefusedError, AttestationError):
            continue
        assert parse_detached(text).digest == DIGEST


@pytest.mark.shared_data
def test_real_proofs_are_confirmed_by_real_headers_and_the_bad_one_is_not(shared_data):
    folder = shared_data / "ots-vectors"
    headers = {
        one["height"]: bytes.fromhex(one["header_hex"])
        for one in json.loads((folder / "headers.json").read_bytes())["headers"]
    }
    seen = []
    for vector in json.loads((folder / "index.json").read_bytes())["vectors"]:
        for check in vector.get("bitcoin_checks", []):
            if check["height"] not in headers:
                continue
            proof = read_proof((folder / vector["name"]).read_bytes())
            (found,) = [f for f in proof.bitcoin if f.attestation.height == check["height"]]
            seen.append(check["library_result"] == "ok")
            try:
                block = confirm(found, {"own headers": headers[check["height"]]}, 900_000)
                assert check["library_result"] == "ok"
                assert block.time == check["time"]
            except AttestationError:
                assert check["library_result"] != "ok"
    assert seen == [True, True, False]


@pytest.mark.shared_data
def test_the_real_calendars_regtest_proofs_are_confirmed_by_its_chain(shared_data):
    folder = shared_data / "ots-vectors" / "regtest"
    headers = json.loads((folder / "headers.json").read_bytes())["headers"]
    names = sorted(folder.glob("*.ots"))
    assert len(names) == 4
    for name in names:
        digest = hashlib.sha256(name.with_suffix("").read_bytes()).digest()
        proof = read_proof(name.read_bytes(), digest)
        assert proof.bitcoin
        for found in proof.bitcoin:
            raw = bytes.fromhex(headers[str(found.attestation.height)])
            assert confirm(found, {"own headers": raw}, 129).height == found.attestation.height
