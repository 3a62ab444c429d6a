"""Proofs that an entry is in a log, as one file: C2SP tlog-proof (https://c2sp.org/tlog-proof).

A header line, `extra` (optional, proves nothing), `index`, the inclusion proof's hashes, an empty
line, and the signed checkpoint. With the log's key it is checked offline.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

import msgspec

from anchord.core.checkpoint import Checkpoint, open_checkpoint
from anchord.core.log import HASH, MAX_SIZE, verify_inclusion
from anchord.core.note import MAX_NOTE_BYTES, Verifier, decode_base64
from anchord.errors import RefusedError

HEADER = "c2sp.org/tlog-proof@v1"
EXTENSION = ".tlog-proof"
MAX_HASHES = 63
_MAX_BYTES = 2 * MAX_NOTE_BYTES
_INDEX = re.compile(r"index (0|[1-9][0-9]{0,18})", re.ASCII)


class LogProof(msgspec.Struct, frozen=True, kw_only=True):
    """What a tlog-proof file says."""

    index: int
    hashes: tuple[bytes, ...]
    """From the leaf's sibling up."""
    note: bytes
    """The signed checkpoint, byte for byte."""
    extra: bytes | None = None
    """Opaque; nothing vouches for it."""


def write(proof: LogProof) -> bytes:
    """Return the file.

    Raises:
        RefusedError: what would be written cannot be read.
    """
    lines = [HEADER]
    if proof.extra is not None:
        lines.append("extra " + _encoded(proof.extra))
    lines.append(f"index {proof.index}")
    lines += [_encoded(found) for found in proof.hashes]
    raw = "".join(f"{line}\n" for line in [*lines, ""]).encode("ascii") + proof.note
    parse(raw)
    return raw


def parse(raw: bytes) -> LogProof:
    """Return what a file says, nothing checked.

    Raises:
        RefusedError: not a tlog-proof.
    """
    if len(raw) > _MAX_BYTES:
        raise RefusedError(f"expected a tlog-proof of at most {_MAX_BYTES} bytes, got {len(raw)}")
    head, separator, checkpoint = raw.partition(b"\n\n")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        lines = []
    if not separator or lines[:1] != [HEADER]:
        raise RefusedError(f"expected a tlog-proof, which begins with the line {HEADER!r}")
    rest, extra = lines[1:], None
    if rest and rest[0].startswith("extra "):
        extra = decode_base64(rest.pop(0).removeprefix("extra "))
    match = _INDEX.fullmatch(rest[0]) if rest else None
    if match is None or int(match[1]) > MAX_SIZE:
        raise RefusedError(f"expected an index in decimal, got {''.join(rest[:1])!r:.60}")
    hashes = tuple(decode_base64(line) for line in rest[1:])
    if len(hashes) > MAX_HASHES or any(len(found) != HASH for found in hashes):
        raise RefusedError(f"expected at most {MAX_HASHES} hashes of {HASH} bytes")
    return LogProof(index=int(match[1]), hashes=hashes, note=checkpoint, extra=extra)


def verify(proof: LogProof, leaf: bytes, verifiers: Iterable[Verifier]) -> Checkpoint:
    """Prove that a leaf is in the log of one of the keys; return the checkpoint that covers it.

    Args:
        proof: as `parse` returned it.
        leaf: hash of the entry in question (`anchord.core.log.leaf_hash`).
        verifiers: keys of the log.

    Raises:
        RefusedError: no checkpoint is in it.
        SignatureError: the checkpoint is not signed by one of the keys.
        VerificationError: the entry is not at that place of that log.
    """
    found = open_checkpoint(proof.note, verifiers)
    verify_inclusion(leaf, proof.index, found.size, proof.hashes, found.root)
    return found


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
