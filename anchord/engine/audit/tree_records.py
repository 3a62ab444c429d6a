"""The files of a few records, audited: what worker processes do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from anchord.core.bundle import BUNDLE_TYPE, MAX_BUNDLE_BYTES
from anchord.core.canonical import canonical_bytes, pith_suffix
from anchord.core.event import ITEM_STORED
from anchord.core.finding import Part, Severity
from anchord.core.keyring import Keyring
from anchord.core.proof import MAX_PROOF_BYTES
from anchord.core.state import MAX_STATE_BYTES, state_bytes, state_of_merged
from anchord.core.strictjson import UNREADABLE
from anchord.core.trust import Keys
from anchord.engine.audit.bundles import Anchor, BundleAuditor, Examined, ends, well_written
from anchord.engine.audit.fast_proofs import ProofReader
from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.tree_inclusion import InclusionAuditor
from anchord.engine.audit.tree_scratch import FileLine
from anchord.engine.audit.tree_survey import BUNDLE, NAMED, PROOF, STATE, Unit
from anchord.engine.audit.tree_words import code_of, shown
from anchord.errors import AnchordError, RefusedError

if TYPE_CHECKING:
    from anchord.core.audit import AuditOptions
    from anchord.core.keyring import PublicKey
    from anchord.engine.audit.tree_log import Head
    from anchord.ports.tree import Tree

NOT_HASHED = -1
_EVENT_ID = re.compile(r"sha256:([0-9a-f]{64})")
_NAME = re.compile(r"[A-Z2-7]{26}|[0-9a-f]{64}", re.ASCII)
_TODO = "fetch the record's files again, from the publisher or another mirror"


class Context(NamedTuple):
    """All that a worker needs to know; it can be sent to another process."""

    tree: Tree
    keyring: Keyring
    given: tuple[PublicKey, ...]
    claimed: tuple[PublicKey, ...]
    published: tuple[PublicKey, ...]
    """The publisher's keyring, as the tree states it: what its states were made with."""
    options: AuditOptions
    head: Head | None
    """The tree's log, where it has one."""
    fresh: frozenset[bytes] | None
    """Digests of events after the checkpoint that is kept; None: everything is verified."""
    indexed: bool
    """A signed index says which bytes each file has."""
    drawn: frozenset[str] | None
    """Units that are verified; None: all."""
    counted: bool = False
    """They are looked at again: they and their files have been counted."""


class Chunk(NamedTuple):
    """What became of some records."""

    outcome: Outcome
    examined: list[Examined]
    """Without bundle and merge, which the parent has no use for."""
    files: list[FileLine]
    bundles: list[tuple[bytes, str]]
    """(record's digest, path)."""
    events: list[tuple[bytes, bytes | None, str]]
    """(digest, signature or None where it was not checked, subject), of the log's signer."""
    members: list[tuple[str, str, str, bytes]]
    """(item, file, member, SHA-256) that storage events sign for."""
    bare: list[tuple[bytes, str]]
    """(digest, subject) of events the bundle does not prove to be in the log."""
    skipped: list[tuple[bytes, str]]
    """(digest, path) of events that bundles which were only hashed say are the log's signer's."""
    others: Counter[str]
    """Signer -> events that belong into another log."""


class _StatedSigner(msgspec.Struct):
    signer_id: str | None = None


class _StatedEvent(msgspec.Struct):
    event_id: str
    signer: _StatedSigner | None = None


class _StatedEvents(msgspec.Struct):
    events: list[_StatedEvent]


_stated_events = msgspec.json.Decoder(_StatedEvents)


class _Kind(msgspec.Struct):
    bundle_type: str = ""


class RecordAuditor:
    """Audits records, a chunk at a time; a checkpoint that was checked is remembered.

    Args:
        context: what is known of the tree.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        published = {key.key_id: key for key in context.published}
        self._publisher = (
            Keys(Keyring(published)) if published else Keys(context.keyring, context.given)
        )
        self._inclusion = InclusionAuditor(context)
        self._proofs = ProofReader()
        self._begin()

    def _begin(self) -> None:
        context, self._outcome = self._context, Outcome(self._context.options)
        self._bundles = BundleAuditor(
            context.keyring, context.given, context.claimed, self._outcome, self._proofs
        )
        self._inclusion.outcome = self._outcome
        self._chunk = Chunk(self._outcome, [], [], [], [], [], [], [], Counter())

    def run(self, units: Sequence[Unit]) -> Chunk:
        """Audit some records."""
        self._begin()
        for unit in units:
            if self._context.drawn is not None and unit.path not in self._context.drawn:
                self._chunk.files.extend(
                    FileLine(shown(path), NOT_HASHED, b"") for path in unit.paths
                )
                self._outcome.count("records_counted", BUNDLE in unit.names or unit.loose)
                continue
            self._unit(unit)
        return self._chunk

    def _unit(self, unit: Unit) -> None:
        files = {}
        for name in unit.names:
            raw = self._read(unit.folder + name)
            if raw is not None:
                files[name] = raw
        name = BUNDLE if BUNDLE in files else unit.names[0]
        raw = files.get(name)
        loose = unit.loose
        if raw is None or (loose and not _says_bundle(raw)):
            self._strange(unit, known=raw is None or not loose)
            return
        if name != BUNDLE and not loose:
            self._strange(unit, known=False)
            return
        self._outcome.count("records_counted", not self._context.counted)
        if self._skip(raw, unit):
            return
        found = self._bundles.examine(shown(unit.folder + name), raw)
        if found is not None:
            self._take(unit, name, found, files)

    # ------------------------------------------------------------------ files

    def _read(self, path: str) -> bytes | None:
        try:
            limit = MAX_STATE_BYTES if path.endswith("/" + STATE) else MAX_BUNDLE_BYTES
            raw = self._context.tree.read(path, limit)
            why = "it went away, or is a link to nothing"
        except RefusedError as error:
            raw, why = None, str(error)
        if raw is None:
            self._outcome.find(
                "file-unreadable", Severity.BROKEN, Part.INDEX, shown(path), why,
                "give read access to it, or fetch it again",
            )  # fmt: skip
            return None
        if not self._context.counted:
            self._chunk.files.append(FileLine(shown(path), len(raw), sha256(raw).digest()))
            self._outcome.count("files")
        return raw

    def _strange(self, unit: Unit, *, known: bool) -> None:
        if not known:
            what = "it is no bundle" if len(unit.names) == 1 else f"there is no {BUNDLE} beside it"
            # Who calls a file so, or names it to be audited, says that it is one.
            severity = Severity.BROKEN if unit.path.endswith(NAMED) else Severity.WARNING
            self._outcome.find(
                "file-unknown", severity, Part.BUNDLE, shown(unit.path),
                f"expected a bundle, and {what}: nothing vouches for this file", _TODO,
            )  # fmt: skip

    def _skip(self, raw: bytes, unit: Unit) -> bool:
        """Note the events of a bundle that has none after the kept checkpoint; tell if it is so."""
        fresh, head = self._context.fresh, self._context.head
        stated = None if fresh is None else _stated(raw)
        if stated is None or fresh is None or any(digest in fresh for digest, _ in stated):
            return False
        signers = frozenset() if head is None else head.signers
        path = shown(unit.path)
        self._chunk.events.extend((digest, None, path) for digest, _ in set(stated))
        self._chunk.skipped.extend((digest, path) for digest, by in set(stated) if by in signers)
        return True

    # ------------------------------------------------------------------ a record

    def _take(self, unit: Unit, name: str, found: Examined, files: dict[str, bytes]) -> None:
        path = unit.folder + name
        before = self._outcome.broken
        self._outcome.count("records")
        self._chunk.bundles.append((found.digest, shown(path)))
        self._check_name(path, found)
        if not self._context.indexed:
            self._check_spelling(path, files[name], found)
        elif placed(path):
            self._check_company(path, found, files)
        mine = self._inclusion.check(found)
        self._chunk.events.extend((d, s, found.subject) for d, s, _ in mine.entries)
        self._chunk.events.extend((digest, None, found.subject) for digest in _doubted(found))
        self._chunk.bare.extend((digest, found.subject) for digest in mine.bare)
        self._chunk.others.update(mine.others)
        self._chunk.members.extend(_members(found))
        paths = found.paths
        if PROOF in files:
            paths = (*paths, *self._check_proof(unit.folder + PROOF, files[PROOF], found))
        if STATE in files:
            self._check_state(unit.folder + STATE, files[STATE], found)
        sound = found.standing.sound and self._outcome.broken == before
        self._chunk.examined.append(
            found._replace(
                paths=paths,
                standing=found.standing._replace(sound=sound),
                entries=(),
                inclusion=(),
                bundle=None,
                merged=None,
            )
        )

    def _check_name(self, path: str, found: Examined) -> None:
        """A file that is named for one record and is about another was swapped or misnamed."""
        head, _, name = path.rpartition("/")
        stem = head.rpartition("/")[2] if name == BUNDLE else name.removesuffix(".json")
        stem = stem.removesuffix(".bundle")
        if (_NAME.fullmatch(stem) or placed(path)) and stem not in (
            pith_suffix(found.digest), found.digest.hex()
        ):  # fmt: skip
            self._find(
                "bundle-misplaced", Part.BUNDLE, path,
                f"it lies under the name {stem:.80} and is the bundle of {found.subject}",
            )  # fmt: skip

    def _check_spelling(self, path: str, raw: bytes, found: Examined) -> None:
        """Compare a bundle with how anchord writes what it says.

        What was repeated, moved or left out among parts that nobody signs for shows there.
        """
        ours = found.bundle is not None and (found.bundle.keys or found.bundle.inclusion)
        if ours and not well_written(raw, found):
            self._outcome.find(
                "bundle-respelled", Severity.WARNING, Part.BUNDLE, shown(path),
                f"the bundle of {found.subject} is not written as anchord writes it: aliases, "
                "keys or events were moved, repeated or left out, or another program made it",
                "compare it with another copy",
            )  # fmt: skip

    def _check_company(self, path: str, found: Examined, files: dict[str, bytes]) -> None:
        wanted = [STATE, *([PROOF] if found.anchors else [])]
        for name in wanted:
            if name not in files:
                self._outcome.find(
                    "file-missing", Severity.WARNING, Part.BUNDLE, shown(path),
                    f"there is no {name} beside the bundle of {found.subject}", _TODO,
                )  # fmt: skip

    def _check_proof(self, path: str, raw: bytes, found: Examined) -> list[Anchor]:
        """Check the `.ots` beside a bundle: it must say at least what the event says."""
        try:
            if len(raw) > MAX_PROOF_BYTES:
                raise RefusedError(f"expected a proof of at most {MAX_PROOF_BYTES:,} bytes")
            proof = self._proofs(raw, found.digest)
        except AnchordError as error:
            self._find(code_of(error, "proof"), Part.PROOF, path, str(error))
            return []
        known = ends(proof, None)
        missing = [end for end in found.anchors if end._replace(claims=None) not in known]
        if found.anchors and len(missing) == len(found.anchors):
            self._find(
                "proof-differs", Part.PROOF, path,
                f"it does not lead to block {missing[0].height}, where the event's proof leads",
            )  # fmt: skip
        self._outcome.count("proofs", len(known))
        return known

    def _check_state(self, path: str, raw: bytes, found: Examined) -> None:
        """Hold a state against what the merge makes of the bundle, under the publisher's keys."""
        bundle, merged = found.bundle, found.merged
        if bundle is None or merged is None:
            return
        try:
            # Whoever has the keys of a bundle's events merges it alike: mostly once is enough.
            expected = canonical_bytes(state_of_merged(bundle, merged)) + b"\n"
            if raw != expected:
                expected = state_bytes(bundle, self._publisher)
        except AnchordError as error:
            self._find(code_of(error, "state"), Part.STATE, path, str(error))
            return
        if raw != expected:
            pairs = enumerate(zip(raw, expected, strict=False))
            place = next((n for n, (a, b) in pairs if a != b), min(len(raw), len(expected)))
            self._find(
                "state-differs", Part.STATE, path,
                f"the bundle beside it gives another state: byte {place} is the first that "
                f"differs, there is {raw[place : place + 40]!r}, expected "
                f"{expected[place : place + 40]!r}",
            )  # fmt: skip

    def _find(self, code: str, part: Part, path: str, what: str) -> None:
        self._outcome.find(code, Severity.BROKEN, part, shown(path), what, _TODO)


def placed(path: str) -> bool:
    """Tell whether a bundle lies where a published tree has bundles."""
    return path.endswith("/" + BUNDLE) and path.startswith(("pith/", "record/"))


def _doubted(found: Examined) -> Iterator[bytes]:
    """Yield the digests of signed events that are there, and that no trusted key vouches for."""
    for one in found.merged.unverified if found.merged is not None else ():
        if "signature_b64" in one.event:  # so its id has been recomputed
            yield bytes.fromhex(one.event_id.removeprefix("sha256:"))


def _members(found: Examined) -> Iterator[tuple[str, str, str, bytes]]:
    for one in found.merged.standing if found.merged is not None else ():
        if one.proved.event_type == ITEM_STORED:
            stated = one.event["payload"]
            digest = bytes.fromhex(stated["member_sha256"])
            yield stated["identifier"], stated["file"], stated["member"], digest


def _stated(raw: bytes) -> list[tuple[bytes, str | None]] | None:
    """Return (digest, signer) of the events a bundle states; None when that cannot be told."""
    try:
        events = _stated_events.decode(raw).events
    except UNREADABLE:
        return None
    return [
        (bytes.fromhex(name[1]), None if event.signer is None else event.signer.signer_id)
        for event in events
        if (name := _EVENT_ID.fullmatch(event.event_id)) is not None
    ]


def _says_bundle(raw: bytes) -> bool:
    try:
        return msgspec.json.decode(raw, type=_Kind).bundle_type == BUNDLE_TYPE
    except UNREADABLE:
        return False
