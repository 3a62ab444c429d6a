"""One bundle, audited: what it proves of its record, and what in it does not hold.

Nothing is believed because the bundle says so: the record's hash is recomputed, every id, every
signature, every path of every proof. What a block header must confirm is handed on, so that each
block is asked for once, whatever the number of records that rest on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from anchord.core.bundle import Bundle, read_bundle
from anchord.core.bundle_check import claimed_keys
from anchord.core.bundle_text import render_bundle
from anchord.core.canonical import read_record, record_id
from anchord.core.claims import TARGETS as CLAIMS
from anchord.core.event import SUBMITTED
from anchord.core.finding import Part, Severity
from anchord.core.merge import Doubted, Merged, MergedEvent
from anchord.core.model import Record, Scheme
from anchord.core.moment import seconds, utc
from anchord.core.receipt import check_receipt, receipts, strict_base64
from anchord.core.standing import Standing
from anchord.core.state import merge_bundle
from anchord.core.strictjson import UNREADABLE
from anchord.core.trust import Keys, Trust
from anchord.core.verify_event import EventProved, read_event
from anchord.engine.audit.fast_proofs import ProofReader
from anchord.engine.audit.tree_keys import differing
from anchord.engine.audit.tree_words import KEY_TODO, code_of, key_words
from anchord.errors import RefusedError, VerificationError

if TYPE_CHECKING:
    from anchord.core.inclusion import Inclusion
    from anchord.core.keyring import Keyring, PublicKey
    from anchord.core.verify import Claims, Proof
    from anchord.engine.audit.outcome import Outcome


_KEYS = "public_keys"
_REPEATED = "event-repeated"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Anchor(NamedTuple):
    """The end of a path: what a block header has to confirm."""

    height: int
    message: bytes
    """Merkle root the path leads to."""
    claims: Claims | None = None
    """What the event says of the block; None where the path alone speaks."""


class Examined(NamedTuple):
    """What a bundle proves, block headers aside."""

    subject: str
    digest: bytes
    standing: Standing
    """Where the record stands if one of `anchors` is confirmed."""
    anchors: tuple[Anchor, ...]
    """Ends of events that stand; without one that is confirmed it is not anchored."""
    submitted: bool
    paths: tuple[Anchor, ...]
    """All ends, each of which has to be confirmed."""
    entries: tuple[tuple[bytes, bytes, str], ...]
    """(digest, signature, signer) of each signed event that is believed."""
    inclusion: tuple[Inclusion, ...]
    """As stated, not checked."""
    bundle: Bundle | None
    merged: Merged | None


class _Source(msgspec.Struct, frozen=True):
    kind: str | None = None


class _Record(msgspec.Struct, frozen=True):
    source: _Source = _Source()


class BundleAuditor:
    """Examines bundles; findings and counts go into an outcome.

    Args:
        keyring: keys that are trusted.
        given: keys the person who asks has named.
        claimed: keys the tree around the bundles states.
        outcome: where findings and counts go.
        proofs: reads proofs, and may remember those of other bundles.
    """

    def __init__(
        self,
        keyring: Keyring,
        given: Sequence[PublicKey],
        claimed: Sequence[PublicKey],
        outcome: Outcome,
        proofs: ProofReader | None = None,
    ) -> None:
        self._proofs = proofs or ProofReader()
        self._keyring, self._given, self._claimed = keyring, given, claimed
        self._outcome = outcome
        self._last: tuple[str, Keys] | None = None
        """What the bundle before said of keys, and what came of it: mostly they say the same."""

    def _keys_of(self, bundle: Bundle) -> Keys:
        """Return the keys that the events of a bundle are checked with.

        Raises:
            SignatureError: keys that are trusted contradict each other.
        """
        stated = repr(bundle.keys)  # not by `==`, to which 1, 1.0 and True are one
        if self._last is None or self._last[0] != stated:
            keys = Keys(self._keyring, self._given, [*self._claimed, *claimed_keys(bundle)])
            self._last = (stated, keys)
        return self._last[1]

    def examine(self, path: str, raw: bytes) -> Examined | None:
        """Return what a bundle proves; None when it cannot even be read.

        Args:
            path: where it lies, to name it when it does not say which record it is of.
            raw: its bytes.
        """
        try:
            bundle = read_bundle(raw)
            keys = self._keys_of(bundle)
        except (RefusedError, VerificationError) as error:
            self._outcome.find(
                code_of(error, "bundle"), Severity.BROKEN, Part.BUNDLE, path, str(error),
                "fetch the bundle again, from the publisher or another mirror",
            )  # fmt: skip
            return None
        subject = bundle.number or record_id(bundle.digest)
        before = self._outcome.broken
        for words in keys.disputed:
            self._outcome.find(
                "key-differs", Severity.WARNING, Part.KEY, subject,
                f"{words}; what only the bundle states is not believed",
                "ask the signer which key is theirs, by another way than this bundle",
            )  # fmt: skip
        self._check_receipts(subject, bundle, keys)
        merged = self._merge(subject, bundle, keys)
        return self._examined(subject, bundle, merged, sound=self._outcome.broken == before)

    # ------------------------------------------------------------------ receipts

    def _check_receipts(self, subject: str, bundle: Bundle, keys: Keys) -> None:
        for receipt in receipts(bundle):
            try:
                proved = check_receipt(receipt, bundle.digest, keys)
            except VerificationError as error:
                self._outcome.find(
                    "receipt-wrong", Severity.BROKEN, Part.RECORD, subject, str(error),
                    "fetch the record again from its registry",
                )  # fmt: skip
                continue
            if proved.trust in (Trust.KEYRING, Trust.GIVEN):
                self._outcome.count("signatures")
            else:
                self._outcome.doubt("receipts are signed by keys nobody gave: " + KEY_TODO)
                self._outcome.lack(proved.key_id)

    # ------------------------------------------------------------------ events

    def _merge(self, subject: str, bundle: Bundle, keys: Keys) -> Merged:
        """Return what the events come to; note all that does not hold or cannot be checked."""
        merged = merge_bundle(bundle, keys, self._proofs)
        for doubted in merged.invalid:
            code = _why_invalid(doubted, bundle, keys)
            # Whoever copies an id shadows nothing by it: the event itself is there, and stands.
            copied = code == _REPEATED
            self._outcome.find(
                code, Severity.WARNING if copied else Severity.BROKEN, Part.EVENT,
                f"{doubted.event_id:.80} of {subject}" if doubted.event_id else subject,
                doubted.reason, "fetch the bundle again; do not believe whoever changed it",
            )  # fmt: skip
        for doubted in merged.unverified:
            self._doubt(doubted, keys)
        for one in merged.valid:
            self._count(one, keys)
        for two in merged.equivocations:
            self._outcome.find(
                "signer-contradicts-itself", Severity.WARNING, Part.EVENT, subject,
                f"{two.signer_id} says two things of {two.about}: {', '.join(two.event_ids)}; "
                f"these do not count: {', '.join(two.fallen)}",
                "ask the signer, who should withdraw what is false",
            )  # fmt: skip
        self._check_keys(subject, bundle, merged, keys)
        return merged

    def _check_keys(self, subject: str, bundle: Bundle, merged: Merged, keys: Keys) -> None:
        """Hold the key documents of a bundle against the keys that are known."""
        stated = {str(value.get("key_id")): value for value in bundle.keys}
        signers = {one.proved.key_id for one in merged.valid if one.signed}
        for key_id in sorted(signers):
            known = keys.find(key_id)
            if known is None or known[1] is Trust.CLAIMED:
                continue
            value = stated.get(key_id)
            other = ["key at all"] if value is None else differing(known[0], value)
            if other:
                self._outcome.find(
                    "key-differs", Severity.WARNING, Part.KEY, subject,
                    f"its bundle does not state the {', '.join(other)} of key {key_id} as known",
                    "look whether the key was renewed or revoked since the bundle was made",
                )  # fmt: skip

    def _count(self, one: MergedEvent, keys: Keys) -> None:
        known = keys.find(one.proved.key_id) if one.signed else None
        if known is None:
            self._outcome.count("foreign_events")
            return
        self._outcome.count("events")
        self._outcome.count("signatures")
        self._outcome.know(one.proved.key_id, key_words(*known))

    def _doubt(self, doubted: Doubted, keys: Keys) -> None:
        """Say that a signature was not checked by a key that is trusted."""
        self._outcome.count("foreign_events")
        if "signature_b64" not in doubted.event:
            return
        if doubted.event.get("event_type") in CLAIMS:
            return  # anybody may say something of a record: that leaves nothing of its proof open
        signer = doubted.event.get("signer")
        key_id = signer.get("key_id") if isinstance(signer, dict) else None
        known = None
        if isinstance(key_id, str):
            known = keys.find(key_id)
            self._outcome.lack(key_id)
        if known is None:
            self._outcome.doubt("events are signed by keys nobody gave: " + KEY_TODO)
        else:
            self._outcome.know(known[0].key_id, key_words(*known))
            self._outcome.doubt("events have keys only the evidence states: " + KEY_TODO)

    def _examined(self, subject: str, bundle: Bundle, merged: Merged, *, sound: bool) -> Examined:
        standing = [one.proved for one in merged.standing]
        anchored = [event for event in standing if event.proof is not None]
        paths = [end for event in anchored for end in ends(event.proof, event.claims)]
        stored = {event.event_id for event in merged.stored}
        for one in merged.standing:
            if one.proved.event_id in stored:
                self._outcome.offer(
                    one.proved.event_id, one.proved.event_type, one.event["payload"]
                )
        self._outcome.count("proofs", len(paths))
        return Examined(
            subject=subject,
            digest=bundle.digest,
            standing=Standing(
                source=_source(bundle),
                added_at=_added_at(bundle),
                anchored="anchored",
                anchored_at=_first(anchored),
                stored="stored" if stored else "not stored",
                stored_at=_first(merged.stored),
                sound=sound,
            ),
            anchors=tuple(end for end in paths if end.claims is not None),
            submitted=any(event.event_type == SUBMITTED for event in standing),
            paths=tuple(paths),
            entries=tuple(_entry(one) for one in merged.valid if one.signed),
            inclusion=bundle.inclusion,
            bundle=bundle,
            merged=merged,
        )


def _why_invalid(doubted: Doubted, bundle: Bundle, keys: Keys) -> str:
    """Return the code of an event that does not hold: what kind of rule it breaks."""
    try:
        read_event(doubted.event, bundle.digest, bundle.number, keys)
    except (RefusedError, VerificationError) as error:
        return code_of(error, "event")
    return _REPEATED


def well_written(raw: bytes, found: Examined) -> bool:
    """Tell whether a bundle is written as anchord writes what it says.

    The order of keys aside: a publisher's own come first, and nothing says which these are.
    """
    bundle = found.bundle
    if bundle is None:
        return False
    added_at = utc(found.standing.added_at or 0)
    try:
        rendered = _fields.decode(render_bundle(_record(bundle), added_at, (), (), (raw,)))
        fields = _fields.decode(raw)
    except (RefusedError, *UNREADABLE):
        return False
    keys = [str(value.get("key_id")) for value in bundle.keys]
    rendered[_KEYS] = fields[_KEYS] = msgspec.Raw()
    return list(fields.items()) == list(rendered.items()) and len(set(keys)) == len(keys)


def _record(bundle: Bundle) -> Record:
    """Return the record a bundle is of.

    Raises:
        RefusedError: its canonical bytes are none of an object.
    """
    if bundle.canonical is None:
        year = None if bundle.number is None else bundle.number.split(":")[1]
        return Record(digest=bundle.digest, scheme=Scheme.SHA256, year=year)
    return read_record(bundle.canonical)


def _first(events: Iterable[EventProved]) -> int | None:
    return min((seconds(event.created_at) for event in events), default=None)


def _entry(one: MergedEvent) -> tuple[bytes, bytes, str]:
    digest = bytes.fromhex(one.proved.event_id.removeprefix("sha256:"))
    return digest, strict_base64(one.event["signature_b64"], "a signature"), one.proved.signer_id


def ends(proof: Proof | None, claims: Claims | None) -> list[Anchor]:
    """Return the ends of a proof's paths to Bitcoin; the block an event names is held to it."""
    return [
        Anchor(
            item.attestation.height or 0,
            item.message,
            claims if claims is not None and claims.height == item.attestation.height else None,
        )
        for item in (proof.bitcoin if proof is not None else ())
    ]


def _source(bundle: Bundle) -> str:
    """Return the kind of a record's source."""
    if bundle.canonical is not None:
        try:
            return msgspec.json.decode(bundle.canonical, type=_Record).source.kind or "none"
        except UNREADABLE:
            return "none"
    return "none"


def _added_at(bundle: Bundle) -> int | None:
    """Return the earliest moment that an alias or an event states."""
    stated = [item.get("created_at") for item in (*bundle.aliases, *bundle.events)]
    # As text they are in the order of time, those that are moments.
    for text in sorted({text for text in stated if isinstance(text, str)}):
        with contextlib.suppress(VerificationError):
            return seconds(text)
    return None
