"""What `anchord ledger verify` and `consistency` are asked about, from files and from the store."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core import tlog_proof
from anchord.core.bundle import MAX_BUNDLE_BYTES, read_bundle
from anchord.core.checkpoint import open_checkpoint, parse
from anchord.core.event import canonical_body, event_digest, event_id
from anchord.core.log import entry_of, leaf_hash, verify_consistency
from anchord.core.note import decode_base64, make_verifier
from anchord.core.strictjson import parse as parse_json
from anchord.errors import ConfigError, RefusedError, SignatureError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anchord.app.wiring import App
    from anchord.core.checkpoint import Checkpoint
    from anchord.core.keyring import Keyring
    from anchord.core.note import Verifier

_SIZE = re.compile(r"[0-9]{1,19}", re.ASCII)
_START = (tlog_proof.HEADER + "\n").encode("ascii")
_MAX_CHECKPOINT = 1_000_000
_MOST_TRIES = 20_000
"""Each proof is tried with each event, a signature every time: some seconds, whatever comes."""


def verify_files(proof: Path, file: Path, verifiers: Sequence[Verifier]) -> dict[str, Any]:
    """Return what the proofs in one file prove about the events in another.

    Raises:
        RefusedError: a file is not what it should be.
        VerificationError: a proof is of none of the events, or of another log.
    """
    try:
        leaves = {leaf: name for name, leaf in _leaves(_read(file, MAX_BUNDLE_BYTES))}
    except RefusedError as error:
        raise RefusedError(f"{file} is no event and no bundle: {error}") from None
    if not leaves:
        raise RefusedError(f"{file} holds no event with a signature: expected an event or a bundle")
    raw = _read(proof, MAX_BUNDLE_BYTES)
    if not raw.startswith(_START):
        raise RefusedError(f"{proof} is no tlog-proof: expected the line {tlog_proof.HEADER!r}")
    parts = [_START + part for part in raw.split(_START)[1:]]
    if len(parts) * len(leaves) > _MOST_TRIES:
        raise RefusedError(
            f"{proof} holds {len(parts):,} proofs and {file} {len(leaves):,} events: expected "
            "those of one record; check one bundle at a time"
        )
    return {"events": [_verified(tlog_proof.parse(part), leaves, verifiers) for part in parts]}


def _verified(
    proof: tlog_proof.LogProof, leaves: Mapping[bytes, str], verifiers: Sequence[Verifier]
) -> dict[str, Any]:
    failed: VerificationError | None = None
    for leaf, name in leaves.items():
        try:
            found = tlog_proof.verify(proof, leaf, verifiers)
        except SignatureError:
            raise
        except VerificationError as error:
            failed = error
            continue
        return {
            "event_id": name,
            "index": proof.index,
            "origin": found.origin,
            "size": found.size,
            "root_b64": base64.b64encode(found.root).decode("ascii"),
        }
    if len(leaves) == 1 and failed is not None:
        raise failed
    raise VerificationError(
        f"the proof of entry {proof.index} is of none of the {len(leaves)} events in the file"
    )


def _leaves(raw: bytes) -> list[tuple[str, bytes]]:
    """Return the id and leaf hash of each event that has a signature, hashed from its body."""
    value = parse_json(raw, max_bytes=MAX_BUNDLE_BYTES)
    if isinstance(value, dict) and "bundle_type" in value:
        events = read_bundle(raw).events
    else:
        events = (value,) if isinstance(value, dict) else ()
    return [found for event in events if (found := _leaf(event)) is not None]


def _leaf(event: Mapping[str, Any]) -> tuple[str, bytes] | None:
    body = {key: value for key, value in event.items() if key not in ("event_id", "signature_b64")}
    try:
        digest = event_digest(canonical_body(body))
        signature = decode_base64(str(event.get("signature_b64")))
        return event_id(digest), leaf_hash(entry_of(digest, signature))
    except RefusedError:
        return None  # an event by other rules has no place in this log


# ---------------------------------------------------------------------- consistency


class End(msgspec.Struct, frozen=True, kw_only=True):
    """One of two logs that are compared."""

    size: int
    root: bytes
    signed_by: str | None = None
    """Key of ours that signed it, where it is a checkpoint."""


def compare(app: App, old: str, new: str | None) -> dict[str, Any]:
    """Return the proof that one log continues another, and whether it holds.

    Raises:
        ConfigError: no such size or file, or no checkpoint in it.
        SignatureError: a checkpoint whose signature by our own key does not hold.
    """
    from anchord.engine.proving import consistency

    covered = app.store.log.sizes()[1]
    ends = [_end(app, old, covered), _end(app, new or str(covered), covered)]
    first, second = ends
    if max(first.size, second.size) > covered:
        words = (
            f"the ledger was rewritten: a log of {max(first.size, second.size)} was signed, here "
            f"it covers {covered} events. If this store is an older copy, use the newer one"
        )
        return _document(ends, [], words, holds=False)
    if first.size > second.size:
        raise ConfigError(f"OLD has {first.size} events, NEW {second.size}: swap them")
    proof = consistency(app.store, first.size, second.size)
    try:
        verify_consistency(first.size, second.size, first.root, second.root, proof)
    except VerificationError as error:
        return _document(ends, proof, f"the ledger was rewritten: {error}", holds=False)
    words = f"the log of {second.size} events begins with the log of {first.size}"
    return _document(ends, proof, words, holds=True)


def _document(
    ends: Sequence[End], proof: Sequence[bytes], words: str, *, holds: bool
) -> dict[str, Any]:
    old, new = (
        {
            "size": end.size,
            "root_b64": base64.b64encode(end.root).decode("ascii"),
            "signed_by": end.signed_by,
        }
        for end in ends
    )
    hashes = [base64.b64encode(found).decode("ascii") for found in proof]
    return {"holds": holds, "words": words, "old": old, "new": new, "proof": hashes}


def _end(app: App, text: str, covered: int) -> End:
    """Return the log that a size or a checkpoint's file stands for."""
    from anchord.engine.proving import root

    if Path(text).is_file():
        raw = _read(Path(text), _MAX_CHECKPOINT)
        try:
            found = parse(raw)
        except RefusedError as error:
            raise ConfigError(f"{text!r:.100} is no checkpoint: {error}") from None
        signed_by = _signed_by(raw, found, app.keyring)
        last = app.store.log.last()
        ours = found.origin if last is None else parse(last.note).origin
        if signed_by is None and found.origin != ours:
            raise ConfigError(
                f"{text!r:.100} is a checkpoint of the log {found.origin!r:.100}, this is the log "
                f"{ours!r:.100}: name one of this log"
            )
        return End(size=found.size, root=found.root, signed_by=signed_by)
    if not _SIZE.fullmatch(text):
        raise ConfigError(f"{text!r:.100} is no file here, and no size: expected one of both")
    size = int(text)
    if size > covered:
        raise ConfigError(f"checkpoints cover {covered} events, not {size}: name a smaller size")
    stored = app.store.log.covering(size)
    if stored is not None and stored.size == size:
        return End(size=size, root=stored.root, signed_by=stored.key_id)
    return End(size=size, root=root(app.store, size))


def _signed_by(raw: bytes, found: Checkpoint, keyring: Keyring) -> str | None:
    """Return which of our keys signed a checkpoint; None for others', which only say what they say.

    Raises:
        SignatureError: it claims to be by a key of ours, and is not.
    """
    from anchord.core.note import parse as parse_note

    claimed = {(line.name, line.key_hash) for line in parse_note(raw).lines}
    for key in keyring:
        try:
            verifier = make_verifier(found.origin, key.public_key)
        except RefusedError:
            return None
        if (verifier.name, verifier.key_hash) in claimed:
            open_checkpoint(raw, [verifier])
            return key.key_id
    return None


def _read(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > limit:
        raise RefusedError(f"{path} is longer than {limit} bytes")
    return raw
