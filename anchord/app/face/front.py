"""The first page of a published tree: what is here, and how to find and check it.

A server shows its dashboard in this place; a tree answers no questions, so its first page names
what came last and says by which rule all the rest is found.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.face.rendering import render
from anchord.app.face.strip import FOR_TESTS, strip_words
from anchord.app.face.words import shown

if TYPE_CHECKING:
    from anchord.app.face.site import Site

MOST_NAMED = 50
"""Records that the page leads to; all others are found by their names."""
_LONGEST_SOURCE = 80
_FACETS = ("attested", "anchored", "stored", "refs")
_DONE = ("anchored", "stored", "attested", "refs")


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A record that the page leads to."""

    name: str
    place: str
    source: str
    words: tuple[str, ...]
    """Its strip."""


class Tally:
    """Counts the records of a tree as they go by, and keeps the newest of them."""

    def __init__(self) -> None:
        self.records = 0
        self.words: Counter[str] = Counter()
        """How many records have a word on their strip."""
        self._newest: list[tuple[int, str, Named]] = []

    def take(self, place: str, state: Mapping[str, Any], moment: int) -> None:
        """Count a record.

        Args:
            place: where it is below the root.
            state: what `state.json` says of it.
            moment: when it came, in Unix seconds.
        """
        words = strip_words(state)
        strip = tuple(words[facet] for facet in _FACETS)
        self.records += 1
        self.words.update(strip)
        if len(self._newest) == MOST_NAMED and (moment, place) <= self._newest[0][:2]:
            return
        name = state.get("pith_number") or state["record_id"]
        named = Named(name=name, place=place, source=_source(state), words=strip)
        push = heapq.heappush if len(self._newest) < MOST_NAMED else heapq.heapreplace
        push(self._newest, (moment, place, named))

    @property
    def newest(self) -> list[Named]:
        """The records that came last, newest first."""
        return [named for _, _, named in sorted(self._newest, key=lambda one: one[:2])][::-1]


def front_page(tally: Tally, site: Site) -> bytes:
    """Return `index.html` of a tree, UTF-8."""
    counts = [(word, tally.words[word]) for word in _DONE]
    if tally.words[FOR_TESTS]:
        counts.insert(1, (FOR_TESTS, tally.words[FOR_TESTS]))
    return render(
        "front.html", root="", site=site, records=tally.records, counts=counts,
        newest=tally.newest, done=frozenset(_DONE), waits=frozenset(("submitted", FOR_TESTS)),
    )  # fmt: skip


def _source(state: Mapping[str, Any]) -> str:
    """Return kind, name and version of what a record is of; empty where nobody says so."""
    record = state["current"]["canonical_record"]
    source = record.get("source") if isinstance(record, dict) else None
    stated = source if isinstance(source, dict) else {}
    kind, name, version = (stated.get(key) for key in ("kind", "id", "version"))
    if not (isinstance(kind, str) and isinstance(name, str)):
        return ""
    return shown(f"{kind}:{name}" + (f" v{version}" if version else ""), _LONGEST_SOURCE)
