"""Bundles: one JSON file with a record, its receipts, whole proofs and public keys.

The named keys are the registry's (docs/protocol.md, Bundle); `record_id`, `canonical_scheme`,
`public_keys` and `inclusion` are anchord's. What a foreign bundle said is carried along byte for
byte: its events, its aliases, and every key not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from anchord.core.canonical import (
    aliases,
    canonical_bytes,
    digest_of,
    pith_number,
    pith_suffix,
    record_id,
    short_pith_number,
)
from anchord.core.inclusion import Inclusion, read_inclusion
from anchord.core.model import Record, Scheme
from anchord.core.strictjson import parse
from anchord.errors import DigestMismatchError, RefusedError

BUNDLE_TYPE = "pith_open_graph_bundle"
BUNDLE_VERSION = "1.0"
MAX_BUNDLE_BYTES = 16 * 1024 * 1024
MAX_FOREIGN_BYTES = MAX_BUNDLE_BYTES // 2
"""What foreign documents of one record may come to in its bundle: it must stay one that is read,
whatever strangers have to say of the record."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that agrees with itself about which record it is of."""

    digest: bytes
    number: str | None
    canonical: bytes | None
    """Canonical bytes, recomputed from the record inside; None when it holds only the hash."""
    events: tuple[dict[str, Any], ...]
    keys: tuple[Any, ...]
    """Public key documents, as claimed."""
    receipt: dict[str, Any] | None
    """A receipt of the registry that stands beside the record."""
    aliases: tuple[dict[str, Any], ...] = ()
    """As stated; those that follow from the record have been compared with it."""
    inclusion: tuple[Inclusion, ...] = ()
    """Checkpoints that are said to cover its events; none of it is verified here."""


def read_bundle(raw: bytes) -> Bundle:
    """Return what a bundle says, its statements about the record recomputed.

    Raises:
        RefusedError: not JSON read strictly, or not a bundle of version 1.0.
        DigestMismatchError: the record does not have the hash, number, source or alias stated.
    """
    value = parse(raw, max_bytes=MAX_BUNDLE_BYTES)
    if not isinstance(value, dict) or value.get("bundle_type") != BUNDLE_TYPE:
        raise RefusedError(f"expected a bundle (bundle_type {BUNDLE_TYPE!r}), got another JSON")
    if value.get("bundle_version") != BUNDLE_VERSION:
        raise RefusedError(
            f"expected a bundle of version {BUNDLE_VERSION}, got "
            f"{value.get('bundle_version')!r:.40}: a newer anchord may read it"
        )
    _check_complete(value)
    record = value["canonical_record"]
    canonical = None if record is None else canonical_bytes(record, _scheme(value))
    digest = _stated_digest(value) if canonical is None else digest_of(canonical)
    number = _number(value, digest, record)
    _check_statements(value, digest, number, record)
    return _bundle(value, digest, number, canonical)


def bundle_beside(raw: bytes, record: Record) -> Bundle:
    """Return what a foreign bundle says about `record`, whose bytes have been recomputed from it.

    It need not have all the named keys: those follow from the record when it is exported.

    Raises:
        RefusedError: events, keys or aliases are no lists of objects, or a statement beside the
            record does not follow from it.
    """
    value = parse(raw, max_bytes=MAX_BUNDLE_BYTES)
    number = _number(value, record.digest, value.get("canonical_record"))
    if record.year is not None:
        number = pith_number(record.digest, record.year)
    try:
        _check_statements(value, record.digest, number, value.get("canonical_record"))
    except DigestMismatchError as error:
        raise RefusedError(str(error)) from None
    return _bundle(value, record.digest, number, record.canonical)


def _bundle(
    value: Mapping[str, Any], digest: bytes, number: str | None, canonical: bytes | None
) -> Bundle:
    receipt, events = value.get("receipt"), _objects(value, "events")
    inclusion: tuple[Inclusion, ...] = ()
    if "inclusion" in value:
        names = [event.get("event_id") for event in events]
        inclusion = read_inclusion(value["inclusion"], names)
    return Bundle(
        digest=digest,
        number=number,
        canonical=canonical,
        events=tuple(events),
        keys=tuple(_objects(value, "public_keys")),
        receipt=receipt if isinstance(receipt, dict) else None,
        aliases=tuple(_objects(value, "source_aliases")),
        inclusion=inclusion,
    )


def _check_complete(value: Mapping[str, Any]) -> None:
    """Refuse a bundle without one of the named keys: renaming a key must not hide what it said."""
    named = ["canonical_record", "canonical_sha256", "source", "source_aliases", "events"]
    named += ["record_id"] if "record_id" in value else ["pith_number", "short_pith_number"]
    missing = [name for name in named if name not in value]
    if missing:
        raise RefusedError(f"expected a whole bundle, got one without {', '.join(missing)}")


def _scheme(value: Mapping[str, Any]) -> Scheme:
    stated = value.get("canonical_scheme", Scheme.PITH_JSON_V1.value)
    if stated not in (Scheme.PITH_JSON_V1.value, Scheme.RFC8785.value):
        raise RefusedError(f"expected a known canonical_scheme, got {stated!r:.40}")
    return Scheme(stated)


def _stated_digest(value: Mapping[str, Any]) -> bytes:
    stated = value.get("canonical_sha256")
    digest = _hex(stated)
    if len(digest) != 32:
        raise RefusedError(f"expected canonical_sha256 of 64 hex digits, got {stated!r:.80}")
    return digest


def _hex(text: Any) -> bytes:
    if not isinstance(text, str):
        return b""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return b""
    return raw if raw.hex() == text else b""


def _number(value: Mapping[str, Any], digest: bytes, record: Any) -> str | None:
    """Return the Pith Number: computed where there is a record, else the one that is stated."""
    if record is None:
        stated = value.get("pith_number")
        suffix = ":" + pith_suffix(digest)
        return stated if isinstance(stated, str) and stated.endswith(suffix) else None
    metadata = record.get("metadata") if isinstance(record, dict) else None
    at = metadata.get("submitted_at") if isinstance(metadata, dict) else None
    if isinstance(at, str) and at[:4].isascii() and at[:4].isdigit() and at[4:5] == "-":
        return pith_number(digest, at[:4])
    return None


def _check_statements(
    value: Mapping[str, Any], digest: bytes, number: str | None, record: Any
) -> None:
    """Compare what is stated beside the record with what follows from it."""
    expected: dict[str, Any] = {
        "canonical_sha256": digest.hex(),
        "pith_number": number,
        "short_pith_number": short_pith_number(digest),
        "record_id": record_id(digest),
    }
    if isinstance(record, dict) and record.get("source") is not None:
        expected["source"] = record["source"]
    stated = {name: value[name] for name in expected if value.get(name) is not None}
    for name, text in stated.items():
        if text != expected[name]:
            raise DigestMismatchError(
                f"the bundle states {name} {text!r:.100}, but its record gives "
                f"{expected[name]!r:.100}: one of the two was changed"
            )
    _check_aliases(value, digest, record)


def _check_aliases(value: Mapping[str, Any], digest: bytes, record: Any) -> None:
    source = record.get("source") if isinstance(record, dict) else None
    source = source if isinstance(source, dict) else {}
    known = dict(aliases(_bare(digest, source)))
    for alias in _objects(value, "source_aliases"):
        kind, text = alias.get("alias_kind"), alias.get("alias_value")
        if not isinstance(kind, str) or not isinstance(text, str):
            raise RefusedError("expected alias_kind and alias_value in every alias")
        if kind in known and known[kind] != text:
            raise DigestMismatchError(
                f"the bundle states the alias {kind} {text!r:.80}, but its record has "
                f"{known[kind]!r:.80}"
            )


def _bare(digest: bytes, source: Mapping[str, Any]) -> Record:
    kind, name, version = source.get("kind"), source.get("id"), source.get("version")
    return Record(
        digest=digest,
        scheme=Scheme.SHA256,
        source_kind=kind if isinstance(kind, str) else None,
        source_id=name if isinstance(name, str) else None,
        source_version=version if type(version) is int else None,
    )


def _objects(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = value.get(name, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise RefusedError(f"expected {name} to be a list of objects: the bundle is damaged")
    return found
