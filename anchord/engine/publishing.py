"""Publishing all that a store holds as a tree of files that any web server can serve.

The order is what a reader needs at every moment. What all pages need first, then of a record:
bundle, state, pages, proof. Of the log: tiles before the checkpoint that covers them
(c2sp.org/tlog-tiles). Then keys, manifest and first page, then, once all of it is on the disk, the
index, whose signature covers the rest. Nothing is deleted but tiles of the log that became full
and assets that no page asks for any more; what lies there and is of no record is reported.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from anchord.core.event import event_digest, signer_block
from anchord.core.keyring import Keyring
from anchord.core.mirror_manifest import MANIFEST, WELL_KNOWN, read_manifest
from anchord.core.moment import utc
from anchord.core.signed_document import signed
from anchord.core.tree_index import INDEX, Shard, index_body, read_index, render_shard
from anchord.core.trust import Keys
from anchord.engine.checkpointing import checkpoint as make_checkpoint
from anchord.engine.publishing_about import (
    KEY,
    About,
    key_files,
    mirror_manifest,
    signing_key,
)
from anchord.engine.publishing_log import log_files
from anchord.engine.publishing_memory import PAGES, Memory
from anchord.engine.publishing_records import Files, Pages, Progress, RecordFiles
from anchord.engine.publishing_words import README
from anchord.errors import RefusedError, VerificationError

if TYPE_CHECKING:
    from anchord.ports import Signer
    from anchord.ports.mirror import TreeSink
    from anchord.ports.store import Store

FRONT = "index.html"
"""The first page of a tree. Somebody may have one of their own beside our folders: it stays."""
FRONT_MARK = b'<meta name="generator" content="anchord">'
"""What a first page has that is ours."""


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
    pages: Pages | None = None,
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
        pages: makes what people and agents read; None: the tree is evidence alone.

    Raises:
        StoreBusyError: a pass is running; nothing was written.
        LedgerError, FatalError: the store is damaged; the old index still stands.
    """
    with store.exclusive():
        # What a pass has not signed the log of yet would lie in bundles and in no log.
        make_checkpoint(store, signer, options.origin, now, on_progress)
        work = _Publishing(store, keyring, sink, options, on_progress)
        work.put_all(pages.shared() if pages else ())
        memory = Memory(sink, keyring, pages.program) if pages else None
        records = RecordFiles(store, keyring, pages, memory, anchored_only=options.anchored_only)
        records.write(work, options.expected, on_progress)
        checkpoint = work.put_log()
        work.put_about(signer, now)
        work.put_front(pages.front() if pages else ())
        work.put_all([(PAGES, memory.file())] if memory else ())
        index = _commit_index(sink, keyring, signer, now)
    strays, first = sink.strays()
    return Published(
        records=records.records, anchored=records.anchored, files=work.outcomes.total(),
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
        self.outcomes: Counter[str] = Counter()

    def put(self, path: str, data: bytes) -> None:
        """Write one file."""
        self.outcomes[self._sink.put(path, data)] += 1

    def link(self, path: str, of: str, data: bytes) -> None:
        """Give a file that was just put another name."""
        self.outcomes[self._sink.link(path, of, data)] += 1

    def keep(self, path: str) -> bytes | None:
        """Let a file be as it is, if it is what the last index said; it is not counted yet."""
        return self._sink.keep(path)

    def count_same(self, files: int) -> None:
        """Count files that were kept."""
        self.outcomes["same"] += files

    def put_all(self, files: Files) -> None:
        """Write some files."""
        for path, data in files:
            self.put(path, data)

    def put_front(self, files: Files) -> None:
        """Write first pages; one that somebody else wrote stays, and is not listed."""
        for path, data in files:
            there = self._sink.read(path)
            if there is None or FRONT_MARK in there:
                self.put(path, data)

    def put_log(self) -> int | None:
        """Write the log's tiles, then its checkpoints; return what the newest covers."""
        last = self._store.log.last()
        if last is None:
            return None
        for done, (path, data) in enumerate(log_files(self._store, last), 1):
            self.put(path, data)
            self._on_progress("log", done, max(done, last.size // 128))
        return last.size

    def put_about(self, signer: Signer, now: int) -> None:
        """Write keys, what a stranger should know, and the manifest."""
        self.put_all(key_files(self._keyring))
        key = signing_key(self._keyring, signer.key_id, signer.public_key)
        for folder in ("", WELL_KNOWN):
            self.put(folder + KEY, key)
        self.put("README.txt", README.encode("utf-8"))
        manifest = self._manifest(signer, now)
        for folder in ("", WELL_KNOWN):
            self.put(folder + MANIFEST, manifest)

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
