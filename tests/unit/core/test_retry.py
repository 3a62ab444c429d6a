from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from anchord.core.retry import next_attempt

moments = st.integers(0, 2**40)
counts = st.integers(-5, 10**6)
waits = st.floats(0, 10**6, allow_nan=False)
asked = st.none() | st.floats(allow_nan=True, allow_infinity=True)


@given(moments, counts, waits, waits, asked)
def test_the_next_try_is_at_least_a_second_and_at_most_a_bounded_wait_away(
    now, attempts, shortest, longest, retry_after
):
    at = next_attempt(
        now, attempts, shortest_s=shortest, longest_s=longest, retry_after_s=retry_after
    )
    assert isinstance(at, int)
    assert now + 1 <= at <= now + max(math.ceil(longest), 86_400, 1)


@given(moments, st.integers(1, 100), waits, waits, asked)
def test_waits_never_get_shorter(now, attempts, shortest, longest, retry_after):
    first, second = (
        next_attempt(now, n, shortest_s=shortest, longest_s=longest, retry_after_s=retry_after)
        for n in (attempts, attempts + 1)
    )
    assert first <= second


@given(moments, st.integers(1, 100), waits, waits, st.floats(0, 86_400))
def test_what_the_other_side_asks_for_is_respected(now, attempts, shortest, longest, asked_s):
    at = next_attempt(now, attempts, shortest_s=shortest, longest_s=longest, retry_after_s=asked_s)
    assert at >= now + int(asked_s)


def test_it_doubles_from_a_minute_to_a_quarter_of_an_hour():
    gaps = [next_attempt(0, n, shortest_s=60, longest_s=900) for n in range(1, 8)]
    assert gaps == [60, 120, 240, 480, 900, 900, 900]


def test_nobody_can_park_work_for_more_than_a_day():
    assert next_attempt(0, 1, shortest_s=60, longest_s=900, retry_after_s=1e12) == 86_400
