"""What stands behind the question mark of an address, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.face.openapi import ANY
from anchord.app.web.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

_LONGEST_WORD = 100


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
    """Return one of the allowed words; None when nothing or "any" is asked.

    Raises:
        Problem: another word.
    """
    if name not in request.query_params:
        return None
    text = text_of(request, name, _LONGEST_WORD)
    if text not in (ANY, *allowed):
        raise Problem(400, f"{name}: expected {ANY}, {', '.join(allowed)}, got {text!r:.60}")
    return None if text == ANY else text


def number_of(request: Request, name: str, lowest: int, highest: int) -> int | None:
    """Return a whole number; None when nothing is asked.

    Raises:
        Problem: no number between `lowest` and `highest`.
    """
    if name not in request.query_params:
        return None
    text = text_of(request, name, _LONGEST_WORD)
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(highest))
    if not is_number or not lowest <= int(text) <= highest:
        raise Problem(
            400, f"{name}: expected a whole number from {lowest} to {highest:,}, got {text!r:.40}"
        )
    return int(text)
