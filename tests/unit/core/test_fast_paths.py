"""What is quick gives what the plain law gives: the same values, bytes, verdicts and refusals."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.crowd import KEYS, NUMBER, POWERLESS, RECORD, VALID
from support.nasty_json import texts, values

from anchord.core import merge, strictjson
from anchord.core.event import canonical_body
from anchord.core.merge import Merged
from anchord.core.plain import plain_bytes
from anchord.core.verify import read_proof
from anchord.errors import RefusedError

LIMITED = settings(deadline=None, max_examples=400, derandomize=True)


def _law(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def _typed(value: Any) -> str:
    """Tell 1, 1.0 and True apart, -0.0 and 0.0 as well, and the order of keys."""
    return repr(value)


def _outcome(read: Any, *given: Any) -> str:
    try:
        return _typed(read(*given))
    except RefusedError as error:
        return f"refused: {error}"


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


@LIMITED
@given(st.one_of(texts(), values.map(_compact), st.binary(max_size=12)))
@example(b'{"a":1,"a":1}')
@example(b'{"a":[{"b":{},"b":{}}]}')
@example(b'"\xed\xa0\x80"')
@example(b'"\\ud800"')
@example(b"\xef\xbb\xbf[]")
@example(b"\x0c[]")
@example(b"\xc2\xa0[]")
@example(b'["\x7f","\xe2\x80\xa8"]')
@example(b"[-0,-0.0,1E5,1e400]")
@example(b"[18446744073709551615,18446744073709551616,-9223372036854775809]")
@example(b"[" + b"9" * 4301 + b"]")
@example(b"[" * 65 + b"]" * 65)
@example(b"null")
@example(b"1 2")
def test_a_text_is_read_as_the_law_reads_it(raw: bytes) -> None:
    assert _outcome(strictjson.parse, raw) == _outcome(strictjson._lawful, raw, 1 << 20)


def test_a_text_that_is_too_long_is_refused_however_it_is_written() -> None:
    with pytest.raises(RefusedError, match="at most 8 bytes"):
        strictjson.parse(b'["abcde"]', max_bytes=8)
    assert strictjson.parse(b'["abcde"]', max_bytes=9) == ["abcde"]


@LIMITED
@given(values)
@example({"b": 1, "a": 2, "A": [{"z": None, "y": True}]})
@example({"\uffff": 1, "\U00010000": 2})
@example({1: 2})
@example([(1, 2)])
@example([b"a"])
@example([float("nan"), 2**63, 2**64])
@example({"a": "\ud800"})
def test_plain_bytes_are_those_of_the_law(value: Any) -> None:
    found = plain_bytes(value)
    assert found is None or found == _law(value)


def test_every_character_is_written_as_the_law_writes_it() -> None:
    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    assert plain_bytes([text]) == _law([text])


@pytest.mark.parametrize("value", [(1,), b"a", {1, 2}, 1.0, msgspec.Raw(b"{}"), {b"a": 1}])
def test_what_json_does_not_have_is_left_to_the_law(value: Any) -> None:
    assert plain_bytes(value) is None
    assert plain_bytes({"a": [value]}) is None


@pytest.mark.parametrize("value", [2**53, -(2**53), 0.5, {"\u00e9": 1}, (1,), "\ud800"])
def test_a_body_outside_the_profile_is_still_refused(value: Any) -> None:
    with pytest.raises(RefusedError):
        canonical_body({"a": [value]})


@pytest.mark.parametrize("value", [2**53 - 1, -(2**53) + 1, "\u00e9\x7f\x01", None, {}])
def test_a_body_inside_the_profile_has_the_bytes_of_the_law(value: Any) -> None:
    body = {"b": value, "a": [value, {"c": value}]}
    assert canonical_body(body) == _law(body)


# ------------------------------------------------------------------ the merge


def _merged_by_the_law(events: list[Any]) -> Merged:
    """Judge every event in one spelling, as the rule has it."""
    verdicts = []
    for text in sorted({json.dumps(event, sort_keys=True) for event in events}):
        one = merge._judge(json.loads(text), RECORD.digest, NUMBER, KEYS, read_proof)
        verdicts.append(msgspec.structs.replace(one, text=text))
    return merge._reduce(sorted(merge._one_by_id(verdicts), key=merge._place))


def _shuffled(draw: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shuffled(draw, value[key]) for key in draw(st.permutations(list(value)))}
    return value


EVENTS = {**VALID, **POWERLESS}


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    names=st.lists(st.sampled_from(sorted(EVENTS)), max_size=8),
    dropped=st.sampled_from((None, "event_id", "payload", "signer", "signature_b64")),
    data=st.data(),
)
def test_events_judged_as_they_came_are_judged_as_the_law_judges_them(
    names: list[str], dropped: str | None, data: st.DataObject
) -> None:
    events = [_shuffled(data.draw, EVENTS[name]) for name in names]
    events += [{key: item for key, item in event.items() if key != dropped} for event in events[:2]]
    found = merge.merge(RECORD.digest, NUMBER, RECORD.canonical, events, KEYS)
    assert found == _merged_by_the_law(events)
