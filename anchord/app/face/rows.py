"""The list "Record completeness": what is done, what proves it, and what is open.

Every row is made of signed events. Those that do not stand (withdrawn, or contradicted by their own
signer) stay on the page as what they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.face.words import dashed, moment, plural, shown

if TYPE_CHECKING:
    from anchord.core.merge import Merged, MergedEvent

MOST = 25
"""Events of one row that are written out; all are in the bundle."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing an event says."""

    name: str
    text: str
    href: str | None = None
    code: bool = False
    """A value to be compared letter by letter."""
    fine: bool = False
    """Shown when asked for."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    head: str
    href: str | None = None
    group: str = ""
    """What it stands under, such as the relation of a citation."""
    facts: tuple[Fact, ...] = ()
    fallen: str = ""
    """Why it does not count; empty for one that stands."""
    signer: str
    key_id: str
    at: str
    event_id: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list."""

    name: str
    state: str
    done: bool
    waits: bool = False
    """Begun, not done."""
    note: str = ""
    entries: tuple[Entry, ...] = ()
    folded: tuple[Entry, ...] = ()
    """Shown when asked for."""
    folded_name: str = ""
    more: int = 0
    """Events that are not written out."""


class Fates:
    """Which of a record's events fell, and why.

    Args:
        merged: what the bundle's events come to.
    """

    def __init__(self, merged: Merged) -> None:
        self._events = {one.proved.event_id: one.event for one in merged.valid if one.signed}
        self._withdrawn = merged.withdrawn
        self._fallen = {name: one.about for one in merged.equivocations for name in one.fallen}
        self.standing = frozenset(one.proved.event_id for one in merged.standing)

    def why(self, event_id: str) -> str:
        """Return why a signed event does not stand; empty when it does."""
        by = self._withdrawn.get(event_id)
        if by is not None:
            taken = self._events[by]
            reason = shown(taken["payload"].get("reason") or "no reason is given")
            return f"Withdrawn {moment(taken['created_at'])}: {reason}"
        about = self._fallen.get(event_id)
        return "" if about is None else f"Its signer also said the contrary about {shown(about)}"


def of_type(merged: Merged, *types: str) -> list[MergedEvent]:
    """Return the signed events of some types, in their order."""
    return [one for one in merged.valid if one.signed and one.proved.event_type in types]


def entry(
    one: MergedEvent, fates: Fates, head: str, facts: Iterable[Fact], *,
    href: str | None = None, group: str = "",
) -> Entry:  # fmt: skip
    """Return what a page says of an event."""
    proved = one.proved
    return Entry(
        head=head, href=href, group=group, facts=tuple(facts), fallen=fates.why(proved.event_id),
        signer=shown(proved.signer_id, 80), key_id=shown(proved.key_id, 80),
        at=moment(proved.created_at), event_id=shown(proved.event_id, 80),
    )  # fmt: skip


def split(entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return what stands and what fell."""
    standing: list[Entry] = []
    fallen: list[Entry] = []
    for one in entries:
        (fallen if one.fallen else standing).append(one)
    return standing, fallen


def fallen_name(fallen: list[Entry]) -> str:
    """Return the words before events that fell."""
    return plural(len(fallen), "event that does not count", "events that do not count")


def doubted_note(merged: Merged, *types: str) -> str:
    """Return how many events of some types nobody vouches for."""
    doubted = [
        one for one in (*merged.unverified, *merged.invalid) if one.event.get("event_type") in types
    ]
    if not doubted:
        return ""
    kinds = plural(len(doubted), "event of this kind does", "events of this kind do")
    return f"{kinds} not count; see below under Events."


def stated(payload: dict[str, Any], name: str, words: str) -> list[Fact]:
    """Return a field of a payload as a fact, where it is there."""
    value = payload.get(name)
    if value is None or isinstance(value, dict | list):
        return []
    return [Fact(name=words, text=shown(value))]


def hashed(payload: dict[str, Any], name: str, words: str) -> list[Fact]:
    """Return a hash of a payload as a fact that is shown when asked for."""
    return [msgspec.structs.replace(one, code=True, fine=True)
            for one in stated(payload, name, words)]  # fmt: skip


def relation_words(relation: str) -> str:
    """Return a relation or kind as words for a heading."""
    words = dashed(relation)
    return words[:1].upper() + words[1:]
