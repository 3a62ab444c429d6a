"""Proofs out of the stored log: of an event, of two sizes, and of a checkpoint into Bitcoin."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from anchord.core import merkle, tlog_proof, trailer
from anchord.core.log_tree import LogTree
from anchord.core.proof import join
from anchord.core.tlog_proof import LogProof
from anchord.engine.proofs import check_proof
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from anchord.core.model import Batch
    from anchord.ports.log import StoredCheckpoint
    from anchord.ports.store import Store


def covering(store: Store, seq: int, size: int | None = None) -> StoredCheckpoint:
    """Return the checkpoint a proof of ledger row `seq` is to be made with.

    Args:
        store: where it is.
        seq: row of the ledger, from 1 on.
        size: of the checkpoint asked for; None: the oldest that covers the row.

    Raises:
        RefusedError: none covers the row, or there is none of that size.
    """
    if size is not None and size < seq:
        raise RefusedError(
            f"the checkpoint of {size} does not cover the event, which is row {seq}: name a "
            "larger one"
        )
    found = store.log.covering(seq if size is None else size)
    if found is None or (size is not None and found.size != size):
        asked = f"of {size} events" if size is not None else f"that covers row {seq}"
        raise RefusedError(
            f"there is no checkpoint {asked}: `anchord ledger checkpoint --list` shows what there "
            "is, `anchord run-once` makes one of what is new"
        )
    return found


def event_proof(store: Store, seq: int, checkpoint: StoredCheckpoint) -> LogProof:
    """Return the proof that ledger row `seq` is in the log of a checkpoint.

    Raises:
        FatalError: rows or tiles are missing.
    """
    tree = LogTree(store.log, checkpoint.size)
    hashes = tuple(tree.inclusion(seq - 1, checkpoint.size))
    return LogProof(index=seq - 1, hashes=hashes, note=checkpoint.note)


def event_proof_text(store: Store, seq: int, size: int | None = None) -> bytes:
    """Return the tlog-proof file of ledger row `seq`; arguments as of `covering`.

    Raises:
        RefusedError: no such checkpoint.
    """
    return tlog_proof.write(event_proof(store, seq, covering(store, seq, size)))


def consistency(store: Store, old: int, new: int) -> list[bytes]:
    """Return the proof that the first `old` events begin the log of the first `new`.

    Raises:
        RefusedError: the log is shorter, or the old one is the larger one.
    """
    return _tree(store).consistency(old, new)


def root(store: Store, size: int) -> bytes:
    """Return the root of the first `size` events, recomputed from rows and tiles.

    Raises:
        RefusedError: the log is shorter.
    """
    return _tree(store).root(size)


def _tree(store: Store) -> LogTree:
    return LogTree(store.log, store.log.sizes()[1])


# ---------------------------------------------------------------------- into Bitcoin


def checkpoint_ots(store: Store, checkpoint: StoredCheckpoint) -> bytes:
    """Return the `.ots` of a checkpoint's text file; raises as `CheckpointProofs.ots`."""
    return CheckpointProofs(store).ots(checkpoint)


class CheckpointProofs:
    """Makes the `.ots` of checkpoints; what those of one batch share is computed once.

    Args:
        store: where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: Batch | None = None
        self._steps: dict[int, bytes] = {}

    def ots(self, checkpoint: StoredCheckpoint) -> bytes:
        """Return the `.ots` of a checkpoint's text file, the signed note.

        Raises:
            RefusedError: no batch carries it yet, or no calendar has answered for that batch.
            FatalError: the batch does not carry what it says.
        """
        if checkpoint.batch_id is None:
            raise RefusedError(
                f"the checkpoint of {checkpoint.size} waits for the next batch: add a record, "
                "then run `anchord run-once`"
            )
        batch = self._of(checkpoint.batch_id)
        if batch.proof is None:
            raise RefusedError(
                f"no calendar has answered yet for batch {batch.id}, which carries the "
                f"checkpoint of {checkpoint.size}: run `anchord run-once` again"
            )
        steps = self._steps.get(checkpoint.size)
        if steps is None:
            raise _other_checkpoints(batch)
        return join(sha256(checkpoint.note).digest(), b"", steps + batch.proof)

    def _of(self, batch_id: int) -> Batch:
        if self._batch is None or self._batch.id != batch_id:
            batch = self._store.batches.get(batch_id)
            check_proof(batch)
            carried = self._store.log.carried(batch_id)
            sizes = [one.size for one in carried]
            self._steps = dict(zip(sizes, carried_steps(batch, carried), strict=True))
            self._batch = batch
        return self._batch


def carried_steps(batch: Batch, carried: list[StoredCheckpoint]) -> list[bytes]:
    """Return the serialised operations from each checkpoint's SHA-256 to its batch's root.

    Args:
        batch: that carries them, its root checked.
        carried: all the batch carries, in the order of its trailer.

    Raises:
        FatalError: they are not what the batch was sealed with.
    """
    digests = [sha256(one.note).digest() for one in carried]
    sealed = (batch.trailer or b"")[: merkle.NODE]
    if not carried or merkle.root(b"".join(digests)) != sealed:
        raise _other_checkpoints(batch)
    tree_root = merkle.root(batch.tile_roots or b"")
    return trailer.all_steps(tree_root, digests, batch.trailer or b"")


def _other_checkpoints(batch: Batch) -> FatalError:
    return FatalError(
        f"batch {batch.id} was sealed with other checkpoints than those stored with it: one "
        "was changed, removed or moved; restore the store from a backup"
    )
