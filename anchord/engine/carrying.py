"""What a batch takes along beside its records: waiting checkpoints, and a recent block's hash.

Both are optional. A block's hash that cannot be had now is left out: what it would prove ("not
made before") is worth less than a batch that goes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.header import block_hash, display
from anchord.core.tsa import read_token
from anchord.core.witnessed import state_token
from anchord.errors import ProtocolError, TransientError
from anchord.ports.store import Carried

if TYPE_CHECKING:
    from anchord.core.model import Batch
    from anchord.engine.parts import Parts
    from anchord.ports import HeaderSource

HASH = 32


def carried(parts: Parts) -> Carried:
    """Return what the next batch takes along."""
    return Carried(
        checkpoints=parts.store.log.waiting(),
        block=_recent_block(parts) if parts.policy.not_before else None,
        authorities=parts.policy.authorities,
    )


def witnessed(parts: Parts, batch: Batch) -> dict[str, Any]:
    """Return what the events of an anchored batch say of its further witnesses; often nothing.

    A block that was replaced meanwhile is left out, as is one that no witness can speak of now:
    what is signed stays for ever.
    """
    found: dict[str, Any] = {}
    block = batch.not_before_height
    if block is not None and batch.trailer is not None:
        carried = batch.trailer[-HASH:]
        if _agreed_hash(parts, block) == carried:
            found["not_before"] = {"block_height": block, "block_hash": display(carried)}
    tokens = [
        msgspec.to_builtins(state_token(one.url, read_token(one.raw, batch.root)))
        for one in parts.store.tokens.of_batch(batch.id)
        if one.raw is not None
    ]
    return found | ({"rfc3161": tokens} if tokens else {})


def _recent_block(parts: Parts) -> tuple[int, bytes] | None:
    """Return the youngest block with enough confirmations, if the witnesses that answer agree.

    A block that a reorganisation replaces would make the claim worthless, so it has as many
    confirmations as are asked for before a record counts as anchored.
    """
    tips = [tip for tip in map(_tip, parts.headers) if tip is not None]
    height = min(tips, default=-1) - parts.policy.confirmations + 1
    if height < 1:
        return None
    found = _agreed_hash(parts, height)
    return None if found is None else (height, found)


def _agreed_hash(parts: Parts, height: int) -> bytes | None:
    """Return the hash at a height that all witnesses who can say agree on."""
    hashes = {_hash_at(source, height) for source in parts.headers} - {None}
    return hashes.pop() if len(hashes) == 1 else None


def _tip(source: HeaderSource) -> int | None:
    """Return the height a witness knows of; None when it cannot say."""
    try:
        source.refresh()
        return source.tip().height
    except (TransientError, ProtocolError):
        return None


def _hash_at(source: HeaderSource, height: int) -> bytes | None:
    """Return the hash at a height as one witness knows it; None when it cannot say."""
    try:
        raw = source.header(height)
    except (TransientError, ProtocolError):
        return None
    return None if raw is None else block_hash(raw)
