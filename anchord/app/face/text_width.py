"""How wide a badge's words are, so that its boxes fit them wherever it is shown.

Badges of the usual kind are set in Verdana at 11 px; a viewer without Verdana is told the width
(`textLength`), so what is computed here is what is seen. Widths are the font's own advance widths,
in its units of 2048 to the em; it has no kerning between these letters.
"""

from __future__ import annotations

_UNITS_PER_EM = 2048
_SIZE_PX = 11
_ADVANCES = dict(
    zip(
        " abcdefghijklmnopqrstuvwxyz",
        (
            720, 1230, 1276, 1067, 1276, 1220, 720, 1276, 1296, 562, 705, 1212, 562, 1992, 1296,
            1243, 1276, 1276, 874, 1067, 807, 1296, 1212, 1676, 1212, 1212, 1076,
        ),
        strict=True,
    )
)  # fmt: skip


def text_width(words: str) -> int:
    """Return how wide small letters and spaces are in Verdana at 11 px, as an odd number of px.

    Odd, as the usual badges have it: with 5 px on both sides the middle of the text then falls on
    the middle of a pixel, and letters look sharp (rule of the badge maker's `preferredWidthOf`).

    Raises:
        KeyError: another character: badges here are made of words known beforehand.
    """
    px = sum(_ADVANCES[letter] for letter in words) * _SIZE_PX // _UNITS_PER_EM
    return px | 1
