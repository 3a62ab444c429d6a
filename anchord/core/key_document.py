"""Public key documents: how a key is published, and how a published one is read.

The shape is the registry's (https://pith.science/pith-signing-key.json); what anchord states
beside it are the signer, the validity window and the permitted targets (docs/protocol.md, Keys).
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any

import msgspec

from anchord.core.keyring import ALGORITHM, PublicKey, fingerprint, fingerprint_b32
from anchord.core.moment import utc
from anchord.errors import RefusedError


def to_document(key: PublicKey) -> dict[str, Any]:
    """Return the public key document, in the registry's shape plus what anchord states."""
    return {
        "key_id": key.key_id,
        "algorithm": ALGORITHM,
        "format": "raw",
        "public_key_b64": base64.b64encode(key.public_key).decode("ascii"),
        "public_key_hex": key.public_key.hex(),
        "fingerprint_sha256_b32_first128bits": fingerprint_b32(key.public_key),
        "fingerprint_sha256_hex": fingerprint(key.public_key),
        "rotates_at": None if key.valid_until is None else utc(key.valid_until),
        "signer_id": key.signer_id,
        "signer_type": key.signer_type,
        "targets": list(key.targets),
        "valid_from": None if key.valid_from is None else utc(key.valid_from),
        "valid_until": None if key.valid_until is None else utc(key.valid_until),
        "revoked_at": None if key.revoked_at is None else utc(key.revoked_at),
        "revocation_reason": key.revocation_reason,
    }


def from_document(value: Any, targets: tuple[str, ...] = ()) -> PublicKey:
    """Return the foreign key that a public key document states.

    Args:
        value: the parsed document, alone or under the key `public_key`; unknown keys are ignored.
        targets: what it shall be believed for; empty: what the document itself asks for.

    Raises:
        RefusedError: not such a document, a fingerprint that does not recompute, or no targets.
    """
    if isinstance(value, dict) and isinstance(value.get("public_key"), dict):
        value = value["public_key"]
    try:
        document = msgspec.convert(value, _Document)
    except msgspec.ValidationError as error:
        raise RefusedError(f"expected a public key document, but {error}") from None
    raw = _raw_key(document)
    _check_fingerprints(document, raw)
    wanted = targets or tuple(document.targets)
    if not wanted:
        raise RefusedError(
            f"key {document.key_id!r} does not say what it signs: name it, for a registry "
            "`--target record --target graph`"
        )
    return PublicKey(
        key_id=document.key_id,
        public_key=raw,
        signer_id=document.signer_id or document.key_id,
        signer_type=document.signer_type or "unknown",
        valid_from=_seconds(document.valid_from, "valid_from"),
        valid_until=_seconds(document.valid_until, "valid_until"),
        revoked_at=_seconds(document.revoked_at, "revoked_at"),
        revocation_reason=document.revocation_reason,
        targets=wanted,
    )


class _Document(msgspec.Struct, kw_only=True):
    """What is read of a public key document."""

    key_id: str
    algorithm: str
    public_key_b64: str
    format: str = "raw"
    fingerprint_sha256_hex: str | None = None
    fingerprint_sha256_b32_first128bits: str | None = None
    signer_id: str | None = None
    signer_type: str | None = None
    targets: list[str] = msgspec.field(default_factory=list)
    valid_from: str | None = None
    valid_until: str | None = None
    revoked_at: str | None = None
    revocation_reason: str | None = None


def _raw_key(document: _Document) -> bytes:
    """Return the 32 bytes of the key."""
    kind = f"{document.algorithm}/{document.format}"
    if kind != "ed25519/raw":
        raise RefusedError(f"key {document.key_id!r} is {kind}: only ed25519/raw is known")
    return decode_key(document.public_key_b64, document.key_id)


def decode_key(text: str, key_id: str) -> bytes:
    """Return the 32 raw bytes that base64 `text` stands for.

    Raises:
        RefusedError: not base64, not 32 bytes, or no key id.
    """
    if not key_id:
        raise RefusedError("a public key has an empty key_id: expected a name")
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RefusedError(f"key {key_id!r}: public_key_b64 is not base64") from None
    if len(raw) != 32:
        raise RefusedError(f"key {key_id!r}: expected 32 bytes of key, got {len(raw)}")
    return raw


def _check_fingerprints(document: _Document, raw: bytes) -> None:
    """Refuse a document whose fingerprints belong to another key."""
    pairs = (
        (document.fingerprint_sha256_hex, fingerprint(raw)),
        (document.fingerprint_sha256_b32_first128bits, fingerprint_b32(raw)),
    )
    for stated, computed in pairs:
        if stated is not None and stated != computed:
            raise RefusedError(
                f"key {document.key_id!r} states the fingerprint {stated!r:.80} "
                f"but its key has {computed}: do not trust this document"
            )


def _seconds(text: str | None, name: str) -> int | None:
    """Return Unix seconds for an RFC 3339 moment."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise RefusedError(f"{name} is {text!r:.40}: expected YYYY-MM-DDTHH:MM:SSZ") from None
    if moment.tzinfo is None:
        raise RefusedError(f"{name} is {text!r:.40}: expected a time zone, e.g. Z")
    return int(moment.timestamp())
