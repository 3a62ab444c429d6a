"""The registry's receipts: Ed25519 over the 32 raw bytes of a record's digest."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from anchord.core.bundle import Bundle
from anchord.core.keyring import check_permitted, check_signature
from anchord.core.moment import seconds
from anchord.core.trust import Keys, Trust
from anchord.errors import SignatureError, VerificationError

MOST_RECEIPTS = 8
"""Receipts of one record that are shown; one is usual."""


class ReceiptProved(msgspec.Struct, frozen=True, kw_only=True):
    """A registry's receipt over the digest."""

    key_id: str
    signed_at: str
    trust: Trust | None
    """None: the key is not known, or only the evidence states it and it did not sign this."""


class CheckedReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt as it came, and what checking it came to."""

    receipt: dict[str, Any]
    holds: bool | None
    """None: the key is not one that is trusted, so nothing can be said."""
    why: str
    """Why it does not hold, or cannot be checked; empty when it holds."""
    public_key: bytes | None
    """The trusted key it names, 32 raw bytes."""


class _Receipt(msgspec.Struct):
    key_id: str
    algorithm: str
    signature_b64: str
    signed_at: str


def receipts(bundle: Bundle) -> list[dict[str, Any]]:
    """Return the registry's receipts in a bundle."""
    found = [] if bundle.receipt is None else [bundle.receipt]
    for event in bundle.events:
        payload = event.get("payload")
        receipt = payload.get("receipt") if isinstance(payload, dict) else None
        if isinstance(receipt, dict):
            found.append(receipt)
    return found


def checked_receipts(bundle: Bundle, keys: Keys) -> tuple[CheckedReceipt, ...]:
    """Return each different receipt in a bundle, and whether it holds under trusted keys."""
    different: list[dict[str, Any]] = []
    for receipt in receipts(bundle):
        if receipt not in different:
            different.append(receipt)
        if len(different) == MOST_RECEIPTS:
            break
    return tuple(_checked(receipt, bundle.digest, keys) for receipt in different)


def _checked(receipt: dict[str, Any], digest: bytes, keys: Keys) -> CheckedReceipt:
    key_id = receipt.get("key_id")
    known = keys.find(key_id) if isinstance(key_id, str) else None
    key = known[0].public_key if known and known[1] is not Trust.CLAIMED else None
    try:
        proved = check_receipt(receipt, digest, keys)
    except VerificationError as error:
        return CheckedReceipt(receipt=receipt, holds=False, why=str(error), public_key=key)
    if proved.trust is None or proved.trust is Trust.CLAIMED:
        why = f"key {proved.key_id:.100} is not in the keyring"
        return CheckedReceipt(receipt=receipt, holds=None, why=why, public_key=key)
    return CheckedReceipt(receipt=receipt, holds=True, why="", public_key=key)


def check_receipt(receipt: Mapping[str, Any], digest: bytes, keys: Keys) -> ReceiptProved:
    """Check a receipt: Ed25519 over the 32 raw bytes of the digest (15).

    Raises:
        SignatureError: it has no signature, or not one of that key over that digest.
    """
    try:
        stated = msgspec.convert(dict(receipt), _Receipt)
    except msgspec.ValidationError as error:
        raise SignatureError(f"a receipt cannot be checked: {error}") from None
    known = keys.find(stated.key_id)
    if known is None:
        return ReceiptProved(key_id=stated.key_id, signed_at=stated.signed_at, trust=None)
    if stated.algorithm != "ed25519":
        raise SignatureError(f"a receipt is signed with {stated.algorithm!r:.40}: expected ed25519")
    key, trust = known
    signature = strict_base64(stated.signature_b64, "a receipt's signature")
    at = seconds(stated.signed_at)
    try:
        check_permitted(key, at, "record")
        check_signature(key, digest, signature)
    except SignatureError:
        if trust is not Trust.CLAIMED:
            raise
        # Anybody can state a key that did not sign this: that says nothing of the receipt.
        return ReceiptProved(key_id=stated.key_id, signed_at=stated.signed_at, trust=None)
    return ReceiptProved(key_id=stated.key_id, signed_at=stated.signed_at, trust=trust)


def strict_base64(text: str, what: str) -> bytes:
    """Decode base64 that is written the one canonical way, so that no bit of it is idle.

    Raises:
        SignatureError: anything else.
    """
    try:
        raw = binascii.a2b_base64(text)  # whatever it lets pass is not written so again
    except (binascii.Error, ValueError):
        raw = b""
    if not raw or base64.b64encode(raw).decode("ascii") != text:
        raise SignatureError(f"{what} is not base64: it was changed")
    return raw
