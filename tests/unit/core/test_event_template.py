"""Events rendered from a template are the law's bytes, whatever the common fields hold."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anchord.core import event
from anchord.errors import FatalError, RefusedError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    [
        "%",
        "%b",
        "100%s",
        '"',
        "\\",
        "\\u0000",
        "\\u0000withdraws\\u0000",
        "é",
        "日本",
        "\n\t",
        "/",
        "\x7f",
    ]
)
keys = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8)
values = st.recursive(
    texts | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
payloads = st.dictionaries(
    keys.filter(lambda key: key not in event._SLOTS and key != "subject"), values, max_size=4
)
SLOTS = [
    ("canonical_sha256", "proof_sha256"),
    ("canonical_sha256", "proof_b64", "proof_sha256"),
    ("canonical_sha256", "withdraws"),
]


def law(body) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@settings(max_examples=300, deadline=None)
@given(payload=payloads, signer_id=texts, slots=st.sampled_from(SLOTS), by_number=st.booleans())
@example(payload={}, signer_id='x"\\', slots=SLOTS[0], by_number=True)
@example(payload={"~": "%b%%"}, signer_id="\\u0000", slots=SLOTS[1], by_number=False)
def test_a_rendered_body_is_the_law(payload, signer_id, slots, by_number):
    signer = event.signer_block("key-%d", bytes(32), signer_id)
    common = event.Common(
        event_type="timestamp_anchored",
        created_at="2026-08-01T12:00:00Z",
        signer=signer,
        payload=payload,
        slots=slots,
    )
    gaps = {
        "canonical_sha256": ["ab" * 32, "cd" * 32],
        "proof_sha256": ["00" * 32, "ff" * 32],
        "proof_b64": ["AE+/9w==", ""],
        "withdraws": ["sha256:" + "12" * 32, "sha256:" + "34" * 32],
    }
    columns = {name: [value.encode() for value in gaps[name]] for name in slots}
    number = "pith:2026:ABC" if by_number else None
    columns["subject"] = [event.subject(number=number, record_id="sha256:00")] * 2
    subject = {"subject_pith_number": number} if by_number else {"subject_record_id": "sha256:00"}
    bodies = event.template(common).render(columns)
    for place, body in enumerate(bodies):
        assert body == law(
            {
                "created_at": common.created_at,
                "event_type": common.event_type,
                "payload": {**payload, **{name: gaps[name][place] for name in slots}},
                "signer": signer,
                "target": "timestamp",
                **subject,
            }
        )


@settings(max_examples=200, deadline=None)
@given(payloads)
def test_canonical_body_is_the_law(body):
    assert event.canonical_body(body) == law(body)


@pytest.mark.parametrize("name", ["canonical_sha256", "proof_b64", "subject", "anything"])
@pytest.mark.parametrize("where", ["signer", "payload", "key", "end of a text"])
def test_what_looks_like_a_gap_is_refused_never_filled(name, where):
    mark = f"\x00{name}\x00"
    signer = event.signer_block("key", bytes(32), mark if where == "signer" else "id")
    payload = {"payload": {"a": [mark]}, "key": {mark: 1}}.get(where, {})
    if where == "end of a text":
        payload = {"a": 'text"' + mark}
    common = event.Common(
        event_type="timestamp_submitted",
        created_at="2026-08-01T12:00:00Z",
        signer=signer,
        payload=payload,
        slots=("canonical_sha256", "proof_sha256"),
    )
    try:
        template = event.template(common)
    except FatalError:
        return
    # Within a longer text a mark is text: then it is rendered as the law writes it.
    (body,) = template.render(
        {
            "canonical_sha256": [b"aa"],
            "proof_sha256": [b"bb"],
            "subject": [event.subject(number=None, record_id="sha256:00")],
        }
    )
    assert where == "end of a text"
    assert json.loads(body)["payload"]["a"] == payload["a"]
    assert law(json.loads(body)) == body


@pytest.mark.parametrize("name", ["canonical_sha256", "unknown"])
def test_gaps_that_collide_with_the_payload_are_refused(name):
    common = event.Common(
        event_type="x",
        created_at="y",
        signer={},
        payload={"canonical_sha256": "1"},
        slots=(name,),
    )
    with pytest.raises(FatalError, match="collide"):
        event.template(common)


@pytest.mark.parametrize(
    "value",
    [1.5, float("nan"), 2**53, -(2**53), b"raw", {1: 2}, {"é": 1}, {"a": [{"b": 0.1}]}, "\ud800"],
)
def test_what_encoders_disagree_about_is_refused(value):
    with pytest.raises(RefusedError):
        event.canonical_body({"a": value})


def test_deep_bodies_are_walked_without_recursion():
    deep: list = []
    for _ in range(500):
        deep = [deep]
    assert event.canonical_body({"a": deep}) == law({"a": deep})


def test_ids_and_chain_are_plain_sha256():
    body = b'{"a":1}'
    digest = event.event_digest(body)
    assert digest == hashlib.sha256(body).digest()
    assert event.event_id(digest) == "sha256:" + hashlib.sha256(body).hexdigest()
    assert (
        event.chain_next(bytes(32), digest, bytes(64))
        == hashlib.sha256(bytes(32) + digest + bytes(64)).digest()
    )


def test_a_signer_block_names_the_key_by_its_fingerprint():
    key = bytes(range(32))
    assert event.signer_block("k", key, "registry.example.org") == {
        "key_id": "k",
        "public_key_fingerprint": hashlib.sha256(key).hexdigest()[:32],
        "signer_id": "registry.example.org",
        "signer_type": "anchord",
    }
