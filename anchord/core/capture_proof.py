"""What proves a capture: the row of the index, and the memento as it replays.

Index: https://github.com/internetarchive/wayback/tree/master/wayback-cdx-server (README). Replay:
RFC 7089 (Memento-Datetime), and the headers web.archive.org sends beside it, as read by
https://github.com/edgi-govdata-archiving/wayback.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from anchord.core.capture_url import is_stamp, same_page, stamp_of
from anchord.core.capture_words import (
    NOT_JSON,
    is_page,
    lowered,
    read_json,
    reading_refused,
    unknown,
    words,
)
from anchord.core.http_date import http_moment
from anchord.core.storage import Refused
from anchord.core.wayback import IndexPage, IndexRow, Memento, NotThere

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""What is asked of the index, in this order."""

MAX_DECODED_BYTES = 1 << 24
"""How much of a memento is searched once its content coding is undone."""

_KEPT = "x-archive-orig-"
"""How the headers begin that the page had when it was captured."""
_EXCLUDED = re.compile(
    rb"AdministrativeAccessControlException|Blocked Site Error|URL has been excluded"
)
_ORIGINAL = re.compile(r"<([^>]*)>\s*;[^,<]*\brel=\"?original\b", re.IGNORECASE)
_DATE = re.compile(
    r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT", re.ASCII
)
"""RFC 7089, 2.1.1: always in this form, always GMT; two joined by a comma are none."""
_CODED = ("content-encoding", f"{_KEPT}content-encoding", f"{_KEPT}transfer-encoding")
"""Headers with which a body may rightly have another length than the page's Content-Length."""
_BEGINNING = 20_000
_DEEPEST_CODING = 3
_PIECE = 1 << 16
_YEAR_10000 = 253_402_300_800
_MOST_MEMBERS = 64
"""Of one gzip stream; endless empty ones would cost endless time."""


# ---------------------------------------------------------------------- index


def read_index(status: int, headers: Mapping[str, str], body: bytes) -> IndexPage | Refused:
    """Read a page of the index: JSON rows, or lines; no hit is `[]` or an empty body.

    One row that is not understood refuses the page: to overlook a capture would make it twice.
    """
    if status in (200, 403) and _EXCLUDED.search(body[:_BEGINNING]) and not body.startswith(b"["):
        return _excluded(body)
    if status != 200:
        return reading_refused(status, headers, body)
    if not body.strip():
        return IndexPage(rows=())
    said = read_json(headers, body)
    if said is NOT_JSON and not is_page(headers):
        said = _lines(body)
    page = _page(said) if isinstance(said, list) else None
    return unknown("rows of the index", body) if page is None else page


def _lines(body: bytes) -> list[Any] | None:
    """Return the rows of a text answer as JSON would have them, the names first."""
    try:
        lines = body.decode("utf-8").strip().split("\n")
    except UnicodeDecodeError:
        return None
    return [list(FIELDS), *(line.split() for line in lines)]


def _page(said: list[Any]) -> IndexPage | None:
    """Return rows below their names; after a blank row stands the key of what follows."""
    if not said:
        return IndexPage(rows=())
    names, listed = said[0], said[1:]
    resume = None
    if len(listed) >= 2 and listed[-2] == []:
        resume, listed = _key(listed[-1]), listed[:-2]
        if resume is None:
            return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    if not set(FIELDS) <= set(names):
        return None
    rows = [_row(names, row) for row in listed]
    found = tuple(row for row in rows if row is not None)
    return IndexPage(rows=found, resume=resume) if len(found) == len(rows) else None


def _key(row: object) -> str | None:
    if isinstance(row, list) and len(row) == 1 and isinstance(row[0], str):
        return row[0] or None
    return None


def _row(names: list[str], row: object) -> IndexRow | None:
    if not isinstance(row, list) or len(row) != len(names):
        return None
    fields = dict(zip(names, row, strict=True))
    values = [value for name in FIELDS if isinstance(value := fields.get(name), str)]
    if len(values) != len(FIELDS) or not is_stamp(fields["timestamp"]):
        return None
    return IndexRow(*values)


# ---------------------------------------------------------------------- replay


def read_replay(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    timestamp: str,
    url: str,
    contains: str | None = None,
) -> Memento | NotThere | Refused:
    """Read the answer to a raw replay (`id_`), which was not let follow redirects.

    A memento is only what names itself as exactly this one: Memento-Datetime equal to the second,
    the WARC it comes from, and this page as its original, which every memento must name (RFC 7089,
    2.2.1). Then the status is the archived one, so a 404 or a 429 is content.
    """
    named = lowered(headers)
    trouble = named.get("x-archive-wayback-runtime-error", "")
    date = named.get("memento-datetime", "").strip()
    moment = http_moment(date) if _DATE.fullmatch(date) else None
    told = moment is not None and not trouble
    own_words = trouble.encode(errors="replace") + (b"" if told else body[:_BEGINNING])
    if _EXCLUDED.search(own_words):
        return _excluded(own_words)
    if not told and (status == 429 or status >= 500 or status in (401, 403)):
        return reading_refused(status, headers, body)
    faults = _faults(status, named, body, timestamp, url, moment if told else None)
    reason = next(faults, None)
    if reason is not None:
        return NotThere(reason=reason)
    return Memento(
        timestamp=timestamp,
        http_status=status,
        sha256=hashlib.sha256(body).digest(),
        size=len(body),
        x_archive_src=words(named["x-archive-src"]),
        contains=contains is None or holds(body, headers, contains),
    )


def _faults(
    status: int,
    named: dict[str, str],
    body: bytes,
    timestamp: str,
    url: str,
    moment: int | None,
) -> Iterator[str]:
    """Yield why an answer is not the memento that was asked for; nothing when it is."""
    elsewhere = named.get("x-archive-redirect-reason")
    if elsewhere is not None:
        yield f"redirected to another capture: {words(elsewhere)}"
    if moment is None:
        yield f"HTTP {status} without a readable Memento-Datetime: {words(body) or 'no words'}"
    elif not 0 <= moment < _YEAR_10000 or stamp_of(moment) != timestamp:
        yield f"another capture: {words(named['memento-datetime'])}"
    if not words(named.get("x-archive-src", "")):
        yield "X-Archive-Src is missing: the archive does not say where it has it from"
    yield from _other_page(status, named.get("link", ""), url)
    if not 100 <= status <= 999:
        yield f"no HTTP status: {status}"
    if status == 200 and not body:
        yield "an empty body with status 200"
    if status == 200 and len(body) < _stated_length(named):
        yield f"cut short: {len(body):,} of {_stated_length(named):,} bytes"


def _other_page(status: int, link: str, url: str) -> Iterator[str]:
    originals = _ORIGINAL.findall(link[:_BEGINNING])
    if not originals and status == 200:
        yield "the Link header names no original: the archive does not say of which page it is"
    for original in originals:
        if not same_page(url, original):
            yield f"a capture of another page: {words(original)}"


def _stated_length(named: dict[str, str]) -> int:
    """Return how long the page said its body is; 0 where a coding may have changed that."""
    stated = named.get(f"{_KEPT}content-length", "")
    coded = any(named.get(name, "identity") != "identity" for name in _CODED)
    return int(stated) if re.fullmatch(r"[0-9]{1,18}", stated) and not coded else 0


def _excluded(said: bytes) -> Refused:
    return Refused(code="excluded", message=words(said))


def holds(body: bytes, headers: Mapping[str, str], text: str) -> bool:
    """Tell whether `text` stands in a body, its gzip or deflate content coding undone.

    The archive sends the coding of the archived answer with the archived bytes, or only tells of
    it; so both are looked at. Not more than 16 MiB are unpacked, whatever is in it.
    """
    wanted, named = text.encode(errors="replace"), lowered(headers)
    if wanted in body:
        return True
    told = {named.get(name, "") for name in ("content-encoding", "x-archive-orig-content-encoding")}
    return any(wanted in _decoded(body, coding) for coding in told if coding)


def _decoded(body: bytes, codings: str) -> bytes:
    applied = [coding.strip().lower() for coding in codings.split(",")]
    for coding in reversed(applied[:_DEEPEST_CODING]):
        if coding in ("gzip", "x-gzip"):
            body = _inflated(body, 31)
        elif coding == "deflate":
            # RFC 9110, 8.4.1.2 means zlib; some servers send the bare stream.
            body = _inflated(body, 15) or _inflated(body, -15)
        elif coding != "identity":
            return b""
    return body


def _inflated(body: bytes, window: int) -> bytes:
    """Return what unpacks, up to the limit; what a fault follows in the same piece is lost."""
    unpacked, stream, members = bytearray(), zlib.decompressobj(window), 1
    for start in range(0, len(body), _PIECE):
        piece = body[start : start + _PIECE]
        while piece and len(unpacked) < MAX_DECODED_BYTES and members <= _MOST_MEMBERS:
            if stream.eof:
                stream, members = zlib.decompressobj(window), members + 1
            try:
                unpacked += stream.decompress(piece, MAX_DECODED_BYTES - len(unpacked))
            except zlib.error:
                return bytes(unpacked)
            piece = stream.unused_data
    return bytes(unpacked)
