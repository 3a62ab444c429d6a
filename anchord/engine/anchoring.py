"""Stages from a waiting record to a path into Bitcoin: seal, submit, upgrade.

Each stage claims rows whose time has come, asks a port, and writes what came. What a killed pass
leaves behind is an intent row that is still due: the next pass repeats the call. Repeating is
harmless: a calendar that is given a root twice makes a second commitment, one that is asked twice
answers twice.
"""

from __future__ import annotations

from concurrent.futures import Future, as_completed
from typing import TYPE_CHECKING

from anchord.core.merkle import leaves
from anchord.core.model import Batch, BatchChange, BatchState, NewSeries, Pending, Submission
from anchord.core.proof import attach, merge, parse_timestamp
from anchord.core.retry import next_attempt
from anchord.engine import carrying, ledger
from anchord.engine.checkpointing import checkpoint_of
from anchord.engine.lanes import Lanes
from anchord.engine.parts import RARELY, Parts
from anchord.engine.proofs import proof_of, written
from anchord.errors import AnchordError, ProtocolError, RefusedError, TransientError
from anchord.ports import Calendar, NotYet, Submitted, Upgraded

if TYPE_CHECKING:
    from collections.abc import Sequence


NONCE_BYTES = 16
ASK_AT_ONCE = 256
"""Commitments asked for between two writes of their answers."""


def free_orphans(parts: Parts, now: int) -> None:
    """Let records wait for a batch of our own when their calendars are configured no more."""
    found = parts.store.calls.orphaned(now, list(parts.by_uri))
    note = "none of the calendars this proof waits for is configured"
    if found:
        parts.store.batches.change(
            [BatchChange(batch_id=key, release=True, columns={"note": note}) for key in found]
        )


def seal(parts: Parts, now: int) -> Batch | None:
    """Put all waiting records under one Merkle root."""
    interval_s = parts.policy.min_batch_interval_s
    if interval_s:
        last = parts.store.batches.last_sealed_at()
        # A batch from the future (the clock was ahead) must not hold up the next one.
        if last is not None and last <= now < last + interval_s:
            return None

    if not parts.store.records.waiting()[0]:
        return None  # nobody is asked for a block that no batch would carry

    def make_tile(digests: list[bytes]) -> tuple[bytes, bytes]:
        nonces = parts.draw(NONCE_BYTES * len(digests))
        return nonces, leaves(digests, nonces)

    checkpoint_of(parts, now)  # the batch carries all that was signed so far
    urls = [calendar.url for calendar in parts.calendars]
    return parts.store.batches.seal(now, urls, make_tile, carrying.carried(parts))


class Submitting:
    """Hands roots to calendars in parallel and goes on at m answers; late ones are kept.

    Only the calls run in threads; everything is written by the thread of the pass. A calendar
    that fails is left alone for the rest of the pass.
    """

    def __init__(self, parts: Parts, now: int) -> None:
        self._parts = parts
        self._now = now
        self._calls: dict[Future[Submitted | AnchordError | None], Submission] = {}
        self._lanes = Lanes()
        self._down: set[str] = set()
        self.answered = 0
        self.failed = 0

    def start(self) -> None:
        """Send what is due."""
        parts = self._parts
        with parts.store.exclusive():
            parts.store.calls.intend([c.url for c in parts.calendars], self._now)
        for submission in parts.store.calls.due_submissions(self._now):
            calendar = parts.by_url.get(submission.calendar)
            if calendar is not None:
                call = self._lanes.call(
                    calendar.url, _hand_in, calendar, submission.root, self._down
                )
                self._calls[call] = submission

    def until_enough(self) -> None:
        """Write answers as they come, until every batch has m of them or all calls ended."""
        if not self._short():
            return
        for call in as_completed(list(self._calls)):
            self._write(call)
            if not self._short():
                return

    def finish(self) -> None:
        """Write the late answers; every call ends by its own timeout."""
        try:
            for call in as_completed(list(self._calls)):
                self._write(call)
        finally:
            self._lanes.close()

    def _short(self) -> bool:
        """Tell whether a call in flight belongs to a batch that has fewer than m answers."""
        batches = self._parts.store.batches
        open_ids = {submission.batch_id for submission in self._calls.values()}
        return any(batches.get(batch_id).state is BatchState.SEALED for batch_id in open_ids)

    def _write(self, call: Future[Submitted | AnchordError | None]) -> None:
        submission = self._calls.pop(call)
        answer = call.result()
        if answer is None:
            return
        with self._parts.store.exclusive():
            self._keep(submission, answer)

    def _keep(self, submission: Submission, answer: Submitted | AnchordError) -> None:
        if not self._parts.store.calls.still(submission):
            return  # another worker took us for dead, and knows more
        if isinstance(answer, Submitted):
            refused = _keep_answer(self._parts, self._now, submission, answer)
            if refused is None:
                self.answered += 1
                return
            answer = refused
        self.failed += 1
        _try_again(self._parts, self._now, submission, answer)


def _hand_in(calendar: Calendar, root: bytes, down: set[str]) -> Submitted | AnchordError | None:
    """Hand one root to one calendar; None when it was found down meanwhile."""
    if calendar.url in down:
        return None
    try:
        return calendar.submit(root)
    except TransientError as error:
        down.add(calendar.url)
        return error
    except (ProtocolError, RefusedError) as error:
        return error


def _try_again(parts: Parts, now: int, submission: Submission, error: AnchordError) -> None:
    """Say when the root is handed in again: rarely once it is anchored, never once it is final."""
    batch = parts.store.batches.get(submission.batch_id)
    anchored = batch.state is BatchState.ANCHORED
    at = None
    if batch.final_at is None:
        at = _later(parts, now, submission.attempts + 1, error, rarely=anchored)
    parts.store.calls.postpone_submission(submission, now, at, _say(error))


def _keep_answer(
    parts: Parts, now: int, submission: Submission, answer: Submitted
) -> ProtocolError | None:
    """Merge an answer into the batch's proof; at m answers the batch is submitted.

    If we crash between the two writes, the next pass finds the answers and the missing state:
    `settle` is called for every sealed batch.
    """
    batch = parts.store.batches.get(submission.batch_id)
    known = proof_of(batch)
    try:
        timestamp = parse_timestamp(answer.raw, batch.root)
        proof = written(timestamp if known is None else merge(known, timestamp), batch.kind)
    except RefusedError as error:
        return ProtocolError(f"{submission.calendar} gave an answer that cannot be used: {error}")
    points = [(point.uri, point.commitment) for point in answer.pendings]
    ask_at = now + max(parts.policy.poll_min_s, 1)
    parts.store.calls.store_answer(submission, answer.raw, points, proof, now, ask_at)
    settle(parts, now, submission.batch_id)
    return None


def settle(parts: Parts, now: int, batch_id: int) -> None:
    """Let a sealed batch with m answers become submitted, and intend its events."""
    batch = parts.store.batches.get(batch_id)
    if batch.state is not BatchState.SEALED:
        return
    calendars = parts.store.calls.answered(batch_id)
    if len(calendars) < parts.policy.min_answers:
        return
    series: tuple[NewSeries, ...] = ()
    if parts.policy.sign_submitted:
        series = (ledger.submitted_series(parts, batch, calendars, now),)
    columns = {"state": BatchState.SUBMITTED.value, "submitted_at": now}
    parts.store.batches.change([BatchChange(batch_id=batch_id, series=series, columns=columns)])


def settle_all(parts: Parts, now: int) -> None:
    """Settle batches a killed pass left between its two writes."""
    for batch in parts.store.batches.in_state(BatchState.SEALED):
        settle(parts, now, batch.id)


def upgrade(parts: Parts, now: int) -> tuple[int, int]:
    """Ask for every commitment that is due; return (paths that came, failed calls).

    One GET per commitment, whatever the number of records behind it. A calendar that fails is
    left alone for the rest of the pass: a dead one costs one row an attempt, not all of them.
    """
    came, failed = 0, 0
    down: set[str] = set()
    with Lanes() as lanes:
        while due := _due(parts, now, down):
            calls = {
                lanes.call(parts.by_uri[pending.uri].url, _ask, parts, pending, down): pending
                for pending in due
            }
            for call in as_completed(calls):
                outcome = call.result()
                if outcome is None:
                    continue
                with parts.store.exclusive():
                    kept = _keep_outcome(parts, now, calls[call], outcome)
                came += isinstance(kept, Upgraded)
                failed += isinstance(kept, AnchordError)
    return came, failed


def _due(parts: Parts, now: int, down: set[str]) -> list[Pending]:
    uris = [uri for uri, calendar in parts.by_uri.items() if calendar.url not in down]
    return parts.store.calls.due_pendings(now, uris, ASK_AT_ONCE) if uris else []


def _ask(parts: Parts, pending: Pending, down: set[str]) -> Upgraded | NotYet | AnchordError | None:
    """Ask one calendar for one commitment; None when it was found down meanwhile."""
    calendar = parts.by_uri[pending.uri]
    if calendar.url in down:
        return None
    try:
        return calendar.upgrade(pending.uri, pending.commitment)
    except TransientError as error:
        down.add(calendar.url)
        return error
    except (ProtocolError, RefusedError) as error:
        return error


def _keep_outcome(
    parts: Parts, now: int, pending: Pending, outcome: Upgraded | NotYet | AnchordError
) -> Upgraded | NotYet | AnchordError:
    """Write down what came of a question; return what it amounts to: nothing, if it is old."""
    if not parts.store.calls.still(pending):
        return NotYet(pending.status, "another worker asked, too")
    calendar = parts.by_uri[pending.uri]
    undone = pending.status == "void"
    if isinstance(outcome, Upgraded) and undone and outcome.raw == pending.raw:
        outcome = NotYet("void", "still the path that a reorg undid")
    if isinstance(outcome, Upgraded):
        refused = _keep_path(parts, now, pending, calendar, outcome)
        if refused is None:
            return outcome
        outcome = refused
    if isinstance(outcome, NotYet):
        _keep_not_yet(parts, now, pending, calendar, outcome)
    else:
        at = _later(parts, now, pending.attempts + 1, outcome)
        # A path once undone is remembered as such until another one comes.
        parts.store.calls.postpone_pending(
            pending, calendar.url, now, at, status="void" if undone else "error",
            detail=_say(outcome), unknown_since=pending.unknown_since, failed=True,
        )  # fmt: skip
    return outcome


def _keep_path(
    parts: Parts, now: int, pending: Pending, calendar: Calendar, answer: Upgraded
) -> ProtocolError | None:
    """Merge a path into the proof of every batch that waits for it and has room for it."""
    proofs: dict[int, bytes | None] = {}
    full: list[BatchChange] = []
    try:
        addition = parse_timestamp(answer.raw, pending.commitment)
    except RefusedError as error:
        return ProtocolError(f"{pending.uri} gave a path that cannot be used: {error}")
    reason = ""
    for batch in parts.store.calls.waiting_for(pending.id):
        proofs[batch.id], known = None, proof_of(batch)
        if known is None:
            continue
        try:
            proofs[batch.id] = written(attach(known, addition), batch.kind)
        except RefusedError as error:
            reason = f"{pending.uri} gave a path that cannot be used: {error}"
            full += _freed(batch, reason)
    if full:
        parts.store.batches.change(full)
    if reason and not any(proofs.values()):
        return ProtocolError(reason)
    parts.store.calls.store_upgrade(pending, calendar.url, answer.raw, now, proofs)
    return None


def _freed(batch: Batch, note: str) -> list[BatchChange]:
    """Let the record of an adopted proof that goes nowhere wait for a batch of our own."""
    if batch.kind != "adopted" or batch.state is not BatchState.SUBMITTED or not batch.driving:
        return []
    return [BatchChange(batch_id=batch.id, release=True, columns={"note": note})]


def _keep_not_yet(
    parts: Parts, now: int, pending: Pending, calendar: Calendar, answer: NotYet
) -> None:
    batches = parts.store.calls.waiting_for(pending.id)
    status = "void" if pending.status == "void" else answer.status
    lost = {answer.status, status} & {"unknown", "void"}
    unknown_since = (pending.unknown_since or now) if lost else None
    gone = unknown_since is not None and now - unknown_since >= parts.policy.resubmit_after_s
    if gone:
        _start_over(parts, now, pending, calendar, batches)
    at = None
    if not (lost and all(batch.final_at is not None for batch in batches)):
        at = _ask_again(parts, now, pending, batches, rarely=gone)
    parts.store.calls.postpone_pending(
        pending, calendar.url, now, at, status=status, detail=answer.detail,
        unknown_since=unknown_since,
    )  # fmt: skip


def _ask_again(
    parts: Parts, now: int, pending: Pending, batches: Sequence[Batch], *, rarely: bool
) -> int:
    """Return when to ask next: rarely, once another calendar's path has anchored all of it."""
    rarely = rarely or all(batch.state is BatchState.ANCHORED for batch in batches)
    return next_attempt(
        now,
        pending.attempts + 1,
        shortest_s=parts.policy.poll_min_s,
        longest_s=parts.policy.poll_max_s * (RARELY if rarely else 1),
    )


def _start_over(
    parts: Parts, now: int, pending: Pending, calendar: Calendar, batches: Sequence[Batch]
) -> None:
    """A calendar lost a commitment for good: hand it the root again, or free an adopted record."""
    for batch in batches:
        if batch.state is BatchState.ANCHORED:
            continue
        if batch.kind == "sealed":
            quiet_s = parts.policy.resubmit_after_s
            parts.store.calls.resubmit(batch.id, calendar.url, now, quiet_s)
            continue
        freed = _freed(batch, f"{pending.uri} does not know its commitment")
        if freed:
            parts.store.batches.change(freed)


def _later(
    parts: Parts, now: int, attempts: int, error: AnchordError, *, rarely: bool = False
) -> int:
    retry_after_s = error.retry_after if isinstance(error, TransientError) else None
    return next_attempt(
        now,
        attempts,
        shortest_s=parts.policy.poll_min_s,
        longest_s=parts.policy.poll_max_s * (RARELY if rarely else 1),
        retry_after_s=retry_after_s,
    )


def _say(error: AnchordError) -> str:
    return str(error)[:500]
