"""Text that fits: long values cut in the middle, and characters a PDF's own fonts have."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "\u2026"


def middle(text: str, most: int) -> str:
    """Return text of at most `most` characters; what is too long loses its middle."""
    if len(text) <= most:
        return text
    head = most // 2
    return text[:head] + ELLIPSIS + text[len(text) - (most - 1 - head) :]


def visible(text: str) -> str:
    """Return text on one line that cannot hide, move or reverse what stands beside it.

    Controls and the marks that turn the direction of writing are written as escapes.
    """
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def latin(text: str) -> str:
    r"""Return text in the characters of WinAnsi, which the standard fonts of PDF have.

    Everything else is written as an escape (`\u4e2d`): no font that has all scripts is on every
    machine, and a black box would say less.
    """
    return visible(text).encode("cp1252", "backslashreplace").decode("cp1252")


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
