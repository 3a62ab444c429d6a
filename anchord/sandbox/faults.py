"""Faults on command: what can go wrong with a service, and which one strikes next.

A fault waits on the board until it is cleared, or until it has struck `count` times, so that
a service can heal by itself.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from anchord.errors import ConfigError
from anchord.sandbox.items.faults import ARCHIVE, IAS3, ITEM_KINDS
from anchord.sandbox.wayback.kinds import WAYBACK, WAYBACK_KINDS

CALENDAR, EXPLORER, NODE, PEER = "calendar", "explorer", "node", "peer"
AUTHORITY = "authority"
_HTTP = frozenset({CALENDAR, EXPLORER, NODE, AUTHORITY, WAYBACK, ARCHIVE, IAS3})
_ALL = _HTTP | {PEER}
Option = str | float | int


class Kind(msgspec.Struct, frozen=True):
    """One way to go wrong."""

    words: str
    """What the service does, for `anchord sandbox fault --list`."""
    groups: frozenset[str]
    """Which services can do it."""
    routes: frozenset[str] | None = None
    """Which requests it strikes; None: any."""
    options: frozenset[str] = frozenset()
    """Its options besides `on`."""


def _calendar(words: str, route: str, *options: str) -> Kind:
    return Kind(words, frozenset({CALENDAR}), frozenset({route}), frozenset(options))


def _peer(words: str, *options: str) -> Kind:
    return Kind(words, frozenset({PEER}), None, frozenset(options))


def _authority(words: str) -> Kind:
    return Kind(words, frozenset({AUTHORITY}))


KINDS = {
    "dead": Kind("resets every connection at once", _ALL),
    "lost-reply": Kind("does the work, then hangs up without an answer", _HTTP),
    "slow": Kind("answers after delay_s seconds", _HTTP, None, frozenset({"delay_s"})),
    "silent": Kind("accepts, reads the request, never answers", _HTTP),
    "drip": Kind(
        "sends its answer a byte every delay_s seconds", _HTTP, None, frozenset({"delay_s"})
    ),
    "oversize": Kind("answers with size bytes", _HTTP, None, frozenset({"size"})),
    "redirect": Kind(
        "answers 302 to location (default: /moved/... of itself, which would answer rightly)",
        _HTTP,
        None,
        frozenset({"location"}),
    ),
    "garbage": Kind("answers 200 with bytes that mean nothing", _HTTP),
    "trailing": Kind("puts eight bytes behind its answer", _HTTP),
    "truncated": Kind(
        "announces its whole answer and sends half of it (clean=1: announces half)",
        _HTTP,
        None,
        frozenset({"clean"}),
    ),
    "http-500": Kind("answers 500", _HTTP),
    "http-429": Kind("answers 429 with Retry-After", _HTTP, None, frozenset({"retry_after_s"})),
    "foreign-uri": _calendar("takes a digest with a pending URI of another host", "digest", "uri"),
    "other-digest": _calendar("takes another digest than the one it was sent", "digest"),
    "not-found-after-submit": _calendar(
        "does not know a new commitment for delay_s seconds", "digest", "delay_s"
    ),
    "other-commitment": _calendar("gives the path of another commitment", "timestamp"),
    "pending-in-upgrade": _calendar(
        "puts a pending attestation into an upgrade", "timestamp", "uri"
    ),
    "not-found": _calendar("says Not found for every commitment", "timestamp"),
    "rejection": _authority("refuses every hash, with a status and words"),
    "wrong-nonce": _authority("answers another question: the nonce differs"),
    "wrong-imprint": _authority("stamps other bytes than it was sent"),
    "expired-certificate": _authority("signs with a certificate that is over"),
    "wrong-purpose": _authority("signs with a certificate that is not for time stamps"),
    "foreign-root": _authority("signs with a certificate of a root that nobody knows"),
    "warm-up": Kind("says that it is still loading (code -28)", frozenset({NODE})),
    "syncing": Kind("says that it is still downloading blocks", frozenset({NODE})),
    "unauthorized": Kind("refuses every password (401)", frozenset({NODE})),
    "behind": Kind(
        "does not know the newest blocks yet (blocks: how many)",
        frozenset({EXPLORER}),
        None,
        frozenset({"blocks"}),
    ),
    "disagree": Kind(
        "follows another branch from height `from`",
        frozenset({EXPLORER}),
        None,
        frozenset({"from"}),
    ),
    "stall": _peer("shakes hands, then never sends a header"),
    "lie": _peer("sends headers without proof of work"),
    "cheap-fork": _peer("sends a short branch of length headers, all well formed", "length"),
    "hang-up": _peer("hangs up when asked for headers"),
    **{name: Kind(*row) for name, row in (WAYBACK_KINDS | ITEM_KINDS).items()},
}
"""Every fault by name."""


class Fault(msgspec.Struct):
    """A fault on the board."""

    kind: str
    count: int | None
    on: str | None
    options: dict[str, Option]

    def number(self, name: str, default: float) -> float:
        """Return the option `name` as a number."""
        return float(self.options.get(name, default))

    def text(self, name: str, default: str) -> str:
        """Return the option `name` as text."""
        return str(self.options.get(name, default))

    def strikes(self, route: str) -> bool:
        """Tell whether a request of this route is struck."""
        routes = KINDS[self.kind].routes
        return (routes is None or route in routes) and self.on in {None, route}


def group_of(service: str) -> str:
    """Return the group of a service: `calendar-2` is a calendar, `archive-org` an archive."""
    return service.rpartition("-")[0] or service


class FaultBoard:
    """The faults that wait to strike, by service. Threads may share it."""

    def __init__(self, services: list[str]) -> None:
        self._lock = threading.Lock()
        self._faults: dict[str, list[Fault]] = {service: [] for service in services}

    def services(self, name: str) -> list[str]:
        """Return the services `name` means: one, or all of a group (`calendars`).

        Raises:
            ConfigError: there is no such service.
        """
        found = [s for s in self._faults if name in {s, group_of(s), group_of(s) + "s"}]
        if not found:
            known = ", ".join(self._faults)
            raise ConfigError(f"no service {name!r} in this sandbox: choose one of {known}")
        return found

    def add(self, service: str, kind: str, count: int | None, options: dict[str, Option]) -> None:
        """Put a fault on the board.

        Raises:
            ConfigError: unknown service, kind or option, or a kind this service cannot do.
        """
        services = self.services(service)
        on = options.pop("on", None)
        _check(services, kind, count, options)
        with self._lock:
            for name in services:
                fault = Fault(kind, count, None if on is None else str(on), dict(options))
                self._faults[name].append(fault)

    def take(self, service: str, route: str, *kinds: str) -> Fault | None:
        """Return the fault that strikes this request, and count it; None when all is well.

        Args:
            service: who was asked.
            route: what was asked for.
            *kinds: look only for these kinds.
        """
        with self._lock:
            faults = self._faults.get(service, [])
            for fault in faults:
                if fault.strikes(route) and (not kinds or fault.kind in kinds):
                    return self._strike(faults, fault)
        return None

    @staticmethod
    def _strike(faults: list[Fault], fault: Fault) -> Fault:
        if fault.count is not None:
            fault.count -= 1
            if fault.count <= 0:
                faults.remove(fault)
        return fault

    def clear(self, service: str | None = None) -> None:
        """Heal one service, or all."""
        names = list(self._faults) if service is None else self.services(service)
        with self._lock:
            for name in names:
                self._faults[name].clear()

    def waiting(self) -> list[dict[str, Any]]:
        """Return what waits to strike, for people and JSON."""
        with self._lock:
            return [
                {
                    "service": name,
                    "kind": f.kind,
                    "count": f.count,
                    "on": f.on,
                    "options": f.options,
                }
                for name, faults in self._faults.items()
                for f in faults
            ]


def _check(services: list[str], kind: str, count: int | None, options: dict[str, Option]) -> None:
    """Refuse a fault that could never strike."""
    if kind not in KINDS:
        raise ConfigError(f"no fault {kind!r}: choose one of {', '.join(KINDS)}")
    wrong = [name for name in services if group_of(name) not in KINDS[kind].groups]
    if wrong:
        raise ConfigError(
            f"{wrong[0]} cannot do {kind!r}: that fault is for "
            f"{', '.join(sorted(KINDS[kind].groups))}"
        )
    unknown = sorted(set(options) - KINDS[kind].options)
    if unknown:
        known = ", ".join(sorted(KINDS[kind].options | {"on"}))
        raise ConfigError(f"fault {kind!r} has no option {unknown[0]!r}: it takes {known}")
    if count is not None and count < 1:
        raise ConfigError(f"count is {count}: a fault strikes at least once, or leave count away")
