"""Inclusion proofs in bundles: one shape, one order, and each leads to a signed checkpoint."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.crowd import KEYRING, KEYS, OWN, RECORD, STRANGER, VALID, stated
from support.parties import START

from anchord.core import log
from anchord.core.bundle import read_bundle
from anchord.core.bundle_check import check_document
from anchord.core.bundle_text import render_bundle
from anchord.core.checkpoint import Checkpoint, text
from anchord.core.included import check_inclusion
from anchord.core.inclusion import IncludedEvent, Inclusion, united
from anchord.core.key_document import to_document
from anchord.core.model import Document
from anchord.core.moment import utc
from anchord.core.note import SignatureLine, make_verifier, write
from anchord.core.trust import Keys, Trust
from anchord.errors import RefusedError, SignatureError, VerificationError

EVENTS = [VALID[name] for name in ("anchored", "submitted", "capture", "item")]
ORIGIN = "registry.example.org/log"


def entry(event):
    digest = bytes.fromhex(event["event_id"].removeprefix("sha256:"))
    return log.entry_of(digest, base64.b64decode(event["signature_b64"]))


LEAVES = [log.leaf_hash(entry(event)) for event in EVENTS]


def checkpoint(size, by=OWN, origin=ORIGIN):
    said = text(Checkpoint(origin=origin, size=size, root=log.root(b"".join(LEAVES[:size]))))
    key_hash = make_verifier(origin, by.public_key).key_hash
    signature = by._private.sign(said.encode())
    return write(said, [SignatureLine(origin, key_hash, signature)]).decode()


def included(index, size=4):
    hashes = []
    for start, stop in log.inclusion_ranges(index, size):
        hashes.append(log.root(b"".join(LEAVES[start:stop])))
    return IncludedEvent(EVENTS[index]["event_id"], index, tuple(hashes))


def inclusion(*indices, size=4, by=OWN):
    return Inclusion(checkpoint(size, by), tuple(included(index, size) for index in indices))


RIGHT = inclusion(0, 1, 2, 3)


def bundle(*parts, events=EVENTS):
    raw = [json.dumps(event).encode() for event in events]
    keys = [to_document(OWN.public())]
    return render_bundle(RECORD, utc(START), raw, keys, inclusion=parts)


def changed(change):
    value = json.loads(bundle(RIGHT))
    change(value["inclusion"])
    return json.dumps(value).encode()


def test_a_bundle_carries_its_places_in_the_log():
    found = read_bundle(bundle(RIGHT))
    assert found.inclusion == (RIGHT,)
    proved = check_inclusion(found, RIGHT, KEYS)
    assert (proved.origin, proved.size, proved.trust) == (ORIGIN, 4, Trust.KEYRING)
    assert len(proved.event_ids) == 4


def test_a_bundle_without_a_place_in_a_log_does_not_mention_logs():
    assert "inclusion" not in json.loads(bundle())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    parts=st.lists(
        st.builds(
            lambda indices, size: inclusion(*[i for i in indices if i < size], size=size),
            st.lists(st.integers(0, 3)),
            st.sampled_from([1, 2, 3, 4]),
        ),
        max_size=4,
    ),
    data=st.data(),
)
def test_inclusions_are_united_whatever_came_when_and_where(parts, data):
    whole = bundle(*parts)
    assert bundle(*data.draw(st.permutations(parts + parts[:1]))) == whole
    documents = [bundle(part) for part in data.draw(st.permutations(parts))]
    raw = [json.dumps(event).encode() for event in EVENTS]
    keys = [to_document(OWN.public())]
    assert render_bundle(RECORD, utc(START), raw, keys, documents) == whole
    assert read_bundle(whole).inclusion == united(parts)


DAMAGES = {
    "no list": lambda found: found.__setitem__(slice(None), [{}]),
    "empty": lambda found: found.clear(),
    "a key more": lambda found: found[0].update(more=1),
    "another order": lambda found: found[0]["events"].reverse(),
    "repeated": lambda found: found[0]["events"].append(found[0]["events"][0]),
    "no checkpoint": lambda found: found[0].update(checkpoint="log\n4\nAAAA\n"),
    "an event that is not there": lambda found: found[0]["events"][0].update(event_id="sha256:00"),
    "beyond the log": lambda found: found[0]["events"][3].update(index=4),
    "a short hash": lambda found: found[0]["events"][0]["hashes"].__setitem__(0, "AAAA"),
    "idle bits": lambda found: found[0]["events"][0]["hashes"].__setitem__(0, "A" * 42 + "B="),
    "retyped": lambda found: found[0]["events"][0].update(index=0.0, hashes=None),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_inclusion_is_refused(name):
    with pytest.raises(RefusedError):
        read_bundle(changed(DAMAGES[name]))


def test_an_event_that_was_dropped_is_missed():
    value = json.loads(bundle(RIGHT))
    del value["events"][0]
    with pytest.raises(RefusedError, match="was dropped"):
        read_bundle(json.dumps(value).encode())


@pytest.mark.parametrize("index", range(4))
def test_a_wrong_place_or_path_is_no_proof(index):
    right = RIGHT.events[index]
    other = (index + 1) % 4
    for wrong in (
        msgspec.structs.replace(right, index=other),
        msgspec.structs.replace(right, hashes=right.hashes[::-1]),
        msgspec.structs.replace(right, hashes=right.hashes[1:]),
        msgspec.structs.replace(right, event_id=EVENTS[other]["event_id"]),
    ):
        found = Inclusion(RIGHT.checkpoint, (wrong,))
        with pytest.raises(VerificationError):
            check_inclusion(read_bundle(bundle(found)), found, KEYS)
        document = Document(record=RECORD, raw=bundle(found))
        with pytest.raises(RefusedError, match="false"):
            check_document(document, KEYRING)


def test_a_checkpoint_that_a_known_key_did_not_sign_is_a_forgery():
    text_, _, signature = RIGHT.checkpoint.partition("\n\n")
    lines = text_.split("\n")
    forged = "\n".join([lines[0], "5", lines[2]]) + "\n\n" + signature
    found = Inclusion(forged, RIGHT.events[:1])
    with pytest.raises(SignatureError):
        check_inclusion(read_bundle(bundle(found)), found, KEYS)


def test_a_checkpoint_by_a_key_nobody_knows_proves_nothing_and_is_no_lie():
    found = inclusion(0, by=STRANGER)
    read = read_bundle(bundle(found))
    assert check_inclusion(read, found, KEYS).trust is None
    claimed = Keys(KEYRING, (), [stated(STRANGER)])
    assert check_inclusion(read, found, claimed).trust is Trust.CLAIMED


def test_an_unsigned_event_has_no_place_in_a_log():
    bare = {**EVENTS[0]}
    del bare["signature_b64"]
    found = Inclusion(RIGHT.checkpoint, RIGHT.events[:1])
    read = read_bundle(bundle(found, events=[bare]))
    with pytest.raises(VerificationError, match="no signature"):
        check_inclusion(read, found, KEYS)
