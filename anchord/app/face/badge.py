"""A record's badge: an SVG in the usual flat style that says what holds of the record.

At the left "pith"; then whether it is anchored and stored, always; attested and refs once they are.
Nothing on it was written by a stranger but the record's name, whose form is checked, and which is
escaped like all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from anchord.app.face.rendering import render
from anchord.app.face.strip import FOR_TESTS, strip_words
from anchord.app.face.text_width import text_width
from anchord.core.canonical import record_id

if TYPE_CHECKING:
    from anchord.core.record_view import RecordView

_SIDE_PX = 5
_LEFT = ("pith", "#555")
_HELD = "#2e7d32"
_UNDER_WAY = "#9a6700"
_OPEN = "#757575"
"""White letters stand out from each of these by 4.5 to 1 or more (WCAG 2.2, 1.4.3)."""
_WAITING = ("submitted", FOR_TESTS)
_ALWAYS = ("anchored", "stored")
"""The badge's subject; what others add follows once it is there."""

Words: TypeAlias = tuple[tuple[str, str], ...]
"""Facet and its word on the strip."""


class _Box(msgspec.Struct, frozen=True, kw_only=True):
    """One coloured field; `middle` and `text_length` in tenths of a pixel."""

    words: str
    colour: str
    x: int
    width: int
    middle: int
    text_length: int


def badge(view: RecordView) -> bytes:
    """Return `badge.svg` of a record, UTF-8."""
    words = strip_words(view.state)
    name = view.bundle.number or record_id(view.bundle.digest)
    return _svg(f"{name}: {', '.join(words.values())}", tuple(words.items()))


def _svg(title: str, words: Words) -> bytes:
    boxes = _boxes(words)
    width = sum(box.width for box in boxes)
    return render("badge.svg", title=title, boxes=boxes, width=width)


def _fields(words: Words) -> Sequence[tuple[str, str]]:
    """Return the words on the badge and their colours, from the left."""
    shown = [_LEFT]
    for facet, word in sorted(words, key=lambda one: one[0] not in _ALWAYS):
        if word == facet:
            shown.append((word, _HELD))
        elif facet in _ALWAYS:
            shown.append((word, _UNDER_WAY if word in _WAITING else _OPEN))
    return shown


@lru_cache(maxsize=64)
def _boxes(words: Words) -> tuple[_Box, ...]:
    return tuple(_placed(_fields(words)))


def _placed(fields: Sequence[tuple[str, str]]) -> Iterator[_Box]:
    x = 0
    for words, colour in fields:
        text = text_width(words)
        width = text + 2 * _SIDE_PX
        yield _Box(
            words=words, colour=colour, x=x, width=width,
            middle=10 * x + 5 * width, text_length=10 * text,
        )  # fmt: skip
        x += width
