"""Thresholds: read strictly, compared exactly, told in words that never say more than is so."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import audits

from anchord.app.thresholds import (
    age_words,
    judge,
    percent_words,
    read_fail_under,
    read_max_age,
)
from anchord.core.standing import Completeness, Standing, Tally
from anchord.errors import ConfigError

NOW = audits.NOW
HOUR = 3_600


def counted(*standings: tuple[Standing, int]) -> Completeness:
    tally = Tally(NOW)
    for standing, count in standings:
        tally.add(standing, count)
    return tally.result()


def stand(*, anchored: bool = True, stored: bool = True, age: int | None = HOUR) -> Standing:
    added = None if age is None else NOW - age
    return Standing(
        "arxiv", added, "anchored" if anchored else "submitted", NOW if anchored else None,
        "stored" if stored else "not stored", NOW if stored else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "anchored", "anchored=", "=99", "sound=99", "anchored=101", "anchored=-1", "anchored=1e2",
     "anchored=99,5", "anchored=nan", "Anchored=99", "anchored=99.12345678", "anchored=9=9"],
)  # fmt: skip
def test_a_share_that_is_none_is_refused_in_words(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected FACET=PERCENT .* anchored=99\.5"):
        read_fail_under(text)


@pytest.mark.parametrize("text", ["", "24", "h", "24 h", "-1h", "1.5h", "both=1h", "24H", "1h30m"])
def test_an_age_that_is_none_is_refused_in_words(text: str) -> None:
    with pytest.raises(ConfigError, match="24h"):
        read_max_age(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5_400), ("24h", 86_400), ("7d", 604_800), ("2w", 1_209_600),
                          ("45s", 45), ("0s", 0)],
)  # fmt: skip
def test_ages_are_read(text: str, seconds: int) -> None:
    assert read_max_age(text).age_s == seconds
    assert read_max_age(f"stored={text}").facet == "stored"


def test_a_missed_share_says_how_many_are_missing() -> None:
    found = counted((stand(), 98_688), (stand(anchored=False), 1_312))
    said = judge(read_fail_under("anchored=99.5"), found)
    assert (said.asked, said.holds) == ("fail-under anchored=99.5", False)
    assert said.words == ("anchored is 98.6 %, asked for 99.5 %: 1,312 records of 100,000 are not")


def test_a_share_of_no_records_never_holds() -> None:
    for text in ("anchored=0", "both=100"):
        assert not judge(read_fail_under(text), counted()).holds


def test_both_means_the_same_record() -> None:
    found = counted((stand(stored=False), 1), (stand(anchored=False), 1))
    assert judge(read_fail_under("anchored=50"), found).holds
    assert not judge(read_fail_under("both=50"), found).holds


@given(
    done=st.integers(0, 10_000), left=st.integers(0, 10_000),
    percent=st.decimals("0", "100", places=3),
)  # fmt: skip
def test_shares_are_compared_exactly(done: int, left: int, percent: Decimal) -> None:
    found = counted((stand(), done), (stand(anchored=False), left))
    said = judge(read_fail_under(f"anchored={percent:f}"), found)
    assert said.holds == (done + left > 0 and 100 * done >= percent * (done + left))


@given(part=st.integers(0, 10**9), more=st.integers(0, 10**9))
def test_a_shown_share_is_never_more_than_the_true_one(part: int, more: int) -> None:
    if whole := part + more:
        shown = Decimal(percent_words(part, whole).removesuffix(" %"))
        assert shown * whole <= 100 * part < (shown + Decimal("0.1")) * whole


def test_the_oldest_record_that_waits_decides() -> None:
    found = counted((stand(anchored=False, age=25 * HOUR), 1), (stand(stored=False, age=HOUR), 5))
    assert not judge(read_max_age("24h"), found).holds
    assert judge(read_max_age("25h"), found).holds
    assert judge(read_max_age("stored=1h"), found).holds
    assert not judge(read_max_age("stored=59m"), found).holds
    words = judge(read_max_age("24h"), found).words
    assert "the oldest record not anchored waits for 25 h" in words


def test_nothing_that_waits_is_never_too_old() -> None:
    assert judge(read_max_age("0s"), counted((stand(age=10**6), 3))).holds


def test_a_wait_of_unknown_age_is_not_taken_for_a_short_one() -> None:
    said = judge(read_max_age("7d"), counted((stand(anchored=False, age=None), 2)))
    assert not said.holds
    assert "2 records not anchored, and nothing says since when" in said.words


@pytest.mark.parametrize(
    ("age", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3_599, "59 min"), (12_000, "3 h 20 min"),
     (86_400, "24 h"), (10 * 86_400 + 7_200, "10 days 2 h"), (2_000 * 86_400, "2,000 days")],
)  # fmt: skip
def test_ages_in_words(age: int, words: str) -> None:
    assert age_words(age) == words
