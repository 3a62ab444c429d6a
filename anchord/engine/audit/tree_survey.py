"""A first walk over a tree: which files there are of each kind, and which records are drawn."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from anchord.core.mirror_manifest import MANIFEST, WELL_KNOWN
from anchord.core.tree_index import INDEX
from anchord.engine.audit.tree_keys import SIGNING_KEY

if TYPE_CHECKING:
    from anchord.core.audit import AuditOptions
    from anchord.ports.tree import Tree

BUNDLE, STATE, PROOF = "bundle.json", "state.json", "proof.ots"
NAMED = ".bundle.json"
"""How a bundle's file is called that says by its name what it is."""
CHECKPOINT = "log/checkpoint"

_RECORD_FILES = (BUNDLE, STATE, PROOF)
_PAGE = re.compile(
    r"(?:pith/[A-Z2-7]{26}|record/[0-9a-f]{64})"
    r"(?:\.json|/(?:index\.html|graph\.json|events\.json|badge\.svg))"
    r"|assets/.+|schemas/[a-z-]+\.schema\.json|openapi\.json|pages\.json",
    re.ASCII,
)
"""Says nothing that bundles do not prove. The signed index vouches for its bytes, nothing else."""
_OLD_CHECKPOINT = re.compile(r"log/checkpoints/([1-9][0-9]{0,18})(\.ots)?", re.ASCII)
_SHARD = re.compile(r"index/[0-9a-f]{2}\.jsonl", re.ASCII)
_DAY = re.compile(r"(?:.*/)?manifest-[0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[0-9]+)?\.json", re.ASCII)
_MEMBERS = re.compile(r"(?:.*/)?bundles-[0-9]+-[0-9]+(?:\.zip|\.manifest\.jsonl)", re.ASCII)


class Kind(StrEnum):
    """What a file of a tree is, by its path."""

    INDEX = "index"
    MANIFEST = "manifest"
    KEY = "key"
    COPY = "copy"
    CHECKPOINT = "checkpoint"
    TILE = "tile"
    RECORD = "record"
    LOOSE = "loose"
    """A `.json` that may be a bundle."""
    PAGE = "page"
    DAY = "day"
    ITEM = "item"
    OTHER = "other"


_MARKS = (Kind.INDEX, Kind.MANIFEST, Kind.CHECKPOINT, Kind.TILE, Kind.COPY)
"""What only a published tree has. Its folders of records are another mark: whoever drops index,
manifest and log must not make a plain folder of bundles of it."""
_MANY = (Kind.COPY, Kind.OTHER, Kind.PAGE, Kind.TILE)
"""Not kept, for there may be some of each record."""


_TABLE = (
    (re.compile(re.escape(INDEX)), Kind.INDEX),
    (_SHARD, Kind.INDEX),
    (re.compile(re.escape(MANIFEST)), Kind.MANIFEST),
    (re.compile(rf"{re.escape(SIGNING_KEY)}|keys/[^/]*\.json"), Kind.KEY),
    (re.compile(CHECKPOINT), Kind.CHECKPOINT),
    (_OLD_CHECKPOINT, Kind.CHECKPOINT),
    (re.compile("log/tile/.*", re.DOTALL), Kind.TILE),
    (_PAGE, Kind.PAGE),
    (_DAY, Kind.DAY),
    (_MEMBERS, Kind.ITEM),
)
"""The first that fits."""


def kind_of(path: str) -> Kind:
    """Return what a file is, by its path alone."""
    if path.startswith(WELL_KNOWN):
        return Kind.COPY
    head, _, name = path.rpartition("/")
    if name in _RECORD_FILES and head:
        return Kind.RECORD
    for pattern, kind in _TABLE:
        if pattern.fullmatch(path):
            return kind
    return Kind.LOOSE if name.endswith(".json") else Kind.OTHER


class Unit(NamedTuple):
    """The files of one record: a folder, or one loose file."""

    folder: str
    """With its `/`; empty at the root."""
    names: tuple[str, ...]

    @property
    def path(self) -> str:
        """What it is called in findings and draws."""
        return self.folder if len(self.names) != 1 else self.folder + self.names[0]

    @property
    def loose(self) -> bool:
        """Whether it is one file that may be a bundle."""
        return len(self.names) == 1 and self.names[0] not in _RECORD_FILES

    @property
    def paths(self) -> list[str]:
        """All of its files."""
        return [self.folder + name for name in self.names]


class Survey:
    """What a first walk found: lists of the few files, and numbers of the many.

    Args:
        tree: what is walked over.
        options: how many records are drawn.
    """

    def __init__(self, tree: Tree, options: AuditOptions) -> None:
        self.paths: dict[Kind, list[str]] = {kind: [] for kind in Kind}
        """Of kinds that are few; tiles only as far as they are not full."""
        self.sizes: dict[int, bool] = {}
        """Size of each kept checkpoint -> whether its `.ots` is there."""
        self.units = 0
        self.published = False
        """It has the marks of a published tree."""
        self._drawn: list[tuple[int, str]] = []
        for kind, item in walk(tree):
            self._add(kind, item, options)

    def _add(self, kind: Kind, item: str | Unit, options: AuditOptions) -> None:
        if isinstance(item, Unit):
            self.units += 1
            self.published |= item.folder.startswith(("pith/", "record/"))
            if options.sample is not None:
                self._draw(item.path, options.sample, options.seed)
            return
        self.published |= kind in _MARKS
        if kind not in _MANY or (kind is Kind.TILE and ".p/" in item):
            self.paths[kind].append(item)
        if match := _OLD_CHECKPOINT.fullmatch(item):
            size = int(match[1])
            self.sizes[size] = self.sizes.get(size, False) or match[2] is not None

    def _draw(self, path: str, count: int, seed: int) -> None:
        """Keep the smallest hashes, so that the draw is the same in whatever order files come."""
        rank = -int.from_bytes(sha256(f"{seed} {path}".encode("utf-8", "replace")).digest(), "big")
        if len(self._drawn) < count:
            heapq.heappush(self._drawn, (rank, path))
        elif count and rank > self._drawn[0][0]:
            heapq.heapreplace(self._drawn, (rank, path))

    @property
    def drawn(self) -> frozenset[str]:
        """Units that are drawn, by what they are called."""
        return frozenset(path for _, path in self._drawn)


def walk(tree: Tree) -> Iterator[tuple[Kind, str | Unit]]:
    """Yield every file of a tree; those of records a record at a time."""
    folder = ""
    names: list[str] = []
    for path in tree.walk():
        kind = kind_of(path)
        head, slash, name = path.rpartition("/")
        if names and head + slash != folder:
            yield Kind.RECORD, Unit(folder, tuple(names))
            names = []
        if kind is Kind.RECORD:
            folder = head + slash
            names.append(name)
        elif kind is Kind.LOOSE:
            yield kind, Unit(head + slash, (name,))
        else:
            yield kind, path
    if names:
        yield Kind.RECORD, Unit(folder, tuple(names))
