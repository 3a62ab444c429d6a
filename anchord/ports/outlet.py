"""What receipts are handed over to, and how far each of these is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from anchord.core.model import StoredRecord

Wants = Literal["event", "bundle"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the ledger on its way to one outlet."""

    seq: int
    """Row of the ledger."""
    record: StoredRecord
    number: str | None
    """The record's Pith Number, if it has one."""
    event_id: str
    """`sha256:` and hex: the idempotency key, whoever receives it."""
    event_type: str
    facet: str
    """The facet it is about, `anchored` or `stored`; of a withdrawal, the one it takes back."""
    created_at: int
    document: bytes
    """What the outlet wants: the whole signed event, or the record's bundle of now."""


class Closed(msgspec.Struct, frozen=True):
    """The other side wants nothing any more, until a person says otherwise. A value, no error."""

    words: str


class Partly(msgspec.Struct, frozen=True):
    """The time of a call was over on the way; the rest is offered again."""

    refused: Mapping[int, str]
    """As of a whole call; all others before `rest` were taken."""
    rest: int
    """The first delivery that was not tried, by `seq`, and none behind it was: never the first."""


CALL_S = 10.0
"""About how long one call lasts at most: others wait meanwhile."""


class Outlet(Protocol):
    """Where receipts go. The caller retries, keeps the order, and keeps the time of the next try.

    Every delivery comes at least once, and again after a crash or a lost answer: the outlet, or who
    reads it, must bear the same event twice. A call never holds two events of one record. Events
    of one record come in ledger order; one that was refused holds up those behind it.
    """

    @property
    def name(self) -> str:
        """Its name in the configuration and the store."""
        ...

    @property
    def kind(self) -> str:
        """What it is, for people."""
        ...

    @property
    def wants(self) -> Wants:
        """Which document a delivery must have."""
        ...

    @property
    def events(self) -> Collection[str]:
        """The event types it takes; others are passed over. Empty: all."""
        ...

    @property
    def from_now(self) -> bool:
        """An outlet that is new begins with the next event, not with the first of the ledger."""
        ...

    @property
    def at_once(self) -> int:
        """Most deliveries in one call."""
        ...

    def hand_over(self, deliveries: Sequence[Delivery]) -> Mapping[int, str] | Partly | Closed:
        """Hand over all of them, durably; return those refused by themselves, by `seq`, with words.

        They are tried in their order; when that takes longer than `CALL_S`, the rest is left.

        Raises:
            TransientError: the outlet cannot take anything now; some of it may have arrived.
            ProtocolError: it answers what makes no sense.
            ConfigError: a person must act.
        """
        ...

    def close(self) -> None:
        """Release what was opened; may be called twice."""
        ...


class OutletState(msgspec.Struct, frozen=True, kw_only=True):
    """How far one outlet is. Moments are Unix seconds."""

    name: str
    kind: str
    seq: int
    """Every event up to here was handed over, passed over, or set aside."""
    next_attempt_at: int | None
    """Nothing is tried before this; None: it is stopped until a person says otherwise."""
    last_ok_at: int | None
    last_error_at: int | None
    last_error: str | None
    failures: int
    """In a row."""
    delivered: int
    """Events handed over, for ever."""


class SetAside(msgspec.Struct, frozen=True, kw_only=True):
    """An event that an outlet refused, or that waits behind one of its record that was refused."""

    seq: int
    record_id: int
    state: str
    """`waiting`, or `parked`: a person must act."""
    attempts: int
    next_attempt_at: int | None
    """None: parked, or an earlier event of the record comes first."""
    last_error: str | None


WAITING, PARKED = "waiting", "parked"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction writes down about an outlet."""

    before: int
    """Where it was: if it is not there any more, nothing is written."""
    seq: int
    """Where it is now."""
    delivered: int = 0
    done: Sequence[tuple[int, int]] = ()
    """Events (row, record) that were set aside and are handed over now."""
    aside: Sequence[SetAside] = ()
    """Events that were refused, new and again."""
    behind: Sequence[tuple[int, int]] = ()
    """Events (row, record) that wait behind one that was set aside."""


class OutletTable(Protocol):
    """How far outlets are, and what was set aside."""

    def get(self, name: str) -> OutletState | None:
        """Return where an outlet is; None before its first turn."""
        ...

    def all(self) -> list[OutletState]:
        """Return all outlets there ever were, by name."""
        ...

    def begin(self, name: str, kind: str, seq: int, now: int) -> OutletState:
        """Write down a new outlet; one that is there stays as it is."""
        ...

    def due(self, name: str, now: int, limit: int) -> list[SetAside]:
        """Return events that were set aside and whose time has come, at most one a record."""
        ...

    def held(self, name: str, record_ids: Sequence[int]) -> set[int]:
        """Return which of these records have events set aside."""
        ...

    def advance(self, name: str, progress: Progress, now: int) -> None:
        """Write down what was handed over; StoreBusyError when somebody else moved the outlet."""
        ...

    def fail(self, name: str, now: int, at: int | None, words: str) -> None:
        """Write down that nothing could be handed over; `at` None: stopped."""
        ...

    def next_moment(self, name: str) -> int | None:
        """Return when the next event that was set aside is due."""
        ...

    def rows(self, name: str, state: str, limit: int) -> list[SetAside]:
        """Return events that were set aside, oldest first."""
        ...

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many events are set aside, by outlet and state."""
        ...

    def revive(self, name: str, now: int) -> int:
        """Let parked events be tried now, and the outlet go on; return how many events."""
        ...
