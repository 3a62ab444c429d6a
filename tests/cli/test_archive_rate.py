"""The day rate: no more than pace, slots and the day's limit allow, whichever is least."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anchord.app.archive_config import CapturesConfig
from anchord.app.archive_rate import USUAL_DURATION_S, day_rate
from anchord.core.storage import Capture, CaptureState

DAY_S = 86_400


def made(lasted_s: int, *, adopted: bool = False) -> Capture:
    return Capture(
        id=1, version=1, record_id=1, batch_id=1, place=0, role="source",
        url="https://papers.example.org/1", host="papers.example.org", contains=None,
        state=CaptureState.STORED, attempts=0, next_attempt_at=None, submitted_at=1_000,
        reported_at=1_000 + lasted_s, adopted=adopted,
    )  # fmt: skip


@given(
    st.integers(1, 60), st.integers(1, 20), st.floats(0.01, 1), st.none() | st.integers(0, 12),
    st.none() | st.integers(0, 100_000), st.lists(st.integers(1, 900), max_size=9),
)  # fmt: skip
def test_no_bound_is_exceeded_and_one_is_met(
    pace: int, parallel: int, share: float, slots: int | None, limit: int | None, lasted: list[int]
) -> None:
    captures = CapturesConfig(submits_per_minute=pace, parallel=parallel, daily_share=share)
    rate = day_rate(
        captures, slots=slots, daily_limit=limit, made=[made(seconds) for seconds in lasted]
    )
    at_once = parallel if slots is None else min(parallel, max(slots, 1))
    bounds = {
        "pace": pace * 1_440,
        "slots": int(at_once * DAY_S / rate.duration_s),
        "daily limit": int(share * (30_000 if limit is None else limit)),
    }
    assert rate.per_day == min(bounds.values()) == bounds[rate.bound_by]


def test_without_captures_of_ours_the_duration_is_what_others_report() -> None:
    rate = day_rate(CapturesConfig(), slots=3, daily_limit=30_000, made=[made(5, adopted=True)])
    assert (rate.duration_s, rate.measured) == (USUAL_DURATION_S, False)
    assert (rate.per_day, rate.bound_by) == (8_640, "slots")


def test_own_captures_are_believed_by_their_median() -> None:
    rate = day_rate(
        CapturesConfig(), slots=3, daily_limit=None, made=[made(10), made(20), made(900)]
    )
    assert (rate.duration_s, rate.measured) == (20, True)


def test_a_backlog_is_told_in_days() -> None:
    rate = day_rate(CapturesConfig(), slots=3, daily_limit=None, made=[])
    assert rate.days_for(300_000) == 34.7
    assert rate.days_for(0) == 0
