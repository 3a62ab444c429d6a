"""JSON records: every route gives the same records, and a bad line costs only itself."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.adapters.sources import pith, streams
from anchord.adapters.sources.inputs import source_for
from anchord.adapters.sources.pith import OBJECT_CAP, read_object, split_array
from anchord.core.canonical import canonical_bytes, pith_number
from anchord.core.model import Document, Record, Rejection, Scheme
from anchord.errors import ConfigError, RefusedError


def pretend_stdin(monkeypatch, raw):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


def sample(number: int = 0) -> dict:
    return {
        "metadata": {"license": "", "submitted_at": "2024-02-06T08:14:56Z"},
        "schema_version": "1.0",
        "source": {"id": f"2402.{number:05}", "kind": "arxiv", "version": 1},
    }


def stated(record: dict) -> dict:
    digest = hashlib.sha256(canonical_bytes(record)).digest()
    return {
        "pith_number": pith_number(digest, "2024"),
        "canonical_sha256": digest.hex(),
        "canonical_record": record,
        "url": "https://example.org/1",
    }


def bundle(record: dict) -> dict:
    whole = stated(record)
    created = {
        "event_type": "record_created",
        "payload": {name: whole[name] for name in ("canonical_record", "canonical_sha256")},
    }
    return {
        "bundle_type": "pith_open_graph_bundle",
        "bundle_version": "1.0",
        "short_pith_number": "pith:" + whole["pith_number"][10:18],
        "events": [{"event_type": "author_claim"}, created],
        "x": [1.5, {"kept": True}],
    } | whole


def dump(value) -> bytes:
    return json.dumps(value).encode()


def digest(record: dict) -> bytes:
    return hashlib.sha256(canonical_bytes(record)).digest()


@pytest.fixture
def real_lines(shared_data):
    return (shared_data / "pith-records.jsonl").read_bytes().splitlines()


def write(path, raw: bytes) -> str:
    path.write_bytes(raw)
    return str(path)


ROUTES = {
    "JSON Lines": lambda objects: ("a.jsonl", b"\n".join(map(dump, objects))),
    "JSON Lines, compact, CRLF": lambda objects: (
        "a.ndjson",
        b"\r\n".join(json.dumps(one, separators=(",", ":")).encode() for one in objects) + b"\r\n",
    ),
    "JSON Lines by content": lambda objects: ("a.txt", b"\n\n".join(map(dump, objects)) + b"\n"),
    "JSON Lines named .json": lambda objects: ("a.json", b"\n".join(map(dump, objects))),
    "gzip": lambda objects: ("a.jsonl.gz", gzip.compress(b"\n".join(map(dump, objects)))),
    "array": lambda objects: ("a.json", json.dumps(objects, indent=2).encode()),
    "array on one line": lambda objects: ("a.json", dump(objects)),
    "bare records": lambda objects: (
        "a.jsonl",
        b"\n".join(dump(one["canonical_record"]) for one in objects),
    ),
    "resolver answers": lambda objects: (
        "a.jsonl",
        b"\n".join(dump({"canonical_record": one["canonical_record"]}) for one in objects),
    ),
    "bundles": lambda objects: (
        "a.jsonl",
        b"\n".join(dump({"bundle_type": "pith_open_graph_bundle"} | one) for one in objects),
    ),
}


@pytest.mark.shared_data
@pytest.mark.parametrize("route", ROUTES)
def test_the_60_real_records_come_in_through_every_route(tmp_path, monkeypatch, real_lines, route):
    objects = [json.loads(line) for line in real_lines]
    name, raw = ROUTES[route](objects)
    found = list(source_for(write(tmp_path / name, raw)))
    records = [one.record if isinstance(one, Document) else one for one in found]
    assert [one.digest.hex() for one in records] == [one["canonical_sha256"] for one in objects]
    assert [pith_number(one.digest, one.year) for one in records] == [
        one["pith_number"] for one in objects
    ]
    pretend_stdin(monkeypatch, raw)
    assert list(source_for("-")) == found


@pytest.mark.shared_data
def test_the_real_file_as_it_is_and_one_document_a_file(tmp_path, shared_data, real_lines):
    whole = list(source_for(str(shared_data / "pith-records.jsonl")))
    assert len(whole) == 60
    for number, line in enumerate(real_lines):
        pretty = json.dumps(json.loads(line), indent=1).encode()
        write(tmp_path / f"{number:02}.json", pretty)
    alone = list(source_for(str(tmp_path)))
    assert [one.digest for one in alone] == [one.digest for one in whole]
    assert alone[7].label == "07.json"


def deep(depth: int) -> bytes:
    return b'{"a":' + b"[" * depth + b"]" * depth + b"}"


def changed(**changes) -> bytes:
    return dump(stated(sample(9)) | changes)


def twice(name: str) -> bytes:
    """A wrapper with one key twice, the second time as it should be."""
    value = stated(sample(9))
    return dump({name: value[name]})[:-1] + b", " + dump(value)[1:]


BAD_LINES = {
    "bad JSON": (b'{"metadata": {', "expected one JSON value"),
    "no JSON": (b"hello", "expected one JSON value"),
    "wrong hash": (changed(canonical_sha256="00" * 32), "stated SHA-256"),
    "hash that is no text": (changed(canonical_sha256=5), "canonical_sha256 is a number"),
    "empty hash": (changed(canonical_sha256=""), "stated SHA-256"),
    "wrong number": (changed(pith_number="pith:2024:AAAAAAAAAAAAAAAAAAAAAAAAAA"), "Pith Number"),
    "number that is no text": (changed(pith_number=[]), "pith_number is an array"),
    "other year": (changed(pith_number="pith:2023:" + "A" * 26), "Pith Number"),
    "record twice": (twice("canonical_record"), "twice"),
    "hash twice": (twice("canonical_sha256"), "twice"),
    "unimportant key twice": (twice("url"), "twice"),
    "key twice, nested in the wrapper": (changed()[:-1] + b', "x": {"a":1,"a":2}}', "twice"),
    "key twice in the record": (b'{"metadata":1,"metadata":1}', "twice"),
    "NaN": (b'{"a": NaN}', "NaN"),
    "NaN in the wrapper": (changed()[:-1] + b', "x": NaN}', "NaN"),
    "lone surrogate": (b'{"a": "\\ud800"}', "surrogate"),
    "lone surrogate in the wrapper": (changed()[:-1] + b', "x": "\\ud800"}', "surrogate"),
    "not UTF-8": (b'{"a": "\xff"}', "UTF-8"),
    "not UTF-8 in the wrapper": (changed()[:-1] + b', "x": "\xff"}', "UTF-8"),
    "too deep": (deep(65), "deep"),
    "far too deep": (deep(100_000), "deep"),
    "too deep in the wrapper": (changed()[:-1] + b', "x": ' + deep(70) + b"}", "deep"),
    "too long": (b'{"a": "' + b"x" * OBJECT_CAP + b'"}', "longer than"),
    "record too long": (b'{"a": "' + b"x" * 1_100_000 + b'"}', "1048576"),
    "no object": (b'"text"', "got a string"),
    "array": (b"[1]", "got an array"),
    "number": (b"5", "got a number"),
    "null": (b"null", "got null"),
    "record that is no object": (b'{"canonical_record": 5}', "JSON object"),
    "hash without record": (b'{"canonical_sha256": "00"}', "no canonical_record"),
    "number without record": (b'{"pith_number": "pith:2024:A", "a": 1}', "no canonical_record"),
    "state document": (b'{"state_type": "pith_open_graph_state"}', "state document"),
    "two values": (b'{"a":1}{"a":1}', "expected one JSON value"),
    "byte order mark": (b'\xef\xbb\xbf{"a":1}', "byte order mark"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_in_the_middle_refuses_that_line_only(tmp_path, case):
    bad, words = BAD_LINES[case]
    good = [sample(0), sample(1), sample(2)]
    lines = [dump(good[0]), dump(stated(good[1])), bad, dump(good[2])]
    path = write(tmp_path / "a.jsonl", b"\n".join(lines))
    before, middle, refused, after = source_for(path)
    assert [one.digest for one in (before, middle, after)] == [digest(one) for one in good]
    assert isinstance(refused, Rejection)
    assert (refused.where, refused.line) == (path, 3)
    assert words in refused.reason


def test_a_bad_first_line_does_not_turn_json_lines_into_a_document(tmp_path, monkeypatch):
    raw = b"\n".join([b'{"a": ', *(dump(sample(n)) for n in range(3))])
    pretend_stdin(monkeypatch, raw)
    for path in ("-", write(tmp_path / "a.json", raw)):
        refused, *records = source_for(path)
        assert (refused.line, len(records)) == (1, 3)


@pytest.mark.parametrize("text", ["", "\n", "\n\n  \n"])
def test_json_lines_without_lines_hold_nothing(tmp_path, text):
    assert list(source_for(write(tmp_path / "a.jsonl", text.encode()))) == []


def test_an_empty_document_and_an_empty_pipe_are_refused(tmp_path, monkeypatch):
    (refused,) = source_for(write(tmp_path / "a.json", b""))
    assert "expected one JSON value" in refused.reason
    pretend_stdin(monkeypatch, b"")
    assert list(source_for("-")) == [
        Rejection(where="-", line=None, reason="is empty: expected records")
    ]


def test_items_of_an_array_are_judged_alone_with_their_line(tmp_path):
    raw = b"[\n" + dump(sample(0)) + b',\n{"a": "\\ud800"},\n\n' + dump(sample(1)) + b", 7\n]"
    first, bad, second, number = source_for(write(tmp_path / "a.json", raw))
    assert [first.digest, second.digest] == [digest(sample(0)), digest(sample(1))]
    assert (bad.line, number.line) == (3, 5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(['{"a":"]"}', "[[],{}]", '"],["', "12", "null"])), st.data())
def test_an_array_is_split_where_its_items_stand(items, data):
    spaces = [data.draw(st.sampled_from(["", " ", "\n", "\n\n "])) for _ in items]
    text = "[" + ",".join(space + item for space, item in zip(spaces, items, strict=True)) + " ]"
    found = list(split_array(text.encode()))
    assert [part.decode() for _, part in found] == items
    where = 1
    for space, (line, _) in zip(spaces, found, strict=True):
        where += space.count("\n")
        assert line == where


def test_a_bundle_is_kept_byte_for_byte_beside_its_record(tmp_path):
    raw = json.dumps(bundle(sample()), indent=3).encode() + b"\n"
    (found,) = source_for(write(tmp_path / "bundle.json", raw))
    assert found == Document(record=found.record, raw=raw)
    assert found.record.digest == digest(sample())
    assert found.record.label == "bundle.json"
    assert list(source_for(str(tmp_path / "bundle.json"), kind="bundle")) == [found]


def test_a_bundle_bigger_than_a_record_may_be_comes_in(tmp_path):
    raw = dump(bundle(sample()) | {"more": "x" * 2_000_000})
    (found,) = source_for(write(tmp_path / "bundle.json", raw))
    assert isinstance(found, Document)


BAD_BUNDLES = {
    "no record": ({"canonical_record": None}, "whole bundle"),
    "other hash": ({"canonical_sha256": "11" * 32}, "stated SHA-256"),
    "other number": ({"pith_number": "pith:2024:" + "B" * 26}, "Pith Number"),
    "other short number": ({"short_pith_number": "pith:AAAAAAAA"}, "short_pith_number"),
    "events that are none": ({"events": {}}, "events is an object"),
    "event of another record": (
        {"events": [{"event_type": "record_created", "payload": {"canonical_sha256": "22" * 32}}]},
        "record_created event is about",
    ),
    "event without payload": ({"events": [{"event_type": "record_created"}]}, "no payload"),
    "event with another record": (
        {
            "events": [
                {
                    "event_type": "record_created",
                    "payload": {
                        "canonical_sha256": digest(sample()).hex(),
                        "canonical_record": sample(5),
                    },
                }
            ]
        },
        "stated SHA-256",
    ),
}


@pytest.mark.parametrize("case", BAD_BUNDLES)
def test_a_bundle_that_contradicts_itself_is_refused(case):
    change, words = BAD_BUNDLES[case]
    with pytest.raises(RefusedError, match=words):
        read_object(dump(bundle(sample()) | change), Scheme.PITH_JSON_V1)


def test_a_bundle_needs_a_record():
    with pytest.raises(RefusedError, match="no canonical_record"):
        read_object(b'{"bundle_type": "pith_open_graph_bundle"}', Scheme.PITH_JSON_V1)


def test_only_bundles_pass_as_bundles(tmp_path):
    path = write(tmp_path / "a.json", dump(sample()))
    (refused,) = source_for(path, kind="bundle")
    assert "expected a bundle" in refused.reason


@pytest.mark.shared_data
def test_the_cut_real_bundle_is_a_file_unless_it_is_called_a_bundle(shared_data):
    path = str(shared_data / "pith-bundle-cut.txt")
    (refused,) = source_for(path, kind="bundle")
    assert "expected one JSON value" in refused.reason
    (record,) = source_for(path, kind="file")
    assert record.scheme is Scheme.SHA256


def test_null_states_nothing():
    value = stated(sample()) | {"canonical_sha256": None, "pith_number": None}
    assert read_object(dump(value), Scheme.PITH_JSON_V1).digest == digest(sample())


def test_hex_of_either_case_is_the_same_statement():
    value = stated(sample())
    value["canonical_sha256"] = value["canonical_sha256"].upper()
    assert read_object(dump(value), Scheme.PITH_JSON_V1).digest == digest(sample())


def test_the_other_scheme_hashes_by_its_own_rule(tmp_path):
    path = write(tmp_path / "a.jsonl", b'{"a": 1.0, "canonical_record": {"b": 1e2}}')
    (pith,) = source_for(path)
    (jcs,) = source_for(path, scheme=Scheme.RFC8785)
    assert (pith.canonical, jcs.canonical) == (b'{"b":100.0}', b'{"b":100}')
    assert jcs.scheme is Scheme.RFC8785
    with pytest.raises(ConfigError, match="--as file"):
        source_for(path, scheme=Scheme.SHA256)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=6), values, max_size=5)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(objects, objects, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_stands_around_a_record_it_is_hashed_by_the_law(record, around, ascii_, indent):
    for name in ("bundle_type", "state_type"):
        around.pop(name, None)
    law = hashlib.sha256(canonical_bytes(record)).digest()
    whole = around | {"canonical_record": record, "canonical_sha256": law.hex()}
    whole.pop("pith_number", None)
    raw = json.dumps(whole, ensure_ascii=ascii_, indent=indent).encode()
    assert read_object(raw, Scheme.PITH_JSON_V1).digest == law


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.binary(max_size=60)
    | st.text(alphabet='{}[]:,"\\ au018canonical_record', max_size=60).map(str.encode)
)
def test_random_bytes_raise_only_our_errors(raw):
    with contextlib.suppress(RefusedError):
        read_object(raw, Scheme.PITH_JSON_V1)


def verdict(read, raw):
    try:
        return read(raw, Scheme.PITH_JSON_V1, None).digest
    except RefusedError:
        return None


GOOD = json.dumps(sample())
PARTS = [
    f'"canonical_record":{GOOD}',
    f'"canonical_record" : {GOOD}',
    '"canonical_record":null',
    '"canonical_record":{"a":{"b":[]}}',
    f'"canonical_sha256":"{digest(sample()).hex()}"',
    '"canonical_sha256":null',
    '"canonical_sha256":"x"',
    '"pith_number":""',
    '"url":"x"',
    '"url": "{"',
    '"n":1e999',
    '"n":[1,"2"]',
    '"n":{"a":1,"a":1}',
    '"n":{"canonical_record":{}}',
    '"n":true',
    '"n":' + "[" * 64 + "]" * 64,
]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=5), st.sampled_from([",", ", ", " ,\t"]))
def test_the_quick_way_and_the_strict_way_agree(parts, comma):
    raw = ("{" + comma.join(parts) + "}").encode()
    assert verdict(read_object, raw) == verdict(pith._strict, raw)


def test_a_bomb_in_gzip_is_left_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BOMB_FROM", 1 << 20)
    good = dump(sample(1)) + b"\n"
    packed = gzip.compress(good + b"\n" * (64 << 20))
    assert len(packed) * streams.BOMB_RATIO < 64 << 20
    (tmp_path / "bomb.jsonl.gz").write_bytes(packed)
    read = []
    real = gzip.GzipFile.read1
    monkeypatch.setattr(
        gzip.GzipFile, "read1", lambda self, size=-1: read.append(size) or real(self, size)
    )
    found = list(source_for(str(tmp_path / "bomb.jsonl.gz")))
    assert [type(one).__name__ for one in found] == ["Record", "Rejection"]
    assert "unpack it by hand" in found[1].reason
    assert sum(read) < 32 << 20


def test_text_that_repeats_itself_is_no_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BOMB_FROM", 1 << 16)
    whole = b"".join(dump(sample(n)) + b"\n" for n in range(5_000))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(whole))
    assert len(list(source_for(str(tmp_path / "a.jsonl.gz")))) == 5_000


def test_damaged_gzip_refuses_the_rest_and_says_so(tmp_path):
    whole = gzip.compress(b"\n".join(dump(sample(n)) for n in range(2000)))
    path = write(tmp_path / "a.jsonl.gz", whole[: len(whole) // 2])
    *records, refused = source_for(path)
    assert records
    assert all(isinstance(one, Record) for one in records)
    assert "cannot be read" in refused.reason
    other = write(tmp_path / "b.jsonl.gz", b"\x1f\x8b" + bytes(40))
    (refused,) = source_for(other)
    assert "cannot be read" in refused.reason


def test_a_broken_array_gives_the_items_before_the_break(tmp_path):
    whole = dump([sample(0), sample(1)])
    for end, words in ((b" x]", "comma"), (b",]", "next item"), (b"] 1", "comma"), (b"", "comma")):
        path = write(tmp_path / "a.json", whole[:-1] + end)
        *records, refused = source_for(path)
        assert len(records) == 2
        assert words in refused.reason


def test_an_empty_array_holds_nothing(tmp_path):
    assert list(source_for(write(tmp_path / "a.json", b" [\n ]\n"))) == []


def test_a_document_over_the_cap_is_told_to_be_json_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("anchord.adapters.sources.readers.DOCUMENT_CAP", 1 << 20)
    path = write(tmp_path / "a.json", b"[" + b" " * (1 << 20) + b"]")
    (refused,) = source_for(path)
    assert "JSON Lines" in refused.reason


def test_iterating_twice_gives_the_same_again(tmp_path):
    path = write(tmp_path / "a.jsonl", dump(sample(0)) + b"\nbad\n" + dump(sample(1)))
    source = source_for(path)
    assert list(source) == list(source)


def test_100_000_lines_pass_through_flat_memory(tmp_path):
    path = tmp_path / "many.jsonl"
    line = dump(stated(sample(0))) + b"\n"
    with path.open("wb") as file:
        for _ in range(100):
            file.write(line * 1000)
    program = (
        "import resource, sys\n"
        "from anchord.adapters.sources.inputs import source_for\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for count, _ in enumerate(source_for(sys.argv[1]), 1):\n"
        "    if count == 1000: early = peak()\n"
        "print(count, peak() - early)\n"
    )
    run = [sys.executable, "-c", program, str(path)]
    count, grown = subprocess.run(run, capture_output=True, check=True).stdout.split()
    assert int(count) == 100_000
    assert int(grown) < 4096  # KiB
