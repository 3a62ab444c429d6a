"""Events of the registry, which publishes neither an id's preimage nor an event's signature.

What can be held against something is: the record inside, the receipt inside, the key named. The
registry's own state counts them as valid (docs/protocol.md, Merge); they stay marked as unsigned,
for anybody could have written what the receipt does not cover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anchord.core.canonical import canonical_bytes, digest_of
from anchord.core.keyring import PublicKey, check_permitted, fingerprint
from anchord.core.model import Scheme
from anchord.core.moment import seconds
from anchord.core.receipt import ReceiptProved, check_receipt
from anchord.core.trust import Keys, Trust
from anchord.errors import (
    DigestMismatchError,
    RefusedError,
    SignatureError,
    VerificationError,
)

CREATED = "record_created"
GRAPH = "graph"
"""Target of graph snapshots."""
NO_RULE = "its maker publishes no rule to check it by"


def is_snapshot(event: Mapping[str, Any]) -> bool:
    """Tell whether an event is a graph snapshot."""
    payload = event.get("payload")
    return (
        event.get("target") == GRAPH and isinstance(payload, dict) and "graph_snapshot" in payload
    )


def why_not_counted(event: Mapping[str, Any], digest: bytes, keys: Keys) -> str | None:
    """Return why an event without a signature does not count as valid; None when it does.

    Args:
        event: one that `read_event` found to be about this record, as far as it says.
        digest: of the record.
        keys: what the registry's key is looked up in.

    Raises:
        VerificationError: something in it is false.
    """
    if event.get("event_type") == CREATED:
        proved = check_created(event, digest, keys)
        if proved is None:
            return "it has no receipt inside"
        if proved.trust is None or proved.trust is Trust.CLAIMED:
            return f"the key {proved.key_id:.100} of its receipt is not in the keyring"
        return _why_not_signer(event, keys)
    if is_snapshot(event):
        if event.get("subject_pith_number") is None and event.get("subject_record_id") is None:
            return "it does not say which record it is about"
        return _why_not_signer(event, keys)
    return NO_RULE


def check_created(event: Mapping[str, Any], digest: bytes, keys: Keys) -> ReceiptProved | None:
    """Return what the receipt inside a `record_created` event proves; None without a receipt.

    Raises:
        DigestMismatchError: it is about another record.
        SignatureError: the receipt does not hold.
    """
    payload = event.get("payload")
    stated = payload.get("canonical_sha256") if isinstance(payload, dict) else None
    if not isinstance(payload, dict) or stated != digest.hex():
        raise DigestMismatchError(
            f"a record_created event is about {stated!r:.80}, not this record"
        )
    inner = payload.get("canonical_record")
    if inner is not None and digest not in (_hash(inner, scheme) for scheme in _SCHEMES):
        raise DigestMismatchError("the record inside a record_created event was changed")
    receipt = payload.get("receipt")
    return check_receipt(receipt, digest, keys) if isinstance(receipt, dict) else None


_SCHEMES = (Scheme.PITH_JSON_V1, Scheme.RFC8785)


def _hash(value: Any, scheme: Scheme) -> bytes:
    try:
        return digest_of(canonical_bytes(value, scheme))
    except RefusedError:
        return b""


def _why_not_signer(event: Mapping[str, Any], keys: Keys) -> str | None:
    """Compare the signer that is named with the key of that name."""
    signer = event.get("signer")
    key_id = signer.get("key_id") if isinstance(signer, dict) else None
    known = keys.find(key_id) if isinstance(key_id, str) else None
    if not isinstance(signer, dict) or known is None or known[1] is Trust.CLAIMED:
        return f"the key {key_id!r:.100} it names is not in the keyring"
    key = known[0]
    if signer.get("public_key_fingerprint") != fingerprint(key.public_key):
        raise SignatureError(
            f"it says that key {key_id!r} has the fingerprint "
            f"{signer.get('public_key_fingerprint')!r:.80}, known is {fingerprint(key.public_key)}"
        )
    return _why_not_allowed(event, signer, key)


def _why_not_allowed(
    event: Mapping[str, Any], signer: Mapping[str, Any], key: PublicKey
) -> str | None:
    """Return why a key does not vouch for an event; without a signature that is no lie of its."""
    for name, text in (("signer_id", key.signer_id), ("signer_type", key.signer_type)):
        if signer.get(name) != text:
            return (
                f"its signer's {name} is {signer.get(name)!r:.80}, that of key {key.key_id!r} in "
                f"the keyring is {text!r:.80}"
            )
    try:
        check_permitted(key, seconds(str(event.get("created_at"))), str(event.get("target")))
    except VerificationError as error:
        return str(error)
    return None
