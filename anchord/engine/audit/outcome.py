"""What one part of an audit found, in a form that processes can send and that adds up."""

from __future__ import annotations

import heapq
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from anchord.core.audit import AuditOptions, AuditReport, Coverage
from anchord.core.finding import Finding, Findings, Part, Severity
from anchord.core.standing import Standing, Tally, TallyParts

if TYPE_CHECKING:
    from collections.abc import Mapping


_NAMED = 5
"""Most keys that are named; a stranger's bundle can make up as many names as it likes."""


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says of an audit beside what the outcome holds; fields as `report` takes them.

    `outcome.report(**msgspec.structs.asdict(facts))` makes the report.
    """

    source: str
    """What was audited, in words."""
    kind: str
    """`store`, `tree` or `bundles`."""
    sampled: str | None = None
    """What was left out, in words; None: nothing."""
    checkpoint: str | None = None
    """Newest checkpoint that was checked, as a signed note."""
    chain: str | None = None
    """Which block chain the headers are of; None when none was asked for."""


class Drawn(NamedTuple):
    """A storage event whose copy is to be fetched again."""

    rank: int
    event_id: str
    event_type: str
    payload: Mapping[str, Any]


class OutcomeParts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an outcome holds, as values that can be written down."""

    findings: tuple[Finding, ...]
    counts_of_findings: tuple[tuple[Severity, str, int], ...]
    tally: TallyParts
    counts: dict[str, int]
    keys: dict[str, str]
    claims: tuple[tuple[str, str, dict[str, Any]], ...]
    """(event id, event type, payload) of each copy that was drawn."""
    doubts: dict[str, int]
    lacking: tuple[str, ...]


class Outcome:
    """Findings, tallies and counts of one audit, or of one chunk of it.

    Args:
        options: what was asked; chunks of one audit have the same.
    """

    def __init__(self, options: AuditOptions) -> None:
        self._options = options
        self._findings = Findings()
        self._tally = Tally(options.now)
        self._counts: Counter[str] = Counter()
        self._keys: dict[str, str] = {}
        self._claims: list[Drawn] = []
        self._doubts: Counter[str] = Counter()
        self._lacking: set[str] = set()

    def find(
        self, code: str, severity: Severity, part: Part, subject: str, what: str, todo: str
    ) -> None:
        """Note one thing that is wrong, or worth knowing."""
        self._findings.add(
            Finding(code=code, severity=severity, part=part, subject=subject, what=what, todo=todo)
        )

    def count(self, name: str, count: int = 1) -> None:
        """Add to one number of `Coverage`."""
        self._counts[name] += count

    def counted(self, name: str) -> int:
        """Return one number of `Coverage` so far."""
        return self._counts[name]

    def stand(self, standing: Standing, count: int = 1) -> None:
        """Count records that stand alike."""
        self._tally.add(standing, count)

    def know(self, key_id: str, words: str) -> None:
        """Note whose signatures were checked, by which trust."""
        self._keys[key_id] = words

    def doubt(self, why: str, count: int = 1) -> None:
        """Note something that ought to be checked and could not be: the result is not `sound`.

        Args:
            why: in words that stand after a number: `events are signed by a key nobody gave`.
            count: how many things it is about.
        """
        self._doubts[why] += count

    def lack(self, key_id: str) -> None:
        """Note a key that would have been needed; the first few are named, by their names."""
        self._lacking.add(key_id[:100])
        if len(self._lacking) > _NAMED + 1:
            self._lacking.remove(max(self._lacking))

    def offer(self, event_id: str, event_type: str, payload: Mapping[str, Any]) -> None:
        """Offer a stored copy to be fetched again; the same few are drawn whatever the order."""
        if self._options.online:
            drawn = sha256(f"{self._options.seed} {event_id}".encode()).digest()
            # The smallest hashes win; a heap keeps its smallest at hand, so they are negative.
            self._push(Drawn(-int.from_bytes(drawn, "big"), event_id, event_type, payload))

    def _push(self, entry: Drawn) -> None:
        if any(known.event_id == entry.event_id for known in self._claims):
            return
        if len(self._claims) < (self._options.online or 0):
            heapq.heappush(self._claims, entry)
        elif entry[:2] > self._claims[0][:2]:
            heapq.heapreplace(self._claims, entry)

    def merge(self, other: Outcome) -> None:
        """Take in another chunk."""
        self._findings.merge(other._findings.sorted(), other._findings.counts.copy())
        self._tally.merge(other._tally)
        self._counts.update(other._counts)
        self._keys.update(other._keys)
        self._doubts.update(other._doubts)
        for key_id in other._lacking:
            self.lack(key_id)
        for entry in other._claims:
            self._push(entry)

    def parts(self) -> OutcomeParts:
        """Return what was found so far, to be written down."""
        counts = self._findings.counts.items()
        return OutcomeParts(
            findings=tuple(self._findings.sorted()),
            counts_of_findings=tuple((severity, code, count) for (severity, code), count in counts),
            tally=self._tally.parts(),
            counts=dict(self._counts),
            keys=dict(self._keys),
            claims=tuple((one.event_id, one.event_type, dict(one.payload)) for one in self.drawn),
            doubts=dict(self._doubts),
            lacking=tuple(sorted(self._lacking)),
        )

    @classmethod
    def of(cls, options: AuditOptions, parts: OutcomeParts) -> Outcome:
        """Return the outcome that `parts` were taken from; `options` as they were given there."""
        outcome = cls(options)
        counts = {(severity, code): count for severity, code, count in parts.counts_of_findings}
        outcome._findings.merge(parts.findings, Counter(counts))
        outcome._tally = Tally.of(options.now, parts.tally)
        outcome._counts.update(parts.counts)
        outcome._keys.update(parts.keys)
        outcome._doubts.update(parts.doubts)
        for key_id in parts.lacking:
            outcome.lack(key_id)
        for claim in parts.claims:
            outcome.offer(*claim)
        return outcome

    @property
    def broken(self) -> int:
        """How many findings say that evidence does not hold."""
        return self._findings.count(Severity.BROKEN)

    @property
    def drawn(self) -> list[Drawn]:
        """Copies to fetch again, in a stable order."""
        return sorted(self._claims, key=lambda entry: entry[:2], reverse=True)

    def report(
        self,
        *,
        source: str,
        kind: str,
        sampled: str | None,
        checkpoint: str | None,
        chain: str | None,
    ) -> AuditReport:
        """Judge what was found."""
        completeness = self._tally.result()
        coverage = msgspec.convert(dict(self._counts), Coverage)
        reasons = tuple(self._reasons(coverage, kind))
        broken = self._findings.count(Severity.BROKEN)
        return AuditReport(
            source=source,
            kind=kind,
            created_at=self._options.now,
            result="broken" if broken else ("not proved" if reasons else "sound"),
            reasons=reasons,
            sampled=sampled,
            keys=tuple(f"{key_id}: {words}" for key_id, words in sorted(self._keys.items())),
            checkpoint=checkpoint,
            chain=chain,
            completeness=completeness,
            coverage=coverage,
            findings=tuple(self._findings.sorted()),
            counts=_by_code(self._findings.counts),
        )

    def _reasons(self, coverage: Coverage, kind: str) -> list[str]:
        reasons = []
        if broken := self.broken:
            say = "finding says" if broken == 1 else "findings say"
            reasons.append(f"{broken:,} {say} that evidence does not hold")
        if missing := coverage.headers_missing:
            blocks = "block" if missing == 1 else "blocks"
            reasons.append(f"{missing:,} {blocks} could not be checked: no header")
        if coverage.foreign_events and not coverage.events:
            reasons.append("no event could be checked: give the signer's key with --key")
        elif kind != "store" and coverage.records_counted and not coverage.signatures:
            # A store without events is new; of what others give away, nobody vouches for it.
            reasons.append("nothing here is signed by a key that is trusted, so nothing was proved")
        reasons += [f"{count:,} {why}" for why, count in sorted(self._doubts.items())]
        # What others say in a store of ours may be left open, unless there is nothing else.
        if self._lacking and (kind != "store" or not coverage.events):
            reasons.append(f"not given: {_named(self._lacking)}")
        if not coverage.records_counted:
            reasons.append("there is nothing to audit")
        return reasons


def _named(key_ids: set[str]) -> str:
    names = sorted(key_ids)
    more = " and others" if len(names) > _NAMED else ""
    return ("key " if len(names) == 1 else "keys ") + ", ".join(names[:_NAMED]) + more


def _by_code(counts: Mapping[tuple[Severity, str], int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (_, code), count in counts.items():
        found[code] += count
    return dict(sorted(found.items()))
