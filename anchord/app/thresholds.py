"""What an audit is asked to hold: how complete a facet must be, and how old what waits may be.

`--fail-under anchored=99.5` and `--max-age 24h` for cron and CI. Percentages are compared exactly
and shown rounded down, so that what is shown as 99.5 % is never less.
"""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

import msgspec

from anchord.core.standing import FACETS
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.core.standing import Completeness

BOTH = "both"
MEASURED = (*FACETS, BOTH)
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,6})?")
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_HUNDRED = Decimal(100)


class FailUnder(msgspec.Struct, frozen=True):
    """A facet must be done for at least so many percent of the records."""

    facet: str
    percent: Decimal


class MaxAge(msgspec.Struct, frozen=True):
    """No record may wait longer than this."""

    facet: str | None
    """None: for either facet."""
    age_s: int
    asked: str
    """As it was written."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One threshold, and whether it holds."""

    asked: str
    """As it can be asked again: `fail-under anchored=99.5`, `max-age 24h`."""
    holds: bool
    words: str


def read_fail_under(text: str) -> FailUnder:
    """Read `FACET=PERCENT`.

    Raises:
        ConfigError: no such facet, or no percentage from 0 to 100.
    """
    facet, _, percent = text.partition("=")
    number = percent.removesuffix("%").strip()
    if facet in MEASURED and _PERCENT.fullmatch(number) and Decimal(number) <= _HUNDRED:
        return FailUnder(facet, Decimal(number))
    raise ConfigError(
        f"--fail-under: expected FACET=PERCENT with {', '.join(MEASURED)} and 0 to 100, "
        f"e.g. anchored=99.5; got {text!r:.60}"
    )


def read_max_age(text: str) -> MaxAge:
    """Read `DURATION` or `FACET=DURATION`.

    Raises:
        ConfigError: no duration, or no such facet.
    """
    facet, _, duration = text.rpartition("=")
    found = _DURATION.fullmatch(duration)
    if found and facet in ("", *FACETS):
        return MaxAge(facet or None, int(found[1]) * _UNITS[found[2]], text)
    raise ConfigError(
        "--max-age: expected a number with s, m, h, d or w, e.g. 24h, after FACET= where it is "
        f"about one facet, e.g. anchored=24h; got {text!r:.60}"
    )


def judge(asked: FailUnder | MaxAge, found: Completeness) -> Judged:
    """Hold a threshold against what an audit counted."""
    return _share(asked, found) if isinstance(asked, FailUnder) else _age(asked, found)


def done(found: Completeness, facet: str) -> int:
    """Return how many records have `anchored`, `stored` or `both` done."""
    return sum(row[facet] for row in found.by_source.values())


def percent_words(part: int, whole: int) -> str:
    """Return a share in words, rounded down: only all is `100 %`."""
    if not whole:
        return "none of 0"
    share = _HUNDRED * part / whole
    short = share.quantize(Decimal("0.1"), rounding=ROUND_FLOOR)
    return f"{_plain(short)} %"


def age_words(age_s: int) -> str:
    """Return an age in words: `45 s`, `7 min`, `3 h 20 min`, `12 days 4 h`."""
    minutes, hours, days = age_s // 60, age_s // 3_600, age_s // 86_400
    if age_s < 60:
        return f"{age_s} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{days:,} days" + (f" {hours % 24} h" if hours % 24 and days < 100 else "")


def counted(count: int, noun: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _missing(missing: int, whole: int) -> str:
    return f"{counted(missing, 'record')} of {whole:,} {'is' if missing == 1 else 'are'} not"


def _share(asked: FailUnder, found: Completeness) -> Judged:
    whole, part = found.records, done(found, asked.facet)
    wanted = _plain(asked.percent)
    holds = whole > 0 and _HUNDRED * part >= asked.percent * whole
    name = "anchored and stored" if asked.facet == BOTH else asked.facet
    if not whole:
        words = f"{name}: there are no records, asked for {wanted} %"
    else:
        missing = "all are" if part == whole else _missing(whole - part, whole)
        words = f"{name} is {percent_words(part, whole)}, asked for {wanted} %: {missing}"
    return Judged(asked=f"fail-under {asked.facet}={wanted}", holds=holds, words=words)


def _age(asked: MaxAge, found: Completeness) -> Judged:
    facets = FACETS if asked.facet is None else (asked.facet,)
    said = [_oldest(facet, asked.age_s, found) for facet in facets]
    return Judged(
        asked=f"max-age {asked.asked}",
        holds=all(holds for holds, _ in said),
        words=f"{'; '.join(words for _, words in said)}; at most {age_words(asked.age_s)} asked",
    )


def _oldest(facet: str, limit_s: int, found: Completeness) -> tuple[bool, str]:
    oldest = found.oldest_waiting_s[facet]
    missing = found.records - done(found, facet)
    if oldest is not None:
        return oldest <= limit_s, f"the oldest record not {facet} waits for {age_words(oldest)}"
    if missing:
        wait = counted(missing, "record")
        return False, f"{wait} not {facet}, and nothing says since when"
    return True, f"no record waits to be {facet}"


def _plain(number: Decimal) -> str:
    """Return a number without zeros at its end, and never with an exponent."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
