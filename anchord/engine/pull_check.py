"""Checking what a mirror served: a bundle before it is taken in, a state against its bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from anchord.core.bundle import Bundle, read_bundle
from anchord.core.bundle_check import check_document
from anchord.core.canonical import pith_suffix, read_record
from anchord.core.keyring import Keyring
from anchord.core.merge import MERGE_VERSION
from anchord.core.model import Document, Record, Scheme
from anchord.core.state import MAX_STATE_BYTES, state_bytes, state_of
from anchord.core.strictjson import parse
from anchord.core.trust import Keys
from anchord.engine.pull_report import Kind
from anchord.errors import DigestMismatchError, RefusedError

_COUNTS = ("event_count", "valid_event_count", "invalid_event_count", "equivocation_count")

Found = tuple[Kind, str]
"""What is wrong, and how it is said."""


class Checked(msgspec.Struct, frozen=True):
    """A bundle that may be taken in."""

    document: Document
    bundle: Bundle


def read_document(raw: bytes) -> Checked:
    """Return a bundle with its record, to be taken in.

    Raises:
        RefusedError: no bundle.
        DigestMismatchError: it does not agree with itself about its record.
    """
    bundle = read_bundle(raw)
    if bundle.canonical is None:
        bare = Record(digest=bundle.digest, scheme=Scheme.SHA256)
        return Checked(Document(record=bare, raw=raw), bundle)
    scheme = Scheme(parse(raw, max_bytes=len(raw)).get("canonical_scheme", Scheme.PITH_JSON_V1))
    record = read_record(bundle.canonical, scheme=scheme)
    return Checked(Document(record=record, raw=raw), bundle)


def check_bundle(raw: bytes, stem: str, keyring: Keyring) -> Checked | Found:
    """Return a bundle that may be taken in, or what is wrong with it.

    Args:
        raw: as the mirror served it.
        stem: suffix or digest of the record it was asked for.
        keyring: what its events are checked with.
    """
    try:
        checked = read_document(raw)
        digest = checked.bundle.digest
        if stem not in (digest.hex(), pith_suffix(digest)):
            return Kind.WRONG_RECORD, f"expected the bundle of {stem}, got that of {digest.hex()}"
        check_document(checked.document, keyring)
    except (RefusedError, DigestMismatchError) as error:
        return Kind.BUNDLE_REFUSED, str(error)
    return checked


def contents(events: tuple[dict[str, Any], ...]) -> dict[str, set[bytes]]:
    """Return a hash of what stands under each event id; spelling aside."""
    found: dict[str, set[bytes]] = {}
    for event in events:
        text = json.dumps(event, sort_keys=True).encode("utf-8", "surrogatepass")
        found.setdefault(str(event.get("event_id"))[:200], set()).add(sha256(text).digest())
    return found


def compare_state(raw: bytes, bundle: Bundle, keys: Keys) -> Iterator[Found]:
    """Yield what a mirror's state says otherwise than its own bundle.

    The registry's merge is not published: there, only what follows from the bundle by any merge is
    compared, and nothing but another record is called false.
    """
    try:
        stated = parse(raw, max_bytes=MAX_STATE_BYTES)
    except RefusedError as error:
        yield Kind.STATE_FALSE, f"its state is no JSON: {error}"
        return
    if not isinstance(stated, dict):
        yield Kind.STATE_FALSE, "its state is no JSON object"
    elif stated.get("merge_version") == MERGE_VERSION:
        yield from _same_merge(raw, stated, bundle, keys)
    else:
        yield from _other_merge(stated, bundle, keys)


def _same_merge(
    raw: bytes, stated: Mapping[str, Any], bundle: Bundle, keys: Keys
) -> Iterator[Found]:
    if raw == state_bytes(bundle, keys):
        return
    own = state_of(bundle, keys)
    unsure = own["unverified_event_count"] or stated.get("unverified_event_count")
    other = sorted(key for key in {*own, *stated} if own.get(key) != stated.get(key))
    words = ", ".join(_differs(key, stated.get(key), own.get(key)) for key in other[:5])
    text = f"its state says {words or 'the same in another spelling'}"
    if unsure and stated.get("canonical_sha256") == own["canonical_sha256"]:
        yield Kind.STATE_DIFFERS, text + "; one of the keyrings lacks a key"
    else:
        yield Kind.STATE_FALSE, text


def _differs(key: str, stated: Any, own: Any) -> str:
    if isinstance(stated, int | str) and isinstance(own, int | str):
        return f"{key} {stated!r:.80} (the bundle gives {own!r:.80})"
    return f"another {key:.80}"


def _other_merge(stated: Mapping[str, Any], bundle: Bundle, keys: Keys) -> Iterator[Found]:
    own = state_of(bundle, keys)
    current = stated.get("current")
    current = current if isinstance(current, dict) else {}
    version = str(stated.get("merge_version"))
    if bundle.number is not None and stated.get("pith_number") != bundle.number:
        number = stated.get("pith_number")
        yield Kind.STATE_FALSE, f"its state is of {number!r:.80}, not of {bundle.number}"
    if current.get("canonical_record") != own["current"]["canonical_record"]:
        yield Kind.STATE_FALSE, "its state states another canonical_record than its bundle"
    for name in _COUNTS:
        if stated.get(name) != own[name]:
            told = f"{name} {stated.get(name)!r:.40}, its bundle has {own[name]}"
            yield Kind.STATE_DIFFERS, f"its state ({version:.60}) says {told}"
    if _aliases(current.get("source_aliases")) != _aliases(own["current"]["source_aliases"]):
        yield Kind.STATE_DIFFERS, f"its state ({version:.60}) has other source_aliases"


def _aliases(stated: Any) -> set[str]:
    items = stated if isinstance(stated, list) else []
    return {json.dumps(item, sort_keys=True) for item in items}
