"""Bundles: they recompute, and what others wrote in them survives byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.workplace import bare, sample

from anchord.core.bundle import read_bundle
from anchord.core.bundle_text import follows, one_line, render_bundle
from anchord.core.canonical import read_record
from anchord.core.model import Scheme
from anchord.errors import DigestMismatchError, RefusedError

RECORD = sample(1)
AT = "2024-08-01T12:00:00Z"
EVENT = b'{"created_at":"2024-08-02T00:00:00Z","event_id":"sha256:aa"}'
NAMED = [
    "bundle_type", "bundle_version", "pith_number", "short_pith_number", "canonical_record",
    "canonical_sha256", "source", "source_aliases", "events", "public_keys",
]  # fmt: skip


def whole(**changes):
    value = json.loads(render_bundle(RECORD, AT, [EVENT], []))
    return json.dumps({**value, **changes}).encode()


def test_the_named_keys_come_first_and_in_their_order():
    raw = render_bundle(RECORD, AT, [EVENT], [{"key_id": "k"}])
    assert list(json.loads(raw)) == NAMED


def test_what_is_rendered_reads_back():
    bundle = read_bundle(render_bundle(RECORD, AT, [EVENT], [{"key_id": "k"}]))
    assert (bundle.digest, bundle.canonical) == (RECORD.digest, RECORD.canonical)
    assert bundle.events == (json.loads(EVENT),)
    assert bundle.keys == ({"key_id": "k"},)


def test_aliases_carry_the_moment_the_record_came_in():
    aliases = json.loads(render_bundle(RECORD, AT, [], []))["source_aliases"]
    assert [alias["alias_kind"] for alias in aliases] == sorted(
        ["arxiv", "arxiv_version", "doi", "pith_short_12", "pith_short_16", "pith_short_8"]
    )
    assert {alias["created_at"] for alias in aliases} == {AT}


def test_a_hash_alone_has_a_record_id_and_no_record():
    value = json.loads(render_bundle(bare(RECORD.digest), AT, [], []))
    assert value["canonical_record"] is None
    assert value["record_id"] == "sha256:" + RECORD.digest.hex()
    assert "pith_number" not in value
    assert value["source_aliases"] == []
    assert read_bundle(json.dumps(value).encode()).canonical is None


def test_other_schemes_say_so_and_recompute():
    record = read_record(b'{"b":1.0,"a":"\xc3\xa9"}', scheme=Scheme.RFC8785)
    raw = render_bundle(record, AT, [], [])
    assert json.loads(raw)["canonical_scheme"] == "rfc8785"
    assert read_bundle(raw).digest == record.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"canonical_sha256": "00" * 32},
        {"canonical_sha256": RECORD.digest.hex().upper()},
        {"pith_number": "pith:2001:" + "A" * 26},
        {"short_pith_number": "pith:AAAAAAAA"},
        {"record_id": "sha256:" + "00" * 32},
        {"source": {"id": "2507.00001", "kind": "arxiv", "version": 2}},
        {"canonical_record": {"metadata": {}}},
        {"source_aliases": [{"alias_kind": "arxiv", "alias_value": "2507.00002"}]},
    ],
)
def test_what_does_not_follow_from_the_record_is_a_mismatch(changes):
    with pytest.raises(DigestMismatchError):
        read_bundle(whole(**changes))


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{}", b"[]", b"\xff", b'{"bundle_type":"pith_open_graph_bundle"}',
        whole(bundle_version="2.0"), whole(canonical_scheme="mine"), whole(events={}),
        whole(events=[1]), whole(source_aliases=[{}]), whole(canonical_record=None)[:-1],
        whole(canonical_record=None, canonical_sha256="zz"),
        whole().replace(b'"events"', b'"evants"'),
        whole().replace(b'"source_aliases"', b'"events": [], "source_aliases"'),
    ],
)  # fmt: skip
def test_what_is_no_whole_bundle_is_refused(raw):
    with pytest.raises(RefusedError):
        read_bundle(raw)


FOREIGN = (
    b'{"bundle_type":"pith_open_graph_bundle","bundle_version":"1.0", "mirrors" :'
    b' [1.0e2,  "\\u00e9"],\n "events":[ {"event_type":"graph" ,"event_id":"sha256:bb",'
    b'"created_at":"2024-01-01T00:00:00Z"},{"event_type":"nameless"},'
    b' {"event_id":"sha256:aa" ,"created_at":"2024-08-02T00:00:00Z"}],\n'
    b'"source_aliases":[{"alias_kind":"arxiv","alias_value":"2507.00001","created_at":"2020"}],'
    b'"public_keys":[{"key_id" : "theirs"}], "receipt": {"kind":"pith_receipt"}}'
)


def test_foreign_events_keys_and_aliases_are_carried_along_byte_for_byte():
    raw = render_bundle(RECORD, AT, [EVENT], [{"key_id": "ours"}], [FOREIGN])
    for slice_ in (
        b'[1.0e2,  "\\u00e9"]',
        b'{"event_type":"graph" ,"event_id":"sha256:bb","created_at":"2024-01-01T00:00:00Z"}',
        b'{"event_type":"nameless"}',
        b'{"key_id" : "theirs"}',
        b'{"kind":"pith_receipt"}',
        b'"created_at":"2020"',
    ):
        assert slice_ in raw
    value = json.loads(raw)
    assert list(value) == [*NAMED, "mirrors", "receipt"]
    # The same event came twice: once in the foreign bundle, once from us.
    assert [event.get("event_id") for event in value["events"]] == [None, "sha256:bb", "sha256:aa"]
    assert [key["key_id"] for key in value["public_keys"]] == ["ours", "theirs"]


def test_importing_an_export_and_exporting_again_changes_nothing():
    once = render_bundle(RECORD, AT, [EVENT], [{"key_id": "ours"}], [FOREIGN])
    assert render_bundle(RECORD, AT, [EVENT], [{"key_id": "ours"}], [once]) == once


def test_of_a_key_only_others_know_the_smallest_value_stays_whoever_came_first():
    documents = [b'{"mirrors":3,"old":2}', b'{"mirrors":1}']
    value = json.loads(render_bundle(RECORD, AT, [], [], documents))
    assert (value["mirrors"], value["old"]) == (1, 2)
    assert json.loads(render_bundle(RECORD, AT, [], [], documents[::-1])) == value


def test_one_line_is_one_line_and_the_same_value():
    raw = render_bundle(RECORD, AT, [EVENT], [], [FOREIGN.replace(b" ", b"\r\n ")])
    assert one_line(raw).count(b"\n") == 1
    assert json.loads(one_line(raw)) == json.loads(raw)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(value=json_values, name=st.text(min_size=1).filter(lambda name: name not in NAMED))
def test_any_unknown_key_survives(value, name):
    try:
        text = json.dumps({name: value}).encode()
        json.dumps({name: value}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    out = json.loads(render_bundle(RECORD, AT, [], [], [text]))
    if name not in ("record_id", "canonical_scheme"):
        assert out[name] == json.loads(text)[name]


def test_a_bundle_follows_another_when_it_has_all_its_events():
    old = render_bundle(RECORD, AT, [EVENT], [])
    new = render_bundle(RECORD, AT, [EVENT, EVENT.replace(b"aa", b"bb")], [])
    assert follows(old, new)
    assert not follows(new, old)
    assert not follows(old, render_bundle(sample(2), AT, [EVENT], []))
    assert not follows(b"junk", new)


def test_a_copied_event_id_takes_nobodys_place():
    """A foreign bundle that came first must not stand in the way of what was signed since."""
    forged = b'{"event_id":"sha256:aa","created_at":"2024-08-02T00:00:00Z","event_type":"note"}'
    foreign = b'{"canonical_sha256":"","events":[' + forged + b"]}"
    raw = render_bundle(RECORD, AT, [EVENT], [], [foreign])
    assert EVENT in raw
    assert forged in raw
    assert render_bundle(RECORD, AT, [EVENT], [], [raw]).count(EVENT) == 1


def test_of_a_key_in_the_keyring_no_foreign_bundle_speaks():
    ours = {"key_id": "ours", "public_key_b64": "AA"}
    theirs = {"key_id": "theirs", "public_key_b64": "AA"}
    stated = {"events": [], "public_keys": [{**ours, "valid_until": "x"}, theirs]}
    raw = render_bundle(RECORD, AT, [], [ours], [json.dumps(stated).encode()])
    assert json.loads(raw)["public_keys"] == [ours, theirs]


# ------------------------------------------------------------------ one set, one text

ALIAS = '{"alias_kind":"%s","alias_value":"%s","created_at":"%s"}'
parts = st.fixed_dictionaries(
    {},
    optional={
        "source_aliases": st.lists(
            st.sampled_from(
                [
                    ALIAS % ("arxiv", "2507.00001", "2020-01-01T00:00:00Z"),
                    ALIAS % ("arxiv", "2507.00001", "2019-01-01T00:00:00Z"),
                    ALIAS % ("handle", "1/2", "2021-01-01T00:00:00Z"),
                    ALIAS.replace(":", " : ") % ("handle", "1/2", "2021-01-01T00:00:00Z"),
                ]
            )
        ).map(lambda items: "[" + ",".join(items) + "]"),
        "events": st.lists(
            st.sampled_from(
                [
                    EVENT.decode(),
                    EVENT.decode().replace(",", " , "),
                    EVENT.decode()[:-1] + ',"n":1}',
                    EVENT.decode()[:-1] + ',"n":1.0}',
                    EVENT.decode()[:-1] + ',"n":true}',
                    '{"event_type":"nameless"}',
                ]
            )
        ).map(lambda items: "[" + ",".join(items) + "]"),
        "public_keys": st.lists(
            st.sampled_from(
                [
                    '{"key_id":"ours"}',
                    '{"key_id":"a","public_key_b64":"AA"}',
                    '{"key_id":"a","public_key_b64":"AA","x":1}',
                    '{"key_id":"a"}',
                    '{"k":1}',
                ]
            )
        ).map(lambda items: "[" + ",".join(items) + "]"),
        "mirrors": st.sampled_from(["1", "[ 2]", '"\\u00e9"', '"é"']),
        "notes": st.sampled_from(["1.0", "1.00"]),
    },
).map(lambda value: ("{" + ",".join(f'"{k}":{v}' for k, v in value.items()) + "}").encode())


def rendered(documents, events=(EVENT,)):
    return render_bundle(RECORD, AT, events, [{"key_id": "ours"}], documents)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(documents=st.lists(parts, max_size=4), data=st.data())
def test_neither_order_nor_repetition_of_what_came_in_shows(documents, data):
    mixed = data.draw(st.permutations(documents + documents[:1]))
    assert rendered(mixed) == rendered(documents)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(documents=st.lists(parts, max_size=4), cut=st.integers(0, 4))
def test_what_one_mirror_exports_gives_the_other_the_same_text(documents, cut):
    whole = rendered(documents)
    assert rendered([whole]) == whole
    halves = [rendered(documents[:cut]), rendered(documents[cut:])]
    assert rendered(halves) == whole
    assert rendered([*halves, *documents]) == whole


def test_the_earliest_statement_of_an_alias_stays_and_ours_only_where_there_is_none():
    early = b'{"source_aliases":[{"alias_kind":"arxiv","alias_value":"2507.00001",'
    late = early + b'"created_at":"2031-01-01T00:00:00Z"}]}'
    aliases = json.loads(rendered([late]))["source_aliases"]
    assert aliases[0]["created_at"] == "2031-01-01T00:00:00Z"
    assert {alias["created_at"] for alias in aliases[1:]} == {AT}
    early += b'"created_at":"2019-01-01T00:00:00Z"}]}'
    assert json.loads(rendered([late, early]))["source_aliases"][0]["created_at"][:4] == "2019"


def test_an_alias_that_states_no_moment_yields_to_one_that_does():
    bare = b'{"source_aliases":[{"alias_kind":"arxiv","alias_value":"2507.00001"}]}'
    dated = bare.replace(b"}]", b',"created_at":"2031-01-01T00:00:00Z"}]')
    assert rendered([bare, dated]) == rendered([dated])
    assert "created_at" not in json.loads(rendered([bare]))["source_aliases"][0]


def test_one_and_one_point_nought_are_two_contents_of_an_event():
    texts = [EVENT[:-1] + b',"n":%s}' % value for value in (b"1", b"1.0", b"true")]
    assert len(json.loads(rendered([], texts))["events"]) == 3
