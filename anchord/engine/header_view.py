"""The block headers one verification sees, and where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anchord.core.model import Block
from anchord.core.verify import confirm
from anchord.errors import ProtocolError, TransientError

if TYPE_CHECKING:
    from anchord.core.proof import Found
    from anchord.ports import HeaderSource


class HeaderView:
    """The header sources that are asked; each is asked once for its tip and once per height.

    Args:
        sources: all that answer must agree; one that cannot answer is left out and named.
        chain: the chain they are of, as events call it.
        confirmations: how many blocks are asked for, the attested one included.
    """

    def __init__(
        self, sources: Sequence[HeaderSource], chain: str | None, confirmations: int
    ) -> None:
        self._sources = sources
        self.chain = chain
        self.confirmations = confirmations
        self._tips: dict[str, int | str] = {}
        self._seen: dict[int, tuple[dict[str, bytes], int]] = {}

    @property
    def none(self) -> bool:
        """Whether there is nobody to ask."""
        return not self._sources

    def block(self, found: Found) -> Block:
        """Return the block that confirms a Bitcoin attestation.

        Raises:
            AttestationError: the header there carries something else.
            TransientError: no source could answer, or they disagree.
        """
        headers, tip = self._headers(found.attestation.height or 0)
        if len(set(headers.values())) > 1:
            raise TransientError(
                f"{' and '.join(headers)} disagree about block {found.attestation.height}: "
                "ask another witness"
            )
        return confirm(found, headers, tip)

    def header(self, height: int) -> bytes:
        """Return the header at a height.

        Raises:
            TransientError: no source could answer, or they disagree.
        """
        headers, _ = self._headers(height)
        if len(set(headers.values())) > 1:
            raise TransientError(f"{' and '.join(headers)} disagree about block {height}")
        return next(iter(headers.values()))

    def _headers(self, height: int) -> tuple[dict[str, bytes], int]:
        if height in self._seen:
            return self._seen[height]
        headers: dict[str, bytes] = {}
        tips, problems = [], []
        for source in self._sources:
            tip = self._tip(source)
            if isinstance(tip, str):
                problems.append(f"{source.name}: {tip}")
                continue
            try:
                raw = source.header(height) if tip >= height else None
            except (TransientError, ProtocolError) as error:
                problems.append(f"{source.name}: {error}")
                continue
            if raw is None:
                problems.append(f"{source.name} end at block {tip}, asked for {height}")
                continue
            headers[source.name] = raw
            tips.append(tip)
        if not headers:
            raise TransientError("; ".join(problems))
        self._seen[height] = (headers, min(tips))
        return self._seen[height]

    def _tip(self, source: HeaderSource) -> int | str:
        if source.name not in self._tips:
            try:
                self._tips[source.name] = source.tip().height
            except (TransientError, ProtocolError) as error:
                self._tips[source.name] = str(error)
        return self._tips[source.name]
