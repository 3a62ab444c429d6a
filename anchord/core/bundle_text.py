"""Writing bundles: our parts made anew, foreign parts carried along byte for byte.

A bundle's bytes follow from the set of what goes in: record, events, foreign documents, inclusion
proofs and keyring. In which order and how often any of it came makes no difference, so two mirrors
that know the same publish the same bytes (docs/protocol.md, Bundle).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from anchord.core.bundle import BUNDLE_TYPE, BUNDLE_VERSION
from anchord.core.canonical import aliases, pith_number, record_id, short_pith_number
from anchord.core.event import event_id
from anchord.core.inclusion import Inclusion, united
from anchord.core.model import Record, Scheme
from anchord.core.strictjson import UNREADABLE
from anchord.errors import RefusedError

_KNOWN = frozenset(
    (
        "bundle_type", "bundle_version", "pith_number", "short_pith_number", "record_id",
        "canonical_record", "canonical_scheme", "canonical_sha256", "source", "source_aliases",
        "events", "public_keys", "inclusion",
    )
)  # fmt: skip
_NULL = msgspec.Raw(b"null")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_inclusions = msgspec.json.Decoder(list[Inclusion])


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
    *,
    inclusion: Sequence[Inclusion] = (),
) -> bytes:
    """Return a bundle as one line of JSON.

    Args:
        record: with its canonical bytes, where it has them.
        added_at: when it came in; the moment of aliases that no foreign bundle states.
        events: our events, as `whole_event` returns them.
        keys: public key documents of the signers.
        documents: foreign bundles of the record. Of a key only they know, the smallest value
            (by its bytes) is kept.
        inclusion: checkpoints that cover our events, in any order.
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
    included = united((*inclusion, *_included(foreign)))
    if included:
        fields["inclusion"] = included
    fields.update(_unknown(foreign))
    return msgspec.json.encode(fields)


def _unknown(foreign: Iterable[dict[str, msgspec.Raw]]) -> dict[str, msgspec.Raw]:
    """Return the keys that only foreign documents know, by name."""
    found: dict[str, msgspec.Raw] = {}
    for document in foreign:
        for name, raw in document.items():
            if name not in _KNOWN:
                found[name] = min(found.get(name, raw), raw, key=bytes)
    return dict(sorted(found.items()))


def _included(foreign: Iterable[dict[str, msgspec.Raw]]) -> list[Inclusion]:
    found: list[Inclusion] = []
    for document in foreign:
        if "inclusion" in document:
            try:
                found += _inclusions.decode(document["inclusion"])
            except UNREADABLE as error:
                raise RefusedError(f"a stored foreign bundle is damaged: {error!s:.200}") from None
    return found


def one_line(bundle: bytes) -> bytes:
    """Return a bundle without line breaks, which foreign parts may have between their values."""
    return bundle.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


def _decoded(raw: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _fields.decode(raw)
    except UNREADABLE as error:
        raise RefusedError(f"a stored foreign bundle is no JSON object: {error!s:.200}") from None


def _source(canonical: bytes | None) -> msgspec.Raw:
    if canonical is None:
        return _NULL
    try:
        return _fields.decode(canonical).get("source", _NULL)
    except msgspec.MsgspecError:  # integers beyond 64 bits and the like: valid, not for msgspec
        return _NULL


class _AliasName(msgspec.Struct):
    """What tells aliases apart, and how old one is."""

    alias_kind: Any = None
    alias_value: Any = None
    created_at: Any = None


def _aliases(record: Record, added_at: str, foreign: Sequence[dict[str, msgspec.Raw]]) -> list[Any]:
    """Return the aliases of all, by kind and value; the earliest statement of each stays."""
    found: dict[tuple[str, str], tuple[bool, str, bytes]] = {}
    for raw in _lists(foreign, "source_aliases"):
        named = msgspec.json.decode(raw, type=_AliasName)
        name, at = (str(named.alias_kind), str(named.alias_value)), named.created_at
        stated = (not isinstance(at, str), str(at), bytes(raw))
        found[name] = min(found.get(name, stated), stated)
    values: dict[tuple[str, str], Any] = {
        (kind, text): {"alias_kind": kind, "alias_value": text, "created_at": added_at}
        for kind, text in aliases(record)
        if record.year is not None or not kind.startswith("pith_")
    }
    values.update({name: msgspec.Raw(raw) for name, (_, _, raw) in found.items()})
    return [values[name] for name in sorted(values)]


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
    """Return events in order, without repetitions; of two spellings the smaller stays.

    A name alone does not make two events one: whoever copies an id must not take its place.
    """
    found: dict[tuple[str, str], set[bytes]] = {}
    for item in items:
        found.setdefault(_event_name(item), set()).add(bytes(item))
    return [msgspec.Raw(raw) for name in sorted(found) for raw in _distinct(found[name])]


def _distinct(spellings: set[bytes]) -> list[bytes]:
    """Return the smallest spelling of each value.

    Unlike Python, JSON tells 1, 1.0 and true apart: an event with one in the place of another is
    another event, with another hash.
    """
    if len(spellings) == 1:
        return list(spellings)
    found: dict[str, bytes] = {}
    for raw in sorted(spellings):
        found.setdefault(json.dumps(json.loads(raw), sort_keys=True), raw)
    return sorted(found.values())


def _keys(
    keys: Sequence[Mapping[str, Any]], foreign: Sequence[dict[str, msgspec.Raw]]
) -> list[msgspec.Raw]:
    """Return key documents, the keyring's first: of a key it has, it alone speaks."""
    own = {str(key["key_id"]): key for key in keys}
    found: dict[tuple[str, str], bytes] = {}
    for item in _lists(foreign, "public_keys"):
        key_id, public_key = _key_name(item)
        if key_id not in own:
            raw = bytes(item)
            # A key without either is told apart by all that it says.
            name = (key_id, public_key or raw.hex())
            found[name] = min(found.get(name, raw), raw)
    mine = [msgspec.Raw(msgspec.json.encode(own[key_id])) for key_id in sorted(own)]
    return mine + [msgspec.Raw(found[name]) for name in sorted(found)]


def follows(old: bytes, new: bytes) -> bool:
    """Tell whether bundle `new` holds all events of bundle `old`, about the same record."""
    try:
        before, after = _decoded(old), _decoded(new)
        same = bytes(before.get("canonical_sha256", b"")) == bytes(after["canonical_sha256"])
        names = {_event_name(item) for item in _lists([before], "events")}
        return same and names <= {_event_name(item) for item in _lists([after], "events")}
    except (RefusedError, *UNREADABLE):
        return False
