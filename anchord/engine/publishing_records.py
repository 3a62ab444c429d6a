"""The files of records in a published tree: bundle, state, what shows them, and the proof."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

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
    from anchord.engine.publishing_memory import Memory
    from anchord.ports.store import Store

Files = Iterable[tuple[str, bytes]]
"""Path below the root, and bytes."""
Progress = Callable[[str, int, int], None]
_NOBODY: CitedBy = ((), 0)


class Pages(Protocol):
    """What people and agents read beside the evidence. All of it follows from what is given."""

    @property
    def program(self) -> str:
        """Differs wherever the same record could have other pages."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """Return the paths of one record's files, bundle and state among them."""
        ...

    def record(self, view: RecordView) -> Files:
        """Yield the files of one record; bundle and state among them are those of the view."""
        ...

    def count(self, folder: str, state: Mapping[str, Any], moment: int) -> None:
        """Count a record for the first page.

        Args:
            folder: where it is.
            state: what `state.json` says.
            moment: when it came, in Unix seconds.
        """
        ...

    def shared(self) -> Files:
        """Yield what pages of all records need; written before them."""
        ...

    def front(self) -> Files:
        """Yield what leads to the records; written after them."""
        ...


class Writer(Protocol):
    """Takes the files of a tree."""

    def put(self, path: str, data: bytes) -> None:
        """Write one file."""
        ...

    def link(self, path: str, of: str, data: bytes) -> None:
        """Give a file that was just put another name."""
        ...

    def keep(self, path: str) -> bytes | None:
        """Let a file be as it is, and return its bytes; None: they are not those of the index."""
        ...

    def count_same(self, files: int) -> None:
        """Count files that were kept."""
        ...


class RecordFiles:
    """Hands every record of a store to whoever writes its files.

    Args:
        store: what is published; no pass runs meanwhile.
        keyring: public keys.
        pages: makes what is shown; None: the evidence alone.
        memory: what pages were made of before.
        anchored_only: leave out records that no block holds yet.
    """

    def __init__(
        self, store: Store, keyring: Keyring, pages: Pages | None, memory: Memory | None, *,
        anchored_only: bool,
    ) -> None:  # fmt: skip
        self._store, self._keyring = store, keyring
        self._pages, self._memory = pages, memory
        self._anchored_only = anchored_only
        self._keys, self._proofs = Keys(keyring), ProofReader()
        self._citations = Citations(self._keys)
        self.records = 0
        self.anchored = 0

    def write(self, into: Writer, expected: int, on_progress: Progress) -> None:
        """Write the files of every record: bundle, state and pages of all, then their proofs.

        Args:
            into: takes them.
            expected: how many records there are, for progress.
            on_progress: told (what, done, total).
        """
        done = 0
        for group in self._groups():
            cited = self._cited(group)
            for item in group:
                self._write(item, cited.get(item.record, _NOBODY), into)
            done += len(group)
            on_progress("bundles", done, max(done, expected))
        done = 0
        for group in all_ots(self._store, anchored_only=self._anchored_only):
            for item in group:
                into.put(f"{folder_of(item.stem)}/proof.ots", item.data)
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

    def _write(self, item: Item, cited: CitedBy, into: Writer) -> None:
        folder, raw = folder_of(item.stem), item.data + b"\n"
        state = self._kept(folder, raw, cited, into)
        if state is None:
            state = self._made(folder, item, cited, into)
        if folder.startswith(NUMBERED):
            into.link(f"{WELL_KNOWN}{folder}/bundle.json", f"{folder}/bundle.json", raw)
        if self._pages is not None:
            self._pages.count(folder, state, item.moment)
        self.records += 1
        self.anchored += item.anchored

    def _kept(
        self, folder: str, raw: bytes, cited: CitedBy, into: Writer
    ) -> Mapping[str, Any] | None:
        """Leave a record's files as they are, if they would be made so again; return its state."""
        if self._pages is None or self._memory is None or not self._memory.same(folder, cited):
            return None
        if into.keep(f"{folder}/bundle.json") != raw:
            return None
        state: dict[str, Any] = {}
        paths = self._pages.names(folder)
        for path in paths:
            data = into.keep(path)
            if data is None:
                return None
            if path.endswith("/state.json"):
                state = msgspec.json.decode(data)
        into.count_same(len(paths))
        return state

    def _made(self, folder: str, item: Item, cited: CitedBy, into: Writer) -> Mapping[str, Any]:
        view = view_of(item.data, self._keys, self._proofs, *cited)
        files = {
            f"{folder}/bundle.json": view.raw,
            f"{folder}/state.json": canonical_bytes(view.state) + b"\n",
            **dict(() if self._pages is None else self._pages.record(view)),
        }
        for path, data in files.items():
            into.put(path, data)
        return view.state

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
