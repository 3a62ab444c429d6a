"""Holding attestations against block headers, and deciding what a batch has become.

A batch is anchored only after headers that every reachable source agrees on carried one of its
paths for the configured number of confirmations. It is looked at again until the last check; a
path that a reorg made void is taken out, its event is withdrawn, and the calendar is asked anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core import event
from anchord.core.model import Batch, BatchChange, BatchState, Block
from anchord.core.paths import unattested
from anchord.core.proof import (
    Attestation,
    Found,
    Timestamp,
    attestations,
    drop,
    parse_timestamp,
    serialise,
)
from anchord.engine import ledger
from anchord.engine.parts import RARELY, Parts
from anchord.engine.proofs import proof_of
from anchord.engine.witnesses import Later, Void, Witnesses
from anchord.errors import ProtocolError, TransientError

if TYPE_CHECKING:
    from anchord.core.model import NewSeries, Series

_BLOCK_S = 600
"""What a block takes, on average."""
_NO_BLOCK: dict[str, Any] = dict.fromkeys(
    ("attested_at", "anchored_at", "final_at", "block_height", "block_hash", "block_merkle_root",
     "block_time")
)  # fmt: skip
"""Columns of a batch that no block carries."""


class Findings(msgspec.Struct, frozen=True):
    """What the headers say about all attestations of one proof."""

    good: list[Block]
    """Confirmed, lowest block first."""
    void: list[tuple[Found, Void]]
    later: list[Later]


def check(parts: Parts, now: int) -> tuple[int, dict[str, str]]:
    """Check every batch that is due; return how many became anchored, and sources' problems."""
    due = parts.store.batches.due_checks(now)
    if not due:
        return 0, {}
    problems: dict[str, str] = {}
    for source in parts.headers:
        try:
            source.refresh()
        except (TransientError, ProtocolError) as error:
            problems[source.name] = str(error)
    witnesses = Witnesses(parts.headers, parts.policy.confirmations, problems, now)
    anchored = 0
    while due:
        changes = [_decide(parts, now, batch, witnesses) for batch in due]
        parts.store.batches.change(changes)
        anchored += sum(_becomes_anchored(item) for item in changes)
        due = parts.store.batches.due_checks(now)
    # Why a source could not catch up says more than that it is behind.
    return anchored, {**witnesses.problems(), **problems}


def _becomes_anchored(item: BatchChange) -> bool:
    return any(new.event_type == event.ANCHORED for new in item.series)


def examine_all(timestamp: Timestamp, witnesses: Witnesses) -> Findings:
    """Hold every Bitcoin attestation of a proof against the headers."""
    good: list[Block] = []
    void: list[tuple[Found, Void]] = []
    later: list[Later] = []
    for found in attestations(timestamp):
        if found.attestation.kind != "bitcoin" or found.attestation.height is None:
            continue
        verdict = witnesses.examine(found.attestation.height, found.message)
        if isinstance(verdict, Block):
            good.append(verdict)
        elif isinstance(verdict, Void):
            void.append((found, verdict))
        else:
            later.append(verdict)
    return Findings(sorted(good, key=lambda block: block.height), void, later)


def _decide(parts: Parts, now: int, batch: Batch, witnesses: Witnesses) -> BatchChange:
    """Return what a batch becomes. Its next check is always later than `now`, or never."""
    timestamp = proof_of(batch)
    if timestamp is None:
        return BatchChange(batch_id=batch.id, columns={"next_check_at": None})
    findings = examine_all(timestamp, witnesses)
    kept = _without_void(timestamp, findings)
    series, cut = _withdrawals(parts, now, batch, findings)
    if kept is None or _is_hopeless(parts, batch, findings, kept):
        return _give_up(batch, findings, series, cut)
    reopen = sorted(set(unattested(kept)) - set(unattested(timestamp)))
    proof = serialise(kept) if findings.void else batch.proof or b""
    columns = _columns(parts, now, batch, findings, withdrawn=bool(cut))
    anchored = columns["state"] == BatchState.ANCHORED.value
    fresh = anchored and (batch.state is not BatchState.ANCHORED or bool(cut))
    if fresh:
        signed = _holding(parts, kept, proof, findings)
        series.append(ledger.anchored_series(parts, batch, findings.good[0], signed, now))
    return BatchChange(
        batch_id=batch.id,
        columns={"proof": proof, **columns},
        series=tuple(series),
        cut_series=tuple(cut),
        reopen=tuple(commitment for _, commitment in reopen),
        # A calendar that repairs its path needs new blocks for that; one that lies needs no hurry.
        reopen_at=now + max(parts.policy.poll_max_s, 1),
        resubmit=_repeat(parts, batch, reopen),
        resubmit_at=now,
        resubmit_quiet_s=parts.policy.resubmit_after_s,
        lead=fresh and batch.kind == "adopted",
    )


def _is_hopeless(parts: Parts, batch: Batch, findings: Findings, kept: Timestamp) -> bool:
    """Tell whether an adopted proof has a refuted path, and nobody to ask for another one."""
    if batch.kind != "adopted" or not findings.void or findings.good or findings.later:
        return False
    uris = {found.attestation.uri for found in attestations(kept)}
    return not any(uri in uris for uri in parts.by_uri)


def _without_void(timestamp: Timestamp, findings: Findings) -> Timestamp | None:
    """Take out the attestations that do not hold; None when nothing is left."""
    if not findings.void:
        return timestamp
    bad = {(found.message, found.attestation) for found, _ in findings.void}
    return drop(timestamp, lambda message, item: (message, item) in bad)


def _holding(parts: Parts, kept: Timestamp, proof: bytes, findings: Findings) -> bytes:
    """Return the proof to be signed: without paths that may yet turn out to lead nowhere.

    What is signed stays as it is for ever, and one false path would spoil the true one beside it.
    """
    deep = {
        (block.height, block.merkle_root[::-1])
        for block in findings.good
        if block.confirmations >= parts.policy.confirmations
    }

    def is_open(message: bytes, item: Attestation) -> bool:
        return item.kind == "bitcoin" and (item.height, message) not in deep

    if not any(is_open(found.message, found.attestation) for found in attestations(kept)):
        return proof
    certain = drop(kept, is_open)
    return proof if certain is None else serialise(certain)


def _repeat(parts: Parts, batch: Batch, reopen: list[tuple[str, bytes]]) -> tuple[str, ...]:
    """Return the calendars that are to get the root again: their path was undone.

    When that happens below their own burial depth, they do not repair it by themselves.
    """
    if batch.kind != "sealed":
        return ()
    calendars = [parts.by_uri.get(uri) for uri, _ in reopen]
    return tuple(dict.fromkeys(item.url for item in calendars if item is not None))


def _withdrawals(
    parts: Parts, now: int, batch: Batch, findings: Findings
) -> tuple[list[NewSeries], list[int]]:
    """Intend withdrawals when a block that signed events rest on is not on the chain any more."""
    if batch.state is not BatchState.ANCHORED or batch.block_hash is None:
        return [], []
    old = ledger.live_anchored(parts.store, batch.id) if findings.void or findings.good else []
    if _is_replaced(batch, findings):
        name = f"block {batch.block_hash.hex()} at height {batch.block_height}"
    else:
        undone = {found: _undone(batch, found, findings) for found in old}
        old = [found for found in old if undone[found] is not None]
        if not old:
            return [], []
        name = f"a block at height {undone[old[0]]}, to which the signed proof leads, too,"
    reason = f"reorg: {name} was replaced"
    series = [ledger.withdrawn_series(parts, found, reason, now) for found in old]
    return [new for new in series if new is not None], [found.id for found in old]


def _is_replaced(batch: Batch, findings: Findings) -> bool:
    """Tell whether the block that the signed events name is not on the chain any more."""
    gone = any(found.attestation.height == batch.block_height for found, _ in findings.void)
    moved = any(
        block.height == batch.block_height and block.hash != batch.block_hash
        for block in findings.good
    )
    still = any(block.hash == batch.block_hash for block in findings.good)
    return not still and (gone or moved)


def _undone(batch: Batch, series: Series, findings: Findings) -> int | None:
    """Return the height of a block that a signed proof leads to beside, and that was replaced.

    The event stays true, but whoever verifies its proof meets a path to nowhere.
    """
    if not findings.void or series.proof is None:
        return None
    void = {(found.message, found.attestation) for found, _ in findings.void}
    signed = attestations(parse_timestamp(series.proof, batch.root))
    heights = [one.attestation.height for one in signed if (one.message, one.attestation) in void]
    return next((height for height in heights if height is not None), None)


def _columns(
    parts: Parts, now: int, batch: Batch, findings: Findings, *, withdrawn: bool
) -> dict[str, Any]:
    """Return the batch's new columns."""
    policy = parts.policy
    if findings.good and findings.good[0].confirmations >= policy.confirmations:
        return _anchored_columns(parts, now, batch, findings, withdrawn=withdrawn)
    if batch.state is BatchState.ANCHORED and not withdrawn:
        # The signed block was neither confirmed nor refuted: a source is away. Look again.
        return {"state": batch.state.value, "next_check_at": now + policy.poll_max_s}
    if findings.good:
        block = findings.good[0]
        missing = policy.confirmations - block.confirmations
        wait_s = min(max(missing * 60, policy.poll_min_s, 1), policy.poll_max_s)
        return {
            "state": BatchState.ATTESTED.value,
            "attested_at": batch.attested_at or now,
            "anchored_at": None,
            "final_at": None,
            "next_check_at": now + wait_s,
            "note": f"{block.confirmations} of {policy.confirmations} confirmations",
            **_block_columns(block),
        }
    return {
        "state": _unattested_state(batch),
        "next_check_at": _look_again(parts, now, findings),
        "note": findings.later[0].reason if findings.later else None,
        **_NO_BLOCK,
    }


def _unattested_state(batch: Batch) -> str:
    """Return where a batch without a block stands: a path alone does not make m answers."""
    state = BatchState.SEALED if batch.submitted_at is None else BatchState.SUBMITTED
    return state.value


def _look_again(parts: Parts, now: int, findings: Findings) -> int | None:
    """Return when something may be known; rarely, when a path claims a block far away."""
    if not findings.later:
        return None
    policy = parts.policy
    blocks = min(later.blocks for later in findings.later)
    wait_s = min(blocks * _BLOCK_S // 2, RARELY * policy.poll_max_s)
    return now + max(wait_s if blocks > 1 else 0, policy.poll_min_s, 1)


def _anchored_columns(
    parts: Parts, now: int, batch: Batch, findings: Findings, *, withdrawn: bool
) -> dict[str, Any]:
    """Return the columns of an anchored batch; its block is the one its live events name.

    It is final with the youngest block that its proof leads to, and looked at for as long as one
    of its paths is undecided: what is exported must hold whole.
    """
    policy, block = parts.policy, findings.good[0]
    missing = policy.final_confirmations - findings.good[-1].confirmations
    wait_s = max(min(missing * _BLOCK_S // 2, RARELY * policy.poll_max_s), policy.poll_min_s, 1)
    looks = [now + wait_s if missing > 0 else None, _look_again(parts, now, findings)]
    kept = batch.state is BatchState.ANCHORED and not withdrawn
    return {
        "state": BatchState.ANCHORED.value,
        "attested_at": batch.attested_at or now,
        "anchored_at": batch.anchored_at if kept else now,
        "final_at": now if missing <= 0 else None,
        "next_check_at": min((at for at in looks if at is not None), default=None),
        "note": None,
        **({} if kept else _block_columns(block)),
    }


def _block_columns(block: Block) -> dict[str, Any]:
    return {
        "block_height": block.height,
        "block_hash": block.hash,
        "block_merkle_root": block.merkle_root,
        "block_time": block.time,
    }


def _give_up(
    batch: Batch, findings: Findings, series: list[NewSeries], cut: list[int]
) -> BatchChange:
    """Nothing is left of a proof: keep the file, park it, free its record for our own batch.

    Only an adopted proof can come to this: a sealed batch keeps its pending attestations.
    """
    reason = findings.void[0][1].reason
    columns = {
        "state": BatchState.PARKED.value,
        "next_check_at": None,
        "note": f"the proof that was brought does not hold: {reason}",
        **_NO_BLOCK,
    }
    return BatchChange(
        batch_id=batch.id,
        release=True,
        columns=columns,
        series=tuple(series),
        cut_series=tuple(cut),
    )
