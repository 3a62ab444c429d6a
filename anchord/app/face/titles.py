"""The title of a record, where somebody stated it and the record's hash of it agrees.

Canonical records hold no title but `title_canon_sha256`: the SHA-256 of the title in lower case,
runs of white space as one space, none at the ends (docs/protocol.md, 1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from anchord.core.bundle import MAX_BUNDLE_BYTES
from anchord.core.strictjson import parse

if TYPE_CHECKING:
    from anchord.core.record_view import RecordView

_MARK = b'"title"'
_MOST_TRIED = 1000
"""Titles of one bundle that are compared; one is usual."""
_LONGEST = 4096


def title_of(view: RecordView, record: Mapping[str, Any]) -> str | None:
    """Return the title that the record's hash is of; None: nobody states it.

    Args:
        view: the record.
        record: the canonical record.
    """
    metadata = record.get("metadata")
    wanted = metadata.get("title_canon_sha256") if isinstance(metadata, dict) else None
    if not isinstance(wanted, str) or _MARK not in view.raw:
        return None
    for tried, text in enumerate(_titles(parse(view.raw, max_bytes=MAX_BUNDLE_BYTES + 1))):
        if title_hash(text) == wanted:
            return text
        if tried == _MOST_TRIED:
            break
    return None


def title_hash(text: str) -> str:
    """Return the hash that records have of a title."""
    canonical = " ".join(text.lower().split())
    return hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()


def _titles(value: Any) -> Iterator[str]:
    """Yield every text under a key `title`, in the order of the bundle."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            text = item.get("title")
            if isinstance(text, str) and text and len(text) <= _LONGEST:
                yield text
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
