"""The log, the inclusion proof and the state that docs/protocol.md shows, computed again.

The log and its proof by hashlib and Ed25519 alone, as a stranger would; the state by the merge.
"""

from __future__ import annotations

import base64
import hashlib
import json

from support.protocol_examples import EXAMPLE_KEY
from support.schemas import assert_valid
from test_docs import example

from anchord.core.bundle_text import render_bundle
from anchord.core.canonical import canonical_bytes, read_record
from anchord.core.key_document import to_document
from anchord.core.keyring import PublicKey, make_keyring
from anchord.core.state import state_of
from anchord.core.trust import Keys

EVENTS = [
    json.loads(example(f"event-{name}"))
    for name in ("submitted", "anchored", "withdrawn", "captured", "item")
]
ORIGIN = "registry.example.org"
PUBLIC = EXAMPLE_KEY.public_key().public_bytes_raw()


def leaf(event):
    digest = bytes.fromhex(event["event_id"].removeprefix("sha256:"))
    entry = digest + base64.b64decode(event["signature_b64"])
    return hashlib.sha256(b"\0" + entry).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


LEAVES = [leaf(event) for event in EVENTS]
FOUR = node(node(LEAVES[0], LEAVES[1]), node(LEAVES[2], LEAVES[3]))
ROOT = node(FOUR, LEAVES[4])


def test_the_checkpoint_signs_the_root_of_the_five_events():
    text, _, line = example("checkpoint").partition("\n\n")
    assert text.split("\n") == [ORIGIN, "5", base64.b64encode(ROOT).decode()]
    dash, name, signed = line.split(" ")
    raw = base64.b64decode(signed)
    key_hash = hashlib.sha256(ORIGIN.encode() + b"\n\1" + PUBLIC).digest()[:4]
    assert (dash, name, raw[:4]) == ("\N{EM DASH}", ORIGIN, key_hash)
    EXAMPLE_KEY.public_key().verify(raw[4:], f"{text}\n".encode())
    encoded = base64.b64encode(b"\1" + PUBLIC).decode()
    assert example("vkey") == f"{ORIGIN}+{key_hash.hex()}+{encoded}"


def test_the_inclusion_proof_leads_from_the_event_to_the_root():
    stated = json.loads(example("inclusion"))
    assert stated["checkpoint"] == example("checkpoint") + "\n"
    (event,) = stated["events"]
    assert (event["event_id"], event["index"]) == (EVENTS[1]["event_id"], 1)
    sibling, pair, last = map(base64.b64decode, event["hashes"])
    assert node(node(node(sibling, LEAVES[1]), pair), last) == ROOT


def test_the_state_is_what_the_merge_makes_of_the_events():
    key = PublicKey(key_id="example-2026", public_key=PUBLIC, signer_id=ORIGIN)
    record = read_record(canonical_bytes(json.loads(example("record"))))
    events = [json.dumps(EVENTS[place]).encode() for place in (0, 1, 3)]
    bundle = render_bundle(record, "2026-08-01T12:00:00Z", events, [to_document(key)])
    state = json.loads(example("state"))
    assert state == state_of(bundle, Keys(make_keyring([key])))
    assert_valid("state", state)
    assert state["current"]["completeness"]["anchored"] == "anchored"
