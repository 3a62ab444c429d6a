"""What every process that audits a part of a store is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from anchord.core.audit import AuditOptions
from anchord.core.finding import Part, Severity
from anchord.core.keyring import Keyring, PublicKey
from anchord.core.not_before import NotBefore
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from anchord.core.verify import Claims
    from anchord.engine.audit.outcome import Outcome

RESTORE = "restore the store from a backup, and find out what changed it"
LOOK = "look whether the calendars and the chain were what they seemed; audit again later"


class Verdict(NamedTuple):
    """What the headers say about one path to a block."""

    state: str
    """`confirmed`, `shallow` (too few confirmations), `missing` (no header) or `false`."""
    hash: bytes = b""
    """32 bytes in display order; empty unless confirmed or shallow."""
    time: int = 0
    detail: str = ""


Older = tuple[str, NotBefore]
"""A chain, and a block of it that an event says it is younger than."""


class Job(NamedTuple):
    """A stretch of records, and the tiles they are leaves of."""

    low: int
    high: int
    tiles: tuple[tuple[int, int], ...]
    verified: bool = True
    """False: its records are only counted, by their rows."""


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all parts; it goes to other processes."""

    options: AuditOptions
    keyring: Keyring
    given: tuple[PublicKey, ...]
    verdicts: dict[tuple[int, bytes], Verdict]
    """By height and message of each Bitcoin attestation that was seen."""
    replaced: dict[Older, str]
    """Blocks that events say they are younger than, and that are none of the chain."""
    chain: str | None
    upto: int = 0
    """Events up to this one were covered by the checkpoint an auditor kept; 0: none."""
    drawn: frozenset[int] | None = None
    """Records to verify; None: all."""

    def replaced_by(self, claims: Claims | None) -> str | None:
        """Return what is wrong with the block that an event says it is younger than."""
        older = None if claims is None else claims.witnessed.not_before
        if claims is None or older is None:
            return None
        return self.replaced.get((claims.chain, older))


UNREADABLE = (AnchordError, TypeError, ValueError, AttributeError, LookupError)
"""What reading damaged rows comes to: SQLite puts any type into any column."""


def unreadable(outcome: Outcome, subject: str, error: Exception) -> None:
    """Note rows that cannot even be read."""
    what = str(error)
    if not isinstance(error, AnchordError):
        what = f"a column holds what none can: {what:.200}"
    outcome.find("store-damaged", Severity.BROKEN, Part.STORE, subject, what, RESTORE)
