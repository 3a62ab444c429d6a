"""Replay (Memento, RFC 7089), TimeMaps and the availability API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import formatdate
from urllib.parse import urljoin

from anchord.sandbox.wayback import words
from anchord.sandbox.wayback.captures import Capture
from anchord.sandbox.wayback.limits import Minute
from anchord.sandbox.wayback.save import Asked
from anchord.sandbox.wayback.site import HTML
from anchord.sandbox.wayback.urlkey import digits, moment_of, urlkey
from anchord.sandbox.wayback.world import World
from anchord.sandbox.web import Answer, json_answer

_MEMENTO = re.compile(r"/web/(\d{1,14})([a-z]{2}_)?/(.+)", re.DOTALL)
_TIMEGATE = re.compile(r"/web/(?!\d)(.+)", re.DOTALL)
TIMEMAP = "/web/timemap/link/"
_ORIGINAL = "x-archive-orig-"


class Replay:
    """Gives captures back.

    Args:
        world: the archive's state.
        base: where it can be reached, for the links it gives.
    """

    def __init__(self, world: World, base: str) -> None:
        self._world = world
        self.base = base
        self._minute = Minute()

    def _too_fast(self, now: float) -> bool:
        world = self._world
        world.tally.replay_reads += 1
        if self._minute.count(now) >= world.rules.replay_per_minute:
            world.tally.rate_429 += 1
            world.tally.rate_429_by["replay"] += 1
            return True
        self._minute.add(now)
        return False

    def memento(self, asked: Asked, path: str) -> Answer:
        """Answer GET /web/<timestamp>id_/<url>, without id_, or without a timestamp."""
        if self._too_fast(asked.now):
            return words.too_many_requests()
        found = _MEMENTO.fullmatch(path)
        gate = _TIMEGATE.fullmatch(path)
        timestamp, flag, url = found.groups() if found else ("", None, gate[1] if gate else "")
        url = url if "://" in url else f"http://{url}"
        if asked.struck("not-archived"):
            return words.not_archived()
        if self._world.site.excluded(url):
            return words.excluded()
        exact = self._world.captures.find(urlkey(url), timestamp)
        if exact is not None and exact.replays(asked.now):
            return self._exact(exact, flag, asked.now)
        wanted = timestamp or digits(asked.now)
        other = self.closest(url, wanted, asked.now)
        return words.not_archived() if other is None else self._other(other, flag or "")

    def closest(self, url: str, timestamp: str, now: float) -> Capture | None:
        """Return the capture nearest to a moment, of those that replay."""
        wanted = moment_of(timestamp)
        return min(
            (one for one in self._world.captures.of(urlkey(url)) if one.replays(now)),
            key=lambda one: abs(moment_of(one.timestamp) - wanted),
            default=None,
        )

    def _other(self, other: Capture, flag: str) -> Answer:
        location = f"{self.base}/web/{other.timestamp}{flag}/{other.url}"
        reason = f"found capture at {other.timestamp}"
        headers = (("Location", location), ("X-Archive-Redirect-Reason", reason), ("X-ts", "302"))
        return Answer(302, b"", "text/plain; charset=utf-8", headers)

    def _exact(self, one: Capture, flag: str | None, now: float) -> Answer:
        date = formatdate(moment_of(one.timestamp), usegmt=True)
        headers = [
            ("Memento-Datetime", date),
            ("Link", self._links(one, now)),
            ("X-Archive-Src", one.source),
            (f"{_ORIGINAL}date", date),
            (f"{_ORIGINAL}content-length", str(len(one.body))),
            *((f"{_ORIGINAL}{name.lower()}", value) for name, value in one.headers),
            ("x-ts", str(one.status)),
            ("cache-control", "max-age=1800"),
        ]
        headers += [pair for pair in one.headers if pair[0].lower() == "content-encoding"]
        if one.location is not None:
            target = urljoin(one.url, one.location)
            headers.append(("Location", f"{self.base}/web/{one.timestamp}{flag or ''}/{target}"))
        body = one.body if flag == "id_" else _framed(one)
        return Answer(one.status, body, one.content_type, tuple(headers))

    def _links(self, one: Capture, now: float) -> str:
        live = [other for other in self._world.captures.of(one.urlkey) if other.replays(now)]
        parts = [
            f'<{one.url}>; rel="original"',
            f'<{self.base}{TIMEMAP}{one.url}>; rel="timemap"; type="application/link-format"',
            f'<{self.base}/web/{one.url}>; rel="timegate"',
            self._link(live[0], "first memento"),
        ]
        if one is not live[0]:
            parts.append(self._link(one, "memento"))
        return ", ".join([*parts, self._link(live[-1], "last memento")])

    def _link(self, one: Capture, relation: str) -> str:
        date = formatdate(moment_of(one.timestamp), usegmt=True)
        place = f"{self.base}/web/{one.timestamp}/{one.url}"
        return f'<{place}>; rel="{relation}"; datetime="{date}"'

    def timemap(self, asked: Asked, path: str) -> Answer:
        """Answer GET /web/timemap/link/<url>."""
        if self._too_fast(asked.now):
            return words.too_many_requests()
        url = path.removeprefix(TIMEMAP)
        live = [one for one in self._world.captures.of(urlkey(url)) if one.replays(asked.now)]
        if not live:
            return words.not_archived()
        lines = [
            f'<{url}>; rel="original"',
            f'<{self.base}{path}>; rel="self"; type="application/link-format"',
            f'<{self.base}/web/{url}>; rel="timegate"',
            *(self._link(one, "memento") for one in live),
        ]
        return Answer(200, ",\n".join(lines).encode() + b"\n", "application/link-format")

    def available(self, asked: Asked) -> Answer:
        """Answer GET /wayback/available: late, and blind to revisit records."""
        self._world.tally.available_reads += 1
        url = asked.query.get("url", "")
        known = [
            one
            for one in self._world.captures.of(urlkey(url))
            if one.available_at <= asked.now and one.lives(asked.now) and not one.revisit
        ]
        said = {"timestamp": asked.query["timestamp"]} if "timestamp" in asked.query else {}
        if not known or asked.struck("false-empty"):
            return json_answer({"url": url, "archived_snapshots": {}} | said)
        return json_answer({"url": url, "archived_snapshots": self._closest(known, said)} | said)

    def _closest(self, known: list[Capture], said: Mapping[str, str]) -> dict[str, object]:
        wanted = moment_of(said["timestamp"]) if "timestamp" in said else moment_of("9999")
        one = min(known, key=lambda one: abs(moment_of(one.timestamp) - wanted))
        place = f"http://web.archive.org/web/{one.timestamp}/{one.url}"
        closest = {"status": str(one.status), "available": True, "url": place}
        return {"closest": closest | {"timestamp": one.timestamp}}


def _framed(one: Capture) -> bytes:
    """Return a page as people see it: not the raw bytes."""
    if one.content_type != HTML or not one.body:
        return one.body
    return b"<!-- replayed by the sandbox's archive -->\n" + one.body
