"""Where a record's events stand in the log: the inclusion proofs that its bundle carries.

Of the checkpoints that cover an event, the oldest is taken: it does not change when the log grows,
so a bundle stays the same bytes however late it is exported.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from functools import cached_property
from typing import TYPE_CHECKING

from anchord.core.event import event_id
from anchord.core.inclusion import IncludedEvent, Inclusion, united
from anchord.core.log_tree import LogTree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anchord.core.model import SignedRow
    from anchord.ports.log import StoredCheckpoint
    from anchord.ports.store import Store

_CHECKPOINTS_KEPT = 1024


class Placing:
    """Finds places of events; what neighbours share is read once, memory stays flat.

    Args:
        store: whose log as it is now; what is appended later is not covered.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sizes: list[int] = []
        self._known: dict[int, tuple[int, StoredCheckpoint]] = {}
        """By size: the lowest size it is known to be the oldest checkpoint for, and itself."""

    def of(self, rows: Iterable[SignedRow]) -> list[Inclusion]:
        """Return the checkpoints that cover these rows of the ledger, with a proof of each row.

        Raises:
            FatalError: tiles of the log are missing.
        """
        found: dict[bytes, list[IncludedEvent]] = {}
        for row in rows:
            covering = self.covering(row.seq)
            if covering is not None:
                hashes = tuple(self.tree.inclusion(row.seq - 1, covering.size))
                event = IncludedEvent(event_id(row.event_id), row.seq - 1, hashes)
                found.setdefault(covering.note, []).append(event)
        return list(
            united(Inclusion(note.decode("utf-8"), tuple(events)) for note, events in found.items())
        )

    @cached_property
    def tree(self) -> LogTree:
        """The log's tree, as far as checkpoints go."""
        return LogTree(self._store.log, self._store.log.sizes()[1])

    def covering(self, seq: int) -> StoredCheckpoint | None:
        """Return the oldest checkpoint that covers row `seq`; None while there is none."""
        at = bisect_left(self._sizes, seq)
        if at < len(self._sizes):
            lowest, found = self._known[self._sizes[at]]
            if lowest <= seq:
                return found
        if seq > self.tree.size:
            return None
        asked = self._store.log.covering(seq)
        if asked is not None:
            self._keep(seq, asked)
        return asked

    def _keep(self, seq: int, found: StoredCheckpoint) -> None:
        """Remember that no older checkpoint covers `seq`."""
        if found.size not in self._known:
            if len(self._sizes) == _CHECKPOINTS_KEPT:
                self._sizes.clear()
                self._known.clear()
            insort(self._sizes, found.size)
        self._known[found.size] = (seq, found)


def inclusion_of(store: Store, rows: Iterable[SignedRow]) -> list[Inclusion]:
    """Return the checkpoints that cover some rows; for many records keep one `Placing`."""
    return Placing(store).of(rows)
