"""Where numbers come to stand in a picture: scales that begin at zero, and round ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

_STEPS = (1, 2, 5)
_DAY_STEPS = (1, 2, 7, 14)
_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Scale(msgspec.Struct, frozen=True):
    """A straight line from numbers to places."""

    low: float
    high: float
    start: float
    """Place of `low`."""
    stop: float
    """Place of `high`."""

    def at(self, number: float) -> float:
        """Return the place of a number."""
        span = self.high - self.low
        share = (number - self.low) / span if span else 0.0
        return self.start + share * (self.stop - self.start)


def ticks(highest: int, most: int = 5) -> list[int]:
    """Return round numbers from 0 to the first one that is not below `highest`."""
    step = 1
    exponent = 0
    while step * most < highest:
        step = _STEPS[exponent % 3] * 10 ** (exponent // 3)
        exponent += 1
    return [step * index for index in range(-(-max(highest, 1) // step) + 1)]


def day_ticks(first: int, last: int, most: int = 7) -> list[tuple[int, str]]:
    """Return days since 1970 on which an axis of days is marked, with what stands there."""
    for step in _DAY_STEPS:
        if last - first < step * most:
            days = range(first, last + 1, step)
            return [(at, f"{_date(at):%Y-%m-%d}") for at in days]
    for step in _MONTH_STEPS:
        found = _months(first, last, step)
        if len(found) <= most:
            return found
    return [(first, f"{_date(first):%Y-%m-%d}"), (last, f"{_date(last):%Y-%m-%d}")]


def short(number: int) -> str:
    """Return a number as an axis has room for it: `950`, `12k`, `1.5M`."""
    for size, sign in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.10g}"[:5].rstrip(".") + sign
    return str(number)


def _date(day: int) -> datetime:
    return _EPOCH + timedelta(days=day)


def _months(first: int, last: int, step: int) -> list[tuple[int, str]]:
    start, stop = _date(first), _date(last)
    begin = start.year * 12 + start.month - 1
    end = stop.year * 12 + stop.month - 1
    found = []
    for month in range(begin, end + 1):
        day = (datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) - _EPOCH).days
        if month % step == 0 and first <= day <= last:
            found.append((day, f"{month // 12}-{month % 12 + 1:02d}"))
    return found
