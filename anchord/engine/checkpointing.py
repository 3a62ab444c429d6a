"""Making a checkpoint: the log over the ledger's rows, signed, whenever it has grown.

A checkpoint says "the log of this name has these events, in this order" to whoever keeps it, so
none may be signed that does not continue the one before: what was signed last is recomputed from
rows and tiles first, and every row since then must chain. Everything but the write is repeatable;
if we crash before it, the next pass makes a checkpoint of what is there then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core import checkpoint as text_of
from anchord.core.checkpoint import Checkpoint
from anchord.core.log import leaf_hash
from anchord.core.log_tree import Growth
from anchord.core.note import SignatureLine, make_verifier, write
from anchord.errors import ConfigError, FatalError, LedgerError, RefusedError
from anchord.ports.log import StoredCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.engine.parts import Parts
    from anchord.ports import Signer
    from anchord.ports.store import Store

_ROWS_AT_ONCE = 8192


def checkpoint_if_due(parts: Parts, now: int) -> StoredCheckpoint | None:
    """Sign the log when it has grown and the last checkpoint is old enough.

    Storage events come one by one, all day: a checkpoint for each would be kept for ever. A clock
    that went back makes one due.

    Raises:
        FatalError: as `checkpoint`.
        ConfigError: as `checkpoint`.
    """
    length, covered = parts.store.log.sizes()
    if length == covered:
        return None
    last = parts.store.log.last()
    every_s = parts.policy.checkpoint_every_s
    if last is not None and last.created_at <= now < last.created_at + every_s:
        return None
    return checkpoint_of(parts, now)


def checkpoint_of(parts: Parts, now: int) -> StoredCheckpoint | None:
    """Sign the log of a pass' store, when it has grown since the last checkpoint.

    Raises:
        FatalError: as `checkpoint`.
        ConfigError: as `checkpoint`.
    """
    return checkpoint(parts.store, parts.signer, parts.policy.origin, now, parts.on_progress)


def checkpoint(
    store: Store,
    signer: Signer,
    origin: str,
    now: int,
    on_progress: Callable[[str, int, int], None],
) -> StoredCheckpoint | None:
    """Sign the log as it is now, when it has grown since the last checkpoint.

    Args:
        store: whose log; the caller holds the right to write to it.
        signer: the active key.
        origin: name of the log.
        now: Unix seconds.
        on_progress: told (what, done, total).

    Raises:
        FatalError: rows that a checkpoint covers, or later ones, are not what was appended;
            nothing is signed over a changed history.
        ConfigError: the log has a name that no signed note can have.
    """
    length, covered = store.log.sizes()
    if length == covered:
        return None
    growth = _continued(store, store.log.last(), length)
    nodes: list[tuple[int, int, bytes]] = []
    for leaves in _leaves_after(store, covered):
        nodes += growth.extend(leaves)
        on_progress("checkpoint", growth.size - covered, length - covered)
    root = growth.frontier().root()
    made = StoredCheckpoint(
        size=growth.size,
        root=root,
        note=sign(origin, growth.size, root, signer),
        key_id=signer.key_id,
        created_at=now,
        batch_id=None,
    )
    store.log.add(made, nodes)
    return made


def _continued(store: Store, last: StoredCheckpoint | None, length: int) -> Growth:
    """Return the log as the last checkpoint left it.

    Raises:
        FatalError: what it covers is not in the store any more.
    """
    if last is None:
        return Growth()
    if length < last.size:
        raise FatalError(
            f"the ledger has {length} rows, a checkpoint of {last.size} was signed: rows were "
            "removed; nothing is signed, restore the store from a backup"
        )
    growth = Growth.of(store.log, last.size)
    if growth.frontier().root() != last.root:
        raise FatalError(
            f"the ledger's rows 1 to {last.size} are not those that the checkpoint of {last.size} "
            "was signed for: rows or tiles were changed; nothing is signed over a changed "
            "history. `anchord ledger check` says where; restore the store from a backup"
        )
    return growth


def _leaves_after(store: Store, size: int) -> Iterator[bytes]:
    """Yield the leaf hashes of rows that no checkpoint covers; each row must chain."""
    rows = store.ledger.walk(size, _ROWS_AT_ONCE)
    try:
        for chunk in rows:
            yield b"".join([leaf_hash(row.event_id + row.signature) for row in chunk])
    except LedgerError as error:
        raise FatalError(f"no checkpoint is signed: {error}") from None


def sign(origin: str, size: int, root: bytes, signer: Signer) -> bytes:
    """Return a signed checkpoint.

    Args:
        origin: name of the log, and of the key below the text.
        size: entries it covers.
        root: of these.
        signer: whose key signs.

    Raises:
        ConfigError: no signed note can have that name.
    """
    try:
        key = make_verifier(origin, signer.public_key)
        text = text_of.text(Checkpoint(origin=origin, size=size, root=root))
        line = SignatureLine(origin, key.key_hash, signer.sign_note(text.encode("utf-8")))
        return write(text, [line])
    except RefusedError as error:
        raise ConfigError(f"ledger.origin cannot name a log: {error}") from None
