"""Text of records as pages show it: on one line, of bounded length, unable to act or to hide."""

from __future__ import annotations

import re
from typing import Any

from anchord.app.certificate.shorten import middle, visible

LONGEST = 300
"""Characters of a value that are shown; all of it is in the bundle."""
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})Z")
_CHAINS = {
    "bitcoin": "Bitcoin",
    "bitcoin-testnet4": "Bitcoin testnet4",
    "bitcoin-signet": "Bitcoin signet",
    "bitcoin-regtest": "Bitcoin regtest",
}


def shown(value: Any, most: int = LONGEST) -> str:
    """Return a value as text for a page; what is too long loses its middle."""
    text = middle(value if isinstance(value, str) else str(value), 2 * most)
    # Nearly all text is plain, and `visible` looks at each character by itself.
    flat = " ".join(text.split()) if text.isascii() and text.isprintable() else visible(text)
    return middle(flat, most)


def moment(text: Any) -> str:
    """Return a moment of an event for people; whatever is none stays as it is."""
    found = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    return f"{found[1]} {found[2]} UTC" if found else shown(text, 40)


def chain(name: str) -> str:
    """Return what a chain is called."""
    return _CHAINS.get(name) or shown(name, 40)


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def dashed(word: str) -> str:
    """Return a name of the protocol as words: `uses_method` is "uses method"."""
    return shown(word, 60).replace("_", " ")
