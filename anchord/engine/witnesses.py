"""What the header sources of one pass say about an attested height.

Every source that can be reached must agree. One that is away is left out and named; one that could
not catch up still speaks about the blocks it has, and says nothing about those it has not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.core.chain import MAX_FUTURE_S
from anchord.core.header import HEADER_SIZE, block_hash, parse_header
from anchord.core.model import Block
from anchord.core.moment import utc
from anchord.errors import ProtocolError, TransientError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from anchord.ports import HeaderSource, Tip

NO_CLOCK = 1 << 32
"""Later than any header can be."""


class Void(msgspec.Struct, frozen=True):
    """All sources agree on a buried header at that height, and it carries something else."""

    reason: str


class Later(msgspec.Struct, frozen=True):
    """Nothing can be said now: too short a chain, no source, or sources at odds."""

    reason: str
    blocks: int = 0
    """How many blocks are missing before anything can be said, where that is the reason."""


class _Said(msgspec.Struct, frozen=True):
    """One source's word on one height."""

    raw: bytes
    tip: int
    stale: bool


class Witnesses:
    """The header sources of one pass; their tips are asked once.

    Args:
        sources: all that are configured; every one that answers must agree.
        burial: confirmations after which a header that does not match is final.
        stale: names of sources that could not catch up: their newest blocks may be old ones.
        now: our clock. A block from its future says that the clock is wrong, and an event dated
            by it would be refused by whoever checks it.
    """

    def __init__(
        self,
        sources: Sequence[HeaderSource],
        burial: int,
        stale: Collection[str] = (),
        now: int = NO_CLOCK,
    ) -> None:
        self._sources = sources
        self._burial = burial
        self._stale = frozenset(stale)
        self._latest = now + MAX_FUTURE_S
        self._tips: dict[str, Tip | str] | None = None
        self._headers: dict[tuple[str, int], bytes] = {}

    def problems(self) -> dict[str, str]:
        """Return what the sources that cannot answer said, by name."""
        return {name: tip for name, tip in self._ask_tips().items() if isinstance(tip, str)}

    def examine(self, height: int, message: bytes) -> Block | Void | Later:
        """Compare an attested message with the header at `height`.

        Only the header's Merkle root can confirm: 32 bytes, compared whole.
        """
        said: dict[str, _Said] = {}
        behind: Later | None = None
        for source in self._sources:
            answer = self._ask(source, height)
            if isinstance(answer, _Said):
                said[source.name] = answer
            elif isinstance(answer, Later):
                behind = answer
                if source.name not in self._stale:
                    return answer
        if not said:
            return behind or Later(
                "; ".join(f"{name}: {why}" for name, why in self.problems().items()) or "no source"
            )
        return self._judge(height, message, said)

    def _ask(self, source: HeaderSource, height: int) -> _Said | Later | None:
        """Return one source's word; None when it is away, now or for the rest of the pass."""
        tips = self._ask_tips()
        tip = tips[source.name]
        if isinstance(tip, str):
            return None
        if tip.height < height:
            missing = height - tip.height
            return Later(f"{source.name} is at block {tip.height}, waiting for {height}", missing)
        try:
            raw = self._header(source, height)
        except TransientError as error:
            tips[source.name] = str(error)
            return None
        except ProtocolError as error:
            return Later(f"{source.name}: {error}")
        if raw is None:
            return Later(f"{source.name} has no block {height} now")
        return _Said(raw, tip.height, source.name in self._stale)

    def _header(self, source: HeaderSource, height: int) -> bytes | None:
        """Ask each source once per height: thousands of proofs may meet in one block."""
        key = (source.name, height)
        if key not in self._headers:
            raw = source.header(height)
            if raw is None:
                return None
            if len(raw) != HEADER_SIZE:
                raise ProtocolError(f"expected a header of {HEADER_SIZE} bytes, got {len(raw)}")
            self._headers[key] = raw
        return self._headers[key]

    def _judge(self, height: int, message: bytes, said: dict[str, _Said]) -> Block | Void | Later:
        if len({answer.raw for answer in said.values()}) > 1:
            return Later(f"sources disagree about block {height}: {', '.join(said)}")
        raw = next(iter(said.values())).raw
        header = parse_header(raw)
        fresh = [answer.tip for answer in said.values() if not answer.stale]
        confirmations = min(fresh or [answer.tip for answer in said.values()]) - height + 1
        if header.time > self._latest:
            return Later(f"block {height} is of {utc(header.time)}, later than our clock: set it")
        if header.merkle_root == message:
            return Block(
                height=height,
                hash=block_hash(raw)[::-1],
                merkle_root=header.merkle_root[::-1],
                time=header.time,
                confirmations=confirmations,
                checked_with=tuple(said),
            )
        if confirmations < self._burial:
            return Later(f"block {height} does not carry it; only {confirmations} confirmations")
        return Void(f"block {height} ({block_hash(raw)[::-1].hex()}) does not carry this path")

    def _ask_tips(self) -> dict[str, Tip | str]:
        if self._tips is None:
            self._tips = {}
            for source in self._sources:
                try:
                    self._tips[source.name] = source.tip()
                except (TransientError, ProtocolError) as error:
                    self._tips[source.name] = str(error)
        return self._tips
