"""Auditing a store: everything it says is derived again from bytes, signatures and headers.

Order: what holds the whole together first (ledger, log, checkpoints, batches, blocks), then every
record with its events, tile by tile, in as many processes as were asked for. Only this process asks
for headers. Nothing is written.

What rests on nothing signed is not covered, and the report says so (`uncovered`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from anchord.core.finding import Part, Severity
from anchord.core.keyring import Keyring, PublicKey
from anchord.engine.audit.outcome import Outcome, ReportFacts
from anchord.engine.audit.store_batches import BatchAudit
from anchord.engine.audit.store_blocks import Blocks
from anchord.engine.audit.store_foreign import older_in, paths_in
from anchord.engine.audit.store_frame import RESTORE, UNREADABLE, Frame, unreadable
from anchord.engine.audit.store_ledger import LedgerAudit, series_lengths
from anchord.engine.audit.store_plan import draw, impossible, jobs
from anchord.engine.audit.store_pool import outcomes
from anchord.engine.audit.store_storage import FileAudit

if TYPE_CHECKING:
    from anchord.core.audit import AuditOptions
    from anchord.engine.audit.store_frame import Job
    from anchord.engine.header_view import HeaderView
    from anchord.ports.reading import ReadingStore

Progress = Callable[[str, int, int], None]
Elsewhere = Callable[[Frame, "Iterable[Job]"], Iterator[Outcome]]
"""Audits stretches of records at the very moment the store was opened at, and yields what was
found in each, or in some of them together, in their order."""

ALONE = 4_096
"""So many records are audited in less time than other processes take to start."""

UNCOVERED = (
    "labels, moments of retries, health of calendars, paces of lanes, answers as they came, and "
    "when a record came in are signed by nobody, so nothing tells whether they are as they were; "
    "neither does anything tell of records that were removed before they were put into a batch"
)


def audit_store(
    open_store: Callable[[], ReadingStore],
    keyring: Keyring,
    given: Sequence[PublicKey],
    headers: HeaderView,
    options: AuditOptions,
    on_progress: Progress,
    elsewhere: Elsewhere | None = None,
) -> tuple[Outcome, ReportFacts]:
    """Audit a store, as it was at one moment.

    Other processes open it a little later than this one. Where something was written meanwhile and
    anything at all was found, that may be all there is to it: it is then audited by one process.

    Args:
        open_store: opens it to be read only; can be sent to other processes.
        keyring: own and foreign keys.
        given: keys the person who asks has named.
        headers: block headers, asked once for each block.
        options: what to look at.
        on_progress: called with (stage, done, total); a total of 0 is not known.
        elsewhere: audits the records instead of processes of this machine, however few they are.

    Raises:
        FatalError: a process of this audit died.
        SignatureError: one key id stands for two different keys.
    """
    while True:
        outcome = Outcome(options)
        store = open_store()
        try:
            facts = _Audit(store, keyring, tuple(given), headers, outcome).run(
                open_store, options, on_progress, elsewhere
            )
            moved = elsewhere is None and options.jobs > 1 and store.changed()
        finally:
            store.close()
        if not moved or outcome.report(**msgspec.structs.asdict(facts)).result == "sound":
            return outcome, facts
        options = msgspec.structs.replace(options, jobs=1)


class _Audit:
    """One audit, in the process that was asked."""

    def __init__(
        self,
        store: ReadingStore,
        keyring: Keyring,
        given: tuple[PublicKey, ...],
        headers: HeaderView,
        outcome: Outcome,
    ) -> None:
        self._store, self._keyring, self._given = store, keyring, given
        self._outcome = outcome
        self._blocks = Blocks(headers, outcome)

    def run(
        self,
        open_store: Callable[[], ReadingStore],
        options: AuditOptions,
        on_progress: Progress,
        elsewhere: Elsewhere | None,
    ) -> ReportFacts:
        store, outcome = self._store, self._outcome
        outcome.find("not-covered", Severity.NOTE, Part.STORE, "columns nobody signs", UNCOVERED,
                     "nothing; publish a tree, so that others keep what you have")  # fmt: skip
        ledger = LedgerAudit(store, (*self._keyring, *self._given), outcome, on_progress)
        start = None if options.since is None else ledger.since(options.since)
        upto = 0 if start is None else start.size
        stages: tuple[tuple[str, Callable[[], None]], ...] = (
            ("the ledger", lambda: series_lengths(store, ledger.run(start), outcome)),
            ("what belongs together", self._orphans),
            ("what lists and plots show", self._misstated),
            ("the batches", lambda: BatchAudit(store, self._blocks, outcome).run(on_progress)),
            ("what was brought", self._kept),
            ("the items", lambda: FileAudit(store, outcome).run()),
        )
        for name, look in stages:
            try:
                look()
            except UNREADABLE as error:
                unreadable(outcome, name, error)
        frame = self._frame(options, upto)
        self._records(elsewhere or partial(outcomes, self._store, open_store), frame, on_progress)
        return ReportFacts(
            source="the store",
            kind="store",
            sampled=_left_out(frame),
            checkpoint=None if ledger.newest is None else ledger.newest.decode("utf-8"),
            chain=self._blocks.chain,
        )

    def _orphans(self) -> None:
        for table, what in self._store.audit.orphans():
            self._outcome.find("row-of-nothing", Severity.BROKEN, Part.STORE, f"{table}: {what}",
                               "what it belongs to was removed, or it was added",
                               RESTORE)  # fmt: skip

    def _misstated(self) -> None:
        for which, what in self._store.audit.misstated():
            self._outcome.find("count-differs", Severity.BROKEN, Part.STORE, which, what,
                               "lists or plots show what is not so: " + RESTORE)  # fmt: skip

    def _kept(self) -> None:
        """Hold files that were brought against their hashes, and their paths against headers."""
        trusted = {key.key_id for key in (*self._keyring, *self._given)}
        for name, digest, raw in self._store.audit.kept():
            found = sha256(raw).digest()
            if found != digest:
                what = f"it had SHA-256 {digest.hex()} when it came, now it has {found.hex()}"
                self._outcome.find("kept-file-changed", Severity.BROKEN, Part.STORE, name, what,
                                   RESTORE)  # fmt: skip
            self._blocks.look(paths_in(raw, trusted))
            self._blocks.look_older(older_in(raw, trusted))

    def _frame(self, options: AuditOptions, upto: int) -> Frame:
        drawn = None
        if options.sample is not None:
            drawn = draw(self._store.audit.digests(), options.sample, options.seed)
        return Frame(
            options=options,
            keyring=self._keyring,
            given=self._given,
            verdicts=self._blocks.verdicts,
            replaced=self._blocks.replaced,
            chain=self._blocks.chain,
            upto=upto,
            drawn=drawn,
        )

    def _wanted(self, frame: Frame) -> list[int] | None:
        """Return the records something may be verified about; None: all."""
        if frame.upto:
            return self._store.audit.touched(frame.upto)
        return None if frame.drawn is None else sorted(frame.drawn)

    def _records(self, audited: Elsewhere, frame: Frame, on_progress: Progress) -> None:
        last = self._store.audit.last_record()
        spans = self._store.audit.spans()
        for span in impossible(spans, last):
            what = f"it names records {span.first} to {span.last}, the last one is {last}"
            self._outcome.find("tile-damaged", Severity.BROKEN, Part.BATCH,
                               f"batch {span.batch_id}, tile {span.tile}", what,
                               RESTORE)  # fmt: skip
        wanted = self._wanted(frame)
        if (last if wanted is None else len(wanted)) <= ALONE:
            frame = msgspec.structs.replace(
                frame, options=msgspec.structs.replace(frame.options, jobs=1)
            )
        plan = jobs(spans, last, wanted)
        for found in audited(frame, plan):
            self._outcome.merge(found)
            on_progress("audit records", self._outcome.counted("records_counted"), last)


def _left_out(frame: Frame) -> str | None:
    """Say what was not verified."""
    parts = []
    if frame.upto:
        parts.append(
            f"events 1 to {frame.upto:,} were taken as the checkpoint given covers them: records "
            "without a later event were counted by their rows, not verified again"
        )
    if frame.drawn is not None:
        parts.append(
            f"{len(frame.drawn):,} records drawn with seed {frame.options.seed} were verified; "
            "of all others chain, log, checkpoints and batches were, and their rows counted"
        )
    return "; ".join(parts) or None
