"""What a mirror is asked for: the names of bundles and states, from its index or from ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from anchord.core.canonical import pith_suffix
from anchord.core.mirror_manifest import Mirror, fill
from anchord.core.tree_index import INDEX, IndexLine

if TYPE_CHECKING:
    from anchord.core.model import StoredRecord
    from anchord.ports.mirror import MirrorSource
    from anchord.ports.store import Store

_SUFFIX, _DIGEST = "[A-Z2-7]{26}", "[0-9a-f]{64}"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror to pull from."""

    mirror: Mirror
    source: MirrorSource
    locate: Callable[[str], str]
    """From an address of the manifest to what the source is asked for."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A record that is asked for."""

    suffix: str | None = None
    digest: str | None = None
    """In hex; None where only a Pith Number is known."""
    numbered: bool = False
    """It has a Pith Number for certain, so it lies nowhere else."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One bundle of one mirror."""

    name: str
    """What the source is asked for."""
    stem: str
    """Suffix or digest of the record it must be of."""
    sha256: str | None = None
    """What the mirror's index says of it."""
    state: str | None = None
    """Name of the record's state."""


def target_of(record: StoredRecord) -> Target:
    """Return a record of the store as it is asked for."""
    return Target(
        suffix=pith_suffix(record.digest),
        digest=record.digest.hex(),
        numbered=record.year is not None,
    )


def own_targets(store: Store) -> Iterator[list[Target]]:
    """Yield all records of the store, in chunks."""
    for chunk in store.records.walk(chunk=256):
        yield [target_of(record) for record in chunk]


def by_pattern(place: Place, target: Target) -> Iterator[Wanted]:
    """Yield what a mirror's patterns make of a record: where it may lie."""
    if target.suffix is not None:
        yield _numbered(place, target.suffix)
    if target.digest is not None and not target.numbered and place.mirror.record_pattern:
        yield _unnumbered(place, target.digest)


def _numbered(place: Place, suffix: str, sha256: str | None = None) -> Wanted:
    mirror, state = place.mirror, None
    name = place.locate(fill(mirror.bundle_pattern, suffix=suffix))
    if mirror.state_pattern is not None:
        state = place.locate(fill(mirror.state_pattern, suffix=suffix))
    return Wanted(name=name, stem=suffix, sha256=sha256, state=state)


def _unnumbered(place: Place, digest: str, sha256: str | None = None) -> Wanted:
    name = place.locate(fill(place.mirror.record_pattern or "", digest=digest))
    # Ours only, so the state lies beside it.
    state = name.rpartition("/")[0] + "/state.json"
    return Wanted(name=name, stem=digest, sha256=sha256, state=state)


class TreeNames:
    """Finds the bundles among the files that an index lists.

    Args:
        place: a mirror with an index.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        index = place.locate(place.mirror.index or INDEX)
        self.folder = index.removesuffix(INDEX)
        patterns = [(place.mirror.bundle_pattern, "suffix", _SUFFIX)]
        if place.mirror.record_pattern:
            patterns.append((place.mirror.record_pattern, "digest", _DIGEST))
        self._patterns = [
            (gap, re.compile(_expression(place.locate(pattern), gap, form)))
            for pattern, gap, form in patterns
        ]

    def bundles(self, lines: Iterable[IndexLine], stems: frozenset[str] | None) -> list[Wanted]:
        """Return the bundles in a shard, of some records or (None) of all."""
        found = []
        for line in lines:
            for gap, expression in self._patterns:
                match = expression.fullmatch(self.folder + line.path)
                if match is None or (stems is not None and match[1] not in stems):
                    continue
                make = _numbered if gap == "suffix" else _unnumbered
                found.append(make(self._place, match[1], line.sha256))
        return found


def _expression(located: str, gap: str, form: str) -> str:
    before, _, after = located.partition("{" + gap + "}")
    return f"{re.escape(before)}({form}){re.escape(after)}"


def stems_of(targets: Sequence[Target]) -> frozenset[str]:
    """Return what the records may be called in a tree."""
    names = [name for one in targets for name in (one.suffix, one.digest)]
    return frozenset(name for name in names if name is not None)
