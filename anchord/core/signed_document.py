"""Documents that anchord signs beside its events: day manifests, and the index of a published tree.

The rule is that of events (docs/protocol.md, 4): the body is the document without `signature_b64`,
in canonical bytes; the signature is Ed25519 over the 32 raw bytes of their SHA-256.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from anchord.core.event import canonical_body, event_digest
from anchord.core.keyring import check_permitted, check_signature, fingerprint
from anchord.core.moment import seconds
from anchord.core.receipt import strict_base64
from anchord.core.trust import Keys, Trust
from anchord.errors import SignatureError

TARGET = "storage"
"""What a key must be permitted to sign, to sign such a document."""


class SignerBlock(msgspec.Struct, frozen=True):
    """Who signed, as the document states it."""

    key_id: str
    public_key_fingerprint: str
    signer_id: str
    signer_type: str


def signed(body: bytes, signature: bytes) -> bytes:
    """Return a document whole, from its canonical body and the signature over its SHA-256."""
    text = base64.b64encode(signature).decode("ascii")
    return canonical_body({**msgspec.json.decode(body), "signature_b64": text})


def check_signed(
    document: dict[str, Any], signer: SignerBlock, created_at: str, keys: Keys, what: str
) -> Trust:
    """Prove who signed a document; return how far the key is trusted.

    Args:
        document: as it was parsed, its `signature_b64` (text) included.
        signer: its `signer`, read.
        created_at: when it says it was made.
        keys: what it is checked with.
        what: its kind, for messages, with "the" before it in mind.

    Raises:
        RefusedError: its body leaves the profile where all encoders agree.
        SignatureError: the key is not known, not its signer's, or did not sign this.
        VerificationError: `created_at` is no moment.
    """
    found = keys.find(signer.key_id)
    if found is None:
        raise SignatureError(
            f"key {signer.key_id!r:.80} is not known: add it with `anchord key trust` "
            "if you believe whoever published it"
        )
    key, trust = found
    if signer.public_key_fingerprint != fingerprint(key.public_key):
        raise SignatureError(f"the {what} states another key of the name {signer.key_id!r:.80}")
    if (signer.signer_id, signer.signer_type) != (key.signer_id, key.signer_type):
        raise SignatureError(
            f"key {key.key_id!r} is that of {key.signer_id!r}, the {what} says "
            f"{signer.signer_id!r:.80}"
        )
    check_permitted(key, seconds(created_at), TARGET)
    body = {name: value for name, value in document.items() if name != "signature_b64"}
    signature = strict_base64(document["signature_b64"], f"the {what}'s signature")
    check_signature(key, event_digest(canonical_body(body)), signature)
    return trust
