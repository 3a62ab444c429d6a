"""What the engine asks of a time-stamping authority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from anchord.core.tsa import Token


class TimestampAuthority(Protocol):
    """Signs that it saw 32 bytes at a time (RFC 3161). Threads may share it."""

    @property
    def url(self) -> str:
        """Where requests go, as configured; tokens are kept under it."""
        ...

    def stamp(self, digest: bytes) -> Token:
        """Return a token over a SHA-256, verified down to a configured root.

        Raises:
            TransientError: unreachable, slow, overloaded: ask again later.
            ProtocolError: what came is no token over these bytes, or not one of a known root.
            RefusedError: it gives none, with its own words.
        """
        ...
