"""Hypothesis strategies for JSON that parsers disagree about, and the law it is judged by."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import strategies as st

NASTY_STRINGS = [
    "",
    "a",
    "A b",
    "\x7f",
    "\x00",
    "\x1f",
    "\n",
    "\t",
    '"',
    "\\",
    "/",
    "\u2028",
    "\u00e9",
    "e\u0301",
    "\uffff",
    "\ue000",
    "\U0001f600",
    "\U00010000",
    "metadata",
    "submitted_at",
    "2025-07-14",
]
strings = st.one_of(st.sampled_from(NASTY_STRINGS), st.text(max_size=6))
integers = st.one_of(
    st.integers(-10, 10),
    st.sampled_from([2**53, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 2**64 + 1, 10**40]),
    st.integers(),
)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(st.none(), st.booleans(), integers, floats, strings)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=12,
)
SPACES = ["", "", "", " ", "  ", "\n", "\t", "\r\n"]


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """JSON objects written as strangers write them: any order, white space, escapes, twins."""
    value = draw(st.dictionaries(strings, values, max_size=5))
    return _write(draw, value).encode("utf-8", "surrogatepass")


def _write(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        members = [(key, item) for key, item in draw(st.permutations(sorted(value.items())))]
        if members and draw(st.integers(0, 19)) == 0:
            members.append((members[0][0], draw(scalars)))
        body = ",".join(
            f"{_space(draw)}{_string(draw, key)}{_space(draw)}:{_write(draw, item)}"
            for key, item in members
        )
        text = "{" + body + "}"
    elif isinstance(value, list):
        text = "[" + ",".join(_write(draw, item) for item in value) + "]"
    elif isinstance(value, str):
        text = _string(draw, value)
    else:
        text = _scalar(draw, value)
    return f"{_space(draw)}{text}{_space(draw)}"


def _space(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(SPACES))


def _scalar(draw: st.DrawFn, value: Any) -> str:
    odd = draw(st.integers(0, 60))
    if odd < 6:
        return ["NaN", "-Infinity", "1e999", "-0", "1.0", "1E5"][odd]
    return json.dumps(value)


def _string(draw: st.DrawFn, value: str) -> str:
    style = draw(st.integers(0, 20))
    if style == 0:
        return '"\\ud83d"' if draw(st.booleans()) else '"\\ud83d\\ude00"'
    if style == 1:
        return '"' + "".join(f"\\u{unit:04X}" for unit in _utf16(value)) + '"'
    return json.dumps(value, ensure_ascii=style < 5)


def _utf16(value: str) -> list[int]:
    raw = value.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]


class UnlawfulError(Exception):
    """The text is not a record."""


def law(raw: bytes, deepest: int) -> bytes:
    """Canonical bytes by the published rule, written without regard to speed.

    Raises:
        UnlawfulError: the text is refused.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no, parse_float=_float
        )
        if not isinstance(value, dict) or _depth(value) > deepest:
            raise UnlawfulError
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8")
    except ValueError as error:
        raise UnlawfulError from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise UnlawfulError
    return dict(pairs)


def _no(_name: str) -> Any:
    raise UnlawfulError


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnlawfulError
    return number


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
