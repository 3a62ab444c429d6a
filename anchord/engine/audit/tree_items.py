"""Items of archive.org that were downloaded into a folder: day manifests, ZIPs, their members."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from anchord.core.bundle import MAX_BUNDLE_BYTES
from anchord.core.event import canonical_body
from anchord.core.finding import Part, Severity
from anchord.core.item_name import (
    MAX_MANIFEST_BYTES,
    DayManifest,
    ManifestLine,
    manifest_name,
    read_day_manifest,
)
from anchord.core.strictjson import UNREADABLE
from anchord.core.trust import Trust
from anchord.engine.audit.bundles import BundleAuditor
from anchord.engine.audit.tree_survey import Kind
from anchord.engine.audit.tree_words import KEY_TODO, code_of, shown
from anchord.errors import AnchordError, RefusedError

if TYPE_CHECKING:
    from anchord.core.audit import AuditOptions
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.tree_anchors import Anchors
    from anchord.engine.audit.tree_keys import TreeKeys
    from anchord.engine.audit.tree_scratch import Scratch
    from anchord.engine.audit.tree_survey import Survey
    from anchord.ports.tree import Tree

MAX_ZIP_BYTES = 1 << 30
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What anchord packs with; others fail in ways of their own, and shrink without limit."""
_RATIO = 100
"""Bundles shrink to a tenth or a twentieth."""
_ZIP_ERRORS = (
    RefusedError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError,
    struct.error,
)  # fmt: skip
"""What a file that is no good ZIP makes `zipfile` raise; NotImplementedError is a RuntimeError."""
_TODO = "download the item again from archive.org"


class _Signer(msgspec.Struct):
    key_id: str


class _Signed(msgspec.Struct):
    signer: _Signer


class ItemAuditor:
    """Audits items that lie in a tree.

    Args:
        tree: where they lie.
        keys: who may have signed day manifests.
        outcome: where findings go.
        anchors: confirms blocks.
        scratch: what the bundles said of their members.
    """

    def __init__(
        self, tree: Tree, keys: TreeKeys, outcome: Outcome, anchors: Anchors, scratch: Scratch
    ) -> None:
        self._tree, self._keys, self._outcome = tree, keys, outcome
        self._anchors, self._scratch = anchors, scratch
        self._signed: set[str] = set()
        self._bundles = BundleAuditor(keys.keyring, keys.given, keys.claimed, outcome)

    def run(self, survey: Survey, options: AuditOptions) -> None:
        """Audit all of them; a sample has records in mind, not items, and leaves them out."""
        if options.sample is not None:
            return
        for path in survey.paths[Kind.DAY]:
            self._day(path)
        for path in sorted(set(survey.paths[Kind.ITEM]) - self._signed):
            self._outcome.find(
                "item-unsigned", Severity.WARNING, Part.ITEM, path,
                "no signed day manifest beside it lists it: nothing vouches for it", _TODO,
            )  # fmt: skip
        for identifier, name, member, stated, found in self._scratch.item_differences():
            what = "is not in it" if found is None else f"has sha256 {found.hex()} there"
            self._find(
                "item-member-differs", Part.ITEM, f"{identifier}/{name}",
                f"an event signs for the member {member} with sha256 {stated.hex()}, which {what}",
            )  # fmt: skip

    def _day(self, path: str) -> None:
        try:
            raw = self._tree.read(path, MAX_MANIFEST_BYTES)
            if raw is None:
                return  # whoever hashes it says that it went away
            if not self._known(path, raw):
                return
            day = read_day_manifest(raw, self._keys.keys)
            respelled = raw.strip() != canonical_body(msgspec.json.decode(raw))
        except AnchordError as error:
            self._find(code_of(error, "manifest"), Part.MANIFEST, path, str(error))
            return
        self._outcome.count("signatures")
        if day.trust is Trust.CLAIMED:
            self._outcome.doubt("day manifests are signed by keys nobody gave: " + KEY_TODO)
            self._outcome.lack(day.key_id)
        if respelled:
            self._outcome.find(
                "manifest-respelled", Severity.WARNING, Part.MANIFEST, path,
                "it says what was signed, in other bytes than those its signer wrote", _TODO,
            )  # fmt: skip
        head, slash, name = path.rpartition("/")
        dated = name.removeprefix("manifest-").removesuffix(".json")
        if not day.identifier.endswith("-" + dated):
            self._find(
                "manifest-misplaced", Part.MANIFEST, path,
                f"it is the manifest of item {day.identifier}",
            )  # fmt: skip
        self._files(head + slash, day)

    def _known(self, path: str, raw: bytes) -> bool:
        """Tell whether a manifest can be checked at all; without its key it can be neither."""
        with contextlib.suppress(*UNREADABLE):
            key_id = msgspec.json.decode(raw, type=_Signed).signer.key_id
            if self._keys.keys.find(key_id) is None:
                self._outcome.doubt("day manifests are signed by keys nobody gave: " + KEY_TODO)
                self._outcome.lack(key_id)
                self._outcome.find(
                    "manifest-unverified", Severity.WARNING, Part.MANIFEST, path,
                    f"it is signed by key {key_id:.100}, which is not known",
                    "give the key with --key if you believe who published it",
                )  # fmt: skip
                return False
        return True

    def _files(self, folder: str, day: DayManifest) -> None:
        for file in day.files:
            path = folder + file.name
            self._signed.add(path)
            try:
                found = self._tree.hash(path)
            except RefusedError:
                continue  # it is found as unreadable where all files are hashed
            if found is None:
                self._outcome.find(
                    "item-file-absent", Severity.NOTE, Part.ITEM, path,
                    f"the manifest of {day.identifier} lists it, and it is not here",
                    f"download it from item {day.identifier} to have it checked",
                )  # fmt: skip
                continue
            self._outcome.count("files")
            if found != (file.size, bytes.fromhex(file.sha256)):
                self._find(
                    "item-file-changed", Part.ITEM, path,
                    f"it has {found[0]:,} bytes with sha256 {found[1].hex()}, signed were "
                    f"{file.size:,} with {file.sha256}",
                )  # fmt: skip
            elif file.name.endswith(".zip"):
                self._zip(path, file.name, day.identifier, file.members)

    # ------------------------------------------------------------------ a ZIP

    def _zip(self, path: str, name: str, identifier: str, members: int) -> None:
        """Audit the bundles in a ZIP whose bytes are those that were signed."""
        try:
            raw = self._tree.read(path, MAX_ZIP_BYTES)
            with zipfile.ZipFile(io.BytesIO(raw or b"")) as file:
                infos = file.infolist()
                why = _unlike(infos, members, len(raw or b""))
                if why is None:
                    lines = self._lines(manifest_name(path), len(infos))
                    for info, line in zip(infos, lines, strict=True):
                        digest = self._member(path, info.filename, file.read(info), line)
                        self._scratch.add_members([(identifier, name, info.filename, digest)])
        except _ZIP_ERRORS as error:
            why = f"{error}"
        if why is not None:
            self._find("item-unreadable", Part.ITEM, path, why)

    def _lines(self, path: str, members: int) -> Sequence[ManifestLine | None]:
        """Return what the manifest beside a ZIP says of each member; None where it is not here."""
        try:
            raw = self._tree.read(path, MAX_MANIFEST_BYTES)
            if raw is None:
                return [None] * members
            lines = [msgspec.json.decode(line, type=ManifestLine) for line in raw.splitlines()]
        except (RefusedError, *UNREADABLE) as error:
            self._find("manifest-unreadable", Part.MANIFEST, path, str(error))
            return [None] * members
        if len(lines) == members:
            return lines
        what = f"it has {len(lines):,} lines, the ZIP beside it {members:,} members"
        self._find("manifest-differs", Part.MANIFEST, path, what)
        return [None] * members

    def _member(self, path: str, name: str, raw: bytes, line: ManifestLine | None) -> bytes:
        """Audit one bundle; return its SHA-256."""
        place, digest = f"{path}/{name}", sha256(raw).digest()
        found = self._bundles.examine(place, raw)
        if found is None:
            return digest
        if name != f"{found.digest.hex()}.json":
            self._find("bundle-misplaced", Part.ITEM, place, f"it is the bundle of {found.subject}")
        stated = None if line is None else (line.path, line.size, line.sha256, line.record)
        if stated not in (None, (name, len(raw), digest.hex(), found.subject)):
            self._find(
                "manifest-differs", Part.MANIFEST, place,
                f"the manifest beside the ZIP says {stated} of it",
            )  # fmt: skip
        if not self._scratch.has_bundle(found.digest):
            # The folder has the items alone: then they are what there is to be counted.
            self._scratch.add_bundles([(found.digest, shown(place))])
            self._outcome.count("records_counted")
            self._outcome.count("records")
            self._anchors.settle(found)
        return digest

    def _find(self, code: str, part: Part, path: str, what: str) -> None:
        self._outcome.find(code, Severity.BROKEN, part, shown(path), what, _TODO)


def _unlike(infos: Sequence[zipfile.ZipInfo], members: int, size: int) -> str | None:
    """Return why a ZIP of `size` bytes is not one of anchord's; nothing of it is unpacked yet."""
    if len(infos) != members or len({info.filename for info in infos}) != members:
        return f"expected {members:,} members with names of their own, got {len(infos):,}"
    if any(info.file_size > MAX_BUNDLE_BYTES for info in infos):
        return "it has a member that is too big for a bundle"
    if any(info.compress_type not in _COMPRESSIONS for info in infos):
        return "it has a member that is neither stored nor deflated"
    if sum(info.file_size for info in infos) > MAX_BUNDLE_BYTES + _RATIO * size:
        return "it unpacks to far more than it is"
    return None
