"""Canonical bytes and the record made of them.

The law for scheme pith-json-v1 is one Python expression (docs/protocol.md, 1):
`json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()`.
msgspec gives the same bytes five times faster inside a narrow profile; everything outside the
profile goes through the law itself. Scheme rfc8785 is the JSON Canonicalization Scheme.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

import msgspec

from anchord.core.model import Record, Scheme
from anchord.core.number import (
    aliases,
    pith_number,
    pith_suffix,
    record_id,
    short_pith_number,
)
from anchord.core.plain import plain_bytes
from anchord.core.strictjson import MAX_DEPTH, MAX_RECORD_BYTES, parse
from anchord.errors import RefusedError

__all__ = [
    "MAX_DEPTH",
    "MAX_RECORD_BYTES",
    "aliases",
    "canonical_bytes",
    "digest_of",
    "parse",
    "pith_number",
    "pith_suffix",
    "read_record",
    "record_id",
    "short_pith_number",
]

_WHITESPACE = b" \t\r\n"
_PLAIN = bytes(set(range(0x20, 0x7F)) - set(b"\\"))
"""Printable ASCII without the backslash: no string made of these is ever written with an escape."""
_MAX_VERSION = 2**31 - 1
_MAX_SOURCE_TEXT = 256


def canonical_bytes(value: Any, scheme: Scheme = Scheme.PITH_JSON_V1) -> bytes:
    """Return the canonical bytes of a JSON value.

    Raises:
        RefusedError: the scheme has no bytes for this value.
    """
    if scheme is Scheme.SHA256:
        raise RefusedError("scheme sha256 is for bare digests: a JSON value needs another scheme")
    try:
        if scheme is Scheme.RFC8785:
            return _rfc8785(value)
        plain = plain_bytes(value)
        if plain is not None:
            return plain
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise RefusedError(f"expected a value that {scheme} can express: {error!s:.200}") from None


def _rfc8785(value: Any) -> bytes:
    import rfc8785

    return rfc8785.dumps(value)


def digest_of(canonical: bytes) -> bytes:
    """Return the SHA-256 of canonical bytes, 32 raw bytes."""
    return hashlib.sha256(canonical).digest()


def read_record(
    raw: bytes,
    *,
    scheme: Scheme = Scheme.PITH_JSON_V1,
    stated_sha256: str | None = None,
    stated_number: str | None = None,
    label: str | None = None,
) -> Record:
    """Return the record a JSON text holds, checked against what was stated about it.

    Args:
        raw: one JSON object, with or without white space, keys in any order.
        scheme: how its canonical bytes come about.
        stated_sha256: hex digest it should have, in either case.
        stated_number: Pith Number it should have, compared exactly.
        label: what people call it.

    Raises:
        RefusedError: not a JSON object, outside the limits, or something stated does not
            recompute.
    """
    quick = _quick(raw) if scheme is Scheme.PITH_JSON_V1 else None
    value, canonical = quick or _lawful(raw, scheme)
    digest = hashlib.sha256(canonical).digest()
    year = _year(value)
    if stated_sha256 is not None and stated_sha256.lower() != digest.hex():
        _refuse_statement("SHA-256", stated_sha256, digest.hex())
    if stated_number is not None:
        _check_number(stated_number, digest, year)
    kind, source_id, version = _source(value)
    return Record(
        digest=digest,
        scheme=scheme,
        canonical=canonical,
        year=year,
        source_kind=kind,
        source_id=source_id,
        source_version=version,
        label=label,
    )


class _OutsideProfileError(Exception):
    """The fast encoder is not proven equal to the law here."""


def _outside(_digits: str) -> NoReturn:
    raise _OutsideProfileError


# Floats leave the profile: msgspec and Python write them differently (1e16, 1e+16).
_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=_outside)
_encoder = msgspec.json.Encoder(order="sorted")


def _quick(raw: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Return value and canonical bytes when the text lies inside the profile, else None.

    None never means bad: the law decides then. Inside printable ASCII without backslashes the
    encoder writes every string as it stood, and integers digit by digit, so a text loses length
    only by white space outside strings, by "-0", or because a duplicate key dropped a member. A
    dropped member takes characters other than spaces with it; hence equal counts of everything
    but spaces exclude duplicates.
    """
    raw = raw.strip(_WHITESPACE)
    if (
        len(raw) > MAX_RECORD_BYTES
        or raw.translate(None, _PLAIN)
        or raw.count(b"{") + raw.count(b"[") > MAX_DEPTH
    ):
        return None
    try:
        value = _decoder.decode(raw)
        canonical = _encoder.encode(value)
    except (_OutsideProfileError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    if canonical != raw and _ink(canonical) != _ink(raw):
        return None
    return value, canonical


def _ink(text: bytes) -> int:
    return len(text) - text.count(b" ")


def _lawful(raw: bytes, scheme: Scheme) -> tuple[dict[str, Any], bytes]:
    value = parse(raw)
    if not isinstance(value, dict):
        raise RefusedError(f"expected a JSON object as a record, got a {type(value).__name__}")
    return value, canonical_bytes(value, scheme)


def _refuse_statement(what: str, stated: str, computed: str) -> NoReturn:
    raise RefusedError(
        f"expected the stated {what} {stated!r:.100}, got {computed} from the record: "
        "one of the two was changed; fetch the record again from its source"
    )


def _check_number(stated: str, digest: bytes, year: str | None) -> None:
    if year is None:
        raise RefusedError(
            f"expected the stated Pith Number {stated!r:.100}, got a record without "
            "metadata.submitted_at, which has none"
        )
    computed = pith_number(digest, year)
    if stated != computed:
        _refuse_statement("Pith Number", stated, computed)


def _year(value: dict[str, Any]) -> str | None:
    """Return the year when `metadata.submitted_at` starts with four digits and a hyphen."""
    metadata = value.get("metadata")
    at = metadata.get("submitted_at") if type(metadata) is dict else None
    if type(at) is not str or at[4:5] != "-":
        return None
    year = at[:4]
    return year if year.isascii() and year.isdigit() else None


def _source(value: dict[str, Any]) -> tuple[str | None, str | None, int | None]:
    """Return kind, id and version; what cannot be a name or a version is left out, not refused."""
    source = value.get("source")
    if type(source) is not dict:
        return None, None, None
    version = source.get("version")
    if type(version) is not int or not 0 <= version <= _MAX_VERSION:
        version = None
    return _name(source.get("kind")), _name(source.get("id")), version


def _name(text: Any) -> str | None:
    """Return text that a store can index and a screen can show."""
    if type(text) is str and len(text) <= _MAX_SOURCE_TEXT and text.isprintable():
        return text
    return None
