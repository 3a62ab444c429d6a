"""Blocks that proofs lead to, each held against the headers once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.verify import check_depth
from anchord.engine.audit.store_frame import Verdict
from anchord.errors import AttestationError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anchord.core.proof import Found
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.header_view import HeaderView


class Blocks:
    """What the headers say of every path; memory grows with blocks, not with records.

    Args:
        headers: the headers of this audit.
        outcome: where confirmed and missing headers are counted.
    """

    def __init__(self, headers: HeaderView, outcome: Outcome) -> None:
        self._headers, self._outcome = headers, outcome
        self.verdicts: dict[tuple[int, bytes], Verdict] = {}

    @property
    def chain(self) -> str | None:
        """Which chain the headers are of; None when there are none."""
        return None if self._headers.none else self._headers.chain

    def look(self, found: Iterable[Found]) -> None:
        """Hold Bitcoin attestations against the headers."""
        for one in found:
            if one.attestation.kind != "bitcoin":
                continue
            key = (one.attestation.height or 0, one.message)
            if key not in self.verdicts:
                self.verdicts[key] = self._judge(one)

    def _judge(self, found: Found) -> Verdict:
        height = found.attestation.height
        if self._headers.none:
            self._outcome.count("headers_missing")
            return Verdict("missing", detail="no header source: give headers, or a node")
        try:
            block = self._headers.block(found)
        except TransientError as error:
            self._outcome.count("headers_missing")
            return Verdict("missing", detail=f"block {height}: {error}")
        except AttestationError as error:
            return Verdict("false", detail=str(error))
        self._outcome.count("headers")
        try:
            check_depth(block, self._headers.confirmations)
        except AttestationError as error:
            return Verdict("shallow", block.hash, block.time, str(error))
        return Verdict("confirmed", block.hash, block.time)
