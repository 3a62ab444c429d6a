"""How often a service may be called: token buckets, days and pauses as arithmetic over lanes.

A lane (`anchord.core.storage.Lane`) remembers when its last calls were granted, so a pace outlives
the process. Nobody sleeps: every answer is a moment, and the caller decides.
"""

from __future__ import annotations

import msgspec

from anchord.core.storage import Lane

DAY_S = 86_400
_MARGIN_S = 1
"""A call is granted in whole seconds and leaves a moment later; the other side counts its own."""
_LONGEST_PAUSE_S = 3 * DAY_S
"""No rule pauses a lane longer; a pause beyond it was set by a clock that ran ahead."""


class Bucket(msgspec.Struct, frozen=True):
    """So many calls in any stretch of `period_s` seconds: a token returns that long after use."""

    capacity: int
    period_s: int


def per_minute(calls: int) -> Bucket:
    """Return the bucket that grants at most `calls` in any minute."""
    return Bucket(max(calls, 1), 60 + _MARGIN_S)


def free_at(lane: Lane, bucket: Bucket, now: int) -> int:
    """Return the first moment from `now` on at which the bucket has a token."""
    taken = [moment for moment in lane.grants if moment > now - bucket.period_s]
    if len(taken) < bucket.capacity:
        return now
    return max(taken[-bucket.capacity] + bucket.period_s, now)


def take(lane: Lane, bucket: Bucket, now: int) -> Lane:
    """Return the lane with one call granted now; the caller made sure that a token is free."""
    kept = [moment for moment in lane.grants if moment > now - bucket.period_s]
    grants = tuple([*kept, now][-bucket.capacity :])
    used = used_on(lane, now) + 1
    return msgspec.structs.replace(lane, grants=grants, day=day_of(now), used=used, changed_at=now)


def day_of(now: int) -> int:
    """Return the number of the UTC day a moment lies in."""
    return now // DAY_S


def day_end(now: int) -> int:
    """Return the moment the next UTC day begins."""
    return (day_of(now) + 1) * DAY_S


def used_on(lane: Lane, now: int) -> int:
    """Return how many calls were granted on the UTC day of `now`."""
    return lane.used if lane.day == day_of(now) else 0


def open_at(lane: Lane, now: int) -> int | None:
    """Return the first moment from `now` on at which the lane does not pause; None: stopped."""
    if lane.stopped:
        return None
    return now if lane.until is None else max(lane.until, now)


def spread(left: int, now: int, at_once: int = 1) -> Bucket:
    """Return the bucket that makes `left` calls last until the UTC day ends.

    Args:
        left: calls the day still holds.
        now: Unix seconds.
        at_once: calls that may follow each other at once, the pace on average being the same.
    """
    rest_s = day_end(now) - now
    if left <= 0:
        return Bucket(1, rest_s)
    return Bucket(at_once, max(-(-rest_s * at_once // left), 1))


def paused(lane: Lane, until: int, now: int, *, code: str, note: str, strikes: int) -> Lane:
    """Return the lane pausing until a moment; a longer pause it has already is kept."""
    return msgspec.structs.replace(
        lane, until=max(until, lane.until or 0), code=code, note=note, strikes=strikes,
        changed_at=now,
    )  # fmt: skip


def stopped(lane: Lane, now: int, *, code: str, note: str, alert: str, strikes: int) -> Lane:
    """Return the lane stopped until a person acts."""
    return msgspec.structs.replace(
        lane, stopped=True, code=code, note=note, alert=alert, strikes=strikes, changed_at=now
    )


def works(lane: Lane, now: int) -> Lane:
    """Return the lane after a success: strikes and alert are over.

    A stop is a person's to lift; and while the lane pauses, a success is that of a call made
    before, which says nothing about the pause.
    """
    silent = not lane.strikes and lane.alert is None and lane.code is None
    if silent or lane.stopped or (lane.until is not None and lane.until > now):
        return lane
    return msgspec.structs.replace(
        lane, until=None, strikes=0, code=None, note=None, alert=None, changed_at=now
    )


def healed(lane: Lane, now: int) -> Lane:
    """Return the lane without what a clock that ran ahead left in it.

    Calls granted in the future were made before now, as every call was; they count as made now.
    """
    latest = now + _LONGEST_PAUSE_S
    ahead = lane.until is not None and lane.until > latest
    if not ahead and all(moment <= now for moment in lane.grants):
        return lane
    grants = tuple(min(moment, now) for moment in lane.grants)
    return msgspec.structs.replace(lane, grants=grants, until=now if ahead else lane.until)
