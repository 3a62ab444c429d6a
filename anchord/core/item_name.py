"""What anchord's items and their files are called, and what their manifests say.

One item a UTC day, as archive.org asks of those who keep much
(https://github.com/harvard-lil/perma/pull/3238); identifiers are 5 to 100 of [A-Za-z0-9._-] and
taken for ever (https://archive.org/developers/metadata-schema/#identifier). A file's name is never
used twice, so nothing at the archive is ever overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from anchord.core.event import canonical_body
from anchord.core.moment import utc
from anchord.core.signed_document import SignerBlock, check_signed, signed
from anchord.core.strictjson import parse
from anchord.core.trust import Keys, Trust
from anchord.errors import RefusedError, VerificationError

DAY_S = 86_400
TYPE = "anchord_day_manifest"
VERSION = 1
MAX_MANIFEST_BYTES = 16 << 20

_DIGITS = 9


def day_text(day: int) -> str:
    """Return a UTC day number as `YYYY-MM-DD`."""
    return datetime.fromtimestamp(day * DAY_S, UTC).strftime("%Y-%m-%d")


def identifier(prefix: str, day: int, part: int) -> str:
    """Return the identifier of a day's item; from the second on, its part is in the name."""
    return f"{prefix}-{_dated(day, part)}"


def zip_name(first: int, last: int) -> str:
    """Return the name of a ZIP that holds the members numbered first to last, counted over all."""
    return f"bundles-{first:0{_DIGITS}}-{last:0{_DIGITS}}.zip"


def manifest_name(name: str) -> str:
    """Return the name of the manifest beside a ZIP."""
    return name.removesuffix(".zip") + ".manifest.jsonl"


def day_manifest_name(day: int, part: int) -> str:
    """Return the name of the signed manifest of an item."""
    return f"manifest-{_dated(day, part)}.json"


def _dated(day: int, part: int) -> str:
    return day_text(day) + (f"-{part:02}" if part > 1 else "")


def metadata_of(stated: Mapping[str, str], day: int) -> dict[str, str]:
    """Return the metadata of a new item, with its day filled in.

    `external-identifier` is not among them: it is the adapter's, which tells our items by it.
    """
    text = day_text(day)
    filled = {
        key: value.replace("{day}", text) if key in ("title", "description") else value
        for key, value in stated.items()
    }
    return {**filled, "date": text}


def sampled(place: int, every: int) -> bool:
    """Tell whether a ZIP is downloaded whole to be confirmed: an item's first, then one in some.

    Args:
        place: which of the item's ZIPs, from 0.
        every: one in so many.
    """
    return place % max(every, 1) == 0


# ---------------------------------------------------------------------- beside a ZIP


class ManifestLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One member of a ZIP, as the manifest beside it says."""

    record: str
    """Pith Number, or the record's id where it has none."""
    path: str
    size: int
    sha256: str
    event_ids: Sequence[str]
    """The signed events within the bundle, oldest first."""
    page_url: str | None = None
    """What was captured of the record, where that is known."""
    capture_timestamp: str | None = None
    """Of its memento at the Wayback Machine: 14 digits, UTC."""


def manifest_line(line: ManifestLine) -> bytes:
    """Return one line of a manifest, its end included."""
    return msgspec.json.encode(line, order="sorted") + b"\n"


# ---------------------------------------------------------------------- of a day


_Hex32 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]
_Hex40 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{40}\Z")]
_Hex64 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class DayFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of an item, as its signed manifest says."""

    name: str
    size: _Count
    md5: _Hex32
    sha1: _Hex40
    sha256: _Hex64
    members: _Count
    """Bundles in it; 0 for a manifest."""


class _Stated(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    version: int
    identifier: str
    day: str
    created_at: str
    files: tuple[DayFile, ...]
    signer: SignerBlock
    signature_b64: str


class DayManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A day manifest whose signature was checked."""

    identifier: str
    day: str
    created_at: str
    files: tuple[DayFile, ...]
    signer_id: str
    key_id: str
    trust: Trust


def day_manifest_body(
    name: str, day: int, files: Sequence[DayFile], signer: Mapping[str, str], now: int
) -> bytes:
    """Return the canonical body of a day manifest, what is signed of it.

    Args:
        name: the item's identifier.
        day: its UTC day number.
        files: what the item held, in the order it was packed.
        signer: the block events state their signer with.
        now: when it is made.
    """
    return canonical_body(
        {
            "type": TYPE,
            "version": VERSION,
            "identifier": name,
            "day": day_text(day),
            "created_at": utc(now),
            "files": [msgspec.to_builtins(file) for file in files],
            "signer": dict(signer),
        }
    )


def signed_day_manifest(body: bytes, signature: bytes) -> bytes:
    """Return a day manifest whole, from its body and the signature over the body's SHA-256."""
    return signed(body, signature)


def read_day_manifest(raw: bytes, keys: Keys) -> DayManifest:
    """Return what a day manifest says, after its signature was checked (the rule of events).

    Raises:
        RefusedError: no such manifest, or none that all readers would read alike.
        SignatureError: nobody believed signed it, or it was changed since.
        VerificationError: it contradicts itself.
    """
    document = parse(raw, max_bytes=MAX_MANIFEST_BYTES)
    stated = _stated(document)
    trust = check_signed(document, stated.signer, stated.created_at, keys, "manifest")
    if stated.day not in stated.identifier:
        raise VerificationError(
            f"the manifest of {stated.identifier!r:.120} says day {stated.day!r:.40}"
        )
    names = [file.name for file in stated.files]
    if len(set(names)) != len(names):
        raise VerificationError(f"the manifest of {stated.identifier:.120} names a file twice")
    return DayManifest(
        identifier=stated.identifier,
        day=stated.day,
        created_at=stated.created_at,
        files=stated.files,
        signer_id=stated.signer.signer_id,
        key_id=stated.signer.key_id,
        trust=trust,
    )


def _stated(document: Any) -> _Stated:
    try:
        stated = msgspec.convert(document, _Stated)
    except msgspec.ValidationError as error:
        raise RefusedError(f"expected a day manifest, got something else: {error}") from None
    if (stated.type, stated.version) != (TYPE, VERSION):
        raise RefusedError(
            f"expected type {TYPE!r}, version {VERSION}, got {stated.type!r:.40}, {stated.version}"
        )
    return stated
