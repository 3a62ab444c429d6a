"""Whether a bundle's inclusion proofs hold: event -> leaf -> root -> signed checkpoint (21)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from anchord.core import checkpoint, note
from anchord.core.bundle import Bundle
from anchord.core.inclusion import IncludedEvent, Inclusion
from anchord.core.log import entry_of, leaf_hash, verify_inclusion
from anchord.core.receipt import strict_base64
from anchord.core.trust import Keys, Trust
from anchord.errors import RefusedError, SignatureError, VerificationError


class IncludedProved(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint, and the events that were proved to be in the log it covers."""

    origin: str
    size: int
    event_ids: tuple[str, ...]
    trust: Trust | None
    """How far the key that signed the checkpoint is trusted; None: no key of it is known."""


def check_inclusion(bundle: Bundle, found: Inclusion, keys: Keys) -> IncludedProved:
    """Prove that events of a bundle stand in a log where it says.

    Raises:
        VerificationError: an event is not there, or a known key did not sign the checkpoint.
        RefusedError: a checkpoint that is none.
    """
    raw = found.checkpoint.encode("utf-8")
    stated = checkpoint.parse(raw)
    trust = _signed(raw, stated.origin, keys)
    contents = _by_id(bundle.events)
    for event in found.events:
        _check_place(event, stated, contents.get(event.event_id, ()))
    return IncludedProved(
        origin=stated.origin,
        size=stated.size,
        event_ids=tuple(event.event_id for event in found.events),
        trust=trust,
    )


def _signed(raw: bytes, origin: str, keys: Keys) -> Trust | None:
    """Return how far the key that signed a checkpoint is trusted."""
    by_hash: dict[bytes, tuple[note.Verifier, Trust]] = {}
    for key, trust in keys:
        if not checkpoint.signs_logs(key):
            continue
        verifier = note.make_verifier(origin, key.public_key)
        by_hash.setdefault(verifier.key_hash, (verifier, trust))
    lines = [line for line in note.parse(raw).lines if line.name == origin]
    known = [by_hash[line.key_hash] for line in lines if line.key_hash in by_hash]
    if not known:
        return None
    trusts = {trust for _, trust in known}
    try:
        checkpoint.open_checkpoint(raw, [verifier for verifier, _ in known])
    except SignatureError:
        if trusts != {Trust.CLAIMED}:
            raise
        return None  # anybody can state a key that did not sign this: that says nothing of the log
    return next(trust for trust in (Trust.KEYRING, Trust.GIVEN, Trust.CLAIMED) if trust in trusts)


def _check_place(
    event: IncludedEvent, stated: checkpoint.Checkpoint, entries: Iterable[bytes]
) -> None:
    """Prove one place; of several contents under one id, one must be the entry."""
    failed: VerificationError | None = None
    for entry in entries:
        try:
            verify_inclusion(leaf_hash(entry), event.index, stated.size, event.hashes, stated.root)
        except VerificationError as error:
            failed = error
        else:
            return
    raise failed or VerificationError(
        f"event {event.event_id:.80} is said to be in the log of {stated.origin!r:.100}, and has "
        "no signature to look for there"
    )


def _by_id(events: Iterable[Mapping[str, Any]]) -> dict[str, list[bytes]]:
    """Return the entries that events would be in a log, by what they state as their id."""
    found: dict[str, list[bytes]] = {}
    for event in events:
        name, signature = event.get("event_id"), event.get("signature_b64")
        if isinstance(name, str) and isinstance(signature, str):
            with contextlib.suppress(ValueError, RefusedError, VerificationError):
                digest = bytes.fromhex(name.removeprefix("sha256:"))
                raw = strict_base64(signature, f"the signature of {name:.80}")
                found.setdefault(name, []).append(entry_of(digest, raw))
    return found
