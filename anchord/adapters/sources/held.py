"""What was read and not taken in yet: small, and never held for long.

Steps end by what they hold and by time, so that a slow source shows life and gives way to others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from anchord.core.model import Adoption, Document, Incoming, Record

STEP_S = 5.0
"""Seconds after which what is held is taken in, however little it is."""
LOOK_S = 30.0
"""Seconds after which a look pauses, where it can go on later."""
_BARE = 200


class Held:
    """Items that were read.

    Args:
        most: pieces of input (rows, files), and items, that are taken in at once.
        most_bytes: bytes that are.
        monotonic: seconds that never go back.
    """

    def __init__(
        self, most: int, most_bytes: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._most_bytes, self._monotonic = most, most_bytes, monotonic
        self._items: list[Incoming] = []
        self._bytes = self._pieces = 0
        self._since = self._began = monotonic()
        self.pieces = 0
        """Pieces of input read so far."""

    def put(self, item: Incoming) -> None:
        """Hold an item."""
        self._items.append(item)
        self._bytes += weight(item)

    def count(self) -> None:
        """Count a piece of input that was read to its end."""
        self._pieces += 1
        self.pieces += 1

    @property
    def full(self) -> bool:
        """Whether it is time to take in what is held."""
        much = self._bytes >= self._most_bytes or len(self._items) >= self._most
        return much or self._pieces >= self._most or self._monotonic() - self._since > STEP_S

    @property
    def late(self) -> bool:
        """Whether it is time to let others work."""
        return self._monotonic() - self._began > LOOK_S

    def taken(self) -> list[Incoming]:
        """Return what is held, and hold nothing."""
        items, self._items, self._bytes, self._pieces = self._items, [], 0, 0
        self._since = self._monotonic()
        return items


def weight(item: Incoming) -> int:
    """Return roughly how many bytes an item holds."""
    if isinstance(item, Document):
        return len(item.raw) + weight(item.record)
    if isinstance(item, Adoption):
        return len(item.ots) + _BARE
    if isinstance(item, Record) and item.canonical is not None:
        return len(item.canonical) + _BARE
    return _BARE
