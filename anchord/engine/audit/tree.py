"""The audit of a published tree, or of a plain folder of bundles, with nothing but public keys.

No store, no configuration, no network: what lies there is all there is, and none of it is believed.
Three things vouch for a tree, each for what the others cannot: signatures for what events say, the
signed index for which files there are, and the log for which events there are. A folder of bundles
has the first alone, and the report says so by its kind.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from anchord.core.checkpoint import Checkpoint
from anchord.core.event import event_id
from anchord.core.finding import Part, Severity
from anchord.core.tree_index import INDEX
from anchord.engine.audit.outcome import Outcome, ReportFacts
from anchord.engine.audit.tree_anchors import Anchors
from anchord.engine.audit.tree_index import (
    Listed,
    compare_copies,
    compare_files,
    find_repeated,
    read_tree_index,
)
from anchord.engine.audit.tree_items import ItemAuditor
from anchord.engine.audit.tree_keys import Own, TreeKeys, promised, read_keys, read_mirrors
from anchord.engine.audit.tree_log import Head, LogAuditor
from anchord.engine.audit.tree_records import Chunk, Context
from anchord.engine.audit.tree_scratch import FileLine, Scratch
from anchord.engine.audit.tree_survey import CHECKPOINT, Kind, Survey, Unit, walk
from anchord.engine.audit.tree_words import shown
from anchord.engine.audit.tree_workers import chunks_done
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.core.audit import AuditOptions
    from anchord.core.keyring import Keyring, PublicKey
    from anchord.engine.header_view import HeaderView
    from anchord.ports.tree import Tree

Progress = Callable[[str, int, int], None]
_MARKER = ".publishing.lock"
"""An empty file that the publisher holds while it writes; it says nothing."""
AT_ONCE = 128
"""Records in a chunk: what one process holds of them stays small."""
_LOG_TODO = "fetch the tree again; if it stays so, tell others: the log's signer must answer for it"


def audit_tree(
    tree: Tree,
    keyring: Keyring,
    given: Sequence[PublicKey],
    headers: HeaderView,
    options: AuditOptions,
    on_progress: Progress,
) -> tuple[Outcome, ReportFacts]:
    """Audit what lies in a tree.

    Args:
        tree: published files, or bundles.
        keyring: keys that are trusted.
        given: keys the person who asks has named. Keys that only the tree states are claims.
        headers: who confirms blocks.
        options: what to look at.
        on_progress: told (what, done, total).

    Returns:
        What was found, and what a report says of it.
    """
    with Scratch() as scratch:
        audit = _TreeAudit(tree, keyring, given, headers, options, scratch)
        return audit.run(on_progress)


class _TreeAudit:
    """One audit as it goes."""

    def __init__(
        self, tree: Tree, keyring: Keyring, given: Sequence[PublicKey], headers: HeaderView,
        options: AuditOptions, scratch: Scratch,
    ) -> None:  # fmt: skip
        self._tree, self._options, self._scratch = tree, options, scratch
        self._headers = headers
        self._outcome = Outcome(options)
        self._keys = TreeKeys(keyring, given, self._outcome)
        self._anchors = Anchors(headers, self._outcome)
        self._others: Counter[str] = Counter()
        """Signer -> events that belong into another log than the one here."""
        self._hashed: list[FileLine] = []
        """Of files that are of no record, until they are enough to be noted at once."""
        self._log = LogAuditor(tree, self._keys, self._outcome, scratch)

    def run(self, on_progress: Progress) -> tuple[Outcome, ReportFacts]:
        """Audit everything; what others are held against comes first."""
        on_progress("files", 0, 0)
        survey = Survey(self._tree, self._options)
        self._read_claims(survey)
        own = promised(read_mirrors(self._tree, self._keys, self._outcome))
        index_paths = survey.paths[Kind.INDEX]
        listed = read_tree_index(self._tree, index_paths, self._keys, self._outcome, self._scratch)
        since = self._since()
        head = self._read_log(survey, own, since)
        self._check_records(survey, listed, head, since, on_progress)
        self._finish(survey, own, listed, head)
        return self._outcome, self._facts(survey)

    def _read_claims(self, survey: Survey) -> None:
        # keys/ first: it is the publisher's keyring; the signing key is one of them.
        read_keys(self._tree, sorted(survey.paths[Kind.KEY]), self._keys)

    # ------------------------------------------------------------------ the log

    def _since(self) -> Checkpoint | None:
        """Return the checkpoint that an earlier audit kept, if it can still be believed."""
        raw = self._options.since
        return None if raw is None else self._log.open("the kept checkpoint", raw)

    def _read_log(self, survey: Survey, own: Own, since: Checkpoint | None) -> Head | None:
        if CHECKPOINT in survey.paths[Kind.CHECKPOINT]:
            head = self._log.run(list(survey.sizes), since)
            if head is not None:
                self._log.check_partial(survey.paths[Kind.TILE], head.size)
                self._log.check_proofs(survey.sizes, self._anchors)
            return head
        if own.log or survey.published or since is not None:
            # A new ledger has no checkpoint yet; then it has no events either.
            severe = survey.sizes or survey.paths[Kind.TILE] or since is not None
            self._outcome.find(
                "checkpoint-missing", Severity.BROKEN if severe else Severity.WARNING,
                Part.CHECKPOINT, CHECKPOINT,
                f"{CHECKPOINT} is not there: nothing says which events there ought to be",
                _LOG_TODO,
            )  # fmt: skip
        return None

    # ------------------------------------------------------------------ records

    def _check_records(
        self,
        survey: Survey,
        listed: Listed | None,
        head: Head | None,
        since: Checkpoint | None,
        on_progress: Progress,
    ) -> None:
        context = Context(
            tree=self._tree,
            keyring=self._keys.keyring,
            given=self._keys.given,
            claimed=tuple(self._keys.claimed),
            published=tuple(self._keys.published.values()),
            options=self._options,
            head=head,
            fresh=self._fresh(head, since),
            indexed=listed is not None,
            drawn=None if self._options.sample is None else survey.drawn,
        )
        done = 0
        for chunk in chunks_done(context, self._units(), self._options.jobs):
            self._take(chunk)
            done += len(chunk.examined)
            on_progress("records", done, max(done, survey.units))
        if context.fresh is not None:
            # What its signer has in no log was in none when the checkpoint was made: it is new.
            again = frozenset(self._scratch.skipped_unlogged())
            context = context._replace(fresh=None, counted=True)
            for chunk in chunks_done(context, self._named(again), self._options.jobs):
                self._take(chunk)

    def _fresh(self, head: Head | None, since: Checkpoint | None) -> frozenset[bytes] | None:
        """Return the events after the kept checkpoint; None when all bundles are to be verified."""
        if since is None or head is None or head.roots.get(since.size) != since.root:
            return None
        return frozenset(self._scratch.digests_from(since.size))

    def _units(self) -> Iterator[list[Unit]]:
        """Yield records in chunks; other files are hashed on the way."""
        units = (item for item in self._walk() if item is not None)
        while chunk := list(itertools.islice(units, AT_ONCE)):
            yield chunk

    def _named(self, paths: frozenset[str]) -> Iterator[list[Unit]]:
        """Yield the records that lie at some paths."""
        for _, item in walk(self._tree) if paths else ():
            if isinstance(item, Unit) and shown(item.path) in paths:
                yield [item]

    def _walk(self) -> Iterator[Unit | None]:
        for kind, item in walk(self._tree):
            if isinstance(item, Unit):
                yield item
            elif kind is not Kind.INDEX:
                self._hash(item)

    def _hash(self, path: str) -> None:
        try:
            found = self._tree.hash(path)
            why = "it went away, or is a link to nothing"
        except RefusedError as error:
            found, why = None, str(error)
        if found is None:
            self._outcome.find(
                "file-unreadable", Severity.BROKEN, Part.INDEX, shown(path), why,
                "give read access to it, or fetch it again",
            )  # fmt: skip
            return
        self._outcome.count("files")
        if path != _MARKER or found[0]:
            self._hashed.append(FileLine(shown(path), *found))
            if len(self._hashed) >= AT_ONCE:
                self._put_hashed()

    def _put_hashed(self) -> None:
        self._scratch.hash_files(self._hashed)
        self._hashed.clear()

    def _take(self, chunk: Chunk) -> None:
        self._outcome.merge(chunk.outcome)
        self._scratch.hash_files(chunk.files)
        self._scratch.add_bundles(chunk.bundles)
        self._scratch.add_events(chunk.events)
        self._scratch.state_members(chunk.members)
        self._scratch.add_bare(chunk.bare)
        self._scratch.add_skipped(chunk.skipped)
        self._others.update(chunk.others)
        for examined in chunk.examined:
            self._anchors.settle(examined)

    # ------------------------------------------------------------------ both ways

    def _finish(self, survey: Survey, own: Own, listed: Listed | None, head: Head | None) -> None:
        self._put_hashed()
        if listed is not None:
            compare_files(self._outcome, self._scratch, listed.unread)
        elif survey.published and INDEX not in survey.paths[Kind.INDEX]:
            self._no_index(own)
        compare_copies(self._outcome, self._scratch)
        find_repeated(self._outcome, self._scratch)
        ItemAuditor(self._tree, self._keys, self._outcome, self._anchors, self._scratch).run(
            survey, self._options
        )
        if head is not None:
            self._compare_log()

    def _no_index(self, own: Own) -> None:
        self._outcome.find(
            "index-missing", Severity.BROKEN if own.index else Severity.WARNING, Part.INDEX,
            INDEX, "this is a published tree, and no signed index says which files it has",
            "ask the publisher for it: without it nobody can tell what was added or dropped",
        )  # fmt: skip

    def _compare_log(self) -> None:
        for digest, subject, other in self._scratch.unlogged():
            what = (
                "the log has another signature of it" if other else "it is in no entry of the log"
            )
            self._log_finding("event-not-logged", f"{event_id(digest)} of {subject}", what)
        for place, digest in self._scratch.repeated_entries():
            self._log_finding(
                "entry-repeated", f"entry {place}", f"{event_id(digest)} stood in the log before"
            )
        if self._options.sample is None:
            for place, digest in self._scratch.unseen():
                self._log_finding(
                    "event-missing", event_id(digest),
                    f"entry {place} of the log is this event, and no bundle here has it",
                )  # fmt: skip
        for signer, count in sorted(self._others.items()):
            self._outcome.find(
                "log-elsewhere", Severity.NOTE, Part.LEDGER, signer,
                f"{count:,} events of {signer:.100} belong into a log that is not here: whether "
                "more of theirs are missing, nothing here can tell",
                "ask for the tree that they publish themselves",
            )  # fmt: skip
        for subject, count in self._scratch.unproved():
            self._outcome.find(
                "inclusion-missing", Severity.WARNING, Part.BUNDLE, subject,
                f"its bundle does not prove {count} of its events to be in the log, which they are",
                "fetch the bundle again: the publisher has the proofs by now",
            )  # fmt: skip

    def _log_finding(self, code: str, subject: str, what: str) -> None:
        self._outcome.find(code, Severity.BROKEN, Part.LEDGER, subject, what, _LOG_TODO)

    # ------------------------------------------------------------------ what is reported

    def _facts(self, survey: Survey) -> ReportFacts:
        note = self._log.note
        words = []
        if self._options.sample is not None:
            words.append(
                f"{min(self._options.sample, survey.units):,} of {survey.units:,} records, drawn "
                f"with seed {self._options.seed}; that no event is missing was not checked"
            )
        if self._options.since is not None:
            words.append("bundles without an event after the kept checkpoint were only hashed")
        return ReportFacts(
            source=self._tree.name,
            kind="tree" if survey.published else "bundles",
            sampled="; ".join(words) or None,
            checkpoint=None if note is None else note.decode("utf-8"),
            chain=None if self._headers.none else self._headers.chain,
        )
