"""What stands behind the question mark of an address, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.web.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request


def text_of(request: Request, name: str, longest: int) -> str:
    """Return a parameter as text; empty when it is not there.

    Raises:
        Problem: it is there twice, or too long.
    """
    found = request.query_params.getlist(name)
    if len(found) > 1:
        raise Problem(400, f"{name}: expected once, got {len(found)} times")
    text = found[0] if found else ""
    if len(text) > longest:
        raise Problem(400, f"{name}: expected at most {longest} characters, got {len(text):,}")
    return text


def word_of(request: Request, name: str, allowed: Sequence[str]) -> str | None:
    """Return one of the allowed words; None when nothing is asked.

    Raises:
        Problem: another word.
    """
    text = text_of(request, name, 100)
    if text and text not in allowed:
        raise Problem(400, f"{name}: expected one of {', '.join(allowed)}, got {text!r:.60}")
    return text or None


def number_of(request: Request, name: str, lowest: int, highest: int) -> int | None:
    """Return a whole number; None when nothing is asked.

    Raises:
        Problem: no number between `lowest` and `highest`.
    """
    text = text_of(request, name, 20)
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or not lowest <= int(text) <= highest:
        raise Problem(
            400, f"{name}: expected a whole number from {lowest} to {highest:,}, got {text!r:.40}"
        )
    return int(text)
