"""One row of a database as a record, or as a refusal that says why."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from anchord.adapters.sources.pith import OBJECT_CAP, read_object
from anchord.core.capture_page import own_page
from anchord.core.model import Document, Record, Rejection, Scheme
from anchord.errors import RefusedError

COLUMNS = ("id", "canonical_sha256", "record", "url", "not_anchored", "not_stored")
"""What a query may give; everything else in a row is passed over."""
FLAGS = ("not_anchored", "not_stored")
_DIGEST = re.compile(r"(?:sha256:)?([0-9A-Fa-f]{64})", re.ASCII)
_LABEL_CHARACTERS = 200
_NO = frozenset(("", "0", "f", "false", "n", "no", "off"))


class Rows:
    """Reads rows.

    Args:
        name: of the source, for refusals.
        scheme: how JSON records are made canonical.
        url_hosts: hosts that the column `url` may name.
    """

    def __init__(self, name: str, scheme: Scheme, url_hosts: frozenset[str]) -> None:
        self._name, self._scheme, self._hosts = name, scheme, url_hosts

    def read(self, row: Mapping[str, Any]) -> Record | Document | Rejection | None:
        """Return what a row holds; None: its flags say that there is nothing to do."""
        flags = [row[name] for name in FLAGS if name in row]
        if flags and not any(map(_is_set, flags)):
            return None
        label = label_of(row.get("id"))
        try:
            return self._read(row, label)
        except RefusedError as error:
            where = self._name if label is None else f"{self._name}, id {label}"
            return Rejection(where=where, line=None, reason=str(error))

    def _read(self, row: Mapping[str, Any], label: str | None) -> Record | Document:
        stated = _digest(row.get("canonical_sha256"))
        text = row.get("record")
        if text is not None:
            found = read_object(_json(text), self._scheme, label)
            record = found if isinstance(found, Record) else found.record
            if stated is not None and stated != record.digest:
                raise RefusedError(
                    f"canonical_sha256 says {stated.hex()}, its record has {record.digest.hex()}: "
                    "one of the two was changed"
                )
        elif stated is not None:
            found = record = Record(digest=stated, scheme=Scheme.SHA256, label=label)
        else:
            raise RefusedError("expected canonical_sha256 or record in the row, got neither")
        url = self._url(row.get("url"))
        if url is None:
            return found
        record = msgspec.structs.replace(record, url=url)
        return record if isinstance(found, Record) else Document(record=record, raw=found.raw)

    def _url(self, url: Any) -> str | None:
        """Return the page to capture; no row can send a capture elsewhere."""
        if url is None or url == "":
            return None
        page = own_page(url) if isinstance(url, str) else None
        if page is None:
            raise RefusedError(f"expected an address of a page in url, got {url!r:.120}")
        if page.host not in self._hosts:
            known = ", ".join(sorted(self._hosts)) or "none"
            raise RefusedError(
                f"its url is a page of {page.host}: expected a host that url_hosts names ({known})"
            )
        return page.url


def label_of(key: Any) -> str | None:
    """Return what people call a row: short, and nothing in it that cannot be printed."""
    if key is None:
        return None
    if isinstance(key, bytes | bytearray | memoryview):
        return bytes(key)[: _LABEL_CHARACTERS // 2].hex()
    text = key.isoformat() if isinstance(key, dt.date) else str(key)
    text = text[:_LABEL_CHARACTERS]
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text) or None


def _is_set(flag: Any) -> bool:
    if isinstance(flag, str):
        return flag.strip().lower() not in _NO
    return bool(flag)


def _digest(value: Any) -> bytes | None:
    """Return a stated digest: 64 hex digits, or 32 bytes."""
    if value is None or value == "":
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        if len(raw) == 32:
            return raw
        value = raw[:80].decode("ascii", "replace")
    match = _DIGEST.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise RefusedError(
            f"expected 64 hex digits or 32 bytes in canonical_sha256, got {value!r:.80}"
        )
    return bytes.fromhex(match[1])


def _json(value: Any) -> bytes:
    """Return the JSON text of a record, whatever type the driver gives it."""
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
    elif isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
    elif isinstance(value, dict):
        try:
            raw = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError) as error:
            raise RefusedError(f"expected JSON in record: {error!s:.120}") from None
    else:
        raise RefusedError(f"expected JSON text in record, got a {type(value).__name__}")
    if len(raw) > OBJECT_CAP:
        raise RefusedError(
            f"expected a record of at most {OBJECT_CAP >> 20} MiB, got {len(raw):,} bytes"
        )
    return raw
