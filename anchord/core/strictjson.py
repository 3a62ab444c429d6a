"""JSON from strangers, read strictly: what two parsers could read differently is refused.

RFC 8259 leaves duplicate keys, lone surrogates and numbers without limits to the reader. A hash
over such a text would mean different things to different readers, so none of it passes here.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import msgspec

from anchord.errors import RefusedError

MAX_RECORD_BYTES = 1 << 20
"""Longest record text: 1 MiB. Real records have about 550 bytes."""
MAX_DEPTH = 64
"""Deepest nesting of lists and objects; `{}` has depth 1."""
MAX_DIGITS = 4300
"""Longest integer: what Python converts by default (longer ones cost quadratic time)."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises of bytes from strangers: no JSON, no UTF-8 in a text, nested too deeply."""

_WHITESPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def parse(raw: bytes, *, max_bytes: int = MAX_RECORD_BYTES) -> Any:
    """Return the value of a JSON text of at most `max_bytes`.

    Raises:
        RefusedError: not UTF-8, too long, too deep, not JSON, duplicate keys, a number that is
            not finite or has more digits than Python reads, or a lone surrogate.
    """
    quick = _quick(raw) if len(raw) <= max_bytes else None
    if quick is not None:
        _check_depth(raw)
        return quick[0]
    return _lawful(raw, max_bytes)


class _NotQuickError(Exception):
    """A text that only the law reads."""


def _not_quick(_digits: str) -> NoReturn:
    raise _NotQuickError


_decoder = msgspec.json.Decoder(float_hook=_not_quick)
_encoder = msgspec.json.Encoder()


def _quick(raw: bytes) -> tuple[Any] | None:
    """Return the value of a text that is written the way msgspec writes it; None says nothing.

    What an encoder wrote has every key once, and is JSON in UTF-8: all that the law looks for is
    seen by comparing. Floats are left to the law, for there the two write differently.
    """
    raw = raw.strip(_WHITESPACE)
    try:
        value = _decoder.decode(raw)
        return (value,) if _encoder.encode(value) == raw else None
    except (_NotQuickError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def _lawful(raw: bytes, max_bytes: int) -> Any:
    text = _decode(raw, max_bytes)
    _check_depth(raw)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        reason = _where(error) if isinstance(error, json.JSONDecodeError) else str(error)
        raise RefusedError(f"expected one JSON value, got a text that is not: {reason}") from None
    if _SURROGATE_ESCAPE.search(text):
        _check_surrogates(value)
    return value


def _where(error: json.JSONDecodeError) -> str:
    """Say where the fault is; a text of one line may be a line of a file, so it has no number."""
    line = f"line {error.lineno}, " if "\n" in error.doc.strip() else ""
    return f"{error.msg} at {line}character {error.colno}"


def _decode(raw: bytes, max_bytes: int) -> str:
    if len(raw) > max_bytes:
        raise RefusedError(
            f"expected at most {max_bytes} bytes of JSON, got {len(raw)}: "
            "add big documents as files, by their hash"
        )
    if raw.startswith(_BOM):
        raise RefusedError("expected JSON in UTF-8 without a byte order mark, got one: remove it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"expected JSON in UTF-8, got byte 0x{raw[error.start]:02x} at offset {error.start}: "
            "convert the file"
        ) from None


def _check_depth(raw: bytes) -> None:
    """Measure nesting before the parser runs, so that the parser's own recursion is bounded.

    Once escaped backslashes and escaped quotes are gone, every second piece between quotes lies
    outside strings. In a text that is not JSON this holds up to the first fault, and no parser
    gets further than that.
    """
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    pieces = raw.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
    depth = 0
    for bracket in b"".join(pieces[::2]).translate(None, _ALL_BUT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise _too_deep()


def _too_deep() -> RefusedError:
    return RefusedError(f"expected JSON nested at most {MAX_DEPTH} deep, got a deeper one")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise RefusedError(
            f"expected every key once, got {twice!r:.80} twice in one object: "
            "two readers could take different values"
        )
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise RefusedError(f"expected a JSON number, got {name}, which JSON does not have")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise RefusedError(f"expected a number that fits a double, got {digits:.40}")
    return number


def _whole(digits: str) -> int:
    if len(digits.removeprefix("-")) > MAX_DIGITS:
        raise RefusedError(
            f"expected integers of at most {MAX_DIGITS} digits, got one of {len(digits)}"
        )
    return int(digits)


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise RefusedError(
            "expected valid Unicode, got a lone surrogate escape (\\ud800 to \\udfff without its "
            "other half)"
        ) from None
