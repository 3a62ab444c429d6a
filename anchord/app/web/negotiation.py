"""Which form of an answer is asked for (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.requests import Request

HTML, JSON, JSON_LD = "text/html", "application/json", "application/ld+json"
PROBLEM = "application/problem+json"
_MOST_RANGES = 50
"""Further ones are not read: nobody means them."""


class _Range(NamedTuple):
    """One media range with its weight."""

    kind: str
    weight: float

    def fits(self, offered: str) -> int:
        """Return how exactly it names a media type; 0: it does not."""
        if self.kind == offered:
            return 3
        main, _, sub = self.kind.partition("/")
        if sub == "*" and offered.startswith(main + "/"):
            return 2
        return int(self.kind == "*/*")


def preferred(request: Request, offered: Sequence[str]) -> str:
    """Return the form of those offered that is wanted most.

    Of forms that are wanted alike the first offered one is taken, and where none is wanted, too: an
    answer in another form is worth more than none.
    """
    ranges = _ranges(", ".join(request.headers.getlist("accept")))
    weights = [_weight(kind, ranges) for kind in offered]
    return offered[weights.index(max(weights))]


def _weight(offered: str, ranges: Sequence[_Range]) -> float:
    """Return the weight of the range that names a media type most exactly."""
    fitting = [(one.fits(offered), one.weight) for one in ranges]
    return max(fitting, default=(0, 0.0))[1] if any(how for how, _ in fitting) else 0.0


def _ranges(accept: str) -> list[_Range]:
    found = []
    for text in accept.split(",")[:_MOST_RANGES]:
        kind, *parameters = (part.strip().lower() for part in text.split(";"))
        if kind:
            found.append(_Range(kind, _quality(parameters)))
    return found


def _quality(parameters: Sequence[str]) -> float:
    for text in parameters:
        name, _, value = text.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0.0 <= weight <= 1.0 else 0.0
    return 1.0
