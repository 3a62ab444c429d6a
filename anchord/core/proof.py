"""Whole `.ots` files, and the front door to everything about OpenTimestamps proofs.

A detached file is: magic, version 1, tag of the hash, digest, timestamp (python-opentimestamps,
opentimestamps/core/timestamp.py, DetachedTimestampFile).
"""

from __future__ import annotations

import msgspec

from anchord.core import operation, wire
from anchord.core.answer import MAX_ANSWER_BYTES, check_submit_answer, check_upgrade_answer
from anchord.core.attestation import Attestation
from anchord.core.graft import Found, attach, attestations, drop, merge
from anchord.core.operation import Op
from anchord.core.timestamp import (
    MAX_NODES,
    MAX_PROOF_BYTES,
    Timestamp,
    parse_timestamp,
    read_timestamp,
    serialise,
)
from anchord.errors import RefusedError

__all__ = [
    "DETACHED_HEADER",
    "MAX_ANSWER_BYTES",
    "MAX_NODES",
    "MAX_PROOF_BYTES",
    "Attestation",
    "Detached",
    "Found",
    "Op",
    "Timestamp",
    "attach",
    "attestations",
    "check_submit_answer",
    "check_upgrade_answer",
    "drop",
    "join",
    "merge",
    "parse_detached",
    "parse_timestamp",
    "serialise",
    "serialise_detached",
]

MAGIC = bytes.fromhex("004f70656e54696d657374616d7073000050726f6f6600bf89e2e884e89294")
_VERSION = 1
_HASHES = {
    operation.SHA1: ("sha1", 20),
    operation.RIPEMD160: ("ripemd160", 20),
    operation.SHA256: ("sha256", 32),
    operation.KECCAK256: ("keccak256", 32),
}
_TAGS = {name: (tag, length) for tag, (name, length) in _HASHES.items()}

DETACHED_HEADER = MAGIC + bytes((_VERSION, operation.SHA256))
"""How every `.ots` over a SHA-256 begins; the digest follows."""

NONCE = 16
_NONCE_STEP = b"\xf0\x10"
_SHA256_STEP = b"\x08"


class Detached(msgspec.Struct, frozen=True):
    """What an `.ots` file says."""

    algorithm: str
    """"sha256", "sha1", "ripemd160" or "keccak256": how `digest` came from the file."""
    digest: bytes
    timestamp: Timestamp
    """Starts at `digest`."""


def parse_detached(raw: bytes) -> Detached:
    """Return what an `.ots` file says.

    Raises:
        RefusedError: not an `.ots` file of version 1, damaged, or outside the limits.
    """
    if not raw.startswith(MAGIC):
        raise RefusedError(
            "expected an OpenTimestamps proof, got a file that does not begin like one"
        )
    reader = wire.Reader(raw, len(MAGIC))
    version = reader.byte()
    if version != _VERSION:
        raise RefusedError(f"expected an OpenTimestamps proof of version 1, got version {version}")
    tag = reader.byte()
    if tag not in _HASHES:
        raise RefusedError(f"expected a proof over a known hash, got hash tag 0x{tag:02x}")
    algorithm, length = _HASHES[tag]
    digest = reader.take(length)
    timestamp = read_timestamp(reader, digest)
    reader.finish("a proof")
    return Detached(algorithm, digest, timestamp)


def serialise_detached(digest: bytes, timestamp: Timestamp, algorithm: str = "sha256") -> bytes:
    """Return the `.ots` file of a digest.

    Raises:
        RefusedError: the timestamp starts elsewhere, the hash is unknown, or there is nothing to
            write.
    """
    tag, length = _TAGS.get(algorithm, (0, 0))
    if not tag or len(digest) != length:
        raise RefusedError(
            f"expected a digest of {', '.join(_TAGS)}, got {len(digest)} bytes of {algorithm!r:.40}"
        )
    if timestamp.message != digest:
        raise RefusedError(
            f"expected a timestamp of {digest.hex()}, got one of {timestamp.message.hex()}"
        )
    return MAGIC + bytes((_VERSION, tag)) + digest + serialise(timestamp)


def join(digest: bytes, nonce: bytes, suffix: bytes) -> bytes:
    """Return one record's whole `.ots`, byte for byte what the standard library would write.

    Args:
        digest: the record's, 32 bytes.
        nonce: 16 bytes, or empty when the leaf is the digest itself.
        suffix: serialised timestamp from the leaf on (`anchord.core.merkle.suffixes`).
    """
    if not nonce:
        return DETACHED_HEADER + digest + suffix
    return b"".join((DETACHED_HEADER, digest, _NONCE_STEP, nonce, _SHA256_STEP, suffix))
