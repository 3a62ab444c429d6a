"""What a pull found: what came from each mirror, and what does not agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import msgspec

KEPT = 1_000
"""Differences kept whole by kind; all are counted."""


class Kind(StrEnum):
    """Kinds of differences. Those in `FALSE` mean that a mirror served something untrue."""

    BUNDLE_REFUSED = "bundle-refused"
    """A bundle holds something that does not hold, or is none."""
    WRONG_RECORD = "wrong-record"
    """A bundle is of another record than the one it was served for."""
    TWO_CONTENTS = "two-contents"
    """Two mirrors have different events under one id."""
    STATE_FALSE = "state-false"
    """A state is not what the mirror's own bundle comes to."""
    INDEX_FORGED = "index-forged"
    """The index, or a shard of it, is not what its signer signed."""
    FILE_DIFFERS = "file-differs"
    """A file is not the one that the mirror's signed index lists."""
    KEY_DIFFERS = "key-differs"
    """The manifest states another key under the name of one in the keyring."""
    MANIFEST_REFUSED = "manifest-refused"
    """The manifest is none, or has addresses that lead where they must not."""

    STATE_DIFFERS = "state-differs"
    """A state differs where keyrings or merge rules may differ."""
    INDEX_UNVERIFIED = "index-unverified"
    """The index is signed with a key that is not in the keyring."""
    BEHIND = "behind"
    """A mirror lacks events that another one has."""
    ABSENT = "absent"
    """A mirror lacks a record that another one has."""
    STALE = "stale"
    """A mirror serves fewer events than it did before."""
    CHANGED_MEANWHILE = "changed-meanwhile"
    """The mirror was published anew during the pull: pull again."""
    UNREACHABLE = "unreachable"
    """A mirror could not be asked, or stopped answering: pull again."""
    UNUSABLE = "unusable"
    """An answer that is no use: a redirect elsewhere, an oversized file, an odd status."""


FALSE = frozenset(
    (
        Kind.BUNDLE_REFUSED, Kind.WRONG_RECORD, Kind.TWO_CONTENTS, Kind.STATE_FALSE,
        Kind.INDEX_FORGED, Kind.FILE_DIFFERS, Kind.KEY_DIFFERS, Kind.MANIFEST_REFUSED,
    )
)  # fmt: skip
UNFINISHED = frozenset((Kind.CHANGED_MEANWHILE, Kind.UNREACHABLE, Kind.UNUSABLE))
"""Kinds that leave work for another pull."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that does not agree."""

    kind: Kind
    mirror: str
    record: str | None = None
    """Pith Number's suffix or digest in hex; None: it is about the mirror."""
    what: str
    """What was expected, and what came."""


class MirrorReport(msgspec.Struct, kw_only=True):
    """What came from one mirror."""

    name: str
    address: str
    index: str | None = None
    """"verified", "unverified", "forged"; None: it has none."""
    asked: int = 0
    """Bundles it was asked for."""
    fetched: int = 0
    unchanged: int = 0
    """Bundles that are still those which were pulled before."""
    settled_shards: int = 0
    """Parts of its index in which nothing changed since they were pulled; not opened again."""
    absent: int = 0
    refused: int = 0
    states: int = 0
    """States compared."""
    wanted: int = 0
    """Bundles that a pull would ask for; counted in a dry run only."""
    complete: bool = True
    """Everything that was to be asked for was."""


class Differences:
    """Differences as they come; all are counted, the first of each kind are kept."""

    def __init__(self) -> None:
        self._kept: list[Difference] = []
        self.counts: Counter[Kind] = Counter()

    def add(self, kind: Kind, mirror: str, what: str, record: str | None = None) -> None:
        """Take in one."""
        self.counts[kind] += 1
        if self.counts[kind] <= KEPT:
            self._kept.append(Difference(kind=kind, mirror=mirror, record=record, what=what))

    def kept(self) -> list[Difference]:
        """Return what was kept, what is false first."""
        return sorted(self._kept, key=lambda one: one.kind not in FALSE)

    @property
    def false(self) -> int:
        """How often a mirror served something untrue."""
        return sum(count for kind, count in self.counts.items() if kind in FALSE)

    @property
    def unfinished(self) -> int:
        """How often something was left for another pull."""
        return sum(count for kind, count in self.counts.items() if kind in UNFINISHED)


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a pull."""

    mirrors: Sequence[MirrorReport]
    new: int
    """Records that the store did not have."""
    known: int
