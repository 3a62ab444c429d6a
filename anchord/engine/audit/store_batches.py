"""Auditing batches: from the tiles' roots to the block, and the columns against what was signed."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

from anchord.core.event import ANCHORED, SUBMITTED
from anchord.core.finding import Part, Severity
from anchord.core.model import BatchState
from anchord.core.moment import utc
from anchord.core.proof import attestations, parse_detached, parse_timestamp
from anchord.core.trailer import trailer
from anchord.engine.audit.store_blocks import older_of
from anchord.engine.audit.store_frame import LOOK, RESTORE
from anchord.engine.audit.store_series import object_of
from anchord.engine.audit.store_tokens import check_tokens
from anchord.engine.proofs import check_proof, proof_of
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anchord.core.model import Batch, Series
    from anchord.core.proof import Found
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.store_blocks import Blocks
    from anchord.ports.reading import ReadingStore

_NAMES = ("block_height", "block_hash", "block_merkle_root", "block_time")


class BatchAudit:
    """Every batch's root, trailer, proof, block and state.

    Args:
        store: opened to be read.
        blocks: headers to hold paths against.
        outcome: where findings go.
    """

    def __init__(self, store: ReadingStore, blocks: Blocks, outcome: Outcome) -> None:
        self._store, self._blocks, self._outcome = store, blocks, outcome

    def run(self, on_progress: Callable[[str, int, int], None]) -> None:
        """Audit all of them."""
        done = 0
        for batches, series in self._store.audit.batches():
            tokens = self._store.audit.tokens(batches[0].id, batches[-1].id)
            for batch in batches:
                mine = series.get(batch.id, [])
                self._batch(batch, mine)
                check_tokens(batch, mine, tokens.get(batch.id, {}), self._outcome)
            done += len(batches)
            on_progress("audit batches", done, 0)

    def _batch(self, batch: Batch, series: Sequence[Series]) -> None:
        gone = {one.withdraws for one in series}
        live = [one for one in series if one.event_type == ANCHORED and one.id not in gone
                and one.stop > one.start]  # fmt: skip
        self._proof(batch)
        if batch.kind == "adopted":
            self._adopted(batch)
        else:
            self._trailer(batch)
        for one in series:
            if one.proof is not None:
                self._signed_proof(batch, one, live=one.id not in gone)
        for one in live:
            self._blocks.look_older(older_of(object_of(one.payload)))
        self._state(batch, live)
        submitted = [one for one in series if one.event_type == SUBMITTED and one.id not in gone]
        if submitted:
            self._cover(batch, submitted, SUBMITTED)
            self._commitments(batch, submitted)

    def _proof(self, batch: Batch) -> None:
        try:
            timestamp = proof_of(batch)
            check_proof(batch)
        except FatalError as error:
            code = "batch-proof-wrong" if "proof" in str(error) else "batch-root-wrong"
            self._broken(code, batch, str(error))
            return
        if timestamp is None:
            return
        found = attestations(timestamp)
        self._blocks.look(found)
        for one in found:
            verdict = self._blocks.verdicts.get((one.attestation.height or 0, one.message))
            if verdict is None or verdict.state != "false":
                continue
            if batch.state in (BatchState.ANCHORED, BatchState.ATTESTED):
                self._broken("header-differs", batch, verdict.detail, Part.PROOF)
            else:
                self._outcome.find("path-leads-nowhere", Severity.WARNING, Part.PROOF,
                                   _name(batch), verdict.detail, LOOK)  # fmt: skip

    def _adopted(self, batch: Batch) -> None:
        raw = batch.adopted_raw or b""
        try:
            begun = parse_detached(raw)
        except RefusedError as error:
            self._broken("adopted-file-damaged", batch, str(error))
            return
        if begun.digest != batch.root or batch.size != 1:
            what = f"the file that was brought is about {begun.digest.hex()}, the batch of "
            self._broken("adopted-file-differs", batch, what + batch.root.hex())
            return
        self._contained(batch, attestations(begun.timestamp), "the file that was brought attests")

    def _contained(self, batch: Batch, found: Sequence[Found], whose: str) -> None:
        """A proof only grows: what led nowhere was taken out, nothing else ever is."""
        # Counted, because two calendars may lead to one block, and each of the paths has to stay.
        kept = Counter((one.message, one.attestation) for one in self._paths(batch))
        for one in found:
            kept[one.message, one.attestation] -= 1
            if kept[one.message, one.attestation] >= 0:
                continue
            self._blocks.look([one])
            key = (one.attestation.height or 0, one.message)
            verdict = self._blocks.verdicts.get(key)
            if verdict is None or verdict.state in ("confirmed", "shallow"):
                what = f"{whose} {one.attestation.kind} of {one.message.hex():.64}, its proof not"
                self._broken("batch-proof-wrong", batch, what)

    def _paths(self, batch: Batch) -> Sequence[Found]:
        try:
            timestamp = proof_of(batch)
        except FatalError:
            return ()
        return () if timestamp is None else attestations(timestamp)

    def _trailer(self, batch: Batch) -> None:
        """Hold the trailer against the checkpoints that are said to be in it."""
        carried = self._store.log.carried(batch.id)
        has_block = batch.not_before_height is not None
        said = batch.trailer or b""
        block_hash = said[-32:] if has_block else None
        digests = [sha256(one.note).digest() for one in carried]
        expected = trailer(digests, block_hash) or b""
        if expected != said:
            what = f"its trailer is {said.hex() or 'empty'}; the {len(carried)} checkpoints stored "
            what += f"with it{' and the block it names' if has_block else ''} make "
            what += f"{expected.hex() or 'an empty one'}: one was changed, added or removed"
            self._broken("trailer-differs", batch, what, Part.CHECKPOINT)

    def _signed_proof(self, batch: Batch, series: Series, *, live: bool) -> None:
        try:
            found = attestations(parse_timestamp(series.proof or b"", batch.root))
        except RefusedError as error:
            what = f"the proof that series {series.id} signed is damaged: {error}"
            self._broken("signed-proof-damaged", batch, what, Part.PROOF)
            return
        if live:
            self._blocks.look(found)
            self._contained(batch, found, f"series {series.id} signed")

    def _state(self, batch: Batch, live: Sequence[Series]) -> None:
        if batch.state is not BatchState.ANCHORED:
            if live:
                what = f"it is stored as {batch.state}, and series {live[0].id} signed that it is "
                self._broken("state-behind-events", batch, what + "anchored; nothing withdrew that")
            return
        if not live:
            what = "it is stored as anchored, and no event says so"
            self._broken("event-missing", batch, what)
            return
        self._cover(batch, live, ANCHORED)
        shown = (
            batch.block_height,
            (batch.block_hash or b"").hex(),
            (batch.block_merkle_root or b"").hex(),
            utc(batch.block_time or 0),
        )
        for one in live:
            said = object_of(one.payload)
            stated = tuple(said.get(name) for name in _NAMES)
            if stated != shown:
                what = f"it is stored with block {shown}, series {one.id} signed for {stated}"
                self._broken("block-columns-differ", batch, what)

    def _commitments(self, batch: Batch, submitted: Sequence[Series]) -> None:
        for one in submitted:
            said = object_of(one.payload).get("commitment")
            if said != batch.root.hex():
                what = f"its root is {batch.root.hex()}, series {one.id} signed that {said!r:.80} "
                self._broken("commitment-differs", batch, what + "was submitted")

    def _cover(self, batch: Batch, several: Sequence[Series], kind: str) -> None:
        """Every member of a batch has one event of a kind, or one that is still due."""
        at = 0
        for start, stop, series_id in sorted((one.start, one.stop, one.id) for one in several):
            if start != at:
                what = f"{kind}: expected events from member {at} on, series {series_id} begins "
                self._broken("event-missing", batch, f"{what}at {start}")
            at = stop
        if at != batch.size:
            what = f"{kind}: its series end at member {at}, it has {batch.size}"
            self._broken("event-missing", batch, what)

    def _broken(self, code: str, batch: Batch, what: str, part: Part = Part.BATCH) -> None:
        self._outcome.find(code, Severity.BROKEN, part, _name(batch), what, RESTORE)


def _name(batch: Batch) -> str:
    return f"batch {batch.id}"
