"""What an audit finds: what is wrong with which thing, how bad it is, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How bad a finding is."""

    BROKEN = "broken"
    """Evidence does not hold: it was changed, dropped, forged, or belongs to something else."""
    WARNING = "warning"
    """Nothing is false, and a person should look: overdue, parked, not checkable any more."""
    NOTE = "note"
    """Worth knowing: what was not covered, and why."""


class Part(StrEnum):
    """Which kind of thing a finding is about."""

    RECORD = "record"
    EVENT = "event"
    BUNDLE = "bundle"
    STATE = "state"
    PROOF = "proof"
    HEADER = "header"
    LEDGER = "ledger"
    CHECKPOINT = "checkpoint"
    TILE = "tile"
    KEY = "key"
    MANIFEST = "manifest"
    INDEX = "index"
    BATCH = "batch"
    CAPTURE = "capture"
    ITEM = "item"
    STORE = "store"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing an audit found."""

    code: str
    """Stable name of the kind, in kebab-case: `signature-wrong`, `event-missing`, ..."""
    severity: Severity
    part: Part
    subject: str
    """Which one: Pith Number, record id, event id, file name, `row 12`, `checkpoint 400`."""
    what: str
    """What was expected, and what was found."""
    todo: str
    """What a person should do."""


KEPT = 1_000
"""Findings kept whole by kind: a store that was replaced would otherwise fill the memory."""


class Findings:
    """Findings as they come; all are counted, the first of each kind are kept."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self.counts: Counter[tuple[Severity, str]] = Counter()

    def add(self, finding: Finding) -> None:
        """Take in one finding."""
        kind = (finding.severity, finding.code)
        self.counts[kind] += 1
        if self.counts[kind] <= KEPT:
            self._kept.append(finding)

    def merge(self, kept: Iterable[Finding], counts: Counter[tuple[Severity, str]]) -> None:
        """Take in what another process found."""
        for finding in kept:
            self.add(finding)
            counts[(finding.severity, finding.code)] -= 1
        self.counts += counts

    def sorted(self) -> list[Finding]:
        """Return what was kept: the worst first, then as they came."""
        order = list(Severity)
        return sorted(self._kept, key=lambda finding: order.index(finding.severity))

    def count(self, severity: Severity) -> int:
        """Return how many there are of one severity, kept or not."""
        return sum(count for (found, _), count in self.counts.items() if found is severity)
