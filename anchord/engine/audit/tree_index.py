"""The signed index of a published tree, held against the files that lie there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from anchord.core.event import canonical_body
from anchord.core.finding import Part, Severity
from anchord.core.mirror_manifest import WELL_KNOWN
from anchord.core.tree_index import (
    INDEX,
    MAX_INDEX_BYTES,
    MAX_SHARD_BYTES,
    Shard,
    TreeIndex,
    read_index,
    read_shard,
    shard_name,
)
from anchord.core.trust import Trust
from anchord.engine.audit.tree_scratch import FileLine
from anchord.engine.audit.tree_words import KEY_TODO, code_of, key_words
from anchord.errors import AnchordError, DigestMismatchError, RefusedError

if TYPE_CHECKING:
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.tree_keys import TreeKeys
    from anchord.engine.audit.tree_scratch import Scratch
    from anchord.ports.tree import Tree

OURS = ("pith/", "record/", "keys/", "log/", "index/", "assets/", "schemas/", WELL_KNOWN)
"""Folders in which nothing may lie that the publisher did not sign for."""
_TODO = "fetch the tree again; a file that stays so was changed where it lies or by its publisher"


class Listed(NamedTuple):
    """An index that was read."""

    tree: TreeIndex
    unread: frozenset[str]
    """Shards that do not hold: nothing is said of the files they were about."""


def read_tree_index(
    tree: Tree, paths: Sequence[str], keys: TreeKeys, outcome: Outcome, scratch: Scratch
) -> Listed | None:
    """Take in all lines of the index; None when there is none to believe.

    Args:
        tree: where it lies.
        paths: index files that are there.
        keys: who may have signed it.
        outcome: where findings go.
        scratch: where lines go.
    """
    try:
        raw = tree.read(INDEX, MAX_INDEX_BYTES)
        if raw is None:
            return None
        index = read_index(raw, keys.keys)
        _check_spelling(raw)
    except AnchordError as error:
        outcome.find(code_of(error, "index"), Severity.BROKEN, Part.INDEX, INDEX, str(error), _TODO)
        return None
    outcome.count("signatures")
    known = keys.keys.find(index.key_id)
    if known is not None:
        outcome.know(index.key_id, key_words(*known))
    if index.trust is Trust.CLAIMED:
        outcome.doubt("index is signed by a key nobody gave: " + KEY_TODO)
        outcome.lack(index.key_id)
    unread = {
        shard.name for shard in index.shards if not _read_shard(tree, shard, outcome, scratch)
    }
    listed = {INDEX, *(shard.name for shard in index.shards)}
    for path in paths:
        if path not in listed:
            outcome.find(
                "file-unlisted", Severity.BROKEN, Part.INDEX, path,
                f"{INDEX} does not name this shard: it was added, or is left of an older index",
                _TODO,
            )  # fmt: skip
    return Listed(index, frozenset(unread))


def _check_spelling(raw: bytes) -> None:
    """Refuse an index that says the same in other bytes than those its signer wrote."""
    if raw != canonical_body(msgspec.json.decode(raw)):
        raise DigestMismatchError(f"{INDEX} is not written as its signer wrote it: it was changed")


def _read_shard(tree: Tree, shard: Shard, outcome: Outcome, scratch: Scratch) -> bool:
    try:
        raw = tree.read(shard.name, MAX_SHARD_BYTES)
        if raw is None:
            raise RefusedError(f"{shard.name} is not there, and {INDEX} names it")
        lines = read_shard(raw, shard)
    except AnchordError as error:
        outcome.find(
            code_of(error, "index"), Severity.BROKEN, Part.INDEX, shard.name, str(error), _TODO
        )
        return False
    outcome.count("files")
    scratch.list_files(FileLine(x.path, x.size, bytes.fromhex(x.sha256)) for x in lines)
    return True


def compare_files(outcome: Outcome, scratch: Scratch, unread: frozenset[str]) -> None:
    """Find every file that is not what the index says of it."""
    for listed, found in scratch.differing():
        if listed is None and found is not None and shard_name(found.path) in unread:
            continue
        if listed is None and found is not None:
            inside = found.path.startswith(OURS)
            outcome.find(
                "file-unlisted", Severity.BROKEN if inside else Severity.NOTE, Part.INDEX,
                found.path, "it lies in the tree, and the signed index does not list it",
                _TODO if inside else "nothing, if you know whose it is",
            )  # fmt: skip
        elif listed is not None and found is None:
            outcome.find(
                "file-missing", Severity.BROKEN, Part.INDEX, listed.path,
                f"the signed index lists it with {listed.size:,} bytes, and it is not there",
                _TODO,
            )  # fmt: skip
        elif listed is not None and found is not None:
            outcome.find(
                "file-changed", Severity.BROKEN, Part.INDEX, listed.path,
                f"the signed index lists {listed.size:,} bytes with sha256 {listed.sha256.hex()}, "
                f"it has {found.size:,} with {found.sha256.hex()}", _TODO,
            )  # fmt: skip


def compare_copies(outcome: Outcome, scratch: Scratch) -> None:
    """Find copies for well-known paths that are not what they are copies of."""
    for path, gone in scratch.copies(WELL_KNOWN):
        original = path.removeprefix(WELL_KNOWN)
        outcome.find(
            "copy-differs", Severity.BROKEN, Part.INDEX, path,
            f"{original} is not there" if gone else f"it is not the same as {original}", _TODO,
        )  # fmt: skip


def find_repeated(outcome: Outcome, scratch: Scratch) -> None:
    """Find records that more than one bundle is of."""
    for path, first in scratch.repeated_bundles():
        outcome.find(
            "bundle-repeated", Severity.WARNING, Part.BUNDLE, path,
            f"{first} is of the same record", "keep the one that has more events",
        )  # fmt: skip
