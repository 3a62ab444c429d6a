"""Changing proofs: merge, attach what a calendar answered, list, drop. Always new values."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from anchord.core.attestation import Attestation, rank
from anchord.core.timestamp import Timestamp, walk
from anchord.errors import RefusedError


class Found(msgspec.Struct, frozen=True):
    """One attestation and the message it is about."""

    message: bytes
    attestation: Attestation


def attestations(timestamp: Timestamp) -> list[Found]:
    """Return all attestations, in the order in which they are written."""
    return [
        Found(node.message, attestation)
        for node in walk(timestamp)
        for attestation in sorted(node.attestations, key=rank)
    ]


def merge(a: Timestamp, b: Timestamp) -> Timestamp:
    """Return a timestamp with all that `a` and `b` say.

    Two calendars that reached the same block by different paths both stay.

    Raises:
        RefusedError: they start at different messages.
    """
    if a.message != b.message:
        raise RefusedError(
            f"expected two proofs of one message, got {a.message.hex()} and {b.message.hex()}: "
            "they belong to different records"
        )
    merged = _copy(a)
    _absorb(merged, b)
    return merged


def attach(timestamp: Timestamp, addition: Timestamp) -> Timestamp:
    """Return `timestamp` with `addition` merged in wherever its message occurs.

    Raises:
        RefusedError: the message occurs nowhere.
    """
    attached = _copy(timestamp)
    places = [node for node in walk(attached) if node.message == addition.message]
    if not places:
        raise RefusedError(
            f"expected a proof that passes through {addition.message.hex()}, got one that does "
            "not: the answer belongs to another proof"
        )
    for place in places:
        _absorb(place, addition)
    return attached


def drop(timestamp: Timestamp, unwanted: Callable[[bytes, Attestation], bool]) -> Timestamp | None:
    """Return `timestamp` without the unwanted attestations and the branches that led only there.

    Args:
        timestamp: what to prune.
        unwanted: tells from message and attestation whether it goes.

    Returns:
        What is left, or None when no attestation is.
    """
    kept: dict[int, Timestamp] = {}
    for node in reversed(list(walk(timestamp))):  # children come before their parents
        wanted = {item for item in node.attestations if not unwanted(node.message, item)}
        ops = {op: kept[id(child)] for op, child in node.ops.items() if id(child) in kept}
        if wanted or ops:
            kept[id(node)] = Timestamp(node.message, wanted, ops)
    return kept.get(id(timestamp))


def _copy(timestamp: Timestamp) -> Timestamp:
    fresh = Timestamp(timestamp.message)
    _absorb(fresh, timestamp)
    return fresh


def _absorb(target: Timestamp, source: Timestamp) -> None:
    """Add all of `source` to `target`, which nobody else has seen yet."""
    todo = [(target, source)]
    while todo:
        into, given = todo.pop()
        into.attestations.update(given.attestations)
        for op, child in given.ops.items():
            known = into.ops.get(op)
            if known is None:
                known = into.ops[op] = Timestamp(child.message)
            todo.append((known, child))
