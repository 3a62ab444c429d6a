"""Whether a foreign bundle may be kept beside its record without spoiling what others prove."""

from __future__ import annotations

import contextlib

from anchord.core.bundle import MAX_FOREIGN_BYTES, Bundle, bundle_beside
from anchord.core.included import check_inclusion
from anchord.core.key_document import from_document
from anchord.core.keyring import REGISTRY_TARGETS, Keyring, PublicKey
from anchord.core.model import Document
from anchord.core.receipt import check_receipt, receipts
from anchord.core.registry_events import why_not_counted
from anchord.core.trust import Keys
from anchord.core.verify_event import read_event
from anchord.errors import RefusedError, SignatureError, VerificationError


def claimed_keys(bundle: Bundle) -> list[PublicKey]:
    """Return the keys a bundle states; what is no key anchord knows the kind of is left out.

    A document that does not say what it signs is a registry's.
    """
    found = []
    for value in bundle.keys:
        with contextlib.suppress(RefusedError):
            found.append(from_document(value, () if value.get("targets") else REGISTRY_TARGETS))
    return found


def check_document(document: Document, keyring: Keyring) -> None:
    """Refuse a bundle with a part that is known to be false.

    Its events, receipts and keys go into the bundle that is exported for its record. One forged
    part there would make all of it fail, our own events included. What cannot be checked, for
    want of a key or a published rule, may stay.

    Raises:
        RefusedError: an event, a receipt, a key, an alias or an inclusion proof does not hold, or
            it is too long to stand in another bundle.
    """
    if len(document.raw) > MAX_FOREIGN_BYTES:
        raise RefusedError(
            f"expected a bundle of at most {MAX_FOREIGN_BYTES:,} bytes, got "
            f"{len(document.raw):,}: it would fill the one that is exported for its record"
        )
    bundle = bundle_beside(document.raw, document.record)
    try:
        keys = Keys(keyring, (), claimed_keys(bundle))
        for words in keys.disputed:
            raise SignatureError(words)
        for receipt in receipts(bundle):
            signed = check_receipt(receipt, bundle.digest, keys)
            if signed.trust is None and keys.find(signed.key_id):
                raise SignatureError(f"a receipt was not signed by the key {signed.key_id:.100}")
        for event in bundle.events:
            proved = read_event(event, bundle.digest, bundle.number, keys)
            if proved.trust is None and keys.find(proved.key_id) and "signature_b64" in event:
                raise SignatureError(f"event {proved.event_id:.80} is {proved.reason}")
            if "signature_b64" not in event:
                why_not_counted(event, bundle.digest, keys)
        for inclusion in bundle.inclusion:
            check_inclusion(bundle, inclusion, keys)
    except VerificationError as error:
        raise RefusedError(f"the bundle holds something false, and is not kept: {error}") from None
