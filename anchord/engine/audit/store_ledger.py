"""Auditing the ledger as a whole: rows without a gap, chain, log, checkpoints, series' lengths."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anchord.core.finding import Part, Severity
from anchord.core.log import peaks_of, root
from anchord.engine.audit.store_frame import RESTORE
from anchord.engine.audit.store_garbage import no_collections
from anchord.engine.audit.store_log import TILE_HEIGHT, Growing, Walk
from anchord.engine.audit.store_notes import Notes
from anchord.errors import AnchordError, FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anchord.core.keyring import PublicKey
    from anchord.engine.audit.outcome import Outcome
    from anchord.ports.log import StoredCheckpoint
    from anchord.ports.reading import ReadingStore

_PROGRESS = "audit ledger"


class LedgerAudit:
    """The rows in order, and everything that is said about all of them.

    Args:
        store: opened to be read.
        keys: whose checkpoints are believed.
        outcome: where findings go.
        on_progress: called with (stage, done, total).
    """

    def __init__(
        self,
        store: ReadingStore,
        keys: Sequence[PublicKey],
        outcome: Outcome,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._store, self._outcome, self._progress = store, outcome, on_progress
        self._notes = Notes(keys, outcome)
        self._old: dict[int, int] = {}
        self.newest: bytes | None = None
        """The newest checkpoint that holds."""

    def since(self, note: bytes) -> Growing | None:
        """Return the log as the checkpoint an auditor kept saw it; None when it does not hold."""
        kept = self._notes.read(note, "the checkpoint given")
        if kept is None:
            return None
        size, signed = kept
        log, found = None, ""
        try:
            log = self._frontier(size)
            found = log.root().hex()
        except FatalError as error:
            found = f"nothing: {error}"
        if log is None or found != signed.hex():
            self._broken(
                "history-rewritten", Part.CHECKPOINT, f"checkpoint {size}",
                f"a checkpoint over {size} events has root {signed.hex()}, and what the store has "
                f"of these events leads to {found}",
                "the ledger was rewritten after that checkpoint was signed: " + RESTORE,
            )  # fmt: skip
            return None
        self._old = self._store.audit.counts_by_series(size)
        self.newest = note
        return log

    def _frontier(self, size: int) -> Growing:
        if size > self._store.audit.length():
            raise FatalError(f"the ledger has {self._store.audit.length()} rows")
        peaks = []
        for height, place in peaks_of(0, size):
            level, rest = divmod(height, TILE_HEIGHT)
            start, stop = place << rest, (place + 1) << rest
            log = self._store.log
            read = log.leaf_hashes if not level else partial(log.nodes, level)
            peaks.append(root(read(start, stop)))
        return Growing(size, peaks)

    @no_collections()
    def run(self, start: Growing | None) -> dict[int, int]:
        """Walk the rows; return how many each series has."""
        log = start or Growing()
        chain = {} if not log.size else {"chain": self._chain_at(log.size)}
        begin, walk = log.size, Walk(log, **chain)
        waiting = [one for one in self._store.log.checkpoints() if one.size > begin]
        waiting.reverse()
        total = self._store.audit.length()
        for rows in self._store.audit.ledger(begin):
            at = 0
            while waiting and waiting[-1].size - log.size < len(rows) - at:
                upto = at + max(waiting[-1].size - log.size, 0)
                walk.take(rows[at:upto])
                self._checkpoint(waiting.pop(), log)
                at = upto
            walk.take(rows[at:])
            self._progress(_PROGRESS, log.size, total)
        while waiting:
            self._checkpoint(waiting.pop(), log)
        self._report(walk)
        self._nodes(log, begin)
        walk.by_series.update(self._old)
        return walk.by_series

    def _chain_at(self, seq: int) -> bytes:
        rows = next(iter(self._store.audit.ledger(seq - 1)))
        return rows[0][3]

    def _report(self, walk: Walk) -> None:
        for seq, what in walk.faults:
            self._broken("ledger-broken", Part.LEDGER, f"row {seq}", what, RESTORE)

    def _checkpoint(self, stored: StoredCheckpoint, log: Growing) -> None:
        name = f"checkpoint {stored.size}"
        self._outcome.count("checkpoints")
        said = self._notes.read(stored.note, name, stored.key_id)
        if said is None:
            return
        found = log.root() if log.size == stored.size else None
        if said != (stored.size, stored.root):
            what = f"its row says {stored.size} events and root {stored.root.hex()}, its signed "
            what += f"note {said[0]} and {said[1].hex()}"
            self._broken("checkpoint-row-differs", Part.CHECKPOINT, name, what, RESTORE)
        elif found is None:
            what = f"it covers {stored.size} events, and the ledger has {log.size}: rows were cut"
            self._broken("checkpoint-beyond-ledger", Part.CHECKPOINT, name, what, RESTORE)
        elif found != stored.root:
            what = f"it was signed over root {stored.root.hex()}, the rows lead to {found.hex()}"
            self._broken("checkpoint-root-differs", Part.CHECKPOINT, name, what, RESTORE)
        else:
            self.newest = stored.note

    def _nodes(self, log: Growing, begin: int) -> None:
        """Hold the stored roots of full tiles against the recomputed ones."""
        last = self._store.log.last()
        covered = 0 if last is None else last.size
        expected = {
            key: node
            for key, node in log.full.items()
            if (key[1] + 1) << (TILE_HEIGHT * key[0]) <= covered
        }
        for level, place, node in self._store.audit.nodes():
            self._outcome.count("tiles")
            if (place + 1) << (TILE_HEIGHT * level) <= begin:
                continue
            found = expected.pop((level, place), None)
            if found != node:
                what = f"stored is {node.hex()}, the rows lead to "
                what += "no full tile there" if found is None else found.hex()
                self._broken("log-node-wrong", Part.TILE, f"tile {level}/{place}", what, RESTORE)
        for level, place in expected:
            what = "it is full and covered by a checkpoint, and its root is not stored"
            self._broken("log-node-missing", Part.TILE, f"tile {level}/{place}", what, RESTORE)

    def _broken(self, code: str, part: Part, subject: str, what: str, todo: str) -> None:
        self._outcome.find(code, Severity.BROKEN, part, subject, what, todo)


def series_lengths(store: ReadingStore, counts: dict[int, int], outcome: Outcome) -> None:
    """Hold the number of rows each series has against how far the series says it came."""
    known = set()
    for several in store.audit.all_series():
        for series in several:
            known.add(series.id)
            due, found = max(series.next - series.start, 0), counts.get(series.id, 0)
            if not 0 <= series.start <= series.next <= series.stop:
                what = f"start {series.start}, next {series.next}, stop {series.stop} are no range"
                outcome.find("series-range-wrong", Severity.BROKEN, Part.LEDGER,
                             f"series {series.id}", what, RESTORE)  # fmt: skip
            if due != found:
                code = "event-missing" if found < due else "event-outside"
                what = f"{series.event_type} of batch {series.batch_id}: the series says {due} "
                what += f"events were appended, the ledger has {found}"
                what += _who_lacks(store, series.id, series.batch_id, series.start, series.next)
                outcome.find(code, Severity.BROKEN, Part.LEDGER,
                             f"series {series.id}", what, RESTORE)  # fmt: skip


def _who_lacks(store: ReadingStore, series_id: int, batch_id: int, start: int, stop: int) -> str:
    """Name the first records without their event."""
    have = set(store.audit.series_records(series_id))
    try:
        batch = store.batches.get(batch_id)
        tiles = store.batches.tiles(batch, start, min(stop, batch.size))
        lacking = [
            member.number or f"sha256:{member.digest.hex()}"
            for tile in tiles
            for member in tile.members
            if member.record_id not in have
        ]
    except AnchordError:
        return ""
    return f"; missing: {', '.join(lacking[:5])}" if lacking else ""
