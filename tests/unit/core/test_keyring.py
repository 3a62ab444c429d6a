"""Which signatures are believed: the pure half of the keyring."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.key_document import from_document, to_document
from anchord.core.keyring import (
    REGISTRY_KEY,
    PublicKey,
    fingerprint,
    fingerprint_b32,
    make_keyring,
)
from anchord.errors import RefusedError, SignatureError

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = PublicKey(
    key_id="example-1",
    public_key=PRIVATE.public_key().public_bytes_raw(),
    signer_id="example.org",
    valid_from=1000,
    valid_until=2000,
    own=True,
    active=True,
)
DIGEST = bytes(32)
SIGNATURE = PRIVATE.sign(DIGEST)


def signatures(shared_data: Path) -> list[tuple[bytes, bytes]]:
    found = json.loads((shared_data / "pith-signatures.json").read_bytes())["signatures"]
    return [
        (bytes.fromhex(one["canonical_sha256"]), base64.b64decode(one["signature_b64"]))
        for one in found
    ]


@pytest.mark.shared_data
def test_the_seven_real_signatures_of_the_registry_verify(shared_data):
    ring = make_keyring([REGISTRY_KEY])
    pairs = signatures(shared_data)
    assert len(pairs) == 7
    for digest, signature in pairs:
        ring.verify("pith-v1-2026-05", digest, signature, 1_780_000_000, "record")


@pytest.mark.shared_data
def test_any_flipped_bit_in_a_real_signature_or_digest_fails(shared_data):
    ring = make_keyring([REGISTRY_KEY])
    digest, signature = signatures(shared_data)[0]
    for bit in range(0, 512, 37):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SignatureError):
            ring.verify("pith-v1-2026-05", digest, bytes(flipped), 0, "record")
        other = bytearray(digest)
        other[bit // 16] ^= 1 << bit % 8
        with pytest.raises(SignatureError):
            ring.verify("pith-v1-2026-05", bytes(other), signature, 0, "record")


@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["pith-signatures.json", "pith-mirrors.json"])
def test_the_published_key_document_is_the_key_we_ship(shared_data, name):
    value = json.loads((shared_data / name).read_bytes())
    document = value if "public_key" in value else value["mirrors"][0]
    key = from_document(document, ("record", "graph"))
    assert key.public_key == REGISTRY_KEY.public_key
    assert key.key_id == REGISTRY_KEY.key_id
    assert fingerprint(key.public_key) == "8d4b5ee74e4693bcd1df2446408b0d54"
    assert fingerprint_b32(key.public_key) == "RVFV5Z2OI2J3ZUO7ERDEBCYNKS"


REFUSALS = {
    "unknown key": ("nobody", DIGEST, SIGNATURE, 1500, "timestamp", "not in the keyring"),
    "other target": ("example-1", DIGEST, SIGNATURE, 1500, "record", "not record"),
    "too early": ("example-1", DIGEST, SIGNATURE, 999, "timestamp", "not yet"),
    "too late": ("example-1", DIGEST, SIGNATURE, 2001, "timestamp", "was valid until"),
    "other digest": ("example-1", b"\1" * 32, SIGNATURE, 1500, "timestamp", "was not made by"),
    "short digest": ("example-1", b"", SIGNATURE, 1500, "timestamp", "32 bytes"),
    "short signature": ("example-1", DIGEST, SIGNATURE[:-1], 1500, "timestamp", "of 64"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_signature_counts_only_where_all_obligations_hold(case):
    key_id, digest, signature, at, target, words = REFUSALS[case]
    with pytest.raises(SignatureError, match=words):
        make_keyring([KEY]).verify(key_id, digest, signature, at, target)


@pytest.mark.parametrize("at", [1000, 1500, 2000])
def test_the_window_includes_both_its_ends(at):
    make_keyring([KEY]).verify("example-1", DIGEST, SIGNATURE, at, "storage")


def test_a_revoked_key_keeps_what_it_signed_before():
    revoked = msgspec.structs.replace(KEY, revoked_at=1400, revocation_reason="laptop stolen")
    ring = make_keyring([revoked])
    ring.verify("example-1", DIGEST, SIGNATURE, 1400, "timestamp")
    with pytest.raises(SignatureError, match=r"revoked .*laptop stolen"):
        ring.verify("example-1", DIGEST, SIGNATURE, 1401, "timestamp")


def test_a_star_permits_every_target():
    ring = make_keyring([msgspec.structs.replace(KEY, targets=("*",))])
    ring.verify("example-1", DIGEST, SIGNATURE, 1500, "anything")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=64, max_size=64))
def test_random_signatures_raise_only_signature_errors(raw, signature):
    ring = make_keyring([msgspec.structs.replace(KEY, public_key=raw)])
    with pytest.raises(SignatureError):
        ring.verify("example-1", DIGEST, signature, 1500, "timestamp")


def test_one_key_may_not_stand_under_two_names():
    twin = msgspec.structs.replace(KEY, key_id="example-2", active=False)
    with pytest.raises(RefusedError, match="are the same key"):
        make_keyring([KEY, twin])
    with pytest.raises(RefusedError, match="appears twice"):
        make_keyring([KEY, KEY])


def test_two_keys_may_not_be_active():
    other = msgspec.structs.replace(KEY, key_id="example-2", public_key=bytes(32))
    with pytest.raises(RefusedError, match="all active"):
        make_keyring([KEY, other])


def test_a_key_document_reads_back_as_the_foreign_key():
    revoked = msgspec.structs.replace(KEY, revoked_at=1400, revocation_reason="lost")
    again = from_document(to_document(revoked))
    assert again == msgspec.structs.replace(revoked, own=False, active=False)


BAD_DOCUMENTS = {
    "not an object": ([], "expected a public key document"),
    "no key": ({"key_id": "a"}, "expected a public key document"),
    "other algorithm": ({"algorithm": "rsa"}, "only ed25519/raw"),
    "other format": ({"format": "pem"}, "only ed25519/raw"),
    "not base64": ({"public_key_b64": "!!"}, "not base64"),
    "short": ({"public_key_b64": "AAAA"}, "expected 32 bytes"),
    "other fingerprint": ({"fingerprint_sha256_hex": "00" * 16}, "do not trust"),
    "other b32": ({"fingerprint_sha256_b32_first128bits": "A" * 26}, "do not trust"),
    "no targets": ({"targets": []}, "does not say what it signs"),
    "no zone": ({"valid_from": "2026-01-01T00:00:00"}, "time zone"),
    "no moment": ({"valid_until": "tomorrow"}, "expected YYYY"),
    "empty name": ({"key_id": ""}, "empty key_id"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_a_bad_key_document_is_refused_with_the_reason(case):
    change, words = BAD_DOCUMENTS[case]
    whole = isinstance(change, list) or case == "no key"
    value = change if whole else to_document(KEY) | change
    with pytest.raises(RefusedError, match=words):
        from_document(value)
