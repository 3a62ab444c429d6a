"""What goes wrong when: drawn from one seed before the first day, so that it can be repeated."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.soak.world import DAY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK_S = 600
_DEEPEST = 12
_HOUR_S = 3_600

CALENDARS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("dead", {}), ("lost-reply", {}), ("slow", {"delay_s": 0.2}), ("silent", {}),
    ("drip", {"delay_s": 0.01}), ("oversize", {"size": 100_000}), ("redirect", {}),
    ("garbage", {}), ("trailing", {}), ("truncated", {}), ("http-500", {}),
    ("http-429", {"retry_after_s": 600}),
    ("foreign-uri", {"uri": "https://calendar.example.org"}), ("other-digest", {}),
    ("not-found-after-submit", {"delay_s": 0.5}), ("other-commitment", {}),
    ("pending-in-upgrade", {}), ("not-found", {}),
)  # fmt: skip
HEADERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("explorer-1", "behind", {"blocks": 2}), ("explorer-2", "disagree", {"from": 120}),
    ("explorer-1", "dead", {}), ("explorers", "garbage", {}), ("node", "warm-up", {}),
    ("node", "syncing", {}), ("node", "unauthorized", {}), ("node", "lost-reply", {}),
    ("node", "http-500", {}), ("peer-1", "lie", {}), ("peer-2", "cheap-fork", {"length": 3}),
    ("peers", "hang-up", {}), ("peer-1", "dead", {}),
)  # fmt: skip
ITEMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ias3", "slow-down", {}), ("ias3", "bucket-lock", {}), ("ias3", "bad-digest", {}),
    ("ias3", "internal-error", {}), ("ias3", "empty-500", {}), ("ias3", "stored-500", {}),
    ("ias3", "stored-cut", {}), ("ias3", "over-limit", {}), ("ias3", "limit-html", {}),
    ("ias3", "http-429", {}), ("ias3", "dead", {}), ("archive-org", "item-missing", {}),
    ("archive-org", "servers-unavailable", {}), ("archive-org", "metadata-html", {}),
    ("archive-org", "download-missing", {}), ("archive-org", "download-503", {}),
    ("archive-org", "download-corrupt", {}), ("archive-org", "http-500", {}),
    ("wayback", "lost-reply", {}), ("wayback", "garbage", {}), ("wayback", "truncated", {}),
)  # fmt: skip
AUTHORITIES = ("rejection", "wrong-nonce", "wrong-imprint", "expired-certificate", "foreign-root",
               "garbage", "dead", "lost-reply", "http-500")  # fmt: skip


class Event(msgspec.Struct, frozen=True, order=True):
    """Something that happens at a moment."""

    at: float
    """Seconds after the beginning."""
    name: str
    """Of the method of `Life` that does it."""
    words: dict[str, Any] = msgspec.field(default_factory=dict)


def draw(days: int, records: int, seed: int, *, postgres: bool) -> list[Event]:
    """Return all events of so many days, in order.

    In the middle fifth of the days nothing is killed and no disk is full, which ends a process, so
    that one lives long enough for what it holds to be compared; all else goes on going wrong.
    """
    chances = random.Random(seed)
    events: list[Event] = [*_records(days, records, chances), *_blocks(days, chances)]
    for day in range(days):
        events += _services(day, chances)
        gentle = day in calm(days)
        events += _disks(day, chances, postgres=postgres, gentle=gentle)
        events += _operator(day, chances)
        if not gentle:
            events += _deaths(day, chances)
        events.append(Event((day + 1) * DAY_S - 1, "evening", {"day": day + 1}))
    return sorted(events, key=lambda event: event.at)


def calm(days: int) -> range:
    """Return the days on which nothing is killed."""
    return range(days * 2 // 5, days * 3 // 5) if days >= 5 else range(0)


def _moment(day: int, chances: random.Random, until: float = 0.95) -> float:
    return (day + chances.uniform(0, until)) * DAY_S


def _records(days: int, records: int, chances: random.Random) -> Iterator[Event]:
    """Records come in lumps, some of them large, none on the last half of the last day."""
    lumps = max(1, min(records // 3, days * 30))
    cuts = sorted(chances.randrange(records + 1) for _ in range(lumps - 1))
    for before, after in zip([0, *cuts], [*cuts, records], strict=True):
        at = chances.uniform(0, days - 0.5) * DAY_S
        yield Event(at, "come", {"count": after - before})


def _blocks(days: int, chances: random.Random) -> Iterator[Event]:
    at = 0.0
    while at < days * DAY_S:
        at += chances.expovariate(1 / _BLOCK_S)
        yield Event(at, "mine")
    for day in range(days):
        for _ in range(2):
            depth = chances.randint(1, _DEEPEST)
            yield Event(
                _moment(day, chances), "reorg", {"depth": depth, "drop": chances.random() < 0.5}
            )


def _services(day: int, chances: random.Random) -> Iterator[Event]:
    """Faults of calendars, witnesses, authorities and items: some once, some for hours."""
    for number in range(6):
        kind, options = chances.choice(CALENDARS)
        service = chances.choice(["calendar-1", "calendar-2", "calendar-3", "calendars"])
        # A silent one costs its timeout in real time at each call, so it is silent a few times.
        hours = 0.0 if kind in {"silent", "slow", "drip"} or number < 3 else chances.uniform(1, 6)
        yield from _spell(day, chances, service, kind, options, hours)
    for table, hours in ((HEADERS, 3.0), (ITEMS, 2.0), (ITEMS, 0.0), (ITEMS, 0.0)):
        service, kind, options = chances.choice(table)
        yield from _spell(day, chances, service, kind, options, hours)
    yield from _spell(day, chances, "authority-1", chances.choice(AUTHORITIES), {}, 3.0)


def _spell(
    day: int, chances: random.Random, service: str, kind: str, options: dict[str, Any], hours: float
) -> Iterator[Event]:
    at = _moment(day, chances)
    count = None if hours else chances.randint(1, 3)
    words = {"service": service, "kind": kind, "count": count, "options": options}
    yield Event(at, "fault", words)
    if hours:
        yield Event(at + hours * _HOUR_S, "heal", {"service": service})


def _disks(day: int, chances: random.Random, *, postgres: bool, gentle: bool) -> Iterator[Event]:
    for name in ("read_only",) if gentle else ("full", "read_only"):
        if chances.random() < 0.5:
            at = _moment(day, chances)
            yield Event(at, name, {"on": True})
            yield Event(at + chances.uniform(0.5, 2) * _HOUR_S, name, {"on": False})
    yield Event(_moment(day, chances), "hold", {"seconds": chances.choice([0.1, 0.8])})
    for _ in range(2 * postgres):
        words = {"crash": chances.random() < 0.5, "after_s": chances.uniform(0, 0.08)}
        yield Event(_moment(day, chances), "restart", words)


def _operator(day: int, chances: random.Random) -> Iterator[Event]:
    """What people do: set clocks wrongly and right, rotate keys, change the configuration."""
    if chances.random() < 0.5:
        at, skew = _moment(day, chances), chances.choice([-7_200, -600, 900, 5_400])
        yield Event(at, "step_clock", {"seconds": skew})
        yield Event(at + chances.uniform(0.2, 1.5) * _HOUR_S, "step_clock", {"seconds": 0})
    if day % 7 == 3:
        yield Event(_moment(day, chances), "rotate_key")
    if day % 3 == 1:
        yield Event(_moment(day, chances), "reload", {"poll_max_s": chances.choice([600, 1200])})
    if day % 5 == 2:
        yield Event(_moment(day, chances), "reload_nonsense")


def _deaths(day: int, chances: random.Random) -> Iterator[Event]:
    for _ in range(4):
        yield Event(_moment(day, chances), "kill", {"after_s": chances.uniform(0, 0.08)})
    yield Event(_moment(day, chances), "restart_service")
