from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.app.face import plots

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title><script>alert(1)</script> & \"' <b>"
DAYS = st.builds(
    lambda first, count: range(first, first + count), st.integers(0, 40_000), st.integers(1, 40)
)


def read(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - our own


def path_of(picture: str, name: str) -> list[tuple[float, float]]:
    """Return the corners of a line."""
    found = read(picture).find(f"{SVG}path[@class='line {name}']")
    assert found is not None
    x = y = 0.0
    corners = []
    for letter, first, second in re.findall(r"([MHV]) (\S+)(?: ([\d.]+))?", found.attrib["d"]):
        x = float(first) if letter in "MH" else x
        y = float(second) if letter == "M" else float(first) if letter == "V" else y
        corners.append((x, y))
    return corners


@given(days=DAYS, data=st.data())
def test_a_line_lies_in_its_picture_runs_to_its_end_and_is_as_high_as_its_numbers(days, data):
    numbers = data.draw(st.lists(st.integers(0, 2_000_000), min_size=len(days), max_size=len(days)))
    picture = plots.counts("p", "Title", "Said", days, [plots.Line("records", numbers)])
    corners = path_of(picture, "records")
    assert all(0 <= x <= plots.WIDTH and 0 <= y <= plots.HEIGHT for x, y in corners)
    assert [x for x, _ in corners] == sorted(x for x, _ in corners)
    lines = read(picture).findall(f"{SVG}line")
    assert corners[-1][0] == max(float(one.attrib["x2"]) for one in lines)
    heights = sorted(
        {(number, -y) for number, y in zip(numbers, _heights(days, corners), strict=True)}
    )
    assert [y for _, y in heights] == sorted(y for _, y in heights), "more is never lower"


def _heights(days, corners):
    """Return how high the line is at the middle of each day."""
    left, right = corners[0][0], corners[-1][0]
    span = days[-1] + 1 - days[0]
    for day in days:
        x = left + (day + 0.5 - days[0]) / span * (right - left)
        yield [y for at, y in corners if at <= x][-1]


@given(st.integers(1, 5_000), st.integers(2, 400))
def test_thinning_keeps_the_first_and_the_last_and_no_more_than_asked(length, most):
    kept = plots.thinned(range(length), most)
    assert kept[0] == 0
    assert kept[-1] == length - 1
    assert len(kept) <= max(most, 1)
    assert kept == sorted(set(kept))
    gaps = [after - before for before, after in itertools.pairwise(kept)]
    assert not gaps or max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize("draw", [plots.counts, plots.shares])
def test_text_is_text_and_nothing_is_styled_inline(draw):
    line = plots.Line("anchored", [1, 50])
    picture = draw("p", HOSTILE, HOSTILE, [20_000, 20_001], [line])
    root = read(picture)
    assert root.find(f"{SVG}title").text == HOSTILE
    assert root.find(f"{SVG}desc").text == HOSTILE
    assert not root.findall(f".//{SVG}script")
    assert not [one for one in root.iter() if "style" in one.attrib]
    named = root.attrib["aria-labelledby"].split()
    assert named == [one.attrib["id"] for one in root.iter() if "id" in one.attrib]


def test_an_empty_picture_says_that_it_is_empty():
    picture = plots.counts("p", "Title", "There is nothing.", [], [plots.Line("records", [])])
    assert read(picture).find(f"{SVG}text[@class='empty']").text == "There is nothing."


@pytest.mark.parametrize(
    ("done", "total", "width"), [(0, 0, None), (0, 7, None), (1, 3, 33.3), (7, 7, 100), (9, 7, 100)]
)
def test_a_bar_is_filled_as_far_as_is_done(done, total, width):
    found = read(plots.bar("anchored", done, total)).find(f"{SVG}rect[@class='fill anchored']")
    assert (None if found is None else float(found.attrib["width"])) == width
