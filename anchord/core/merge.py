"""The merge `anchord-merge-v1`: from a set of events and a keyring to what stands.

A pure function (docs/protocol.md, Merge). Events are united by content, so the result is the same
in whichever order, batches and repetitions they came: commutative, associative, idempotent. A block
stated here was signed for; whether it is on the best chain only a header tells.

Decided where the rule leaves room:

- Withdrawals take effect before contradictions are looked for. Of two contradicting events the one
  that its signer takes back contradicts nothing any more, and the other stands, as after a reorg.
- A withdrawal is final: taking it back has no effect.
- Of two events under one id, the one whose id recomputes is the event and the other is invalid.
  Where nobody knows how an id comes about, both are kept, and each is judged by itself.
- Who has no key in the keyring can neither advance nor withdraw anything: what he signs is kept
  as unverified, and what he writes without signing counts at most as the registry counts it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from anchord.core.canonical import digest_of
from anchord.core.equivocation import Equivocation, equivocations
from anchord.core.registry_events import CREATED, check_created, why_not_counted
from anchord.core.trust import Keys, Trust
from anchord.core.verify import read_proof
from anchord.core.verify_event import EventProved, ProofReader, read_event, withdrawn
from anchord.errors import DigestMismatchError, RefusedError, VerificationError

MERGE_VERSION = "anchord-merge-v1"
BITCOIN = "bitcoin"
_MAX_NAME = 200


class MergedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A valid event."""

    proved: EventProved
    event: dict[str, Any]
    """As it came, in some spelling."""

    @property
    def signed(self) -> bool:
        """Tell whether its signature was verified; an unsigned one never advances a facet."""
        return self.proved.trust is not None


class Doubted(msgspec.Struct, frozen=True, kw_only=True):
    """An event that does not count, and why."""

    event_id: str
    """As it states it."""
    reason: str
    event: dict[str, Any]


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """What a set of events comes to. Everything is ordered by (created_at, event_id)."""

    valid: tuple[MergedEvent, ...]
    invalid: tuple[Doubted, ...]
    """False: forged, changed, of another record, under a key that did not count."""
    unverified: tuple[Doubted, ...]
    """Neither proved nor refuted: no key of the keyring, or no rule."""
    withdrawn: dict[str, str]
    """Event id -> id of the withdrawal."""
    equivocations: tuple[Equivocation, ...]
    standing: tuple[MergedEvent, ...]
    """Valid and signed, not withdrawn, not contradicted by their own signer."""
    anchored: EventProved | None
    """The `timestamp_anchored` that stands with the earliest block; of Bitcoin before others."""
    stored: tuple[EventProved, ...]
    """Storage events that stand."""

    @property
    def event_count(self) -> int:
        """Return how many different events there are."""
        return len(self.valid) + len(self.invalid) + len(self.unverified)


def merge(
    digest: bytes,
    number: str | None,
    canonical: bytes | None,
    events: Iterable[Mapping[str, Any]],
    keys: Keys,
    proofs: ProofReader = read_proof,
) -> Merged:
    """Return what `events` come to for the record `digest`.

    Args:
        digest: of the record.
        number: its Pith Number, where it has one.
        canonical: its canonical bytes, where they are known.
        events: in any order, as often as they like.
        keys: the keyring; keys that only the evidence states make nothing valid.
        proofs: reads the proofs inside.

    Raises:
        DigestMismatchError: the canonical bytes are not those of the digest.
    """
    if canonical is not None and digest_of(canonical) != digest:
        raise DigestMismatchError(
            f"the canonical bytes are of {digest_of(canonical).hex()}, not of {digest.hex()}"
        )
    verdicts = _judge_all(list(events), lambda event: _judge(event, digest, number, keys, proofs))
    return _reduce(sorted(_one_by_id(verdicts), key=_place))


class _Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one event comes to by itself."""

    text: str = ""
    """All of the event, in one spelling; empty where no other event has its name."""
    event: dict[str, Any]
    proved: EventProved | None = None
    """None: it is invalid."""
    reason: str = ""
    """Why it is not valid."""

    @property
    def signed(self) -> bool:
        """Tell whether its id recomputes by the rule that signed events follow."""
        return self.proved is not None and "signature_b64" in self.event

    def invalid(self, reason: str) -> _Verdict:
        """Return it as it is when another event has its place."""
        return _Verdict(text=self.text, event=self.event, reason=reason)

    def doubted(self) -> Doubted:
        """Return it as an event that does not count."""
        return Doubted(event_id=_name(self.event), reason=self.reason, event=self.event)


def _judge_all(
    events: Sequence[Mapping[str, Any]], judge: Callable[[dict[str, Any]], _Verdict]
) -> list[_Verdict]:
    """Judge every event once.

    Whether an event is valid does not depend on how somebody ordered its keys, but why it is not
    does. So those that are alone under their name are judged as they came, which is quick; what is
    not simply valid is judged in one spelling of all.
    """
    names = Counter(map(_name, events))
    found, doubtful = [], set()
    for event in events:
        verdict = judge(dict(event)) if names[_name(event)] == 1 else None
        if verdict is None or verdict.proved is None or verdict.reason:
            doubtful.add(json.dumps(event, sort_keys=True))
        else:
            found.append(verdict)
    judged = ((judge(json.loads(text)), text) for text in sorted(doubtful))
    return found + [msgspec.structs.replace(verdict, text=text) for verdict, text in judged]


def _judge(
    event: dict[str, Any], digest: bytes, number: str | None, keys: Keys, proofs: ProofReader
) -> _Verdict:
    try:
        proved = read_event(event, digest, number, keys, proofs)
        reason = proved.reason
        if "signature_b64" not in event:
            reason = why_not_counted(event, digest, keys) or ""
        elif event.get("event_type") == CREATED:
            check_created(event, digest, keys)
    except (RefusedError, VerificationError) as error:
        return _Verdict(event=event, reason=str(error))
    if proved.trust is Trust.CLAIMED:
        reason = f"key {proved.key_id:.100} is not in the keyring: only the evidence states it"
    return _Verdict(event=event, proved=proved, reason=reason)


def _one_by_id(verdicts: Iterable[_Verdict]) -> Iterator[_Verdict]:
    """Take the id from whatever stands under that of an event whose id recomputes."""
    verdicts = list(verdicts)
    recomputed = {_name(one.event) for one in verdicts if one.signed}
    seen: set[str] = set()
    for one in verdicts:
        name = _name(one.event)
        if one.proved is not None and name in recomputed and not one.signed:
            yield one.invalid("its id is that of a signed event")
        elif one.signed and not one.reason and name in seen:
            yield one.invalid("the same event, signed a second time")
        else:
            yield one
            if one.signed and not one.reason:
                seen.add(name)


def _reduce(verdicts: Sequence[_Verdict]) -> Merged:
    """Apply withdrawals, then look for contradictions among what is left."""
    valid = [
        MergedEvent(proved=one.proved, event=one.event)
        for one in verdicts
        if one.proved is not None and not one.reason
    ]
    signed = [one for one in valid if one.signed]
    gone = withdrawn([one.proved for one in signed])
    left = [one for one in signed if one.proved.event_id not in gone]
    twice = equivocations(one.proved for one in left)
    contradicted = {name for found in twice for name in found.fallen}
    standing = [one for one in left if one.proved.event_id not in contradicted]
    return Merged(
        valid=tuple(valid),
        invalid=tuple(one.doubted() for one in verdicts if one.proved is None),
        unverified=tuple(one.doubted() for one in verdicts if one.proved and one.reason),
        withdrawn=gone,
        equivocations=twice,
        standing=tuple(standing),
        anchored=_earliest(one.proved for one in standing),
        stored=tuple(one.proved for one in standing if one.proved.stored is not None),
    )


def _earliest(events: Iterable[EventProved]) -> EventProved | None:
    blocks = [
        (event.claims.chain != BITCOIN, event.claims.height, place, event)
        for place, event in enumerate(events)
        if event.claims is not None
    ]
    return min(blocks, default=(None,), key=lambda found: found[:3])[-1]


def _name(event: Mapping[str, Any]) -> str:
    name = event.get("event_id")
    return name[:_MAX_NAME] if isinstance(name, str) else ""


def _place(one: _Verdict) -> tuple[str, str, str]:
    at = one.event.get("created_at")
    return at if isinstance(at, str) else "", _name(one.event), one.text
