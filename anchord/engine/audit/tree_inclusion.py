"""Inclusion proofs that bundles carry: each event in its log, under a checkpoint that is signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from anchord.core.checkpoint import Checkpoint, log_verifiers, open_checkpoint, parse
from anchord.core.event import event_id
from anchord.core.finding import Part, Severity
from anchord.core.log import leaf_hash, verify_inclusion
from anchord.core.note import parse as parse_note
from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.tree_words import KEY_TODO, code_of
from anchord.errors import AnchordError, VerificationError

if TYPE_CHECKING:
    from anchord.core.inclusion import IncludedEvent, Inclusion
    from anchord.engine.audit.bundles import Examined
    from anchord.engine.audit.tree_records import Context

_KEPT = 1_000
"""Checkpoints remembered; those of one log are few, and a stranger's bundle must not fill us."""


class Included(NamedTuple):
    """What became of a bundle's inclusion proofs."""

    entries: list[tuple[bytes, bytes | None, str]]
    """(digest, signature, signer) of events; no signature: they need not be in the tree's log."""
    bare: list[bytes]
    """Digests of those that the bundle does not prove to be in it."""
    others: list[str]
    """Signers of events that belong into another log, which is not here."""


class InclusionAuditor:
    """Checks inclusion proofs; a checkpoint's signature is checked once.

    Args:
        context: keys, and the tree's log where it has one.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.outcome = Outcome(context.options)
        """Where findings go."""
        self._known: dict[str, Checkpoint | None] = {}

    def check(self, found: Examined) -> Included:
        """Check all of a bundle's proofs."""
        head = self._context.head
        entries = {event_id(digest): (digest, sign) for digest, sign, _ in found.entries}
        proved: set[bytes] = set()
        for inclusion in found.inclusion:
            checkpoint = self._checkpoint(found.subject, inclusion)
            for event in inclusion.events:
                known = entries.get(event.event_id)
                if checkpoint is None or known is None:
                    continue  # what is not believed needs no place in a log
                self._prove(found.subject, event, known[0] + known[1], checkpoint)
                if head is not None and (
                    checkpoint.origin == head.origin or head.covers(checkpoint)
                ):
                    proved.add(known[0])
        mine = [entry for entry in found.entries if head is not None and entry[2] in head.signers]
        bare = [digest for digest, _, _ in mine if digest not in proved]
        others = [
            signer
            for _, _, signer in found.entries
            if head is not None and signer not in head.signers
        ]
        known_here = {entry[0] for entry in mine}
        free = [(d, None, by) for d, _, by in found.entries if d not in known_here]
        return Included([*mine, *free], bare, others)

    def _prove(
        self, subject: str, event: IncludedEvent, entry: bytes, checkpoint: Checkpoint
    ) -> None:
        try:
            verify_inclusion(
                leaf_hash(entry), event.index, checkpoint.size, event.hashes, checkpoint.root
            )
        except VerificationError as error:
            self._find("inclusion-wrong", subject, f"{event.event_id}: {error}")
        else:
            self.outcome.count("inclusions")

    def _checkpoint(self, subject: str, inclusion: Inclusion) -> Checkpoint | None:
        note = inclusion.checkpoint
        if note in self._known:
            return self._known[note]
        try:
            found: Checkpoint | None = self._open(note.encode("utf-8"))
        except AnchordError as error:
            self._find(code_of(error, "checkpoint"), subject, str(error))
            return None
        found = self._of_log(subject, found)
        if len(self._known) < _KEPT:
            self._known[note] = found
        return found

    def _open(self, raw: bytes) -> Checkpoint | None:
        """Return a checkpoint by a trusted key; None where only a claimed key has signed it."""
        origin = parse(raw).origin
        context = self._context
        verifiers = log_verifiers(origin, (*context.given, *context.keyring))
        known = {(one.name, one.key_hash) for one in verifiers}
        if not known & {(line.name, line.key_hash) for line in parse_note(raw).lines}:
            self.outcome.doubt("checkpoints in bundles are by keys nobody gave: " + KEY_TODO)
            return None
        found = open_checkpoint(raw, verifiers)
        self.outcome.count("signatures")
        return found

    def _of_log(self, subject: str, found: Checkpoint | None) -> Checkpoint | None:
        """Hold a checkpoint against the tree's own log: one name must not stand for two."""
        head = self._context.head
        if found is None or head is None or found.origin != head.origin:
            return found
        root = head.roots.get(found.size)
        if root != found.root:
            what = "is none that is published here" if root is None else "has another root here"
            self._find(
                "checkpoint-differs", subject,
                f"the checkpoint of {found.size:,} entries that covers its events {what}",
            )  # fmt: skip
        return found

    def _find(self, code: str, subject: str, what: str) -> None:
        self.outcome.find(
            code, Severity.BROKEN, Part.CHECKPOINT, subject, what,
            "fetch the bundle again; a signed checkpoint that differs is worth telling others",
        )  # fmt: skip
