"""Canonical bytes: the fast path is the law, and a statement that does not recompute is refused."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.nasty_json import UnlawfulError, law, texts, values

from anchord.core import canonical
from anchord.core.canonical import MAX_DEPTH, canonical_bytes, digest_of, read_record
from anchord.core.model import Scheme
from anchord.errors import RefusedError

LIMITED = settings(deadline=None, max_examples=400, derandomize=True)

RECORD: dict[str, Any] = {
    "metadata": {
        "abstract_canon_sha256": "1bfe8bbd3a73debcb38d2c1e752b45cad5d44e99250cf9a15442c36a402ec375",
        "cross_cats_sorted": ["cs.AI", "cs.LG"],
        "license": "",
        "primary_cat": "cs.DC",
        "submitted_at": "2025-07-14T15:31:31Z",
        "title_canon_sha256": "b0d75d25cf32a498adb46b18b5b4c6050510265b604e1f24be56a328c2c9de88",
    },
    "schema_version": "1.0",
    "source": {"id": "2507.10392", "kind": "arxiv", "version": 1},
}


def _obeys_the_law(raw: bytes) -> None:
    try:
        expected = law(raw, MAX_DEPTH)
    except UnlawfulError:
        with pytest.raises(RefusedError):
            read_record(raw)
        return
    record = read_record(raw)
    assert record.canonical == expected
    assert record.digest == hashlib.sha256(expected).digest()


@LIMITED
@given(texts())
@example(b'{"a":1,"a":1}')
@example(b'{"a":1, "a" :1}')
@example(b'{"a":[{"b":1,"b":2}]}')
@example(b'{"a":"   ","a":"   "}')
@example(b'{"\\u0061":1,"a":2}')
@example(b'{"\xf0\x9f\x98\x80":1,"\xef\xbf\xbf":2,"\xee\x80\x80":3}')
@example(b'{"\\ud83d\\ude00":1,"\\uffff":2}')
@example(b'{"a":"\x7f"}')
@example(b'{"a":"\\u007f\\/"}')
@example(b'{"a":"\x01"}')
@example(b'{"a":-0}')
@example(b'{"a":-0.0}')
@example(b'{"a":1e16,"b":1E-7,"c":123456789012345680000}')
@example(b'{"a":"\\ud800"}')
@example(b'{"\\udc00":1}')
@example(b'\xef\xbb\xbf{"a":1}')
@example(b'{"a":1}\n')
@example(b'{"a":1}\x00')
@example(b'{"a":1}\x0c')
@example(b'{"a":1}{"a":1}')
@example(b"[1]")
@example(b"null")
@example(b"")
@example(b"\xff\xfe{\x00}\x00")
@example(b'{"a":"\xed\xa0\x80"}')
@example(b'{"a":' + b"1" * 4300 + b"}")
@example(b'{"a":-' + b"1" * 4300 + b"}")
@example(b'{"a":' + b"1" * 4301 + b"}")
@example(b'{"a":' * 64 + b"1" + b"}" * 64)
@example(b'{"a":' * 65 + b"1" + b"}" * 65)
@example(b'{"a":' + b"[" * 63 + b"]" * 63 + b"}")
@example(b'{"a":' + b"[" * 64 + b"]" * 64 + b"}")
@example(b'{"a":"' + b"[" * 100 + b'"}')
def test_fast_and_slow_path_give_what_the_law_gives(raw: bytes) -> None:
    _obeys_the_law(raw)


@LIMITED
@given(
    st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), min_size=1, max_size=3),
    st.booleans(),
)
def test_damaged_records_are_refused_or_lawful(
    damage: list[tuple[int, int]],
    indented: bool,
) -> None:
    raw = bytearray(json.dumps(RECORD, indent=1 if indented else None).encode())
    for at, byte in damage:
        raw[at % len(raw)] = byte
    _obeys_the_law(bytes(raw))


@pytest.mark.parametrize(
    ("alphabet", "length"),
    [("01-+.eE", 5), ('{}[]:,"\\ \nan01-.eEu\x7f', 3), ('{"a:1, }', 6)],
    ids=["numbers", "anything", "objects"],
)
def test_every_short_value_is_refused_or_lawful(alphabet: str, length: int) -> None:
    for letters in itertools.product(alphabet, repeat=length):
        raw = ('{"k":' + "".join(letters) + "}").encode()
        try:
            expected = law(raw, MAX_DEPTH)
        except UnlawfulError:
            expected = None
        try:
            got = read_record(raw).canonical
        except RefusedError:
            got = None
        assert got == expected, raw


@LIMITED
@given(st.binary(max_size=200))
def test_random_bytes_raise_only_refusals(raw: bytes) -> None:
    with contextlib.suppress(RefusedError):
        read_record(raw)


def test_typical_records_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_args: object) -> None:
        pytest.fail("the slow path was taken")

    monkeypatch.setattr(canonical, "_lawful", never)
    compact = json.dumps(RECORD, sort_keys=True, separators=(",", ":")).encode()
    for raw in (
        compact,
        compact + b"\n",
        json.dumps(RECORD).encode(),
        json.dumps(dict(reversed(RECORD.items()))).encode(),
    ):
        assert read_record(raw).canonical == compact


@pytest.mark.shared_data
def test_every_real_record_recomputes_hash_and_number(shared_data: Path) -> None:
    lines = (shared_data / "pith-records.jsonl").read_text().splitlines()
    assert len(lines) == 60
    for line in lines:
        row = json.loads(line)
        source = row["canonical_record"]["source"]
        for indent in (None, 2):
            record = read_record(
                json.dumps(row["canonical_record"], indent=indent).encode(),
                stated_sha256=row["canonical_sha256"].upper(),
                stated_number=row["pith_number"],
                label=row["url"],
            )
            assert record.digest == digest_of(record.canonical or b"")
            assert record.digest.hex() == row["canonical_sha256"]
            assert record.year == row["pith_number"][5:9]
            assert record.label == row["url"]
            assert (record.source_kind, record.source_id, record.source_version) == (
                source["kind"],
                source["id"],
                source["version"],
            )


def test_a_stated_hash_that_does_not_recompute_is_refused_naming_both() -> None:
    raw = json.dumps(RECORD).encode()
    good = read_record(raw).digest.hex()
    wrong = "0" + good[1:] if good[0] != "0" else "1" + good[1:]
    with pytest.raises(RefusedError) as caught:
        read_record(raw, stated_sha256=wrong)
    assert wrong in str(caught.value)
    assert good in str(caught.value)
    for malformed in ("", "sha256:" + good, good[:-1], good + "00"):
        with pytest.raises(RefusedError):
            read_record(raw, stated_sha256=malformed)


def test_a_stated_number_is_compared_exactly() -> None:
    raw = json.dumps(RECORD).encode()
    record = read_record(raw)
    number = canonical.pith_number(record.digest, "2025")
    assert read_record(raw, stated_number=number) == record
    for wrong in (number.lower(), number[:-1], number.replace("2025", "2024"), ""):
        with pytest.raises(RefusedError) as caught:
            read_record(raw, stated_number=wrong)
        assert number in str(caught.value)


def test_a_record_without_a_date_has_no_number_to_state() -> None:
    with pytest.raises(RefusedError, match="submitted_at"):
        read_record(b'{"a":1}', stated_number="pith:2025:AAAAAAAAAAAAAAAAAAAAAAAAAA")


@pytest.mark.parametrize(
    ("at", "year"),
    [
        ("2025-07-14T15:31:31Z", "2025"),
        ("1998-", "1998"),
        ("20250714", None),
        ("25-07-14", None),
        ("-025-01-01", None),
        ("\u0662\u0660\u0662\u0665-01-01", None),
        (2025, None),
        (None, None),
        (["2025-"], None),
    ],
)
def test_the_year_is_four_digits_before_a_hyphen(at: object, year: str | None) -> None:
    raw = json.dumps({"metadata": {"submitted_at": at}}).encode()
    assert read_record(raw).year == year
    assert read_record(json.dumps({"metadata": [at]}).encode()).year is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"kind": "arxiv", "id": "2507.10392", "version": 2}, ("arxiv", "2507.10392", 2)),
        ({"kind": "zenodo"}, ("zenodo", None, None)),
        ({"kind": 1, "id": ["x"], "version": "2"}, (None, None, None)),
        ({"version": True}, (None, None, None)),
        ({"version": -1}, (None, None, None)),
        ({"version": 2**31}, (None, None, None)),
        ({"version": 1.0}, (None, None, None)),
        ({"id": "a\x00b", "kind": "x" * 257}, (None, None, None)),
        ("arxiv", (None, None, None)),
    ],
)
def test_a_source_of_the_wrong_types_is_left_out_not_refused(
    source: object, expected: tuple[object, ...]
) -> None:
    record = read_record(json.dumps({"source": source}).encode())
    assert (record.source_kind, record.source_id, record.source_version) == expected


def test_rfc8785_orders_keys_by_utf16_and_writes_floats_its_way() -> None:
    raw = '{"\U0001f600":1e0,"\uffff":100.0}'.encode()
    ours = read_record(raw).canonical
    theirs = read_record(raw, scheme=Scheme.RFC8785)
    assert theirs.scheme is Scheme.RFC8785
    assert theirs.canonical == '{"\U0001f600":1,"\uffff":100}'.encode()
    assert ours == '{"\uffff":100.0,"\U0001f600":1.0}'.encode()


@LIMITED
@given(values)
def test_rfc8785_is_the_library_or_a_refusal(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        with pytest.raises(RefusedError):
            canonical_bytes(value, Scheme.RFC8785)
        return
    assert canonical_bytes(value, Scheme.RFC8785) == expected


@LIMITED
@given(values)
def test_canonical_bytes_are_the_published_expression(value: Any) -> None:
    law_text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_bytes(value) == law_text.encode()


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"a": "\ud800"}, {1, 2}, b"x", {"a": 1, 2: 3}]
)
@pytest.mark.parametrize("scheme", [Scheme.PITH_JSON_V1, Scheme.RFC8785])
def test_values_without_canonical_bytes_are_refused(value: object, scheme: Scheme) -> None:
    with pytest.raises(RefusedError):
        canonical_bytes(value, scheme)


def test_a_bare_digest_scheme_has_no_canonical_bytes() -> None:
    with pytest.raises(RefusedError, match="bare digests"):
        canonical_bytes({}, Scheme.SHA256)
    with pytest.raises(RefusedError, match="bare digests"):
        read_record(b"{}", scheme=Scheme.SHA256)


def test_a_value_nested_beyond_recursion_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(RefusedError):
        canonical_bytes(value)
    while value:  # taken apart level by level, so that no destructor recurses
        value = value.pop()
