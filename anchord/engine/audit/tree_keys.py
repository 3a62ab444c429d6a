"""Keys of a published tree: what it states is a claim, and is held against the keys that are given.

A tree that brings its own key proves nothing by it: whoever forges a tree publishes the key it was
forged with. So a key that only the tree states is remembered as a claim, which lets signatures be
told apart that verify under nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.checkpoint import log_verifiers, signs_logs
from anchord.core.finding import Part, Severity
from anchord.core.key_document import from_document, to_document
from anchord.core.keyring import OWN_TARGETS, REGISTRY_TARGETS, Keyring, PublicKey
from anchord.core.mirror_manifest import MANIFEST, Manifest, read_manifest
from anchord.core.note import Verifier, key_hash
from anchord.core.note import parse as parse_note
from anchord.core.strictjson import parse
from anchord.core.trust import Keys, Trust
from anchord.engine.audit.tree_words import code_of
from anchord.errors import AnchordError, RefusedError, SignatureError

if TYPE_CHECKING:
    from anchord.engine.audit.outcome import Outcome
    from anchord.ports.tree import Tree

MAX_KEY_BYTES = 1 << 16
SIGNING_KEY = "pith-signing-key.json"


class TreeKeys:
    """Keys that are trusted, and those a tree claims.

    Args:
        keyring: keys that are trusted.
        given: keys the person who asks has named.
        outcome: where findings go.
    """

    def __init__(self, keyring: Keyring, given: Sequence[PublicKey], outcome: Outcome) -> None:
        self.keyring, self.given = keyring, tuple(given)
        self.claimed: list[PublicKey] = []
        self.published: dict[str, PublicKey] = {}
        """The keyring of the publisher, as the tree states it."""
        self._outcome = outcome

    @property
    def keys(self) -> Keys:
        """All of them, each with how far it is trusted."""
        return Keys(self.keyring, self.given, self.claimed)

    def verifiers(self, origin: str) -> list[Verifier]:
        """Return what checks notes of a log, by the keys that are trusted."""
        return log_verifiers(origin, [*self.given, *self.keyring])

    def claimed_verifiers(self, origin: str) -> list[Verifier]:
        """Return what checks notes of a log, by the keys that are only claimed."""
        return log_verifiers(origin, self.claimed)

    def signed_by(self, origin: str, raw: bytes) -> list[PublicKey]:
        """Return the keys that have signed a note that was opened, those nobody trusts last.

        Where a trusted key has signed, claimed ones do not count: nobody checked their lines.
        """
        hashes = {line.key_hash for line in parse_note(raw).lines if line.name == origin}
        for keys in ((*self.given, *self.keyring), self.claimed):
            found = [
                key
                for key in keys
                if signs_logs(key) and key_hash(origin, key.public_key) in hashes
            ]
            if found:
                # As all that is trusted allows it: who revokes it in one place revokes it in all.
                return [(self.keys.find(key.key_id) or (key,))[0] for key in found]
        return []

    def claim(self, where: str, value: object) -> None:
        """Take in a key document of the tree."""
        try:
            states = isinstance(value, dict) and bool(value.get("targets"))
            key = from_document(value, () if states else (*OWN_TARGETS, *REGISTRY_TARGETS))
            known = self.keys.find(key.key_id)
            if where.startswith("keys/"):
                self.published.setdefault(key.key_id, key)
            if known is not None and known[0].public_key != key.public_key:
                raise SignatureError(
                    f"{where} states another key under the name {key.key_id!r:.100} than the one "
                    "that is known: one of the two is forged"
                )
        except AnchordError as error:
            self.find(code_of(error, "key"), Severity.BROKEN, where, str(error))
            return
        if known is None:
            self.claimed.append(key)
        elif known[1] is not Trust.CLAIMED:
            self._compare(where, known[0], value)

    def _compare(self, where: str, known: PublicKey, value: object) -> None:
        """Note what a document says of a key that is known, and says otherwise."""
        other = differing(known, value)
        if other:
            self.find(
                "key-differs", Severity.WARNING, where,
                f"{where} states key {known.key_id} with another {', '.join(other)} than is known",
            )  # fmt: skip

    def find(self, code: str, severity: Severity, where: str, what: str) -> None:
        """Note what is wrong with a key document."""
        self._outcome.find(
            code, severity, Part.KEY, where, what,
            "ask the publisher which key is theirs, by another way than this tree",
        )  # fmt: skip


def differing(known: PublicKey, value: object) -> list[str]:
    """Return the fields in which a key document is not the one of a key that is known."""
    if isinstance(value, dict) and isinstance(value.get("public_key"), dict):
        value = value["public_key"]
    stated = value if isinstance(value, dict) else {}
    return [name for name, text in _document(known).items() if stated.get(name, "") != text]


@lru_cache(64)
def _document(key: PublicKey) -> dict[str, Any]:
    """Return a key's document: the same few keys are compared with many bundles."""
    return to_document(key)


def read_keys(tree: Tree, paths: Sequence[str], keys: TreeKeys) -> None:
    """Take in the key documents of a tree.

    Args:
        tree: where they lie.
        paths: `keys/<key_id>.json` and the like, as far as they are there.
        keys: where they go.
    """
    for path in paths:
        try:
            raw = tree.read(path, MAX_KEY_BYTES)
            value = None if raw is None else parse(raw, max_bytes=MAX_KEY_BYTES)
        except RefusedError as error:
            keys.find("key-unreadable", Severity.BROKEN, path, str(error))
            continue
        keys.claim(path, value)
        stated = value.get("key_id") if isinstance(value, dict) else None
        named = {f"keys/{stated}.json", *_by_fingerprint(value)}
        if path.startswith("keys/") and path not in named:
            keys.find(
                "key-misplaced", Severity.BROKEN, path, f"{path} holds the key {stated!r:.100}"
            )


def _by_fingerprint(value: object) -> list[str]:
    """Return how the file of a key is called whose id is no plain name."""
    stated = value.get("fingerprint_sha256_hex") if isinstance(value, dict) else None
    return [f"keys/{stated}.json"]


def read_mirrors(tree: Tree, keys: TreeKeys, outcome: Outcome) -> Manifest | None:
    """Return a tree's mirror manifest; the keys it states are claims, too."""
    try:
        raw = tree.read(MANIFEST, 1 << 20)
        if raw is None:
            return None
        manifest = read_manifest(raw)
    except RefusedError as error:
        outcome.find(
            "manifest-unreadable", Severity.BROKEN, Part.MANIFEST, MANIFEST, str(error),
            "fetch it again from the publisher",
        )  # fmt: skip
        return None
    for mirror in manifest.mirrors:
        if mirror.public_key is not None and mirror.public_key.get("public_key_b64"):
            keys.claim(f"{MANIFEST}, mirror {mirror.name:.80}", mirror.public_key)
    return manifest


class Own(msgspec.Struct, frozen=True):
    """What a tree says of itself where it has no signed index: enough to tell what it lacks."""

    index: bool
    log: bool


def promised(manifest: Manifest | None) -> Own:
    """Return whether a manifest promises an index and a log."""
    mirrors = manifest.mirrors if manifest is not None else ()
    return Own(
        index=any(mirror.index is not None for mirror in mirrors),
        log=any(mirror.log is not None for mirror in mirrors),
    )
