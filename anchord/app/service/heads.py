"""Noticing that the store is older than it was: a standby that lagged, or a copy put in its place.

Events that are gone from the ledger were signed, and handed out, all the same; whoever went on from
an older state would sign another history beside the first. A checkpoint in the store says nothing
then, for it went with the events. What this process has seen does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from anchord.errors import FatalError, LedgerError

if TYPE_CHECKING:
    from anchord.ports.store import LedgerTable


class HeadWatch:
    """Remembers the ledger's end, and looks whether it is still there. Any thread may use it."""

    def __init__(self) -> None:
        self._seen: tuple[int, bytes] = (0, b"")
        self._lock = threading.Lock()

    def check(self, ledger: LedgerTable) -> None:
        """Refuse a ledger that does not have the row it ended with before.

        Raises:
            FatalError: it is shorter, or another one.
        """
        with self._lock:
            seq, chain = self._seen
            if seq and _chain_at(ledger, seq) != chain:
                raise FatalError(
                    f"the ledger ended with row {seq}, and does not have it any more: the store "
                    "was replaced by an older copy, or its server by a standby that lagged. "
                    "Nothing is signed. Bring back the newer one; if it is lost, what was signed "
                    "since is in outlets and published pages only: start again to go on without it"
                )
            self._seen = ledger.head()


def _chain_at(ledger: LedgerTable, seq: int) -> bytes | None:
    """Return the chain hash of a row; None when it is not there, or not what was appended."""
    try:
        rows = next(ledger.walk(seq - 1, 1), [])
    except LedgerError:
        return None
    return rows[0].chain if rows and rows[0].seq == seq else None
