"""Writing bundles: our parts made anew, foreign parts carried along byte for byte."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from anchord.core.bundle import BUNDLE_TYPE, BUNDLE_VERSION
from anchord.core.canonical import aliases, pith_number, record_id, short_pith_number
from anchord.core.event import event_id
from anchord.core.model import Record, Scheme
from anchord.errors import RefusedError

_KNOWN = frozenset(
    (
        "bundle_type", "bundle_version", "pith_number", "short_pith_number", "record_id",
        "canonical_record", "canonical_scheme", "canonical_sha256", "source", "source_aliases",
        "events", "public_keys",
    )
)  # fmt: skip
_NULL = msgspec.Raw(b"null")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def whole_event(body: bytes, digest: bytes, signature: bytes) -> bytes:
    """Return a signed event as JSON: the canonical body, then its id and signature."""
    signed = base64.b64encode(signature)
    stated = event_id(digest).encode("ascii")
    return body[:-1] + b',"event_id":"' + stated + b'","signature_b64":"' + signed + b'"}'


def render_bundle(
    record: Record,
    added_at: str,
    events: Sequence[bytes],
    keys: Sequence[Mapping[str, Any]],
    documents: Sequence[bytes] = (),
) -> bytes:
    """Return a bundle as one line of JSON.

    Args:
        record: with its canonical bytes, where it has them.
        added_at: when it came in; the aliases' moment unless a foreign bundle has its own.
        events: our events, as `whole_event` returns them.
        keys: public key documents of the signers.
        documents: foreign bundles of the record, oldest first. Of a key only they know, the
            newest value is kept.
    """
    foreign = [_decoded(raw) for raw in documents]
    fields: dict[str, Any] = {"bundle_type": BUNDLE_TYPE, "bundle_version": BUNDLE_VERSION}
    if record.year is None:
        fields["record_id"] = record_id(record.digest)
    else:
        fields["pith_number"] = pith_number(record.digest, record.year)
        fields["short_pith_number"] = short_pith_number(record.digest)
    fields["canonical_record"] = (
        _NULL if record.canonical is None else msgspec.Raw(record.canonical)
    )
    if record.scheme is Scheme.RFC8785:
        fields["canonical_scheme"] = record.scheme.value
    fields["canonical_sha256"] = record.digest.hex()
    fields["source"] = _source(record.canonical)
    fields["source_aliases"] = _aliases(record, added_at, foreign)
    fields["events"] = _merged(
        [*_lists(foreign, "events"), *(msgspec.Raw(item) for item in events)]
    )
    fields["public_keys"] = _keys(keys, foreign)
    for document in foreign:
        fields.update({name: raw for name, raw in document.items() if name not in _KNOWN})
    return msgspec.json.encode(fields)


def one_line(bundle: bytes) -> bytes:
    """Return a bundle without line breaks, which foreign parts may have between their values."""
    return bundle.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _decoded(raw: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _fields.decode(raw)
    except msgspec.MsgspecError as error:
        raise RefusedError(f"a stored foreign bundle is no JSON object: {error!s:.200}") from None


def _source(canonical: bytes | None) -> msgspec.Raw:
    if canonical is None:
        return _NULL
    try:
        return _fields.decode(canonical).get("source", _NULL)
    except msgspec.MsgspecError:  # integers beyond 64 bits and the like: valid, not for msgspec
        return _NULL


def _aliases(record: Record, added_at: str, foreign: Sequence[dict[str, msgspec.Raw]]) -> Any:
    stated = [document["source_aliases"] for document in foreign if "source_aliases" in document]
    if stated:
        return stated[-1]
    return [
        {"alias_kind": kind, "alias_value": text, "created_at": added_at}
        for kind, text in aliases(record)
        if record.year is not None or not kind.startswith("pith_")
    ]


def _lists(foreign: Iterable[dict[str, msgspec.Raw]], name: str) -> list[msgspec.Raw]:
    found: list[msgspec.Raw] = []
    for document in foreign:
        if name in document:
            found += _items.decode(document[name])
    return found


class _EventName(msgspec.Struct):
    """What orders events, as far as it is text."""

    event_id: Any = None
    created_at: Any = None


class _KeyName(msgspec.Struct):
    """What tells keys apart."""

    key_id: Any = None
    public_key_b64: Any = None


def _event_name(raw: msgspec.Raw) -> tuple[str, str]:
    named = msgspec.json.decode(raw, type=_EventName)
    return str(named.created_at or ""), str(named.event_id or "")


def _key_name(raw: msgspec.Raw) -> tuple[str, str]:
    named = msgspec.json.decode(raw, type=_KeyName)
    return str(named.key_id or ""), str(named.public_key_b64 or "")


def _merged(items: Sequence[msgspec.Raw]) -> list[msgspec.Raw]:
    """Return events in order, without repetitions; of equal ones the first stays.

    A name alone does not make two events one: whoever copies an id must not take its place.
    """
    found: dict[tuple[str, str], list[msgspec.Raw]] = {}
    for item in items:
        known = found.setdefault(_event_name(item), [])
        if not any(_same(item, other) for other in known):
            known.append(item)
    return [item for name in sorted(found) for item in found[name]]


def _same(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    return bytes(one) == bytes(other) or json.loads(bytes(one)) == json.loads(bytes(other))


def _keys(
    keys: Sequence[Mapping[str, Any]], foreign: Sequence[dict[str, msgspec.Raw]]
) -> list[msgspec.Raw]:
    """Return key documents, the keyring's first: of a key it has, it alone speaks."""
    own = {str(key["key_id"]) for key in keys}
    found = {("", str(n)): msgspec.Raw(msgspec.json.encode(key)) for n, key in enumerate(keys)}
    for item in _lists(foreign, "public_keys"):
        key_id, raw = _key_name(item)
        if key_id not in own:
            found.setdefault(("key", key_id + " " + (raw or bytes(item).hex())), item)
    return list(found.values())


def follows(old: bytes, new: bytes) -> bool:
    """Tell whether bundle `new` holds all events of bundle `old`, about the same record."""
    try:
        before, after = _decoded(old), _decoded(new)
        same = bytes(before.get("canonical_sha256", b"")) == bytes(after["canonical_sha256"])
        names = {_event_name(item) for item in _lists([before], "events")}
        return same and names <= {_event_name(item) for item in _lists([after], "events")}
    except (RefusedError, msgspec.MsgspecError):
        return False
