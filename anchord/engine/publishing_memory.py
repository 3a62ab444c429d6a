"""What an earlier publication of ours made, so that the next one makes only what changed.

A page follows from a bundle, the keyring, who cites the record, and the program that makes it.
Where all of these are as they were, so is the page. The signed index says which bundle it was made
of and which bytes it has; `pages.json`, which the index lists, says the rest. A file whose bytes
are not the listed ones is made anew: nothing that somebody else put into a tree is ever signed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from anchord.core.strictjson import UNREADABLE
from anchord.core.tree_index import INDEX, read_index
from anchord.core.trust import Keys
from anchord.errors import RefusedError, VerificationError

if TYPE_CHECKING:
    from anchord.core.keyring import Keyring
    from anchord.engine.citing import CitedBy
    from anchord.ports.mirror import TreeSink

PAGES = "pages.json"
_MOST_CITED = 100_000
"""Records with citations that are told; where there are more, all pages are made anew."""


class _Stated(msgspec.Struct, frozen=True, kw_only=True):
    """`pages.json`."""

    made_by: str
    """Stands for the program and the keys."""
    cited: dict[str, str] = {}
    """Who cites the record of a folder, hashed; without those nobody cites."""


class Memory:
    """Remembers what pages of the tree were made of.

    Args:
        sink: where the tree is.
        keyring: public keys.
        program: stands for the program and what it was told of its site.
    """

    def __init__(self, sink: TreeSink, keyring: Keyring, program: str) -> None:
        keys = msgspec.json.encode(list(keyring))
        self._made_by = hashlib.sha256(program.encode() + b"\n" + keys).hexdigest()
        self._before = _stated(sink, keyring)
        self._cited: dict[str, str] = {}

    def same(self, folder: str, cited: CitedBy) -> bool:
        """Tell whether a page would be as before, if its bundle is; note who cites the record."""
        if cited[1]:
            self._cited[folder] = hashlib.sha256(msgspec.json.encode(cited)).hexdigest()[:32]
        before = self._before
        return (
            before is not None
            and before.made_by == self._made_by
            and before.cited.get(folder) == self._cited.get(folder)
        )

    def file(self) -> bytes:
        """Return `pages.json` of this publication."""
        many = len(self._cited) > _MOST_CITED
        stated = _Stated(made_by="" if many else self._made_by, cited={} if many else self._cited)
        return msgspec.json.encode(stated, order="sorted") + b"\n"


def _stated(sink: TreeSink, keyring: Keyring) -> _Stated | None:
    """Return what the last publication said, where one of our own keys signed for it."""
    raw = sink.read(INDEX)
    if raw is None:
        return None
    try:
        index = read_index(raw, Keys(keyring))
    except (RefusedError, VerificationError):
        return None
    key = keyring.get(index.key_id)
    if key is None or not key.own:
        return None
    sink.recall(index.shards)
    said = sink.keep(PAGES)
    try:
        return None if said is None else msgspec.json.decode(said, type=_Stated)
    except UNREADABLE:
        return None
