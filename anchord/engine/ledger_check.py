"""Checking the ledger: every row's chain, every tile, every checkpoint, and its way into Bitcoin.

All roots are computed from the rows in one walk. That each checkpoint has the root of the rows up
to its size proves that each continues the one before it.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from anchord.core.checkpoint import open_checkpoint, parse
from anchord.core.event import TARGET
from anchord.core.finding import Finding, Findings, Part, Severity
from anchord.core.keyring import check_permitted
from anchord.core.log import leaf_hash
from anchord.core.log_tree import WIDTH, Growth
from anchord.core.merkle import NODE
from anchord.core.model import BatchState
from anchord.core.note import make_verifier
from anchord.core.verify import check_depth, read_proof
from anchord.engine.proofs import check_proof
from anchord.engine.proving import CheckpointProofs, carried_steps
from anchord.errors import (
    AnchordError,
    FatalError,
    LedgerError,
    RefusedError,
    SignatureError,
    TransientError,
    VerificationError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.core.checkpoint import Checkpoint
    from anchord.core.keyring import Keyring
    from anchord.core.model import Batch
    from anchord.engine.header_view import HeaderView
    from anchord.ports.log import StoredCheckpoint
    from anchord.ports.store import Store

_ROWS_AT_ONCE = 8192
_RESTORE = "restore the store from a backup, and find out who changed it"


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found."""

    rows: int
    """Rows of the ledger."""
    covered: int
    """Of them, how many the newest checkpoint covers."""
    tiles: int
    """Full tiles compared with the rows below them."""
    checkpoints: int
    carried: int
    """Checkpoints that a batch carries."""
    confirmed: int
    """Of them, whose block header confirmed them."""
    unconfirmed: int
    """In anchored batches, and no header was there to confirm them."""
    problems: tuple[str, ...]
    """Why headers could not be had, where they should be."""
    findings: tuple[Finding, ...]
    faults: int
    """How many findings there are, listed or not."""


class LedgerCheck:
    """One check of one store; nothing is written.

    Args:
        store: what to check.
        keyring: keys that checkpoints may be signed with.
        headers: what confirms blocks; may have nobody to ask.
        on_progress: told (what, done, total).
    """

    def __init__(
        self,
        store: Store,
        keyring: Keyring,
        headers: HeaderView,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._store, self._keyring, self._headers = store, keyring, headers
        self._say = on_progress
        self._proofs = CheckpointProofs(store)
        self._findings = Findings()
        self._rows, self._covered = store.log.sizes()
        self._growth = Growth()
        self._tiles = self._checkpoints = self._carried = 0
        self._confirmed = self._unconfirmed = 0
        self._problems: dict[str, None] = {}

    def run(self) -> LedgerReport:
        """Check everything.

        Raises:
            StoreBusyError: the store cannot be read now.
        """
        by_batch = groupby(self._store.log.checkpoints(), key=lambda one: one.batch_id)
        for batch_id, group in by_batch:
            found = list(group)
            self._checkpoints += len(found)
            for checkpoint in found:
                self._check_root(checkpoint)
                self._check_note(checkpoint)
            if batch_id is not None:
                self._check_carried(batch_id, found)
        self._check_batches()
        self._grow(self._rows)
        return LedgerReport(
            rows=self._rows,
            covered=self._covered,
            tiles=self._tiles,
            checkpoints=self._checkpoints,
            carried=self._carried,
            confirmed=self._confirmed,
            unconfirmed=self._unconfirmed,
            problems=tuple(self._problems),
            findings=tuple(self._findings.sorted()),
            faults=self._findings.count(Severity.BROKEN),
        )

    def _fault(self, code: str, part: Part, subject: str, what: object) -> None:
        self._findings.add(
            Finding(
                code=code,
                severity=Severity.BROKEN,
                part=part,
                subject=subject,
                what=str(what),
                todo=_RESTORE,
            )
        )

    # ------------------------------------------------------------------ rows and tiles

    def _grow(self, stop: int) -> None:
        """Take rows in up to `stop`, comparing each tile that they fill."""
        try:
            while self._growth.size < stop:
                start = self._growth.size
                leaves = self._leaves(start, min(start + _ROWS_AT_ONCE, stop))
                self._compare(list(self._growth.extend(leaves)))
                self._say("check ledger", self._growth.size, self._rows)
        except FatalError as error:
            self._fault("ledger-rows-missing", Part.LEDGER, "ledger", error)
            self._rows = self._growth.size  # nothing behind a hole can be told

    def _leaves(self, start: int, stop: int) -> bytes:
        try:
            rows = next(self._store.ledger.walk(start, stop - start), [])
        except LedgerError:
            rows = []
            self._name_rows(start, stop)
        if len(rows) == stop - start:
            return b"".join([leaf_hash(row.event_id + row.signature) for row in rows])
        return self._store.log.leaf_hashes(start, stop)

    def _name_rows(self, start: int, stop: int) -> None:
        """Tell which rows of a chunk do not chain."""
        for place in range(start, stop):
            try:
                next(self._store.ledger.walk(place, 1), None)
            except LedgerError as error:
                self._fault("ledger-row-broken", Part.LEDGER, f"row {place + 1}", error)

    def _compare(self, full: list[tuple[int, int, bytes]]) -> None:
        """Hold tiles that became full against those that are stored."""
        for level, group in groupby(sorted(full), key=lambda tile: tile[0]):
            tiles = [tile for tile in group if (tile[1] + 1) * WIDTH**level <= self._covered]
            if not tiles:
                continue
            self._tiles += len(tiles)
            first, last = tiles[0][1], tiles[-1][1]
            try:
                stored = self._store.log.nodes(level, first, last + 1)
            except FatalError as error:
                self._fault("tile-missing", Part.TILE, f"level {level}", error)
                continue
            for at, (_, place, node) in enumerate(tiles):
                if stored[32 * at : 32 * at + 32] != node:
                    what = f"the rows below it have the root {node.hex()}, stored is another"
                    subject = f"tile {place} of level {level}"
                    self._fault("tile-wrong", Part.TILE, subject, what)

    # ------------------------------------------------------------------ checkpoints

    def _check_root(self, checkpoint: StoredCheckpoint) -> None:
        self._grow(min(checkpoint.size, self._rows))
        subject = f"checkpoint {checkpoint.size}"
        if self._growth.size != checkpoint.size:
            what = f"it covers {checkpoint.size} rows, the ledger has {self._rows}: rows are gone"
            self._fault("checkpoint-beyond-ledger", Part.CHECKPOINT, subject, what)
            return
        root = self._growth.frontier().root()
        if root != checkpoint.root:
            what = f"the rows it covers have the root {root.hex()}, it has {checkpoint.root.hex()}"
            self._fault("checkpoint-root-wrong", Part.CHECKPOINT, subject, what)

    def _check_note(self, checkpoint: StoredCheckpoint) -> None:
        subject = f"checkpoint {checkpoint.size}"
        try:
            stated = open_own(checkpoint, self._keyring)
        except (RefusedError, SignatureError) as error:
            self._fault("checkpoint-signature-wrong", Part.CHECKPOINT, subject, error)
            return
        if (stated.size, stated.root) != (checkpoint.size, checkpoint.root):
            what = f"its text says {stated.size} {stated.root.hex()}, stored beside it is another"
            self._fault("checkpoint-note-wrong", Part.CHECKPOINT, subject, what)

    # ------------------------------------------------------------------ into Bitcoin

    def _check_carried(self, batch_id: int, group: list[StoredCheckpoint]) -> None:
        """Check that a batch was sealed with these checkpoints, and the way of each to a block."""
        self._carried += len(group)
        try:
            batch = self._store.batches.get(batch_id)
            check_proof(batch)
            carried_steps(batch, group)
        except (FatalError, RefusedError) as error:
            subject = f"checkpoint {group[0].size}"
            self._fault("checkpoint-misplaced", Part.CHECKPOINT, subject, error)
            return
        if batch.state is not BatchState.ANCHORED:
            return
        for checkpoint in group:
            self._check_anchor(batch, checkpoint)

    def _check_batches(self) -> None:
        """Find batches that were sealed with checkpoints of which none is left."""
        for batch_id in self._store.lookup.sealed():
            try:
                batch = self._store.batches.get(batch_id)
            except FatalError as error:
                self._fault("batch-missing", Part.BATCH, f"batch {batch_id}", error)
                continue
            beside = 0 if batch.not_before_height is None else 1
            carries = len(batch.trailer or b"") // NODE > beside
            if carries and not self._store.log.carried(batch_id):
                what = "it was sealed with checkpoints, and none is stored with it"
                self._fault("checkpoint-dropped", Part.BATCH, f"batch {batch_id}", what)

    def _check_anchor(self, batch: Batch, checkpoint: StoredCheckpoint) -> None:
        if self._headers.none:
            self._unconfirmed += 1
            return
        try:
            proof = read_proof(self._proofs.ots(checkpoint), sha256(checkpoint.note).digest())
            found = [one for one in proof.bitcoin if one.attestation.height == batch.block_height]
            if not found:
                raise VerificationError(f"its proof names no block {batch.block_height}")
            for one in found:
                check_depth(self._headers.block(one), self._headers.confirmations)
        except TransientError as error:
            self._unconfirmed += 1
            self._problems[str(error)] = None
        except AnchordError as error:
            subject = f"checkpoint {checkpoint.size}"
            self._fault("checkpoint-not-anchored", Part.CHECKPOINT, subject, error)
        else:
            self._confirmed += 1


def open_own(checkpoint: StoredCheckpoint, keyring: Keyring) -> Checkpoint:
    """Return what a stored checkpoint says that one of our keys has signed.

    Raises:
        RefusedError: its text is no checkpoint.
        SignatureError: the key is not known, did not sign it, or might not when it was made.
    """
    stated = parse(checkpoint.note)
    key = keyring.get(checkpoint.key_id)
    if key is None:
        raise SignatureError(f"it is signed by {checkpoint.key_id!r}, which is not in the keyring")
    found = open_checkpoint(checkpoint.note, [make_verifier(stated.origin, key.public_key)])
    check_permitted(key, checkpoint.created_at, TARGET)
    return found


def signers_of(store: Store, keyring: Keyring) -> Iterator[str]:
    """Yield the verifier key of each key that has signed checkpoints, newest first, once."""
    newest = store.log.last()
    known: dict[tuple[str, str], None] = {}
    for checkpoint in [newest, *store.log.checkpoints()] if newest else []:
        known.setdefault((parse(checkpoint.note).origin, checkpoint.key_id))
    for origin, key_id in known:
        key = keyring.get(key_id)
        if key is not None:
            yield make_verifier(origin, key.public_key).vkey
