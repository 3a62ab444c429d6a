"""Further witnesses of a timestamp: each must be on the path, and say what it is said to."""

from __future__ import annotations

import base64
from hashlib import sha256

import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpPrepend, OpSHA256
from opentimestamps.core.timestamp import Timestamp
from support.authorities import LocalAuthority
from support.evidence import anchored_payload, body_of, sign
from support.ots_oracle import written_file
from support.parties import FakeChain, FakeSigner
from support.workplace import sample

from anchord.core.header import block_hash
from anchord.core.moment import utc
from anchord.core.not_before import NotBefore, check_header, stem
from anchord.core.proof import parse_detached
from anchord.core.trust import Keys
from anchord.core.verify_event import read_event
from anchord.errors import (
    AttestationError,
    DigestMismatchError,
    SignatureError,
    VerificationError,
)

RECORD = sample(1)
NUMBER = "pith:2001:UFMYT6GU4RRBK3Y42U62UU2RE5"
SIGNER = FakeSigner()
CHAIN = FakeChain(height=20)
OLD = 15
HASH = block_hash(CHAIN.headers[OLD])


def stamped(argument, *, hashed=True, fork=False):
    """Return an `.ots` of the record whose path appends `argument`, and the root behind it.

    Two calendars follow; with `fork` only the first one's path holds the argument.
    """
    start = Timestamp(RECORD.digest)
    node = start.ops.add(OpAppend(bytes(16))).ops.add(OpSHA256())
    root = node if fork else _carrying(node, argument, hashed=hashed)
    ends = []
    for name in (b"alice", b"bob"):
        path = root.ops.add(OpAppend(name)).ops.add(OpSHA256())
        if fork and name == b"alice":
            path = _carrying(path, argument, hashed=hashed)
        ends.append(path)
    ends[0].ops.add(OpSHA256()).attestations.add(
        BitcoinBlockHeaderAttestation(CHAIN.mine(sha256(ends[0].msg).digest()))
    )
    ends[1].attestations.add(PendingAttestation("https://bob.example.org"))
    CHAIN.grow(5)
    return written_file(start), root.msg


def _carrying(node, argument, *, hashed):
    behind = node.ops.add(OpAppend(argument))
    return behind.ops.add(OpSHA256()) if hashed else behind.ops.add(OpPrepend(b"x"))


OTS, ROOT = stamped(bytes(32) + HASH)
BLOCK = {"block_height": OLD, "block_hash": HASH[::-1].hex()}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return LocalAuthority(tmp_path_factory.mktemp("authority"))


def prove(ots=OTS, **more):
    payload = {**anchored_payload(ots, CHAIN), **more}
    event = sign(body_of(RECORD, SIGNER, payload), SIGNER)
    return read_event(event, RECORD.digest, NUMBER, Keys(SIGNER.keyring())).claims.witnessed


def stated(token, **changes):
    entry = {
        "url": "https://tsa.example.org/tsr",
        "token_b64": base64.b64encode(token.raw).decode(),
        "commitment": token.imprint.hex(),
        "time": utc(token.time),
    }
    return {**entry, **changes}


def test_an_event_without_further_witnesses_has_none():
    assert prove().not_before is None
    assert prove().tokens == ()


@pytest.mark.parametrize("before", [b"", bytes(32), b"any bytes"])
def test_a_hash_at_the_end_of_what_is_appended_is_found(before):
    ots, _ = stamped(before + HASH)
    assert prove(ots, not_before=BLOCK).not_before == NotBefore(
        height=OLD, hash=BLOCK["block_hash"]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"block_hash": "00" * 32},
        {"block_hash": HASH.hex()},
        {"block_hash": "ab"},
        {"block_hash": ""},
        {"block_height": -1},
        {"block_height": 10**6},
        {"block_hash": None},
        {"block_height": str(OLD)},
    ],
)
def test_a_block_that_the_path_does_not_carry_spoils_the_event(changes):
    with pytest.raises(VerificationError):
        prove(not_before={**BLOCK, **changes})


@pytest.mark.parametrize(
    ("argument", "how"),
    [
        (HASH + b"\0", {}),
        (HASH[1:], {}),
        (HASH[::-1], {}),
        (HASH, {"hashed": False}),
        (HASH, {"fork": True}),
    ],
)
def test_a_hash_in_another_place_says_nothing(argument, how):
    ots, _ = stamped(argument, **how)
    with pytest.raises(AttestationError, match="does not carry"):
        prove(ots, not_before=BLOCK)


def test_the_block_must_be_older_than_the_one_the_proof_leads_to():
    ots, _ = stamped(HASH)
    attested = anchored_payload(ots, CHAIN)["block_height"]
    prove(ots, not_before={**BLOCK, "block_height": attested - 1})
    with pytest.raises(AttestationError, match="older"):
        prove(ots, not_before={**BLOCK, "block_height": attested})


def test_the_header_at_that_height_decides():
    block = NotBefore(height=OLD, hash=BLOCK["block_hash"])
    check_header(block, CHAIN.headers[OLD])
    with pytest.raises(AttestationError, match="or was replaced since"):
        check_header(block, CHAIN.headers[OLD + 1])


def test_the_stem_ends_where_paths_part():
    nodes = [node.message for _, node in stem(parse_detached(OTS).timestamp)]
    assert nodes[-1] == ROOT


def test_a_token_over_a_message_of_every_path_is_taken(local):
    for message in (ROOT, RECORD.digest):
        token = local.token(message)
        (found,) = prove(rfc3161=[stated(token)]).tokens
        assert (found.url, found.token) == ("https://tsa.example.org/tsr", token)
    both = [stated(local.token(ROOT)), stated(local.token(ROOT))]
    assert len(prove(rfc3161=both, not_before=BLOCK).tokens) == 2


def test_a_token_over_anything_else_spoils_the_event(local):
    other = sha256(b"another batch").digest()
    with pytest.raises(DigestMismatchError, match="not on the path"):
        prove(rfc3161=[stated(local.token(other))])
    with pytest.raises(DigestMismatchError, match="is about"):
        prove(rfc3161=[stated(local.token(other), commitment=ROOT.hex())])


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"time": "2024-08-01T12:00:00Z"}, VerificationError),
        ({"time": "yesterday"}, VerificationError),
        ({"commitment": ROOT.hex().upper()}, DigestMismatchError),
        ({"commitment": ""}, DigestMismatchError),
        ({"token_b64": ""}, SignatureError),
        ({"token_b64": "AAAA"}, VerificationError),
        ({"token_b64": None}, VerificationError),
        ({"url": 3}, VerificationError),
    ],
)
def test_a_token_that_is_stated_wrongly_spoils_the_event(local, changes, error):
    with pytest.raises(error):
        prove(rfc3161=[stated(local.token(ROOT), **changes)])


def test_a_token_with_a_forged_signature_spoils_the_event(local):
    token = local.token(ROOT)
    forged = bytearray(token.raw)
    forged[-4] ^= 1
    text = base64.b64encode(bytes(forged)).decode()
    with pytest.raises(SignatureError, match="does not verify"):
        prove(rfc3161=[stated(token, token_b64=text)])


def test_a_flood_of_tokens_is_refused(local):
    with pytest.raises(VerificationError, match="at most 32"):
        prove(rfc3161=[stated(local.token(ROOT))] * 33)
