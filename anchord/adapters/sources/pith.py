"""Records in JSON: alone, in an object that states their hash or number, in a bundle.

What was stated must recompute, or the object is refused; nothing is ever "fixed". Which object
is what:

- `bundle_type` is "pith_open_graph_bundle": a bundle, kept byte for byte beside its record;
- it has a `canonical_record`: that is the record, and what stands beside it as `canonical_sha256`,
  `pith_number`, `short_pith_number` or `record_id` is checked; all other keys are ignored;
- it states a hash or a number but has no `canonical_record`, or it is a state document: refused,
  because hashing the wrapper would anchor the wrong thing;
- any other object is itself the record, whatever its keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from anchord.core.bundle import read_bundle
from anchord.core.canonical import (
    MAX_DEPTH,
    parse,
    read_record,
    record_id,
    short_pith_number,
)
from anchord.core.model import Document, Record, Scheme
from anchord.errors import DigestMismatchError, RefusedError

OBJECT_CAP = 16 * 1024 * 1024
"""Longest JSON text of one record with all that stands around it, such as a bundle's events."""
BUNDLE_TYPE = "pith_open_graph_bundle"
_STATEMENTS = ("canonical_sha256", "pith_number")
_SHORTER = frozenset(("short_pith_number", "record_id"))
"""Statements that follow from the digest too, and are rarely made."""
_MEANT = frozenset(("canonical_record", "bundle_type", "state_type", *_STATEMENTS))
"""Keys that say what an object is; without any of them it is itself the record."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_WORDS = (b"n", b"t", b"f")
_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


def read_object(raw: bytes, scheme: Scheme, label: str | None = None) -> Record | Document:
    """Return the record, or the bundle with its record, that one JSON text holds.

    Raises:
        RefusedError: not one JSON object read strictly, or something stated does not recompute.
    """
    if raw.isascii() and b"\\" not in raw:
        record = _quick(raw, scheme, label)
        if record is not None:
            return record
    return _strict(raw, scheme, label)


def _quick(raw: bytes, scheme: Scheme, label: str | None) -> Record | None:
    """Read the plain cases without parsing the wrapper's other values; None: read it strictly.

    Raises:
        RefusedError: the record inside is bad, or does not recompute.
    """
    try:
        fields = _fields.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    inner = fields.pop("canonical_record", None)
    if inner is None:
        if fields.keys().isdisjoint(_MEANT):
            return read_record(raw, scheme=scheme, label=label)
        return None
    record = bytes(inner)
    sha256, number = _plain(fields.get("canonical_sha256")), _plain(fields.get("pith_number"))
    if sha256 == "" or number == "" or "bundle_type" in fields or not _SHORTER.isdisjoint(fields):
        return None
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH or not _distinct(raw, record, fields):
        return None
    return read_record(
        record, scheme=scheme, stated_sha256=sha256, stated_number=number, label=label
    )


def _plain(value: msgspec.Raw | None) -> str | None:
    """Return a stated text; None when nothing is stated, "" for anything but plain text."""
    if value is None:
        return None
    text = bytes(value)
    if text == b"null":
        return None
    return text[1:-1].decode("ascii") if text[:1] == b'"' else ""


def _distinct(raw: bytes, record: bytes, fields: dict[str, msgspec.Raw]) -> bool:
    """Return whether no key of a wrapper (plain ASCII, no backslash) can have stood there twice.

    Outside the record, a wrapper of texts, true, false and null has two quotes for each key and
    each text. `fields` has only the last of two equal keys, so the other's quotes are too many.
    """
    quotes = 2 * len(fields) + 2
    for value in fields.values():
        first = bytes(value)[:1]
        if first == b'"':
            quotes += 2
        elif first not in _WORDS:
            return False
    return raw.count(b'"') - record.count(b'"') == quotes


def _strict(raw: bytes, scheme: Scheme, label: str | None) -> Record | Document:
    value = parse(raw, max_bytes=OBJECT_CAP)
    if not isinstance(value, dict):
        raise RefusedError(
            f"expected a JSON object as a record, got {_article(value)}: add it as a file "
            "with `--as file` if its bytes are meant"
        )
    if value.get("bundle_type") == BUNDLE_TYPE:
        if "canonical_record" in value and value["canonical_record"] is None:
            return Document(record=_hash_only(raw, label), raw=raw)
        return Document(record=_bundled(value, scheme, label), raw=raw)
    if "canonical_record" in value:
        return _stated(value, scheme, label)
    if "state_type" in value:
        raise RefusedError("this is a state document, not a record: add the record or its bundle")
    for name in _STATEMENTS:
        if name in value:
            raise RefusedError(f"it states {name} but has no canonical_record: expected both")
    return read_record(raw, scheme=scheme, label=label)


def _article(value: Any) -> str:
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def _stated(value: dict[str, Any], scheme: Scheme, label: str | None) -> Record:
    """Return the `canonical_record` of `value`, checked against what stands beside it."""
    record = read_record(
        # Both schemes are functions of the value, so writing it again changes nothing.
        json.dumps(value["canonical_record"], ensure_ascii=False).encode("utf-8"),
        scheme=scheme,
        stated_sha256=_text(value, "canonical_sha256"),
        stated_number=_text(value, "pith_number"),
        label=label,
    )
    expected = {
        "short_pith_number": short_pith_number(record.digest),
        "record_id": record_id(record.digest),
    }
    for name, found in expected.items():
        stated = _text(value, name)
        if stated is not None and stated != found:
            raise RefusedError(
                f"expected the stated {name} {stated!r:.80}, got {found} from the record"
            )
    return record


def _text(value: dict[str, Any], name: str) -> str | None:
    text = value.get(name)
    if text is None or isinstance(text, str):
        return text
    raise RefusedError(f"{name} is {_article(text)}: expected text")


def _hash_only(raw: bytes, label: str | None) -> Record:
    """Return the record of a bundle that has no more of it than its hash."""
    try:
        return Record(digest=read_bundle(raw).digest, scheme=Scheme.SHA256, label=label)
    except DigestMismatchError as error:
        raise RefusedError(str(error)) from None


def _bundled(bundle: dict[str, Any], scheme: Scheme, label: str | None) -> Record:
    """Return a bundle's record; its own `record_created` events must speak of the same one."""
    if bundle.get("canonical_scheme") == Scheme.RFC8785.value:
        scheme = Scheme.RFC8785
    if "canonical_record" not in bundle:
        raise RefusedError("the bundle has no canonical_record: fetch it again from its source")
    record = _stated(bundle, scheme, label)
    events = bundle.get("events", [])
    if not isinstance(events, list):
        raise RefusedError(f"events is {_article(events)}: expected an array")
    for event in events:
        if isinstance(event, dict) and event.get("event_type") == "record_created":
            _check_created(event.get("payload"), record)
    return record


def _check_created(payload: Any, record: Record) -> None:
    if not isinstance(payload, dict):
        raise RefusedError("the bundle's record_created event has no payload")
    stated = _text(payload, "canonical_sha256")
    if stated is None or stated.lower() != record.digest.hex():
        raise RefusedError(
            f"the bundle's record_created event is about {stated!r:.80}, but its record is "
            f"{record_id(record.digest)}: fetch the bundle again from its source"
        )
    if "canonical_record" in payload:
        _stated(
            {"canonical_record": payload["canonical_record"], "canonical_sha256": stated},
            record.scheme,
            None,
        )


def split_array(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (1-based line, text) of each item of the JSON array that `raw` begins with.

    Items are cut out, not judged: what is wrong inside one is for `read_object` to say.

    Raises:
        RefusedError: where the array itself breaks off; items before have been yielded.
    """
    # Bytes that are not UTF-8 survive the way to text and back, to be refused in their item.
    text = raw.decode("utf-8", "surrogateescape")
    at, line = text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    if text[_after_space(text, at) :].rstrip() == "]":
        return
    while True:
        start = _after_space(text, at)
        line += text.count("\n", at, start)
        try:
            _, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            raise RefusedError(f"line {line}: expected the next item of a JSON array") from None
        yield line, text[start:end].encode("utf-8", "surrogateescape")
        at = _after_space(text, end)
        line += text.count("\n", start, at)
        if text[at : at + 1] != ",":
            break
        at += 1
    if text[at:].rstrip() != "]":
        raise RefusedError(f"line {line}: expected a comma or the end of the JSON array")


def _after_space(text: str, at: int) -> int:
    """Return where JSON goes on after white space (RFC 8259, 2)."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches everywhere
