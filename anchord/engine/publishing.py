"""Publishing all that a store holds as a tree of files that any web server can serve.

The order is what a reader needs at every moment. Of a record: bundle, state, proof. Of the log:
tiles before the checkpoint that covers them (c2sp.org/tlog-tiles). Then keys and manifest, then,
once all of it is on the disk, the index, whose signature covers the rest. Nothing is deleted but
tiles of the log that became full; what lies there and is of no record any more is reported.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from anchord.core.bundle import read_bundle
from anchord.core.canonical import canonical_bytes
from anchord.core.event import event_digest, signer_block
from anchord.core.keyring import Keyring
from anchord.core.mirror_manifest import MANIFEST, WELL_KNOWN, read_manifest
from anchord.core.moment import utc
from anchord.core.signed_document import signed
from anchord.core.state import merge_bundle, state_of_merged
from anchord.core.tree_index import INDEX, Shard, index_body, read_index, render_shard
from anchord.core.trust import Keys
from anchord.engine.audit.fast_proofs import ProofReader
from anchord.engine.checkpointing import checkpoint as make_checkpoint
from anchord.engine.export import (
    Item,
    all_bundles,
    all_ots,
    best_batch,
    record_bundle,
    stem_of,
)
from anchord.engine.publishing_about import (
    KEY,
    NUMBERED,
    About,
    folder_of,
    key_files,
    mirror_manifest,
    signing_key,
)
from anchord.engine.publishing_log import log_files
from anchord.engine.publishing_words import README
from anchord.errors import RefusedError, VerificationError

if TYPE_CHECKING:
    from anchord.ports import Signer
    from anchord.ports.mirror import TreeSink
    from anchord.ports.store import Store

Progress = Callable[[str, int, int], None]


class PublishOptions(About, frozen=True, kw_only=True):
    """What a person may choose of a tree."""

    origin: str
    """Of the log, should it have to be signed once more."""
    anchored_only: bool = False
    """Leave out records that no block holds yet."""
    expected: int = 0
    """How many records there are, for progress."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a tree."""

    records: int
    anchored: int
    files: int
    new: int
    updated: int
    same: int
    index: str
    """"new", "updated", or "same": nothing at all had changed."""
    checkpoint: int | None
    """Events that the published log covers."""
    strays: int
    """Files in the tree that belong to nothing in the store any more."""
    stray_files: tuple[str, ...]
    """The first of them."""


def publish(
    store: Store,
    keyring: Keyring,
    signer: Signer,
    sink: TreeSink,
    options: PublishOptions,
    now: int,
    on_progress: Progress,
) -> Published:
    """Bring a tree up to date with the store; no pass runs meanwhile.

    Args:
        store: what is published.
        keyring: public keys, all of them published.
        signer: signs the index.
        sink: where the tree is.
        options: what a person chose.
        now: Unix seconds.
        on_progress: told (what, done, total).

    Raises:
        StoreBusyError: a pass is running; nothing was written.
        LedgerError, FatalError: the store is damaged; the old index still stands.
    """
    with store.exclusive():
        # What a pass has not signed the log of yet would lie in bundles and in no log.
        make_checkpoint(store, signer, options.origin, now, on_progress)
        work = _Publishing(store, keyring, sink, options, on_progress)
        work.put_records()
        checkpoint = work.put_log()
        work.put_about(signer, now)
        index = _commit_index(sink, keyring, signer, now)
    strays, first = sink.strays()
    return Published(
        records=work.records, anchored=work.anchored, files=work.outcomes.total(),
        new=work.outcomes["new"], updated=work.outcomes["updated"], same=work.outcomes["same"],
        index=index, checkpoint=checkpoint, strays=strays, stray_files=tuple(first),
    )  # fmt: skip


class _Publishing:
    """One publication as it goes."""

    def __init__(
        self, store: Store, keyring: Keyring, sink: TreeSink, options: PublishOptions,
        on_progress: Progress,
    ) -> None:  # fmt: skip
        self._store, self._keyring, self._sink = store, keyring, sink
        self._options, self._on_progress = options, on_progress
        self._keys, self._proofs = Keys(keyring), ProofReader()
        self.outcomes: Counter[str] = Counter()
        self.records = 0
        self.anchored = 0

    def put_records(self) -> None:
        """Write every record's files."""
        anchored_only, expected = self._options.anchored_only, self._options.expected
        done = 0
        groups = all_bundles(self._store, self._keyring, anchored_only=anchored_only)
        if not anchored_only:
            groups = itertools.chain(groups, self._without_proof())
        for group in groups:
            for item in group:
                self._put_record(item)
            done += len(group)
            self._on_progress("bundles", done, max(done, expected))
        done = 0
        for group in all_ots(self._store, anchored_only=anchored_only):
            for item in group:
                self._put(f"{folder_of(item.stem)}/proof.ots", item.data)
            done += len(group)
            self._on_progress("proofs", done, self.records)

    def _put_record(self, item: Item) -> None:
        folder = folder_of(item.stem)
        bundle = item.data + b"\n"
        self._put(f"{folder}/bundle.json", bundle)
        if folder.startswith(NUMBERED):
            known = f"{WELL_KNOWN}{folder}/bundle.json"
            self.outcomes[self._sink.link(known, f"{folder}/bundle.json", bundle)] += 1
        self._put(f"{folder}/state.json", self._state(item.data))
        self.records += 1
        self.anchored += item.anchored

    def _state(self, raw: bytes) -> bytes:
        """Return a bundle's state, as `state_bytes` does; what proofs share is read once."""
        bundle = read_bundle(raw)
        merged = merge_bundle(bundle, self._keys, self._proofs)
        return canonical_bytes(state_of_merged(bundle, merged)) + b"\n"

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
                    found.append(Item(stem, data, anchored=False, moment=record.added_at))
            yield found

    def put_log(self) -> int | None:
        """Write the log's tiles, then its checkpoints; return what the newest covers."""
        last = self._store.log.last()
        if last is None:
            return None
        for done, (path, data) in enumerate(log_files(self._store, last), 1):
            self._put(path, data)
            self._on_progress("log", done, max(done, last.size // 128))
        return last.size

    def put_about(self, signer: Signer, now: int) -> None:
        """Write keys, what a stranger should know, and the manifest."""
        for path, data in key_files(self._keyring):
            self._put(path, data)
        key = signing_key(self._keyring, signer.key_id, signer.public_key)
        for folder in ("", WELL_KNOWN):
            self._put(folder + KEY, key)
        self._put("README.txt", README.encode("utf-8"))
        manifest = self._manifest(signer, now)
        for folder in ("", WELL_KNOWN):
            self._put(folder + MANIFEST, manifest)

    def _manifest(self, signer: Signer, now: int) -> bytes:
        """Return the manifest; the one that is there when it says the same."""
        options, keyring = self._options, self._keyring
        old = self._sink.read(MANIFEST)
        if old is not None:
            with contextlib.suppress(RefusedError):
                moment = read_manifest(old).generated_at
                if mirror_manifest(options, keyring, signer.key_id, moment) == old:
                    return old
        return mirror_manifest(options, keyring, signer.key_id, utc(now))

    def _put(self, path: str, data: bytes) -> None:
        self.outcomes[self._sink.put(path, data)] += 1


def _commit_index(sink: TreeSink, keyring: Keyring, signer: Signer, now: int) -> str:
    """Write shards and index; where all of it is as it was, the old signature stays."""
    shards: list[Shard] = []
    for name, lines in sink.shards():
        data, shard = render_shard(name, lines)
        sink.stage(name, data)
        shards.append(shard)
    shards.sort(key=lambda shard: shard.name)
    old = sink.read(INDEX)
    if old is not None and _still_true(old, shards, keyring, signer):
        sink.commit(INDEX, old)
        return "same"
    block = signer_block(signer.key_id, signer.public_key, signer.signer_id)
    body = index_body(shards, block, now)
    sink.commit(INDEX, signed(body, signer.sign(event_digest(body))))
    return "new" if old is None else "updated"


def _still_true(old: bytes, shards: list[Shard], keyring: Keyring, signer: Signer) -> bool:
    try:
        index = read_index(old, Keys(keyring))
    except (RefusedError, VerificationError):
        return False
    return index.key_id == signer.key_id and list(index.shards) == shards
