"""Ends of paths, held against block headers: each block is asked for once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.attestation import bitcoin
from anchord.core.finding import Part, Severity
from anchord.core.not_before import check_header
from anchord.core.proof import Found
from anchord.core.verify import check_claims, check_depth
from anchord.errors import AttestationError, TransientError

if TYPE_CHECKING:
    from anchord.core.model import Block
    from anchord.core.verify import Claims
    from anchord.engine.audit.bundles import Anchor, Examined
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.header_view import HeaderView

_Verdict = tuple[str, str]
"""`confirmed`, `wrong`, `shallow` or `unknown`, and why."""


class Anchors:
    """Settles which ends a header confirms.

    Args:
        headers: who is asked.
        outcome: where findings and counts go.
    """

    def __init__(self, headers: HeaderView, outcome: Outcome) -> None:
        self._headers, self._outcome = headers, outcome
        self._verdicts: dict[Anchor, _Verdict] = {}
        self._seen: dict[str, set[int]] = {"headers": set(), "headers_missing": set()}

    def settle(self, examined: Examined) -> None:
        """Count where a record stands, now that its blocks can be asked for."""
        verdicts = {end: self._verdict(end) for end in examined.paths}
        wrong = [why for verdict, why in verdicts.values() if verdict == "wrong"]
        for why in dict.fromkeys(wrong):  # an event and the file beside it have one path
            self._outcome.find(
                "header-differs", Severity.BROKEN, Part.HEADER, examined.subject, why,
                "ask another header source; if it agrees, the proof or the event is forged",
            )  # fmt: skip
        standing = examined.standing
        if not any(verdicts[end][0] == "confirmed" for end in examined.anchors):
            waiting = examined.submitted or examined.anchors
            standing = standing._replace(
                anchored="submitted" if waiting else "not anchored", anchored_at=None
            )
        self._outcome.stand(standing._replace(sound=standing.sound and not wrong))

    def confirm(self, end: Anchor, part: Part, subject: str) -> bool:
        """Tell whether a header confirms the end of a path that is no record's."""
        verdict, why = self._verdict(end)
        if verdict == "wrong":
            self._outcome.find(
                "header-differs", Severity.BROKEN, part, subject, why,
                "ask another header source; if it agrees, the proof is forged",
            )  # fmt: skip
        return verdict == "confirmed"

    def _verdict(self, end: Anchor) -> _Verdict:
        known = self._verdicts.get(end)
        if known is None:
            known = self._verdicts[end] = self._ask(end)
            name = {"confirmed": "headers", "wrong": "", "shallow": ""}.get(
                known[0], "headers_missing"
            )
            if name and end.height not in self._seen[name]:
                self._seen[name].add(end.height)
                self._outcome.count(name)
        return known

    def _ask(self, end: Anchor) -> _Verdict:
        if self._headers.none:
            return "unknown", "no header source"
        claims = end.claims
        if claims is not None and claims.chain != self._headers.chain:
            # Headers of this chain say nothing of the other one.
            self._outcome.doubt(f"blocks are of {claims.chain}, and headers of it were not given")
            return "unknown", "another chain"
        try:
            block = self._headers.block(Found(end.message, bitcoin(end.height)))
            if claims is not None:
                check_claims(claims, block)
                self._check_older(claims)
        except TransientError as error:
            return "unknown", str(error)
        except AttestationError as error:
            return "wrong", str(error)
        return self._deep(block)

    def _check_older(self, claims: Claims) -> None:
        """Check that the block an event says it is younger than is one of the chain."""
        older = claims.witnessed.not_before
        if older is not None:
            check_header(older, self._headers.header(older.height))

    def _deep(self, block: Block) -> _Verdict:
        try:
            check_depth(block, self._headers.confirmations)
        except AttestationError as error:
            self._outcome.doubt("blocks have fewer confirmations than are asked for")
            return "shallow", str(error)
        return "confirmed", ""
