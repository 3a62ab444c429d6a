"""When which stage has something to do: the one answer, for the daemon's passes and for workers.

A stage that is not due would change nothing if it were run, with these exceptions, which only a
person or a clock that was set brings about: calendars that were configured otherwise meanwhile
(`seal` frees records whose calendars nobody configures any more, `submit` lets intents follow), and
moments that lie years ahead because a clock that did wrote them (every stage brings them forward).
Whoever asks here runs every stage once at its start and after a reload, and then every
`AT_LEAST_EVERY_S`. So such a thing may wait for an hour, and nothing else: each is a call that is
made later, none is an event that is signed twice or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from anchord.engine import delivering, receiving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anchord.engine.parts import Parts

AT_LEAST_EVERY_S = 3_600.0
"""Every stage is run this often whatever seems due: what a mistake here could cost is bounded."""


class Waits(Protocol):
    """What the store knows of work that waits; `Counts` of the SQL store."""

    def moments(self) -> Mapping[str, int | None]:
        """Return when the stages that ask somebody have the next thing to ask."""
        ...

    def any_waiting(self) -> bool:
        """Tell whether a record waits for a batch."""
        ...

    def any_unsettled(self, min_answers: int) -> bool:
        """Tell whether a batch has its answers and is not submitted yet."""
        ...


def moments(parts: Parts, waits: Waits, now: int) -> dict[str, int | None]:
    """Return when each stage is due, by its name and in the order of a pass; None: it is not.

    Args:
        parts: what a pass works with.
        waits: of the same store.
        now: Unix seconds.

    Raises:
        StoreBusyError: the store is locked, or its server does not answer.
    """
    asked = waits.moments()
    # A stage that was killed between keeping an answer and settling left no moment behind, and
    # what a reorganisation threw back has all its answers already.
    unsettled = waits.any_unsettled(parts.policy.min_answers)
    return {
        "receive": receiving.next_moment(parts, now),
        "seal": _seal(parts, waits, now),
        "submit": now if unsettled else asked["submit"],
        "stamp": asked["stamp"],
        "upgrade": asked["upgrade"],
        "check": asked["check"],
        "sign": _sign(parts, now),
        "deliver": delivering.next_moment(parts, now),
    }


def _seal(parts: Parts, waits: Waits, now: int) -> int | None:
    if not waits.any_waiting():
        return None
    interval_s = parts.policy.min_batch_interval_s
    last = parts.store.batches.last_sealed_at() if interval_s else None
    return last + interval_s if last is not None and last <= now < last + interval_s else now


def _sign(parts: Parts, now: int) -> int | None:
    if parts.store.ledger.open_series(1):
        return now
    length, covered = parts.store.log.sizes()
    if length == covered:
        return None
    last = parts.store.log.last()
    # As `checkpoint_if_due` has it: a clock that went back makes one due.
    if last is None or now < last.created_at:
        return now
    return last.created_at + parts.policy.checkpoint_every_s
