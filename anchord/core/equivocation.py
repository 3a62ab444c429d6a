"""Equivocation: one signer says two things of which at most one can be true.

Every event that was read states facts, each as (what it is about, what is said of it). A signer who
states two contents of one thing has signed something false, and nobody can tell which: a block at
one height has one hash, a memento or a file has one content (docs/protocol.md, Merge).

A key that was revoked may be in other hands, and what those sign can be dated back. So where all
that is said by keys that were never revoked agrees, it stands, and what a revoked key says against
it falls alone: a thief can contradict nothing away.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from anchord.core.trust import Trust
from anchord.core.verify_event import EventProved


class Equivocation(msgspec.Struct, frozen=True, order=True):
    """Events of one signer that cannot all be true."""

    signer_id: str
    about: str
    event_ids: tuple[str, ...]
    """In ascending order."""
    fallen: tuple[str, ...]
    """Those of them that do not count: all, or those of revoked keys alone."""


_Said = dict[str, dict[str, bool]]
"""Content -> event id -> whether its key was revoked, be it later."""


def equivocations(events: Iterable[EventProved]) -> tuple[Equivocation, ...]:
    """Return what trusted signers said in two ways.

    Args:
        events: that stand; what its signer has taken back contradicts nothing.
    """
    said: dict[tuple[str, str], _Said] = {}
    for event in events:
        if event.trust in (Trust.KEYRING, Trust.GIVEN):
            for about, content in event.facts:
                contents = said.setdefault((event.signer_id, about), {})
                contents.setdefault(content, {})[event.event_id] = event.revoked
    return tuple(
        Equivocation(signer_id, about, tuple(sorted(set().union(*contents.values()))),
                     _fallen(contents))
        for (signer_id, about), contents in sorted(said.items())
        if len(contents) > 1
    )  # fmt: skip


def _fallen(contents: _Said) -> tuple[str, ...]:
    firm = [content for content, events in contents.items() if not all(events.values())]
    spared = firm[0] if len(firm) == 1 else None
    return tuple(
        sorted({name for content in contents if content != spared for name in contents[content]})
    )
