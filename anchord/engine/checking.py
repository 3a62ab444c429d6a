"""Holding attestations against block headers, and deciding what a batch has become.

A batch is anchored only after headers that every reachable source agrees on carried one of its
paths for the configured number of confirmations. It is looked at again until the last check; a
path that a reorg made void is taken out, its event is withdrawn, and the calendar is asked anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core import event
from anchord.core.header import block_hash, parse_header
from anchord.core.model import Batch, BatchChange, BatchState, Block
from anchord.core.paths import unattested
from anchord.core.proof import (
    Found,
    Timestamp,
    attestations,
    drop,
    parse_timestamp,
    serialise,
)
from anchord.engine import ledger
from anchord.errors import ProtocolError, TransientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.model import NewSeries
    from anchord.engine.parts import Parts
    from anchord.ports import HeaderSource, Tip

_BLOCK_S = 600
"""What a block takes, on average."""


class Void(msgspec.Struct, frozen=True):
    """All sources agree on a buried header at that height, and it carries something else."""

    reason: str


class Later(msgspec.Struct, frozen=True):
    """Nothing can be said now: too short a chain, no source, or sources at odds."""

    reason: str


class Witnesses:
    """The header sources of one pass; their tips are asked once.

    Args:
        sources: all that are configured; every one that answers must agree.
        burial: confirmations after which a header that does not match is final.
    """

    def __init__(self, sources: Sequence[HeaderSource], burial: int) -> None:
        self._sources = sources
        self._burial = burial
        self._tips: dict[str, Tip | str] | None = None
        self._headers: dict[tuple[str, int], bytes | None] = {}

    def problems(self) -> dict[str, str]:
        """Return what the sources that cannot answer said, by name."""
        return {name: tip for name, tip in self._ask_tips().items() if isinstance(tip, str)}

    def examine(self, height: int, message: bytes) -> Block | Void | Later:
        """Compare an attested message with the header at `height`.

        Only the header's Merkle root can confirm: 32 bytes, compared whole.
        """
        found: dict[str, bytes] = {}
        heights = []
        for source in self._sources:
            tip = self._ask_tips()[source.name]
            if isinstance(tip, str):
                continue
            if tip.height < height:
                return Later(f"{source.name} is at block {tip.height}, waiting for {height}")
            try:
                raw = self._header(source, height)
            except (TransientError, ProtocolError) as error:
                return Later(f"{source.name}: {error}")
            if raw is None:
                return Later(f"{source.name} has no block {height} now")
            found[source.name] = raw
            heights.append(tip.height)
        return self._judge(height, message, found, heights)

    def _header(self, source: HeaderSource, height: int) -> bytes | None:
        """Ask each source once per height: thousands of proofs may meet in one block."""
        key = (source.name, height)
        if key not in self._headers:
            self._headers[key] = source.header(height)
        return self._headers[key]

    def _judge(
        self, height: int, message: bytes, found: dict[str, bytes], heights: list[int]
    ) -> Block | Void | Later:
        if not found:
            return Later("; ".join(f"{k}: {v}" for k, v in self.problems().items()) or "no source")
        if len(set(found.values())) > 1:
            return Later(f"sources disagree about block {height}: {', '.join(found)}")
        raw = next(iter(found.values()))
        header = parse_header(raw)
        confirmations = min(heights) - height + 1
        if header.merkle_root == message:
            return Block(
                height=height,
                hash=block_hash(raw)[::-1],
                merkle_root=header.merkle_root[::-1],
                time=header.time,
                confirmations=confirmations,
                checked_with=tuple(found),
            )
        if confirmations < self._burial:
            return Later(f"block {height} does not carry it; only {confirmations} confirmations")
        return Void(f"block {height} ({block_hash(raw)[::-1].hex()}) does not carry this path")

    def _ask_tips(self) -> dict[str, Tip | str]:
        if self._tips is None:
            self._tips = {}
            for source in self._sources:
                try:
                    self._tips[source.name] = source.tip()
                except (TransientError, ProtocolError) as error:
                    self._tips[source.name] = str(error)
        return self._tips


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
    witnesses = Witnesses(parts.headers, parts.policy.confirmations)
    anchored = 0
    while due:
        changes = [_decide(parts, now, batch, witnesses) for batch in due]
        parts.store.batches.change(changes)
        anchored += sum(_becomes_anchored(item) for item in changes)
        due = parts.store.batches.due_checks(now)
    return anchored, {**problems, **witnesses.problems()}


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
    if batch.proof is None:
        return BatchChange(batch_id=batch.id, columns={"next_check_at": None})
    timestamp = parse_timestamp(batch.proof, batch.root)
    findings = examine_all(timestamp, witnesses)
    kept = _without_void(timestamp, findings)
    if kept is None:
        return _give_up(batch, findings)
    reopen = sorted(set(unattested(kept)) - set(unattested(timestamp)))
    proof = serialise(kept) if findings.void else batch.proof
    series, cut = _withdrawals(parts, now, batch, findings)
    columns = _columns(parts, now, batch, findings, withdrawn=bool(cut))
    anchored = columns["state"] == BatchState.ANCHORED.value
    fresh = anchored and (batch.state is not BatchState.ANCHORED or bool(cut))
    if fresh:
        series.append(ledger.anchored_series(parts, batch, findings.good[0], proof, now))
    if batch.kind == "sealed":
        _resubmit(parts, now, batch, reopen)
    return BatchChange(
        batch_id=batch.id,
        columns={"proof": proof, **columns},
        series=tuple(series),
        cut_series=tuple(cut),
        reopen=tuple(commitment for _, commitment in reopen),
        reopen_at=now + max(parts.policy.poll_min_s, 1),
        lead=fresh and batch.kind == "adopted",
    )


def _without_void(timestamp: Timestamp, findings: Findings) -> Timestamp | None:
    """Take out the attestations that do not hold; None when nothing is left."""
    if not findings.void:
        return timestamp
    bad = {(found.message, found.attestation) for found, _ in findings.void}
    return drop(timestamp, lambda message, item: (message, item) in bad)


def _resubmit(parts: Parts, now: int, batch: Batch, reopen: list[tuple[str, bytes]]) -> None:
    """Hand the root again to calendars whose path was undone below their own burial depth.

    They do not repair such a path by themselves. This is written before the batch's change: if
    we crash in between, the next pass decides the same and finds the intent already there.
    """
    for uri, _ in reopen:
        calendar = parts.by_uri.get(uri)
        if calendar is not None:
            parts.store.calls.resubmit(batch.id, calendar.url, now, quiet_s=0)


def _withdrawals(
    parts: Parts, now: int, batch: Batch, findings: Findings
) -> tuple[list[NewSeries], list[int]]:
    """Intend withdrawals when the block the signed events name is not on the chain any more."""
    if batch.state is not BatchState.ANCHORED or batch.block_hash is None:
        return [], []
    gone = [reason for found, reason in findings.void
            if found.attestation.height == batch.block_height]  # fmt: skip
    moved = [block for block in findings.good
             if block.height == batch.block_height and block.hash != batch.block_hash]  # fmt: skip
    still = any(block.hash == batch.block_hash for block in findings.good)
    if still or not (gone or moved):
        return [], []
    old = ledger.live_anchored(parts.store, batch.id)
    reason = f"reorg: block {batch.block_hash.hex()} at height {batch.block_height} was replaced"
    series = [ledger.withdrawn_series(parts, found, reason, now) for found in old]
    return [new for new in series if new is not None], [found.id for found in old]


def _columns(
    parts: Parts, now: int, batch: Batch, findings: Findings, *, withdrawn: bool
) -> dict[str, Any]:
    """Return the batch's new columns."""
    policy = parts.policy
    if findings.good and findings.good[0].confirmations >= policy.confirmations:
        return _anchored_columns(parts, now, batch, findings.good[0], withdrawn=withdrawn)
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
    again = now + max(policy.poll_min_s, 1) if findings.later else None
    return {
        "state": BatchState.SUBMITTED.value,
        "attested_at": None,
        "anchored_at": None,
        "final_at": None,
        "next_check_at": again,
        "note": findings.later[0].reason if findings.later else None,
        "block_height": None,
        "block_hash": None,
        "block_merkle_root": None,
        "block_time": None,
    }


def _anchored_columns(
    parts: Parts, now: int, batch: Batch, block: Block, *, withdrawn: bool
) -> dict[str, Any]:
    """Return the columns of an anchored batch; its block is the one its live events name."""
    policy = parts.policy
    missing = policy.final_confirmations - block.confirmations
    wait_s = min(max(missing * _BLOCK_S // 2, policy.poll_min_s, 1), 24 * policy.poll_max_s)
    kept = batch.state is BatchState.ANCHORED and not withdrawn
    return {
        "state": BatchState.ANCHORED.value,
        "attested_at": batch.attested_at or now,
        "anchored_at": batch.anchored_at if kept else now,
        "final_at": now if missing <= 0 else None,
        "next_check_at": now + wait_s if missing > 0 else None,
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


def _give_up(batch: Batch, findings: Findings) -> BatchChange:
    """Nothing is left of a proof: keep the file, park it, free its record for our own batch.

    Only an adopted proof can come to this: a sealed batch keeps its pending attestations.
    """
    reason = findings.void[0][1].reason
    columns = {
        "state": BatchState.PARKED.value,
        "next_check_at": None,
        "note": f"the proof that was brought does not hold: {reason}",
    }
    return BatchChange(batch_id=batch.id, release=True, columns=columns)
