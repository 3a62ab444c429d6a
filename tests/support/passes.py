"""Records to put into stores, and passes over them with the judge looking on."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from anchord.core.model import Adoption, Record, Scheme
from anchord.engine.parts import Parts
from anchord.engine.run import PassReport, run_pass
from support.check_ledger import check_ledger
from support.parties import FakeChain, FakeClock


def bare(count: int, name: str = "record") -> list[Record]:
    """Return records that are digests only."""
    return [
        Record(digest=hashlib.sha256(f"{name} {n}".encode()).digest(), scheme=Scheme.SHA256)
        for n in range(count)
    ]


def numbered(count: int, year: str = "2026") -> list[Record]:
    """Return records with canonical bytes and a Pith Number."""
    texts = [
        json.dumps({"n": n, "year": year}, sort_keys=True, separators=(",", ":")).encode()
        for n in range(count)
    ]
    return [
        Record(
            digest=hashlib.sha256(text).digest(),
            scheme=Scheme.PITH_JSON_V1,
            canonical=text,
            year=year,
        )
        for text in texts
    ]


def adoption(ots: bytes, digest: bytes) -> Adoption:
    """Return an existing `.ots` as it comes in."""
    return Adoption(record=Record(digest=digest, scheme=Scheme.SHA256), ots=ots)


class Passes:
    """Runs passes over a store; after each one the ledger is judged.

    Args:
        parts: what the passes work with.
        chain: where live anchored events must hold after a pass.
    """

    def __init__(self, parts: Parts, chain: FakeChain | None = None, **judge: Any) -> None:
        self.parts = parts
        self.clock = FakeClock()
        self.chain = chain
        self._judge = judge

    def __call__(self, advance_s: int = 0, times: int = 1) -> PassReport:
        """Pass, `advance_s` later each time; return the last report."""
        for _ in range(times):
            report = run_pass(self.parts, self.clock.advance(advance_s))
            self.judge()
        return report

    def judge(self) -> list[dict[str, Any]]:
        """Judge now."""
        return check_ledger(self.parts.store, self.chain, **self._judge)  # type: ignore[arg-type]

    def add(self, items: list[Any]) -> None:
        """Take records in now."""
        self.parts.store.add(items, self.clock.now())  # type: ignore[attr-defined]

    def types(self, record_id: int) -> list[str]:
        """Return the types of a record's events, in ledger order."""
        store = self.parts.store
        return [
            store.ledger.get_series(row.series_id).event_type
            for row in store.ledger.of_record(record_id)
        ]
