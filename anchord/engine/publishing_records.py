"""The files of records in a published tree: bundle, state, what shows them, and the proof."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from anchord.core.canonical import canonical_bytes
from anchord.core.mirror_manifest import WELL_KNOWN
from anchord.core.record_view import RecordView
from anchord.core.trust import Keys
from anchord.engine.audit.fast_proofs import ProofReader
from anchord.engine.citing import Citations, CitedBy
from anchord.engine.export import Item, all_bundles, all_ots, best_batch, record_bundle, stem_of
from anchord.engine.publishing_about import NUMBERED, folder_of
from anchord.engine.viewing import view_of

if TYPE_CHECKING:
    from anchord.core.keyring import Keyring
    from anchord.ports.store import Store

Files = Iterable[tuple[str, bytes]]
"""Path below the root, and bytes."""
Progress = Callable[[str, int, int], None]
Put = Callable[[str, bytes], None]
Link = Callable[[str, str, bytes], None]
_NOBODY: CitedBy = ((), 0)
_FACTS = ("bundle.json", "state.json")
"""A record's files that every tree has, with pages or without."""


class Pages(Protocol):
    """What people and agents read beside the evidence. All of it follows from what is given."""

    def record(self, view: RecordView, moment: int) -> Files:
        """Yield the files of one record; bundle and state among them are the ones that are there.

        Args:
            view: the record.
            moment: when it came, in Unix seconds; for the order of those named on the first page.
        """
        ...

    def shared(self) -> Files:
        """Yield what pages of all records need; written before them."""
        ...

    def front(self) -> Files:
        """Yield what leads to the records; written after them."""
        ...


class RecordFiles:
    """Hands every record of a store to whoever writes its files.

    Args:
        store: what is published; no pass runs meanwhile.
        keyring: public keys.
        pages: makes what is shown; None: the evidence alone.
        anchored_only: leave out records that no block holds yet.
    """

    def __init__(
        self, store: Store, keyring: Keyring, pages: Pages | None, *, anchored_only: bool
    ) -> None:
        self._store, self._keyring, self._pages = store, keyring, pages
        self._anchored_only = anchored_only
        self._keys, self._proofs = Keys(keyring), ProofReader()
        self._citations = Citations(self._keys)
        self.records = 0
        self.anchored = 0

    def write(self, put: Put, link: Link, expected: int, on_progress: Progress) -> None:
        """Write the files of every record: bundle, state and pages of all, then their proofs.

        Args:
            put: takes path and bytes.
            link: takes a path, the path of the same bytes that was put last, and those bytes.
            expected: how many records there are, for progress.
            on_progress: told (what, done, total).
        """
        done = 0
        for group in self._groups():
            cited = self._cited(group)
            for item in group:
                self._write(item, cited.get(item.record, _NOBODY), put, link)
            done += len(group)
            on_progress("bundles", done, max(done, expected))
        done = 0
        for group in all_ots(self._store, anchored_only=self._anchored_only):
            for item in group:
                put(f"{folder_of(item.stem)}/proof.ots", item.data)
            done += len(group)
            on_progress("proofs", done, self.records)

    def _groups(self) -> Iterator[list[Item]]:
        groups = all_bundles(self._store, self._keyring, anchored_only=self._anchored_only)
        return groups if self._anchored_only else itertools.chain(groups, self._without_proof())

    def _cited(self, group: Sequence[Item]) -> Mapping[int, CitedBy]:
        """Return who cites some records; evidence alone does not say it."""
        if self._pages is None or not group:
            return {}
        found = self._store.lookup.records([item.record for item in group])
        return self._citations.of(self._store, list(found.values()))

    def _write(self, item: Item, cited: CitedBy, put: Put, link: Link) -> None:
        view = view_of(item.data, self._keys, self._proofs, *cited)
        folder = folder_of(item.stem)
        put(f"{folder}/bundle.json", view.raw)
        if folder.startswith(NUMBERED):
            link(f"{WELL_KNOWN}{folder}/bundle.json", f"{folder}/bundle.json", view.raw)
        put(f"{folder}/state.json", canonical_bytes(view.state) + b"\n")
        facts = [f"{folder}/{name}" for name in _FACTS]
        for path, data in () if self._pages is None else self._pages.record(view, item.moment):
            if path not in facts:
                put(path, data)
        self.records += 1
        self.anchored += item.anchored

    def _without_proof(self) -> Iterator[list[Item]]:
        """Yield the bundles of records that no calendar has answered for: `all_bundles` has none.

        Whether a batch has a proof is asked once a batch, not once a record.
        """
        proved: dict[int, bool] = {}
        for chunk in self._store.records.walk():
            found = []
            for record in chunk:
                standing = record.batch_id
                if standing is not None and standing not in proved:
                    proved[standing] = self._store.batches.get(standing).proof is not None
                if standing is not None and proved[standing]:
                    continue
                if best_batch(self._store.batches.of_record(record.id, standing), standing) is None:
                    stem = stem_of(record.digest, numbered=record.year is not None)
                    data = record_bundle(self._store, self._keyring, record)
                    found.append(Item(stem, data, False, record.added_at, record.id))  # noqa: FBT003
            yield found
