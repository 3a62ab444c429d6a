"""Verifying records, bundles and `.ots` files against block headers, and saying what was proved.

The rules are in `anchord.core.verify`; here headers are fetched and the findings about one target
become one report. What was not checked is never called good: a target is "proved" only when its
digest was compared, a path was recomputed, and a header that some witness gave confirmed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anchord.core.bundle import Bundle, read_bundle
from anchord.core.bundle_check import claimed_keys
from anchord.core.equivocation import equivocations
from anchord.core.included import check_inclusion
from anchord.core.keyring import Keyring, PublicKey
from anchord.core.receipt import check_receipt, receipts
from anchord.core.registry_events import why_not_counted
from anchord.core.trust import Keys, Trust
from anchord.core.verify import read_proof
from anchord.core.verify_event import EventProved, read_event, withdrawn
from anchord.engine.dossier import TRUST_WORDS, Dossier, FindExpected
from anchord.engine.export import record_bundle
from anchord.engine.header_view import HeaderView
from anchord.engine.proofs import record_ots
from anchord.engine.report import Report
from anchord.errors import (
    AnchordError,
    FatalError,
    RefusedError,
    VerificationError,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from anchord.core.model import StoredRecord
    from anchord.ports.store import Store


def verify_ots(target: str, raw: bytes, find: FindExpected, headers: HeaderView) -> Report:
    """Verify an `.ots` file."""
    dossier = Dossier(target, "ots", headers)
    try:
        proof = read_proof(raw)
    except (RefusedError, VerificationError) as error:
        return dossier.refuse("proof", error)
    dossier.about(proof.digest, proof.algorithm)
    dossier.compare(find)
    dossier.add_proof(proof)
    return dossier.report()


def verify_bundle(
    target: str,
    raw: bytes,
    keyring: Keyring,
    given: Sequence[PublicKey],
    find: FindExpected,
    headers: HeaderView,
    trusted: Sequence[Certificate] = (),
) -> Report:
    """Verify a bundle: record, every event, every receipt, every proof, every token."""
    dossier = Dossier(target, "bundle", headers, trusted)
    _verify_bundle(dossier, raw, keyring, given, find)
    return dossier.report()


def verify_record(
    store: Store,
    record: StoredRecord,
    keyring: Keyring,
    given: Sequence[PublicKey],
    find: FindExpected,
    headers: HeaderView,
    target: str,
    trusted: Sequence[Certificate] = (),
) -> Report:
    """Verify what the store has of a record, exactly as an export would give it away."""
    dossier = Dossier(target, "record", headers, trusted)
    try:
        raw = record_bundle(store, keyring, record)
    except AnchordError as error:
        return dossier.refuse("record", error)
    _verify_bundle(dossier, raw, keyring, given, find)
    for batch in store.batches.of_record(record.id, record.batch_id):
        if batch.proof is not None:
            try:
                ots = record_ots(store, batch, record.id)
                dossier.add_proof(read_proof(ots, record.digest))
            except (RefusedError, VerificationError, FatalError) as error:
                dossier.fail("proof", error)
    return dossier.report()


def _verify_bundle(
    dossier: Dossier,
    raw: bytes,
    keyring: Keyring,
    given: Sequence[PublicKey],
    find: FindExpected,
) -> None:
    try:
        bundle = read_bundle(raw)
        keys = Keys(keyring, given, claimed_keys(bundle))
    except (RefusedError, VerificationError) as error:
        dossier.fail("record", error)
        return
    dossier.about(bundle.digest, "sha256", bundle.number)
    for words in keys.disputed:
        dossier.skip("key", f"{words}; what only the bundle states is not believed")
    if bundle.canonical is None:
        dossier.compare(find)
    else:
        dossier.prove("digest", "canonical bytes recomputed from the record")
        dossier.compare_if_asked(find)
    _check_receipts(dossier, bundle, keys)
    _check_events(dossier, bundle, keys)
    _check_inclusion(dossier, bundle, keys)


def _check_receipts(dossier: Dossier, bundle: Bundle, keys: Keys) -> None:
    for receipt in receipts(bundle):
        try:
            proved = check_receipt(receipt, bundle.digest, keys)
        except VerificationError as error:
            dossier.fail("receipt", error)
            continue
        text = f"receipt of {proved.signed_at} by key {proved.key_id}"
        if proved.trust is None:
            dossier.skip("receipt", f"{text}: the key is not known")
        else:
            dossier.prove("receipt", f"{text}: {TRUST_WORDS[proved.trust]}")


def _check_events(dossier: Dossier, bundle: Bundle, keys: Keys) -> None:
    # What cannot be checked may state any id: it is told apart from a signed event of that id.
    proved: dict[tuple[str, bool], EventProved] = {}
    for event in bundle.events:
        try:
            one = read_event(event, bundle.digest, bundle.number, keys)
            if "signature_b64" not in event:
                why_not_counted(event, bundle.digest, keys)
            proved.setdefault((one.event_id, one.trust is None), one)
        except (RefusedError, VerificationError) as error:
            dossier.fail("signature", error)
    gone = withdrawn(list(proved.values()))
    trusted = any(one.trust not in (None, Trust.CLAIMED) for one in proved.values())
    fallen = _check_contradictions(dossier, [e for e in proved.values() if e.event_id not in gone])
    for one in proved.values():
        taken = None if one.trust is None else gone.get(one.event_id)
        if one.event_id not in fallen or one.trust is None:
            dossier.add_event(one, taken, spoils=not trusted or one.trust is not Trust.CLAIMED)


def _check_contradictions(dossier: Dossier, events: Sequence[EventProved]) -> set[str]:
    """Note what signers said in two ways; return the events that fall because of a revoked key."""
    fallen: set[str] = set()
    for twice in equivocations(events):
        said = f"{twice.signer_id} says two things of {twice.about}, of which one is false; "
        said += f"these do not count: {', '.join(twice.fallen)}"
        if twice.fallen == twice.event_ids:
            dossier.fail("signature", VerificationError(said))
            continue
        fallen.update(twice.fallen)
        dossier.skip("signature", f"{said}; their key was revoked")
    return fallen


def _check_inclusion(dossier: Dossier, bundle: Bundle, keys: Keys) -> None:
    for found in bundle.inclusion:
        try:
            proved = check_inclusion(bundle, found, keys)
        except (RefusedError, VerificationError) as error:
            dossier.fail("inclusion", error)
            continue
        count = len(proved.event_ids)
        text = f"{count} event(s) in the log {proved.origin}, checkpoint of {proved.size} entries"
        if proved.trust is None:
            dossier.skip("inclusion", f"{text}: the key that signed it is not known")
        else:
            dossier.prove("inclusion", f"{text}: {TRUST_WORDS[proved.trust]}")
