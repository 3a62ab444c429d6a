"""The CDX server: GET /cdx/search/cdx.

After the README of internetarchive/wayback, wayback-cdx-server. Page numbers are left out, as
they leave out recent captures there.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote_plus, unquote_plus

from anchord.sandbox.wayback import words
from anchord.sandbox.wayback.captures import LAST, Capture
from anchord.sandbox.wayback.limits import Minute
from anchord.sandbox.wayback.save import Asked
from anchord.sandbox.wayback.urlkey import host_key, split, urlkey
from anchord.sandbox.wayback.world import World
from anchord.sandbox.web import Answer

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
MAX_ROWS = 150_000
_JSON = "application/json"
_TEXT = "text/plain;charset=UTF-8"
_HIGHEST = "\U0010ffff"
Row = dict[str, str]


class Index:
    """Lists captures."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._minute = Minute()

    def answer(self, asked: Asked) -> Answer:
        """Answer a query."""
        world = self._world
        world.tally.cdx_reads += 1
        if self._minute.count(asked.now) >= world.rules.cdx_per_minute:
            world.tally.rate_429 += 1
            world.tally.rate_429_by["cdx"] += 1
            return words.too_many_requests()
        self._minute.add(asked.now)
        url = asked.query.get("url", "")
        if not url:
            return Answer(400, b"Must specify a url= param\n", _TEXT)
        if asked.struck("blocked-site") or world.site.excluded(url):
            return words.blocked_site()
        try:
            rows = [] if asked.struck("nothing-listed") else self._rows(asked.query, asked.now)
            return self._written(asked.query, list(rows))
        except (ValueError, re.error):
            return Answer(400, b"Bad parameter\n", _TEXT)

    def _rows(self, query: Mapping[str, str], now: float) -> Iterator[Row]:
        first_key, last_key = _keys(query)
        found: Iterable[Capture] = self._world.captures.within(
            first_key, last_key, query.get("from", ""), query.get("to", "") or LAST
        )
        rows = (_row(one) for one in found if one.listed(now))
        for text in query.get("filter", "").split("\n"):
            rows = filter(_filter(text), rows) if text else rows  # type: ignore[assignment]
        yield from _collapsed(rows, query.get("collapse", ""))

    def _written(self, query: Mapping[str, str], rows: list[Row]) -> Answer:
        after = unquote_plus(query.get("resumeKey", ""))
        rows = [row for row in rows if _resume_key(row) > after] if after else rows
        rows = rows[int(query.get("offset", "0") or 0) :]
        limit = int(query.get("limit", "0") or 0)
        shown = rows[limit:] if limit < 0 else rows[: limit or MAX_ROWS]
        more = limit >= 0 and len(shown) < len(rows)
        resume = quote_plus(_resume_key(shown[-1])) if more and shown else None
        if query.get("showResumeKey") != "true":
            resume = None
        names = [name for name in query.get("fl", "").split(",") if name in FIELDS] or FIELDS
        values = [[row[name] for name in names] for row in shown]
        if query.get("output") != "json":
            lines = [" ".join(value) for value in values] + (["", resume] if resume else [])
            return Answer(200, "".join(f"{line}\n" for line in lines).encode(), _TEXT)
        return self._json(list(names), values, resume)

    def _json(self, names: list[str], values: list[list[str]], resume: str | None) -> Answer:
        if not values:
            # Both were seen for "nothing found".
            return Answer(200, b"" if self._world.random.random() < 0.5 else b"[]", _JSON)
        rows = [names, *values] + ([[], [resume]] if resume else [])
        return Answer(200, b"[" + b",\n ".join(json.dumps(r).encode() for r in rows) + b"]", _JSON)


def _keys(query: Mapping[str, str]) -> tuple[str, str]:
    """Return the range of keys that a query means: [first, last)."""
    url, kind = query["url"], query.get("matchType", "exact")
    if url.endswith("*"):
        url, kind = url.removesuffix("*"), "prefix"
    if url.startswith("*."):
        url, kind = url.removeprefix("*."), "domain"
    parts = split(url)
    host = host_key(parts.netloc)
    if kind == "prefix":
        query_part = f"?{parts.query}" if parts.query else ""
        beginning = f"{host}){parts.path or '/'}{query_part}"
        return beginning, beginning + _HIGHEST
    if kind == "host":
        return f"{host})", f"{host}){_HIGHEST}"
    if kind == "domain":
        return f"{host})", f"{host},{_HIGHEST}"
    return urlkey(url), urlkey(url) + "\0"


def _row(capture: Capture) -> Row:
    mime = capture.content_type.partition(";")[0]
    return {
        "urlkey": capture.urlkey,
        "timestamp": capture.timestamp,
        "original": capture.url,
        "mimetype": "warc/revisit" if capture.revisit else mime,
        "statuscode": "-" if capture.revisit else str(capture.status),
        "digest": capture.digest,
        "length": str(len(capture.body) // 2 + 400),
    }


def _resume_key(row: Row) -> str:
    return f"{row['urlkey']} {row['timestamp']}!"


def _filter(text: str) -> Callable[[Row], bool]:
    negated = text.startswith("!")
    field, _, pattern = text.removeprefix("!").partition(":")
    matches = re.compile(pattern).fullmatch
    return lambda row: (matches(row.get(field, "")) is None) is negated


def _collapsed(rows: Iterable[Row], collapse: str) -> Iterator[Row]:
    field, _, length = collapse.partition(":")
    if field not in FIELDS:
        yield from rows
        return
    end = int(length) if length.isdigit() else None
    for _, group in itertools.groupby(rows, key=lambda row: row[field][:end]):
        yield next(group)
