"""Strict JSON: every refusal has a reason, and no input makes the reader recurse or crawl."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.canonical import MAX_DEPTH, MAX_RECORD_BYTES, parse
from anchord.errors import RefusedError


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"a":1,"b":{"x":1,"x":2}}', "'x' twice"),
        (b'{"a":NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e400]", "fits a double"),
        (b'["\\ud83d"]', "lone surrogate"),
        (b'{"\\uDEAD":0}', "lone surrogate"),
        (b'["\\ude00\\ud83d"]', "lone surrogate"),
        (b"\xef\xbb\xbf[]", "byte order mark"),
        (b'["\xff"]', "0xff at offset 2"),
        (b'["\xed\xa0\xbd"]', "UTF-8"),
        ("[]".encode("utf-16"), "UTF-8"),
        (b"[" * 65 + b"]" * 65, "nested at most 64"),
        (b"[" * 500_000, "nested at most 64"),
        (b'{"a":' * 200_000, "nested at most 64"),
        (b"[1] 2", "Extra data"),
        (b"[1],", "Extra data"),
        (b"[01]", "not"),
        (b"['a']", "not"),
        (b"[1,]", "not"),
        (b"", "not"),
        (b" ", "not"),
        (b"[" + b"9" * 4301 + b"]", "4300 digits"),
        (b'"' + b"x" * MAX_RECORD_BYTES + b'"', "at most 1048576 bytes"),
    ],
)
def test_refusals_say_why(raw: bytes, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parse(raw)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b" [1, 2.50, -0, true, null] ", [1, 2.5, 0, True, None]),
        (b'"\\ud83d\\ude00 \\\\ud800"', "\U0001f600 \\ud800"),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
        (b'["' + b"[" * 100 + b'"]', ["[" * 100]),
        (b'["\\"' + b"{" * 100 + b'\\\\"]', ['"' + "{" * 100 + "\\"]),
        (b"[" + b"[]," * 1000 + b"[]]", [[]] * 1001),
        (b'"' + b"x" * (MAX_RECORD_BYTES - 2) + b'"', "x" * (MAX_RECORD_BYTES - 2)),
        (b"[" + b"9" * 4300 + b"]", [10**4300 - 1]),
    ],
)
def test_what_is_valid_is_read(raw: bytes, value: object) -> None:
    got = parse(raw)
    if value is not None:
        assert got == value


@pytest.mark.parametrize(
    "unit", [b'\\"', b'"', b"\\", b"[", b"{}", b'{"', b'"\\', b"[]", b"1e9,", b"-", b'"\\u']
)
def test_a_megabyte_of_anything_is_judged_in_linear_time(unit: bytes) -> None:
    started = time.process_time()
    for raw in (unit * (MAX_RECORD_BYTES // len(unit)), b'["' + unit * 300_000):
        with pytest.raises(RefusedError):
            parse(raw)
    assert time.process_time() - started < 5  # quadratic behaviour would take hours


@settings(deadline=None, max_examples=300, derandomize=True)
@given(st.text(alphabet='[]{}"\\:,1a', max_size=200))
def test_bracket_soup_raises_only_refusals(text: str) -> None:
    try:
        parse(text.encode())
    except RefusedError:
        return
