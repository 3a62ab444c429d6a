"""The Wayback Machine as one service of the sandbox: routes, keys, faults, and one lock.

Everything happens at the moment the clock shows when a request comes; nothing runs by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.wayback import kinds, words
from anchord.sandbox.wayback.index import Index
from anchord.sandbox.wayback.journal import Journal
from anchord.sandbox.wayback.limits import Account, Firewall
from anchord.sandbox.wayback.replay import TIMEMAP, Replay
from anchord.sandbox.wayback.report import Memento, Report
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.save import Asked, Saving, SpoiledError
from anchord.sandbox.wayback.site import Page, Seen, Site
from anchord.sandbox.wayback.status import Reading
from anchord.sandbox.wayback.urlkey import urlkey
from anchord.sandbox.wayback.weather import Weather
from anchord.sandbox.wayback.world import World
from anchord.sandbox.web import Answer, HangUpError, Request, json_answer

ACCESS, SECRET = "sandbox-access", "sandbox-secret"
_MAX_FORM = 1 << 20
_FAMILIES = {kinds.USER: kinds.STATUS, kinds.SYSTEM: kinds.STATUS, kinds.TIMEMAP: kinds.REPLAY}
_PLACES = {"cdx/search/cdx": kinds.CDX, "wayback/available": kinds.AVAILABLE}
_SPOILT: dict[str, Callable[[], Answer]] = {
    "offline": words.offline,
    "rate-limited": words.too_many_requests,
    "bad-gateway": partial(words.bad_gateway, 502),
    "gateway-timeout": partial(words.bad_gateway, 504),
    "unknown-shape": lambda: json_answer({"detail": {"queued": [1, 2]}, "revision": 7}),
    "html": lambda: words.page(200, "Wayback Machine", "Something is different today."),
    "empty-body": lambda: Answer(200, b"", "application/json"),
}
"""Faults instead of any work."""


class RefusedError(HangUpError):
    """The service is closed; whoever comes over the network finds nobody listening."""


class WaybackService:
    """Save Page Now 2, index, replay and availability under one address.

    Args:
        clock: the only time there is.
        file: the journal of jobs and captures; None: nothing is kept.
        rules: limits and delays.
        weather: faults by chance and by the clock.
        accounts: access key -> secret.
        seed: of durations, and of shapes when several are right.
        base: where the service can be reached, for the links it gives.
    """

    name = kinds.WAYBACK
    protocol_version = "HTTP/1.1"

    def __init__(
        self,
        clock: SandboxClock,
        file: Path | None = None,
        *,
        rules: Rules | None = None,
        weather: Weather | None = None,
        accounts: Mapping[str, str] | None = None,
        seed: int = 0,
        base: str = "https://web.archive.org",
    ) -> None:
        rules = rules or Rules()
        self.clock = clock
        self.site = Site(self._settle)
        self.weather = weather or Weather()
        self.on_refusal: Callable[[], object] = lambda: None
        """Called after a request found the service closed."""
        self._lock = threading.RLock()
        self._began = clock.now()
        self._firewall = Firewall(rules)
        self._world = World(clock, rules, self.site, Journal(file), seed=seed)
        for access, secret in (accounts or {ACCESS: SECRET}).items():
            self._world.accounts[access] = (secret, Account(rules))
        self._world.load()
        self._saving = Saving(self._world)
        self._reading = Reading(self._world)
        self._index = Index(self._world)
        self._replay = Replay(self._world, base)
        self._routes: dict[str, Callable[[Asked, str], Answer]] = {
            kinds.SAVE: lambda asked, _: self._saving.submit(asked),
            kinds.STATUS: lambda asked, path: self._reading.jobs(asked, path.partition("?")[0]),
            kinds.USER: lambda asked, _: self._reading.user(asked),
            kinds.SYSTEM: lambda asked, _: self._reading.system(asked),
            kinds.CDX: lambda asked, _: self._index.answer(asked),
            kinds.REPLAY: self._replay.memento,
            kinds.TIMEMAP: self._replay.timemap,
            kinds.AVAILABLE: lambda asked, _: self._replay.available(asked),
            # The browsers' way answers 429 even to a valid key (MKRWW/wortlaut #108).
            "save-page": lambda *_: words.too_many_requests(),
        }

    def at(self, base: str) -> None:
        """Give links that begin with this address."""
        self._replay.base = base

    def close(self) -> None:
        """Write out the journal."""
        with self._lock:
            self._settle()
            self._world.journal.close()

    def _settle(self) -> None:
        """End the jobs whose time has come before anything else happens."""
        with self._lock:
            self._world.settle(self.clock.now())

    # ------------------------------------------------------------------ the service

    def route(self, method: str, path: str) -> str:
        """Return the name of what is asked for, or `other`."""
        path = path.partition("?")[0]
        if path.startswith("/web/"):
            return kinds.TIMEMAP if path.startswith(TIMEMAP) else kinds.REPLAY
        parts = path.strip("/").split("/")
        if parts == ["save"] and method == "POST":
            return kinds.SAVE
        if parts[:2] == ["save", "status"]:
            return parts[2] if parts[2:] in ([kinds.USER], [kinds.SYSTEM]) else kinds.STATUS
        return _PLACES.get(path.strip("/"), "save-page" if parts[0] == "save" else "other")

    def answer(self, request: Request) -> Answer:
        """Answer as the archive would at this moment.

        Raises:
            RefusedError: it is closed.
            HangUpError: by a fault.
        """
        try:
            return self._answer(request)
        except RefusedError:
            self.on_refusal()
            raise

    def _answer(self, request: Request) -> Answer:
        form = _form(request)
        route = self.route(request.method, request.path)
        family = _FAMILIES.get(route, route)
        with self._lock:
            now = self.clock.now()
            self._world.settle(now)
            self._firewall.came(family, now)
            asked = self._asked(request, form, route, now)
            if refused := asked.struck("refused"):
                self._firewall.shut(now + refused.number("delay_s", 3600))
            if self.refusing(now):
                self._world.tally.closed_on += 1
                raise RefusedError
            answer = self._answered(asked, request, route)
            if answer.status == 429 and all(
                name != "Memento-Datetime" for name, _ in answer.headers
            ):
                self._firewall.told(family, now)
            else:
                self._firewall.served(family, now)
            self._world.journal.flush()
        return answer

    def refusing(self, now: float | None = None) -> bool:
        """Tell whether connections are refused at this moment."""
        now = self.clock.now() if now is None else now
        return now < self._firewall.closed_until or self.weather.refuses(now - self._began)

    def _asked(self, request: Request, form: Mapping[str, str], route: str, now: float) -> Asked:
        faults = [] if request.fault is None else [request.fault]
        access, account = self._account(request.headers)
        return Asked(
            form=form,
            query=_query(request.path) if "?" in request.path else {},
            account=account,
            access=access,
            wants_json="application/json" in (request.headers.get("Accept") or ""),
            faults=faults + self.weather.strikes(route, now - self._began),
            now=now,
        )

    def _account(self, headers: Message) -> tuple[str, Account | None]:
        scheme, _, pair = (headers.get("Authorization") or "").partition(" ")
        access, _, secret = pair.partition(":")
        expected, account = self._world.accounts.get(access, ("", None))
        return access, account if scheme == "LOW" and secret and secret == expected else None

    def _answered(self, asked: Asked, request: Request, route: str) -> Answer:
        spoilt = next((fault.kind for fault in asked.faults if fault.kind in _SPOILT), None)
        if spoilt is not None:
            return self._spoilt(route, spoilt)
        try:
            return self._right(asked, request.path, route)
        except SpoiledError as error:
            self._world.journal.flush()
            return error.answer()

    def _spoilt(self, route: str, kind: str) -> Answer:
        if route == kinds.SAVE:
            self._world.tally.submits += 1
            self._world.tally.refused[kind] += 1
        return _SPOILT[kind]()

    def _right(self, asked: Asked, path: str, route: str) -> Answer:
        right = self._routes.get(route)
        return words.page(404, "404 Not Found") if right is None else right(asked, path)

    # ------------------------------------------------------------------ for tests and reports

    def vanish(self, url: str, timestamp: str, *, listed: bool = False) -> None:
        """Let a capture be gone from now on; `listed`: the index keeps its row."""
        with self._lock:
            capture = self._world.captures.find(urlkey(url), timestamp)
            if capture is None:
                raise LookupError(f"no capture of {url} at {timestamp}")
            capture.gone_at, capture.gone_but_listed = self.clock.now(), listed
            self._world.journal.capture(capture)
            self._world.journal.flush()

    def change_rules(self, **changes: Any) -> None:
        """Change limits and delays without notice, as the real service does."""
        with self._lock:
            self._settle()
            rules = msgspec.structs.replace(self._world.rules, **changes)
            self._world.rules = self._firewall.rules = rules
            for _, account in self._world.accounts.values():
                account.rules = rules

    def live(self, url: str, timestamp: str) -> bool:
        """Tell whether exactly this capture replays now."""
        with self._lock:
            now = self.clock.now()
            self._world.settle(now)
            capture = self._world.captures.find(urlkey(url), timestamp)
            return capture is not None and capture.replays(now)

    def plant(self, url: str, moment: float, *, page: Page | None = None) -> str:
        """Put in a capture that somebody else's crawl made; return its timestamp."""
        with self._lock:
            seen = self.site.visit(url)[0]
            if page is not None:
                seen = Seen(url=url, page=page, body=page.body or seen.body)
            timestamp = self._world.keep(seen, moment, visible_at=moment).timestamp
            self._world.journal.flush()
            return timestamp

    def mementos(self) -> Iterator[Memento]:
        """Yield every capture there ever was, page by page."""
        with self._lock:
            now = self.clock.now()
            self._world.settle(now)
            captures = list(self._world.captures)
        for one in captures:
            yield Memento(
                url=one.url,
                timestamp=one.timestamp,
                status=one.status,
                body=one.body,
                source=one.source,
                replays=one.replays(now),
            )

    def report(self) -> Report:
        """Return what was asked, what was made, and how often the rules were broken."""
        with self._lock:
            now = self.clock.now()
            self._world.settle(now)
            tally = self._world.tally
            counted = {name: getattr(tally, name) for name in tally.__struct_fields__}
            counted |= {
                "refused": dict(tally.refused),
                "rate_429_by": dict(tally.rate_429_by),
                "durations": tuple(tally.durations),
            }
            accounts = [account for _, account in self._world.accounts.values()]
            return Report(
                now=now,
                live_twice=self._live_twice(now),
                vanished=sum(not one.lives(now) for one in self._world.captures),
                firewall_events=self._firewall.closings,
                idle_slot_seconds=sum(account.idle_until(now) for account in accounts),
                **counted,
            )

    def _live_twice(self, now: float) -> int:
        jobs: dict[str, set[int]] = {}
        for one in self._world.captures:
            if one.job is not None and one.lives(now):
                jobs.setdefault(one.url, set()).add(one.job)
        return sum(len(serials) > 1 for serials in jobs.values())


def _form(request: Request) -> Mapping[str, str]:
    """Read the body whatever follows, so that a kept connection stays in step."""
    length = request.headers.get("Content-Length") or "0"
    body = request.read(min(int(length), _MAX_FORM)) if length.isdigit() and length != "0" else b""
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _query(path: str) -> Mapping[str, str]:
    """Return the parameters; `filter` may come often and is joined by line ends."""
    query: dict[str, str] = {}
    for name, value in parse_qsl(path.partition("?")[2], keep_blank_values=True):
        more = name == "filter" and name in query
        query[name] = f"{query[name]}\n{value}" if more else value
    return query
