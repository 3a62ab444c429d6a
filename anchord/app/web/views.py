"""Records as they are shown, made when they are asked for; the last ones are kept.

A page, its badge and its documents are asked for one after the other, and a mirror asks for bundle
and state: all of that is made of one view. A view that was made since the store was last written to
is still true.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from anchord.core.trust import Keys
from anchord.engine.citing import Citations
from anchord.engine.viewing import record_view

if TYPE_CHECKING:
    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.app.web.readers import Readers
    from anchord.core.keyring import Keyring
    from anchord.core.model import StoredRecord
    from anchord.core.record_view import RecordView

_KEPT = 64
_MOST_BYTES = 256 << 10
"""A record with a longer bundle is made anew each time: what is kept must stay small."""


class Views:
    """Makes views. Threads may share it.

    Args:
        readers: say when the store has changed, and have the keyring.
    """

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._lock = threading.Lock()
        self._known: tuple[Keyring, Citations] | None = None
        self._views: OrderedDict[bytes, tuple[object, RecordView]] = OrderedDict()

    def mark(self) -> object:
        """Return what a view is kept under; asked before the store is lent.

        Raises:
            AnchordError: as `Readers.mark` and `Readers.keyring` do.
        """
        return self._readers.mark(), self._readers.keyring()

    def view(self, store: SqlReadingStore, record: StoredRecord, mark: object) -> RecordView:
        """Return a record as it is shown.

        Args:
            store: lent after `mark` was asked for, so the view is no older than it says.
            record: of that store.
            mark: what `mark` returned.

        Raises:
            LedgerError, FatalError: the store is damaged.
        """
        with self._lock:
            known = self._views.get(record.digest)
            if known is not None and known[0] == mark:
                self._views.move_to_end(record.digest)
                return known[1]
        keyring = self._readers.keyring()
        made = record_view(store, keyring, record, citations=self._citations(keyring))
        if len(made.raw) <= _MOST_BYTES:
            with self._lock:
                self._views[record.digest] = (mark, made)
                if len(self._views) > _KEPT:
                    self._views.popitem(last=False)
        return made

    def _citations(self, keyring: Keyring) -> Citations:
        """Return what finds who cites a record, and remembers; another keyring, another memory."""
        with self._lock:
            if self._known is None or self._known[0] is not keyring:
                self._known = (keyring, Citations(Keys(keyring)))
            return self._known[1]
