"""Receipts out: each outlet is handed the events of the ledger, in order, after they are durable.

An outlet is a place in the ledger. What is handed over is written down afterwards, so a crash, or
an answer that got lost, makes an event arrive twice and never lets one be left out; its id tells
whoever receives it. `outlet_turn` says what becomes of what is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.engine.outlet_turn import Turn, ready

if TYPE_CHECKING:
    from anchord.engine.parts import Parts


class Delivered(msgspec.Struct, frozen=True, kw_only=True):
    """What was handed over."""

    events: int = 0
    set_aside: int = 0
    """Events that were refused and are tried again by themselves."""
    problems: dict[str, str] = {}
    """What outlets that failed said, by name."""


def deliver(parts: Parts, now: int) -> Delivered:
    """Hand over to every outlet what is due, for about `outlet_turn.TURN_S` each.

    Raises:
        StoreBusyError: the store is locked, or somebody else served the same outlet.
        VerificationError: an event does not recompute; it is not handed over.
        FatalError: the store contradicts itself.
    """
    events = aside = 0
    problems = {}
    for outlet in parts.outlets:
        turn = Turn(parts, outlet, now)
        problem = turn()
        if problem is not None:
            problems[outlet.name] = problem
        events, aside = events + turn.delivered, aside + turn.set_aside
    return Delivered(events=events, set_aside=aside, problems=problems)


def next_moment(parts: Parts, now: int) -> int | None:
    """Return when an outlet can be handed something next; None while nothing is due."""
    table, found = parts.store.outlets, []
    for outlet in parts.outlets:
        state = table.get(outlet.name)
        if state is None:
            return now
        if state.next_attempt_at is None:
            continue
        again = table.next_moment(outlet.name)
        if ready(parts, outlet) > state.seq:
            found.append(state.next_attempt_at)
        elif again is not None:
            found.append(max(again, state.next_attempt_at))
    return min(found, default=None)
