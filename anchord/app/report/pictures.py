"""Three pictures of an audit as inline SVG (https://www.w3.org/TR/SVG2/), coloured by the page.

Axes begin at zero, lines step because a day's count stays until the next change, and an empty
picture says that it is empty. Each has a title and a description for who cannot see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup, escape

from anchord.app.report.contents import GroupRow, day
from anchord.app.report.scales import Scale, day_ticks, short, ticks

WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 20, 36
MOST_COHORTS = 24
"""Months that are drawn; a table beneath has all of them."""
LAYERS = (
    ("both", "anchored and stored"),
    ("anchored", "anchored only"),
    ("stored", "stored only"),
    ("neither", "neither"),
)
"""Class and words of a bar's parts, from the bottom."""

_LOW = 72
"""Height of an empty picture."""
_FOOT = HEIGHT - BOTTOM
_END = WIDTH - RIGHT


def backlog(days: Sequence[tuple[int, int, int]], today: int) -> Markup:
    """Return how many records were not anchored, and not stored, at the end of each day.

    Args:
        days: (day, not anchored, not stored), ascending, where something changed.
        today: the day of the audit; the lines run on to its end.
    """
    if not days:
        return _nothing("backlog", "Backlog over time", "There are no dated records.")
    first, last = days[0][0], max(today, days[-1][0])
    # A day's count is that of its whole width, so that even one day is a line.
    whole = [*days, (last + 1, *days[-1][1:])]
    marks = ticks(max(max(one[1:]) for one in whole))
    across = Scale(first, last + 1, LEFT, _END)
    up = Scale(0, marks[-1], _FOOT, TOP)
    said = (
        f"From {day(first)} to {day(last)}. At the end {whole[-1][1]:,} records are not anchored "
        f"and {whole[-1][2]:,} are not stored."
    )
    parts = [
        *_grid(up, [(mark, short(mark)) for mark in marks]),
        *(_below(across.at(at), text, tick=True) for at, text in day_ticks(first, last)),
        _steps("stored", [(across.at(at), up.at(count)) for at, _, count in whole]),
        _steps("anchored", [(across.at(at), up.at(count)) for at, count, _ in whole]),
    ]
    return _picture("backlog", "Backlog over time", said, parts)


def ages(rows: Sequence[tuple[str, int]]) -> Markup:
    """Return how many records wait, by age."""
    title = "Age of the records that wait"
    highest = max((count for _, count in rows), default=0)
    if not highest:
        return _nothing("ages", title, "No record with a known age waits.")
    marks = ticks(highest)
    up = Scale(0, marks[-1], _FOOT, TOP)
    said = "; ".join(f"{name}: {count:,}" for name, count in rows) + "."
    parts = [*_grid(up, [(mark, short(mark)) for mark in marks])]
    for (name, count), (left, width) in zip(rows, _slots(len(rows), 0.62), strict=True):
        parts += [
            _bar("wait", left, width, up.at(count), _FOOT),
            _text("value", left + width / 2, up.at(count) - 6, f"{count:,}"),
            _below(left + width / 2, name),
        ]
    return _picture("ages", title, said, parts)


def cohorts(rows: Sequence[GroupRow]) -> Markup:
    """Return how complete the records of each month are, in percent of that month's records."""
    title = "Completeness by the month records were added in"
    shown = [row for row in rows if row.records][-MOST_COHORTS:]
    if not shown:
        return _nothing("cohorts", title, "There are no records.")
    up = Scale(0, 100, _FOOT, TOP)
    said = "; ".join(
        f"{row.name}: {row.records:,} records, {row.share('anchored')} anchored, "
        f"{row.share('stored')} stored"
        for row in shown
    )
    parts = [*_grid(up, [(mark, f"{mark} %") for mark in (0, 25, 50, 75, 100)])]
    every = -(-len(shown) // 12)
    for index, (row, (left, width)) in enumerate(zip(shown, _slots(len(shown), 0.72), strict=True)):
        parts += _stack(row, left, width, up)
        if index % every == 0:
            parts.append(_below(left + width / 2, row.name))
    return _picture("cohorts", title, f"{said}.", parts)


# ---------------------------------------------------------------------- parts


def _stack(row: GroupRow, left: float, width: float, up: Scale) -> Iterator[Markup]:
    counts = {
        "both": row.both,
        "anchored": row.anchored - row.both,
        "stored": row.stored - row.both,
        "neither": row.records - row.anchored - row.stored + row.both,
    }
    below = 0
    for name, words in LAYERS:
        if counts[name]:
            top = up.at(100 * (below + counts[name]) / row.records)
            foot = up.at(100 * below / row.records)
            told = f"{row.name}, {words}: {counts[name]:,} of {row.records:,}"
            yield _bar(name, left, width, top, foot, told)
        below += counts[name]


def _nothing(name: str, title: str, said: str) -> Markup:
    """Return a picture that says why there is none."""
    words = _text("empty", WIDTH / 2, _LOW / 2 + 6, said)
    return _picture(name, title, said, [words], _LOW)


def _picture(
    name: str, title: str, said: str, parts: Sequence[Markup], height: int = HEIGHT
) -> Markup:
    head = Markup(
        '<svg class="picture" viewBox="0 0 {w} {h}" role="img" '
        'aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{title}</title><desc id="{name}-desc">{said}</desc>'
    ).format(w=WIDTH, h=height, name=name, title=title, said=said)
    return head + Markup("").join(parts) + Markup("</svg>")


def _grid(up: Scale, marks: Sequence[tuple[int, str]]) -> Iterator[Markup]:
    """Yield lines across, each with its number; the lowest is the axis."""
    for index, (number, text) in enumerate(marks):
        y = _number(up.at(number))
        kind = "grid" if index else "axis"
        yield Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
            kind, LEFT, y, _END, y
        )
        yield Markup('<text class="mark" x="{}" y="{}">{}</text>').format(
            LEFT - 8, _number(up.at(number) + 4), text
        )


def _below(x: float, text: str, *, tick: bool = False) -> Markup:
    label = _text("label", x, _FOOT + 20, text)
    if not tick:
        return label
    at = _number(x)
    line = Markup('<line class="axis" x1="{}" y1="{}" x2="{}" y2="{}"/>')
    return line.format(at, _FOOT, at, _FOOT + 5) + label


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(
        kind, _number(x), _number(y), text
    )


def _bar(kind: str, left: float, width: float, top: float, foot: float, told: str = "") -> Markup:
    tip = Markup("<title>{}</title>").format(told) if told else Markup("")
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}">{}</rect>').format(
        kind, _number(left), _number(top), _number(width), _number(foot - top), tip
    )


def _steps(kind: str, points: Sequence[tuple[float, float]]) -> Markup:
    """Return a line that keeps its height until the next point."""
    (x, y), path = points[0], []
    path.append(f"M{_number(x)} {_number(y)}")
    for (_, before), (x, y) in pairwise(points):
        path.append(f"H{_number(x)}")
        if y != before:
            path.append(f"V{_number(y)}")
    return Markup('<path class="line {}" d="{}"/>').format(kind, escape("".join(path)))


def _slots(count: int, filled: float) -> list[tuple[float, float]]:
    """Return left edge and width of bars that share the picture's width."""
    slot = (_END - LEFT) / count
    width = min(slot * filled, 72.0)
    return [(LEFT + slot * index + (slot - width) / 2, width) for index in range(count)]


def _number(place: float) -> str:
    """Return a place with a tenth of a unit: the same on every machine, and short."""
    return f"{place:.1f}".removesuffix(".0")
