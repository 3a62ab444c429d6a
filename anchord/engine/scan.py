"""Taking records in: from any source into the store, in durable chunks.

A crash or an interrupt loses at most the chunk in hand. Nothing has to be remembered to go on:
adding the same input again finds what is there and adds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from anchord.core.bundle_check import check_document
from anchord.core.canonical import record_id
from anchord.core.keyring import Keyring
from anchord.core.model import Adoption, Document, Record, Rejection
from anchord.errors import RefusedError
from anchord.ports import RecordSource, RecordStore

CHUNK_ITEMS = 20_000
"""Items in one transaction: enough that its fsync costs little per item."""
CHUNK_BYTES = 16 * 1024 * 1024
"""Bytes in one transaction, so that bundles and proofs cannot fill the memory."""

Item = Record | Adoption | Document


class Taken(msgspec.Struct, frozen=True):
    """What became of the input."""

    new: int = 0
    known: int = 0
    """Already there: nothing was changed."""
    adopted: int = 0
    """New proofs taken over, whether or not their record was new."""
    rejected: int = 0


def take_in(
    source: RecordSource,
    store: RecordStore,
    now: int,
    on_rejection: Callable[[Rejection], None],
    on_progress: Callable[[int], None],
) -> Taken:
    """Add all records of `source` to `store`; a refused one never stops the rest.

    Args:
        source: where the records come from.
        store: where they go; called from this thread only.
        now: Unix seconds.
        on_rejection: told each refusal as it is met, so that none is held here.
        on_progress: told after each chunk how many items have been read so far, refusals included.

    Raises:
        StoreBusyError: another process held the store too long; chunks before are in.
    """
    chunks = _Chunks(store, now)
    rejected = 0
    for item in source:
        if type(item) is Rejection:
            rejected += 1
            on_rejection(item)
        elif chunks.put(item):  # type: ignore[arg-type]  # the union without Rejection
            on_progress(chunks.read + rejected)
    chunks.flush()
    on_progress(chunks.read + rejected)
    return Taken(chunks.new, chunks.known, chunks.adopted, rejected)


def without_forgeries(
    items: Iterable[Item | Rejection], keyring: Callable[[], Keyring]
) -> Iterator[Item | Rejection]:
    """Pass items on; a bundle with a part that is known to be false becomes a refusal.

    Args:
        items: what sources yield.
        keyring: asked for when the first bundle comes by.
    """
    for item in items:
        if type(item) is Document:
            try:
                check_document(item, keyring())
            except RefusedError as error:
                name = item.record.label or f"bundle of {record_id(item.record.digest)}"
                yield Rejection(where=name, line=None, reason=str(error))
                continue
        yield item


class _Chunks:
    """Items gathered into transactions, and the counts of what became of them."""

    def __init__(self, store: RecordStore, now: int) -> None:
        self._store = store
        self._now = now
        self._items: list[Item] = []
        self._bytes = 0
        self.read = 0
        self.new = 0
        self.known = 0
        self.adopted = 0

    def put(self, item: Item) -> bool:
        """Take one item; return whether that completed a chunk, which is then durable."""
        self._items.append(item)
        self._bytes += _weight(item)
        if len(self._items) < CHUNK_ITEMS and self._bytes < CHUNK_BYTES:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Write what is in hand in one transaction."""
        if not self._items:
            return
        added = self._store.add(self._items, self._now)
        self.read += len(self._items)
        self.new += added.new
        self.known += added.known
        self.adopted += added.adopted
        self._items = []
        self._bytes = 0


def _weight(item: Item) -> int:
    """Return roughly how many bytes an item holds."""
    if type(item) is Record:
        return len(item.canonical) if item.canonical is not None else 32
    if type(item) is Document:
        return len(item.raw) + _weight(item.record)
    return len(item.ots) if isinstance(item, Adoption) else 0
