"""Blocks that proofs lead to, and blocks they name as older: each held against the headers once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.not_before import NotBefore, check_header
from anchord.core.verify import check_depth
from anchord.core.witnessed import StatedBlock
from anchord.engine.audit.store_frame import Older, Verdict
from anchord.errors import AttestationError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from anchord.core.proof import Found
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.header_view import HeaderView

_UNSEEN = "blocks that events say they are younger than could not be checked: no header of them"


class Blocks:
    """What the headers say of every path; memory grows with blocks, not with records.

    Args:
        headers: the headers of this audit.
        outcome: where confirmed and missing headers are counted.
    """

    def __init__(self, headers: HeaderView, outcome: Outcome) -> None:
        self._headers, self._outcome = headers, outcome
        self.verdicts: dict[tuple[int, bytes], Verdict] = {}
        self.replaced: dict[Older, str] = {}
        """Blocks named as older that are none of the chain, each with what stands there."""
        self._older: set[Older] = set()

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

    def look_older(self, stated: Iterable[Older]) -> None:
        """Hold blocks that events say they are younger than against the headers."""
        for one in stated:
            if one not in self._older:
                self._older.add(one)
                self._judge_older(*one)

    def _judge_older(self, chain: str, block: NotBefore) -> None:
        if self._headers.none or chain != self._headers.chain:
            self._outcome.doubt(_UNSEEN)
            return
        try:
            check_header(block, self._headers.header(block.height))
        except TransientError:
            self._outcome.doubt(_UNSEEN)
        except AttestationError as error:
            self.replaced[chain, block] = str(error)


def older_of(payload: Mapping[str, Any]) -> Iterator[Older]:
    """Yield the block that a payload says its timestamp is younger than, if it is one."""
    chain, stated = payload.get("chain"), payload.get("not_before")
    if stated is None or not isinstance(chain, str):
        return
    try:
        block = msgspec.convert(stated, StatedBlock)
    except msgspec.ValidationError:
        return  # `core.verify_event` refuses the event
    yield chain, NotBefore(height=block.block_height, hash=block.block_hash)
