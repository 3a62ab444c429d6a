"""Where records come from by themselves, and how far each of these sources was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.core.model import Incoming


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what a source has."""

    items: Sequence[Incoming] = ()
    """At most some thousands, and some megabytes."""
    cursor: bytes | None = None
    """Where to go on once `items` are durable; None: no place to stop, go on from where it was."""
    new: int = 0
    """Records that the source itself has put into the store, and that it did not have."""
    pause: bool = False
    """A good place to let other work go first; there is more."""


class Source(Protocol):
    """A place that is looked at again and again. One thread looks.

    Raises (`look`):
        TransientError: it cannot be reached now; `retry_after` where it was said.
        ProtocolError: it answered nonsense.
        ConfigError: a person must act: address, query, password, permissions.
    """

    @property
    def name(self) -> str:
        """What it is called in the configuration and in the store."""
        ...

    @property
    def kind(self) -> str:
        """One of "sql", "pith", "folder"."""
        ...

    @property
    def every_s(self) -> int:
        """Seconds from one look to the next."""
        ...

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        """Yield what is new since `cursor`, streaming: memory does not grow with the source.

        When the next step is asked for, the one before is durable, its cursor too. What is bad is
        yielded as a `Rejection`, it never ends the look. Yielding what is known does no harm, so a
        look that is begun again from any cursor it gave loses nothing and doubles nothing.

        Args:
            cursor: of an earlier step of this source; None: from the beginning. One that is not
                understood, because the source was configured anew, counts as None.
            now: Unix seconds.
        """
        ...

    def place(self, cursor: bytes | None) -> str:
        """Return what a cursor means, in words for people; opens nothing."""
        ...


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One source as the store has it."""

    name: str
    kind: str
    cursor: bytes | None = None
    next_at: int | None = None
    """When it is looked at next; None: at once."""
    looked_at: int | None = None
    last_ok_at: int | None = None
    last_error_at: int | None = None
    last_error: str | None = None
    failures: int = 0
    """Looks that failed since the last one that went well."""
    taken: int = 0
    """New records, for ever."""
    refused: int = 0
    """Refusals, for ever."""


class SourceTable(Protocol):
    """How far each source was read."""

    def get(self, name: str) -> SourceRow | None:
        """Return one source; None: it was never looked at."""
        ...

    def all(self) -> list[SourceRow]:
        """Return all that were ever looked at, by name."""
        ...

    def begin(self, name: str, kind: str, now: int) -> SourceRow:
        """Write down that a look begins; a source of another kind begins anew."""
        ...

    def advance(self, before: SourceRow, cursor: bytes | None, taken: int, refused: int) -> bool:
        """Add to the counts and move the cursor; False: it is not where `before` has it."""
        ...

    def ended(self, name: str, now: int, next_at: int) -> None:
        """Write down that a look went well."""
        ...

    def failed(self, name: str, now: int, next_at: int, error: str) -> None:
        """Write down why a look did not."""
        ...

    def forget(self, name: str) -> None:
        """Let a source be read from the beginning, at once; its counts stay."""
        ...
