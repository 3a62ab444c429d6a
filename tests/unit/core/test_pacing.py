from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from anchord.core import pacing
from anchord.core.storage import Lane

NOW = 1_800_000_000
LANE = Lane(name="spn")


@given(
    capacity=st.integers(1, 12),
    waits=st.lists(st.integers(0, 200), min_size=1, max_size=60),
)
def test_no_stretch_of_the_period_ever_holds_more_than_the_capacity(
    capacity: int, waits: list[int]
) -> None:
    bucket = pacing.per_minute(capacity)
    lane, now, taken = LANE, NOW, []
    for wait in waits:
        now = pacing.free_at(lane, bucket, now + wait)
        lane = pacing.take(lane, bucket, now)
        taken.append(now)
    for first in taken:
        assert sum(first <= moment <= first + 60 for moment in taken) <= capacity
    assert len(lane.grants) <= capacity


@given(capacity=st.integers(1, 12), count=st.integers(1, 40))
def test_a_bucket_that_is_always_asked_grants_as_much_as_it_may(capacity: int, count: int) -> None:
    bucket = pacing.per_minute(capacity)
    lane, now = LANE, NOW
    for _ in range(count):
        now = pacing.free_at(lane, bucket, now)
        lane = pacing.take(lane, bucket, now)
    assert now == NOW + (count - 1) // capacity * bucket.period_s


def test_a_day_ends_at_midnight_utc_and_its_count_with_it() -> None:
    bucket = pacing.per_minute(7)
    evening = pacing.day_end(NOW) - 1
    lane = pacing.take(pacing.take(LANE, bucket, evening), bucket, evening)
    assert pacing.used_on(lane, evening) == 2
    assert pacing.used_on(lane, evening + 1) == 0
    assert pacing.used_on(pacing.take(lane, bucket, evening + 1), evening + 1) == 1


@given(
    left=st.integers(1, 100_000),
    into=st.integers(0, pacing.DAY_S - 1),
    at_once=st.integers(1, 5),
)
def test_calls_spread_evenly_last_until_midnight(left: int, into: int, at_once: int) -> None:
    now = pacing.day_of(NOW) * pacing.DAY_S + into
    rest_s = pacing.day_end(now) - now
    bucket = pacing.spread(left, now, at_once)
    assert bucket.capacity == at_once
    assert bucket.period_s * left >= rest_s * at_once
    assert (bucket.period_s - 1) * left < rest_s * at_once or bucket.period_s == 1


def test_a_day_that_is_used_up_allows_nothing_before_it_ends() -> None:
    lane = pacing.take(LANE, pacing.spread(1, NOW), NOW)
    assert pacing.free_at(lane, pacing.spread(0, NOW), NOW) == pacing.day_end(NOW)


def test_a_pause_is_a_moment_and_a_shorter_one_does_not_end_it() -> None:
    lane = pacing.paused(LANE, NOW + 100, NOW, code="offline", note="", strikes=1)
    lane = pacing.paused(lane, NOW + 10, NOW, code="http-429", note="", strikes=2)
    assert pacing.open_at(lane, NOW) == NOW + 100
    assert pacing.open_at(lane, NOW + 200) == NOW + 200
    assert pacing.open_at(LANE, NOW) == NOW


def test_a_success_ends_strikes_and_alert_but_no_stop() -> None:
    struck = pacing.paused(LANE, NOW, NOW, code="offline", note="x", strikes=3)
    struck = msgspec.structs.replace(struck, alert="look")
    assert pacing.works(struck, NOW - 1) == struck  # made before the pause
    assert pacing.works(struck, NOW) == msgspec.structs.replace(LANE, changed_at=NOW)
    gone = pacing.stopped(struck, NOW, code="http-401", note="x", alert="keys", strikes=3)
    assert pacing.works(gone, NOW) == gone
    assert pacing.open_at(gone, NOW) is None
    assert pacing.works(LANE, NOW) is LANE


def test_what_a_clock_that_ran_ahead_left_holds_nothing_up_for_longer_than_a_period() -> None:
    bucket = pacing.per_minute(2)
    year = NOW + 365 * pacing.DAY_S
    lane = pacing.take(pacing.take(LANE, bucket, year), bucket, year)
    lane = pacing.healed(pacing.paused(lane, year, year, code="x", note="", strikes=1), NOW)
    assert pacing.open_at(lane, NOW) == NOW
    assert pacing.free_at(lane, bucket, NOW) == NOW + bucket.period_s
    assert pacing.healed(lane, NOW) is lane
