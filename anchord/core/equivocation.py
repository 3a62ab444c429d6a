"""Equivocation: one signer says two things of which at most one can be true.

Every event that was read states facts, each as (what it is about, what is said of it). A signer who
states two contents of one thing has signed something false, and nobody can tell which: a block at
one height has one hash, a memento or a file has one content (docs/protocol.md, Merge).
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


def equivocations(events: Iterable[EventProved]) -> tuple[Equivocation, ...]:
    """Return what trusted signers said in two ways.

    Args:
        events: that stand; what its signer has taken back contradicts nothing.
    """
    said: dict[tuple[str, str], dict[str, set[str]]] = {}
    for event in events:
        if event.trust in (Trust.KEYRING, Trust.GIVEN):
            for about, content in event.facts:
                contents = said.setdefault((event.signer_id, about), {})
                contents.setdefault(content, set()).add(event.event_id)
    return tuple(
        Equivocation(signer_id, about, tuple(sorted(set().union(*contents.values()))))
        for (signer_id, about), contents in sorted(said.items())
        if len(contents) > 1
    )
