"""Pictures of an audit: axes from zero, true heights, and empty data that says so."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.app.report import pictures
from anchord.app.report.contents import GroupRow
from anchord.app.report.scales import Scale, day_ticks, short, ticks

FOOT = pictures.HEIGHT - pictures.BOTTOM


def drawn(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - made here, and XML that is none must fail


def of(root: ET.Element, tag: str, kind: str | None = None) -> list[ET.Element]:
    return [one for one in root.iter(tag) if kind is None or kind in one.get("class", "").split()]


@given(st.integers(0, 10**12))
def test_ticks_are_round_begin_at_zero_and_hold_the_highest(highest: int) -> None:
    found = ticks(highest)
    assert found[0] == 0
    assert found[-1] >= highest
    assert 2 <= len(found) <= 6
    assert all(b - a == found[1] for a, b in pairwise(found))
    assert found[1] == 1 or str(found[1]).rstrip("0") in ("1", "2", "5")


@given(st.integers(0, 40_000), st.integers(0, 20_000))
def test_an_axis_of_days_has_few_marks_all_within_it(first: int, length: int) -> None:
    found = day_ticks(first, first + length)
    assert 1 <= len(found) <= 7
    assert all(first <= at <= first + length for at, _ in found)
    assert len({text for _, text in found}) == len(found)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1_000, "1k"), (1_500, "1.5k"), (20_000, "20k"),
                         (2_500_000, "2.5M"), (10**9, "1G")],
)  # fmt: skip
def test_numbers_of_an_axis_are_short(number: int, text: str) -> None:
    assert short(number) == text


def test_a_scale_of_one_point_does_not_divide_by_nothing() -> None:
    assert Scale(5, 5, 10, 20).at(5) == 10


def test_pictures_of_nothing_say_so() -> None:
    for picture in (
        pictures.backlog((), 20_000), pictures.ages([("1 h", 0), ("older", 0)]),
        pictures.cohorts([]), pictures.cohorts([GroupRow("2026-01", 0, 0, 0, 0)]),
    ):  # fmt: skip
        root = drawn(picture)
        (words,) = of(root, "text", "empty")
        assert words.text == root.findtext("desc")
        assert not of(root, "rect")
        assert not of(root, "path")


def test_lines_step_and_run_on_to_the_day_of_the_audit() -> None:
    root = drawn(pictures.backlog([(100, 10, 20), (104, 0, 20)], 109))
    anchored, stored = of(root, "path", "anchored")[0], of(root, "path", "stored")[0]
    assert re.fullmatch(r"M56 132H[0-9.]+V244H704", anchored.get("d", ""))
    assert re.fullmatch(r"M56 20H[0-9.]+H704", stored.get("d", ""))


def test_one_day_is_a_line_too() -> None:
    root = drawn(pictures.backlog([(100, 1, 1)], 100))
    assert of(root, "path", "anchored")[0].get("d") == "M56 20H704"


@given(st.lists(st.integers(0, 10**7), min_size=6, max_size=6).filter(any))
def test_bars_are_as_high_as_their_numbers(counts: list[int]) -> None:
    root = drawn(pictures.ages([(f"a{at}", count) for at, count in enumerate(counts)]))
    bars = of(root, "rect", "wait")
    unit = (FOOT - pictures.TOP) / ticks(max(counts))[-1]
    for bar, count in zip(bars, counts, strict=True):
        top, height = float(bar.get("y", "")), float(bar.get("height", ""))
        assert abs(top + height - FOOT) <= 0.1
        assert abs(height - count * unit) <= 0.11


@given(st.lists(st.tuples(*[st.integers(0, 1_000)] * 4).filter(any), min_size=1, max_size=60))
def test_a_cohort_is_one_whole_bar(parts: list[tuple[int, int, int, int]]) -> None:
    rows = [
        GroupRow(f"m{at}", both + one + two + none, both + one, both + two, both)
        for at, (both, one, two, none) in enumerate(parts)
    ]
    root = drawn(pictures.cohorts(rows))
    by_place: dict[str, float] = {}
    for bar in of(root, "rect"):
        place = bar.get("x", "")
        by_place[place] = by_place.get(place, 0.0) + float(bar.get("height", ""))
    assert len(by_place) == min(len(rows), pictures.MOST_COHORTS)
    assert all(abs(height - (FOOT - pictures.TOP)) < 0.5 for height in by_place.values())


def test_words_in_a_picture_are_text() -> None:
    root = drawn(pictures.ages([("<b>&\"'", 3)]))
    assert of(root, "text", "label")[0].text == "<b>&\"'"
