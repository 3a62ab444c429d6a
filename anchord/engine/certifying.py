"""What a certificate says of one record: nothing but what was verified at that moment.

The judgement is that of `anchord.engine.verification`; here the parts of the evidence it rests on
are read again from the same bytes and put together as plain values, to be rendered by
`anchord.app.certificate`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.bundle import Bundle, read_bundle
from anchord.core.bundle_check import claimed_keys
from anchord.core.capture_url import WAYBACK
from anchord.core.certificate import Anchor, Certificate, Copy, Earliest, Statement, Subject, Token
from anchord.core.equivocation import equivocations
from anchord.core.event import CAPTURED, ITEM_STORED, SUBMITTED
from anchord.core.keyring import Keyring, PublicKey, fingerprint
from anchord.core.model import Scheme
from anchord.core.strictjson import parse
from anchord.core.trust import Keys, Trust
from anchord.core.verify_event import EventProved, read_event, withdrawn
from anchord.engine.export import record_bundle
from anchord.engine.verification import verify_bundle, verify_record
from anchord.errors import RefusedError, TransientError, VerificationError

if TYPE_CHECKING:
    from cryptography import x509

    from anchord.core.model import StoredRecord
    from anchord.engine.dossier import FindExpected
    from anchord.engine.header_view import HeaderView
    from anchord.engine.report import Report
    from anchord.ports.store import Store


def certify_bundle(
    target: str,
    raw: bytes,
    keyring: Keyring,
    given: Sequence[PublicKey],
    find: FindExpected,
    headers: HeaderView,
    title: str | None = None,
    trusted: Sequence[x509.Certificate] = (),
) -> Certificate:
    """Verify a bundle, and return what its certificate says.

    Raises:
        RefusedError: it does not prove that the record existed; the message says what is missing.
        VerificationError: something in it does not hold.
        TransientError: no header could be had.
    """
    report = verify_bundle(target, raw, keyring, given, find, headers, trusted)
    _check_proved(report)
    return _certificate(raw, report, keyring, given, headers, title)


def certify_record(
    store: Store,
    record: StoredRecord,
    keyring: Keyring,
    given: Sequence[PublicKey],
    find: FindExpected,
    headers: HeaderView,
    target: str,
    title: str | None = None,
    trusted: Sequence[x509.Certificate] = (),
) -> Certificate:
    """Verify what the store has of a record, and return what its certificate says.

    Raises:
        RefusedError: it is not proved yet; the message says what is missing.
        VerificationError: something in it does not hold.
        TransientError: no header could be had.
    """
    report = verify_record(store, record, keyring, given, find, headers, target, trusted)
    _check_proved(report)
    raw = record_bundle(store, keyring, record)
    return _certificate(raw, report, keyring, given, headers, title)


def _check_proved(report: Report) -> None:
    """Refuse everything but a proof: a certificate never says "pending"."""
    if report.result == "proved":
        return
    words = f"no certificate for {report.target:.200}: {report.result}: {report.reason}"
    if report.temporary:
        raise TransientError(words)
    if report.result == "failed":
        raise VerificationError(words)
    raise RefusedError(words + _TODO.get(report.result, ""))


_TODO = {"pending": "; the calendars need some hours: `anchord run-once`, then again"}


class _Standing(msgspec.Struct, frozen=True):
    """An event whose signature holds and that nothing withdrew, with what it states."""

    proved: EventProved
    payload: Mapping[str, Any]
    key: PublicKey


def _certificate(
    raw: bytes,
    report: Report,
    keyring: Keyring,
    given: Sequence[PublicKey],
    headers: HeaderView,
    title: str | None,
) -> Certificate:
    bundle = read_bundle(raw)
    events = _standing(bundle, Keys(keyring, given, claimed_keys(bundle)))
    chosen = _anchored_event(events, report)
    signer = chosen.proved.signer_id
    if chosen.proved.trust is not Trust.CLAIMED:
        # A key that only the evidence states may give itself the name of the trusted signer.
        events = [one for one in events if one.proved.trust is not Trust.CLAIMED]
    return Certificate(
        subject=_subject(bundle, raw, title),
        anchor=_anchor(report, chosen, events, headers.confirmations),
        statement=Statement(
            event_id=chosen.proved.event_id,
            signed_at=chosen.proved.created_at,
            signer_id=signer,
            key_id=chosen.proved.key_id,
            fingerprint=fingerprint(chosen.key.public_key),
            trust=chosen.proved.trust or Trust.CLAIMED,
            proof_sha256=chosen.payload["proof_sha256"],
        ),
        not_before=_not_before(report, chosen.proved.event_id),
        tokens=_tokens(report, chosen.proved.event_id),
        copies=tuple(_copies(events, signer)),
    )


def _standing(bundle: Bundle, keys: Keys) -> list[_Standing]:
    """Return the events that count, oldest first; read by the rules that judged them.

    What a signer said in two ways that cannot both be true counts in neither (the merge's rule).
    """
    found = []
    for event in bundle.events:
        proved = read_event(event, bundle.digest, bundle.number, keys)
        known = keys.find(proved.key_id)
        if proved.trust is not None and known is not None:
            found.append(_Standing(proved, event["payload"], known[0]))
    gone = set(withdrawn([one.proved for one in found]))
    for two_faced in equivocations(one.proved for one in found if one.proved.event_id not in gone):
        gone.update(two_faced.fallen)
    kept = [one for one in found if one.proved.event_id not in gone]
    return sorted(kept, key=lambda one: (one.proved.created_at, one.proved.event_id))


def _anchored_event(events: Sequence[_Standing], report: Report) -> _Standing:
    """Return the event that states the oldest block that was verified; a trusted one if there is.

    What a stranger signed names the block of a certificate only where nobody else states one:
    anybody can bring a proof of his own, and call himself what he likes.

    Raises:
        RefusedError: a block is proved, and no signed event states it yet.
    """
    verified = {
        (path.height, path.block_hash) for path in report.paths if path.outcome == "verified"
    }
    found = [
        (one.proved.trust is Trust.CLAIMED, claims.height, list(Trust).index(one.proved.trust), one)
        for one in events
        if (claims := one.proved.claims) is not None and one.proved.trust is not None
        and claims.chain == report.chain and (claims.height, claims.hash) in verified
    ]  # fmt: skip
    if not found:
        raise RefusedError(
            f"no certificate for {report.target:.200}: block {report.block_height} carries it, and "
            "no signed event that stands says so: `anchord run-once`, then again"
        )
    return min(found, key=lambda one: one[:3])[-1]


def _subject(bundle: Bundle, raw: bytes, title: str | None) -> Subject:
    document = parse(raw, max_bytes=len(raw))
    record = document["canonical_record"]
    record = record if isinstance(record, dict) else {}
    stated = document.get("canonical_scheme", Scheme.PITH_JSON_V1.value)
    return Subject(
        digest=bundle.digest.hex(),
        scheme=Scheme.SHA256 if bundle.canonical is None else Scheme(stated),
        pith_number=bundle.number,
        source=_source(record.get("source")),
        title=title or None,
        title_proved=title is not None and _has_title(record, title),
    )


def _source(value: Any) -> str | None:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return None
    kind, name, version = value.get("kind"), value["id"], value.get("version")
    counted = version if type(version) is int else None
    if kind == "arxiv":
        return f"arXiv:{name}" + ("" if counted is None else f"v{counted}")
    words = f"{kind} {name}" if isinstance(kind, str) else name
    return words if counted is None else f"{words}, version {counted}"


def _has_title(record: Mapping[str, Any], title: str) -> bool:
    """Tell whether the record holds the hash of this title (docs/protocol.md, 1)."""
    metadata = record.get("metadata")
    stated = metadata.get("title_canon_sha256") if isinstance(metadata, dict) else None
    text = " ".join(title.lower().split()).encode("utf-8", "replace")
    return stated == hashlib.sha256(text).hexdigest()


def _anchor(
    report: Report, chosen: _Standing, events: Sequence[_Standing], confirmations: int
) -> Anchor:
    stated = chosen.proved.claims
    path = next(
        path
        for path in report.paths
        if path.outcome == "verified" and stated is not None and path.height == stated.height
    )
    return Anchor(
        chain=report.chain or "",
        height=path.height or 0,
        hash=path.block_hash or "",
        merkle_root=path.message,
        time=path.block_time or "",
        confirmations=confirmations,
        checked_with=path.checked_with,
        calendars=tuple(sorted(_calendars(chosen, events))),
    )


def _calendars(chosen: _Standing, events: Sequence[_Standing]) -> set[str]:
    """Return who made the paths in the proof; where it no longer says, who was asked."""
    proof = chosen.proved.proof
    found = {item.attestation.uri or "" for item in proof.answered} if proof is not None else set()
    if found:
        return found
    asked = [
        one.payload.get("calendars")
        for one in events
        if one.proved.event_type == SUBMITTED and one.proved.signer_id == chosen.proved.signer_id
    ]
    return {url for urls in asked if isinstance(urls, list) for url in urls if isinstance(url, str)}


def _not_before(report: Report, event_id: str) -> Earliest | None:
    """Return the block that the timestamp is younger than, when its header was seen."""
    for one in report.not_before:
        if one.event_id == event_id and one.outcome == "verified":
            return Earliest(height=one.block_height, hash=one.block_hash, time=one.block_time or "")
    return None


def _tokens(report: Report, event_id: str) -> tuple[Token, ...]:
    """Return the authorities that signed a time; trusted ones first, then by time."""
    found = [
        Token(signed_by=one.signed_by, time=one.time, trusted=one.outcome == "trusted")
        for one in report.tokens
        if one.event_id == event_id
    ]
    return tuple(sorted(found, key=lambda one: (not one.trusted, one.time, one.signed_by)))


def _copies(events: Sequence[_Standing], signer_id: str) -> list[Copy]:
    """Return where the signer says that copies lie: mementos, then items, oldest first."""
    found = []
    for kind, name in ((CAPTURED, "capture"), (ITEM_STORED, "item")):
        for one in events:
            stored = one.proved.stored
            if one.proved.event_type != kind or stored is None:
                continue
            if one.proved.signer_id == signer_id:
                found.append(
                    Copy(
                        kind=name,
                        where=_place(one.payload, kind),
                        at=stored.at,
                        sha256=stored.sha256,
                        stand_in=not _place(one.payload, kind).startswith(_REAL),
                    )
                )
    return found


_REAL = (f"{WAYBACK}/web/", "archive.org/download/")


def _place(payload: Mapping[str, Any], kind: str) -> str:
    if kind == CAPTURED:
        return str(payload["capture_url"])
    return "{archive}/download/{identifier}/{file}".format_map(payload)
