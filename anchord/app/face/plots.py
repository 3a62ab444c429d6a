"""Pictures of numbers over time and of shares, as inline SVG that the page's style sheet colours.

Axes begin at zero; a line keeps its height until the next change; an empty picture says that it is
empty. Each line has a class and a label, never a colour alone, and every picture a title and a
description for who cannot see it. The library svg.py escapes nothing, so all text is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import svg
from markupsafe import Markup, escape

from anchord.app.report.scales import Scale, day_ticks, short, ticks

WIDTH, HEIGHT = 480, 250
"""So small that two stand side by side, and that a telephone shows the letters large enough."""
MOST_POINTS = 300
"""Of a line; further days are left out evenly, the last one never."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 14, 32
_END, _FOOT = WIDTH - _RIGHT, HEIGHT - _BOTTOM
_LOW = 72
_TICKS = 4
_PERCENT = 100


class Line(msgspec.Struct, frozen=True):
    """One line of a picture."""

    name: str
    """Class of the style sheet."""
    counts: Sequence[float]
    """One a day of the picture."""


def counts(name: str, title: str, said: str, days: Sequence[int], lines: Sequence[Line]) -> Markup:
    """Return a picture of counts over days.

    Args:
        name: of this picture on its page, for ids.
        title: what it shows.
        said: the same in words, for who cannot see it.
        days: days since 1970, UTC, ascending.
        lines: with a count for each of these days.
    """
    highest = max((max(line.counts, default=0) for line in lines), default=0)
    marks = [(mark, short(mark)) for mark in ticks(int(highest), _TICKS)]
    return _over_days(name, title, said, days, lines, marks)


def shares(name: str, title: str, said: str, days: Sequence[int], lines: Sequence[Line]) -> Markup:
    """Return a picture of shares in percent over days; arguments as of `counts`."""
    marks = [(mark, f"{mark} %") for mark in range(0, _PERCENT + 1, 25)]
    return _over_days(name, title, said, days, lines, marks)


def bar(name: str, done: int, total: int) -> Markup:
    """Return a bar that is filled as far as `done` of `total`; the words beside it say as much."""
    filled = min(max(done / total, 0.0), 1.0) * _PERCENT if total else 0.0
    parts: list[svg.Element] = [svg.Rect(class_=["track"], width=_PERCENT, height=4)]
    if filled:
        parts.append(svg.Rect(class_=["fill", name], width=_round(filled), height=4))
    picture = svg.SVG(
        class_=["share"], viewBox=svg.ViewBoxSpec(0, 0, _PERCENT, 4), elements=parts,
        preserveAspectRatio=svg.PreserveAspectRatio("none"), extra={"aria-hidden": "true"},
    )  # fmt: skip
    return Markup(picture.as_str())  # noqa: S704 - numbers and the classes of our templates


def thinned(days: Sequence[object], most: int = MOST_POINTS) -> list[int]:
    """Return which places of a list of days to draw: at most so many, the first and last always."""
    if len(days) <= most:
        return list(range(len(days)))
    step = (len(days) - 1) / (most - 1)
    return sorted({round(step * index) for index in range(most)})


# ---------------------------------------------------------------------- parts


def _over_days(
    name: str, title: str, said: str, days: Sequence[int], lines: Sequence[Line],
    marks: Sequence[tuple[int, str]],
) -> Markup:  # fmt: skip
    if not days:
        return _picture(name, title, said, [_text("empty", WIDTH / 2, _LOW / 2 + 5, said)], _LOW)
    # A day's number is that of its whole width, so that even one day is a line.
    across = Scale(days[0], days[-1] + 1, _LEFT, _END)
    up = Scale(0, marks[-1][0], _FOOT, _TOP)
    drawn = thinned(days)
    parts = [*_grid(up, marks), *_dates(across, days[0], days[-1])]
    for line in lines:
        points = [(across.at(days[at]), up.at(line.counts[at])) for at in drawn]
        points.append((float(_END), points[-1][1]))
        parts.append(svg.Path(class_=["line", line.name], d=list(_steps(points))))
    return _picture(name, title, said, parts, HEIGHT)


def _grid(up: Scale, marks: Sequence[tuple[int, str]]) -> Iterator[svg.Element]:
    """Yield lines across, each with its number; the lowest is the axis."""
    for index, (number, words) in enumerate(marks):
        y = _round(up.at(number))
        yield svg.Line(class_=["grid" if index else "axis"], x1=_LEFT, y1=y, x2=_END, y2=y)
        yield _text("mark", _LEFT - 8, y + 5, words)


def _dates(across: Scale, first: int, last: int) -> Iterator[svg.Element]:
    for day, words in day_ticks(first, last, _TICKS):
        x = _round(across.at(day))
        yield svg.Line(class_=["axis"], x1=x, y1=_FOOT, x2=x, y2=_FOOT + 5)
        # A label in the middle of the last tick would be cut off.
        yield _text("label end" if x > _END - 40 else "label", min(x, _END), _FOOT + 22, words)


def _steps(points: Sequence[tuple[float, float]]) -> Iterator[svg.PathData]:
    """Yield a line that keeps its height until the next point."""
    yield svg.MoveTo(*map(_round, points[0]))
    for (_, before), (x, y) in pairwise(points):
        yield svg.HorizontalLineTo(_round(x))
        if y != before:
            yield svg.VerticalLineTo(_round(y))


def _text(kind: str, x: float, y: float, words: str) -> svg.Element:
    return svg.Text(class_=[kind], x=_round(x), y=_round(y), text=str(escape(words)))


def _picture(name: str, title: str, said: str, parts: Sequence[svg.Element], height: int) -> Markup:
    heads: list[svg.Element] = [
        svg.Title(id=f"{name}-title", text=str(escape(title))),
        svg.Desc(id=f"{name}-desc", text=str(escape(said))),
    ]
    picture = svg.SVG(
        class_=["plot"], viewBox=svg.ViewBoxSpec(0, 0, WIDTH, height), elements=[*heads, *parts],
        extra={"role": "img", "aria-labelledby": f"{name}-title {name}-desc"},
    )  # fmt: skip
    return Markup(picture.as_str())  # noqa: S704 - all text was escaped where it was put in


def _round(place: float) -> float | int:
    """Return a place with a tenth of a unit: the same on every machine, and short."""
    rounded = round(place, 1)
    return int(rounded) if rounded == int(rounded) else rounded
