"""The events of a record in one list: what counts, what does not and why, what contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from anchord.app.face.rows import Fates
from anchord.app.face.words import dashed, moment, plural, shown

if TYPE_CHECKING:
    from anchord.core.equivocation import Equivocation
    from anchord.core.merge import Doubted, Merged, MergedEvent

MOST = 100
"""Events of one list that are written out."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One event in a table."""

    what: str
    at: str
    signer: str
    event_id: str
    why: str
    """What keeps it from counting; empty where nothing does."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one verdict."""

    name: str
    lines: tuple[Line, ...]
    count: int


def summary(merged: Merged) -> str:
    """Return how many events there are and what they come to."""
    words = [
        f"{len(merged.valid):,} valid",
        f"{len(merged.unverified):,} not verified",
        f"{len(merged.invalid):,} invalid",
    ]
    twice = plural(len(merged.equivocations), "contradiction")
    return f"{plural(merged.event_count, 'event')}: {', '.join(words)}, {twice}."


def groups(merged: Merged) -> tuple[Group, ...]:
    """Return the events by verdict, empty ones left out."""
    fates = Fates(merged)
    found = (
        _group("Valid", merged.valid, [_valid(one, fates) for one in merged.valid[:MOST]]),
        _group("Not verified", merged.unverified, _doubted(merged.unverified)),
        _group("Invalid", merged.invalid, _doubted(merged.invalid)),
        _group(
            "Contradictions",
            merged.equivocations,
            [_twice(one) for one in merged.equivocations[:MOST]],
        ),
    )
    return tuple(one for one in found if one.count)


def _group(name: str, events: Sequence[object], lines: list[Line]) -> Group:
    return Group(name=name, lines=tuple(lines), count=len(events))


def _valid(one: MergedEvent, fates: Fates) -> Line:
    proved = one.proved
    why = fates.why(proved.event_id) if one.signed else "Unsigned: its maker publishes no signature"
    return _line(
        proved.event_type, proved.created_at, proved.signer_id, proved.event_id, why
    )  # fmt: skip


def _doubted(events: Sequence[Doubted]) -> list[Line]:
    """Return events nobody vouches for; what one names as its signer is its own word."""
    lines = []
    for one in events[:MOST]:
        signer = one.event.get("signer")
        name = signer.get("signer_id") if isinstance(signer, dict) else None
        kind, at = one.event.get("event_type"), one.event.get("created_at")
        lines.append(_line(kind, at, name, one.event_id, one.reason))
    return lines


def _twice(one: Equivocation) -> Line:
    return Line(
        what=shown(one.about),
        at="",
        signer=shown(one.signer_id, 80),
        event_id=", ".join(shown(name, 80) for name in one.event_ids[:4]),
        why=f"{plural(len(one.fallen), 'event')} of {len(one.event_ids):,} fell",
    )


def _line(kind: object, at: object, signer: object, event_id: str, why: str) -> Line:
    return Line(
        what=dashed(kind) if isinstance(kind, str) and kind else "no type",
        at=moment(at) if isinstance(at, str) else "",
        signer=shown(signer, 80) if isinstance(signer, str) else "",
        event_id=shown(event_id, 80),
        why=shown(why),
    )
