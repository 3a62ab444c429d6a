"""How many pages a day one account can have captured, and how long a backlog takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.pacing import DAY_S
from anchord.core.storage import CaptureState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.app.archive_config import CapturesConfig
    from anchord.core.storage import Capture, StoredCounts

SAMPLE = 100
"""Captures of ours that are looked at to learn how long one takes."""
USUAL_DURATION_S = 30.0
"""A capture takes 16 to 50 s as clients of Save Page Now report; used until there are own ones."""
USUAL_DAILY_LIMIT = 30_000
"""Captures a day with keys, by the Save Page Now 2 Public API document; an account has its own."""


class DayRate(msgspec.Struct, frozen=True, kw_only=True):
    """What a day can bring, and what keeps it from being more."""

    per_day: int
    bound_by: str
    """"pace" (submits a minute), "slots" (captures at once) or "daily limit"."""
    duration_s: float
    """How long one capture was taken to last."""
    measured: bool
    """Whether that is from captures of ours."""

    def days_for(self, backlog: int) -> float:
        """Return how many days so many captures need."""
        return round(backlog / max(self.per_day, 1), 1)


def day_rate(
    captures: CapturesConfig, *, slots: int | None, daily_limit: int | None, made: Sequence[Capture]
) -> DayRate:
    """Return the smallest of what pace, slots and the day's limit allow.

    Args:
        captures: the configured pace.
        slots: captures the account may run at once; None: unknown.
        daily_limit: captures the account may make a day; None: unknown.
        made: captures of ours, to learn how long one takes.
    """
    lasted = sorted(
        one.reported_at - one.submitted_at
        for one in made
        if not one.adopted and one.reported_at is not None and one.submitted_at is not None
        and one.reported_at > one.submitted_at
    )  # fmt: skip
    duration_s = float(lasted[len(lasted) // 2]) if lasted else USUAL_DURATION_S
    parallel = captures.parallel if slots is None else min(captures.parallel, max(slots, 1))
    limit = USUAL_DAILY_LIMIT if daily_limit is None else daily_limit
    bounds = {
        "pace": captures.submits_per_minute * DAY_S // 60,
        "slots": int(parallel * DAY_S / duration_s),
        "daily limit": int(captures.daily_share * limit),
    }
    bound_by = min(bounds, key=lambda name: bounds[name])
    return DayRate(
        per_day=bounds[bound_by],
        bound_by=bound_by,
        duration_s=duration_s,
        measured=bool(lasted),
    )


def rate_document(rate: DayRate, counts: StoredCounts, *, unsealed: int) -> dict[str, Any]:
    """Return the day rate and what it means for the backlog, with stable keys.

    Args:
        rate: what a day can bring.
        counts: how the facet stands.
        unsealed: records that are in no batch yet; whether they have a page is not known, and they
            are taken to have one, like all that were not looked at.
    """
    backlog = unsealed + counts.unclaimed + counts.captures.get(CaptureState.WAITING, 0)
    return {
        "captures_per_day": rate.per_day,
        "bound_by": rate.bound_by,
        "capture_duration_s": rate.duration_s,
        "measured": rate.measured,
        "backlog": backlog,
        "backlog_days": rate.days_for(backlog),
    }


def backlog_words(rate: dict[str, Any]) -> str:
    """Return how long the backlog of a rate document takes, for people."""
    if not rate["backlog"]:
        return "none"
    days = rate["backlog_days"]
    span = "less than a day" if days < 1 else f"about {days:,} day(s)"
    return f"{rate['backlog']:,} capture(s) to make: {span}"
