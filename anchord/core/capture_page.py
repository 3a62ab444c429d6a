"""Which URL of a record is captured: templates, filled with what the record has.

A template is `https://host/path` with names in braces. The host holds no names, so that no record
can send a capture elsewhere; what is filled in is percent-encoded (RFC 3986, 2.1 and 3.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from anchord.core.number import pith_number, pith_suffix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anchord.core.model import StoredRecord

_NAME = re.compile(r"\{([a-z]+)\}")
_URL = re.compile(r"https?://([A-Za-z0-9.-]+(?::[0-9]{1,5})?)(/[!-~]*)?")
_KEPT = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + b"-._~" + b"/:@!$'()*,;"
)
"""Unreserved, and what a path may hold as it is; "/" because older arXiv ids have one."""
_LONGEST = 2000
"""Browsers and archives cut longer URLs."""


class Page(msgspec.Struct, frozen=True):
    """One URL to capture, and the text its bytes must hold."""

    url: str
    host: str
    contains: str | None


def fields_of(record: StoredRecord) -> dict[str, str]:
    """Return what templates may name and the record has."""
    found = {"digest": record.digest.hex(), "suffix": pith_suffix(record.digest)}
    if record.year is not None:
        found["number"] = pith_number(record.digest, record.year)
    if record.source_id:
        found["id"] = record.source_id
    if record.source_version is not None:
        found["version"] = str(record.source_version)
    return found


def page_of(url: str, contains: str, fields: Mapping[str, str]) -> Page | None:
    """Return the page a template names for a record.

    Args:
        url: the template of the URL.
        contains: the template of the text its bytes must hold; empty: none.
        fields: what the record has.

    Returns:
        None when the record lacks something, or no lawful URL comes of it.
    """
    filled = _fill(url, {name: _quoted(value) for name, value in fields.items()})
    text = _fill(contains, fields)
    page = None if filled is None else own_page(filled)
    if page is None or text is None:
        return None
    return msgspec.structs.replace(page, contains=text or None)


def own_page(url: str) -> Page | None:
    """Return the page of a whole URL; None when it is no lawful one."""
    lawful = _URL.fullmatch(url)
    if lawful is None or len(url) > _LONGEST:
        return None
    path = (lawful[2] or "").partition("?")[0]
    # A name such as "../x" would lead to another page of the host than the template says.
    if any(part in {".", ".."} for part in path.split("/")):
        return None
    return Page(url, lawful[1].lower(), None)


def directory_of(url: str) -> str:
    """Return a URL up to the last "/" of its path: pages of one directory are asked for at once."""
    return url.partition("?")[0].rpartition("/")[0] + "/"


def shared_start(urls: Sequence[str]) -> str:
    """Return what all URLs begin with; the first and the last in order differ the earliest."""
    first, last = min(urls), max(urls)
    alike = 0
    while alike < min(len(first), len(last)) and first[alike] == last[alike]:
        alike += 1
    return first[:alike]


def _fill(template: str, fields: Mapping[str, str]) -> str | None:
    if any(name not in fields for name in _NAME.findall(template)):
        return None
    return _NAME.sub(lambda match: fields[match[1]], template)


def _quoted(value: str) -> str:
    raw = value.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in raw)
