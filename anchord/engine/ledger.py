"""The only place that signs and appends.

A series row is the intent: events of one type for all members of a batch, decided at one moment.
Events are signed first, outside any transaction, then one transaction appends them and moves the
series. A crash between the two loses signatures, not events: Ed25519 is deterministic and the
moment is stored, so the next pass makes the same bytes again.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core import event
from anchord.core.capture import moment_of
from anchord.core.model import Batch, Block, NewSeries, Series, SignedRow, Tile
from anchord.core.moment import utc
from anchord.core.storage import Intent
from anchord.engine import carrying
from anchord.engine.rendering import Renderer
from anchord.errors import ConfigError, FatalError, UnknownKeyError
from anchord.ports import BulkSigner, Signer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.storage import Capture, ItemFile, Range
    from anchord.engine.parts import Parts
    from anchord.ports.store import Store

_TILES_PER_TRANSACTION = 8
_SIGNING_THREADS = 2
"""Signing leaves the interpreter, so two threads use two cores."""


# ---------------------------------------------------------------------- intents


def submitted_series(parts: Parts, batch: Batch, calendars: Sequence[str], now: int) -> NewSeries:
    """Intend `timestamp_submitted` for every member: m calendars hold the root."""
    payload = {
        "protocol": "opentimestamps",
        "calendars": list(calendars),
        "commitment": batch.root.hex(),
    }
    return _new(parts.signer, event.SUBMITTED, payload, now, batch.proof, batch.size)


def anchored_series(parts: Parts, batch: Batch, block: Block, proof: bytes, now: int) -> NewSeries:
    """Intend `timestamp_anchored` for every member: a checked header carries the root."""
    payload = {
        "protocol": "opentimestamps",
        "chain": parts.policy.chain,
        "block_height": block.height,
        "block_hash": block.hash.hex(),
        "block_merkle_root": block.merkle_root.hex(),
        "block_time": utc(block.time),
        "confirmations": block.confirmations,
        "checked_with": list(block.checked_with),
        **carrying.witnessed(parts, batch),
    }
    return _new(parts.signer, event.ANCHORED, payload, now, proof, batch.size)


def withdrawn_series(parts: Parts, found: Series, reason: str, now: int) -> NewSeries | None:
    """Intend `facet_withdrawn` for the events a series has appended so far."""
    if found.next <= found.start:
        return None
    new = _new(parts.signer, event.WITHDRAWN, {"reason": reason}, now, None, found.next)
    return NewSeries(
        event_type=new.event_type,
        created_at=new.created_at,
        payload=new.payload,
        proof=None,
        signer=new.signer,
        key_id=new.key_id,
        withdraws=found.id,
        start=found.start,
        stop=found.next,
    )


def capture_series(parts: Parts, capture: Capture, now: int) -> Intent:
    """Intend `capture_stored` for a capture whose memento was replayed just now.

    Args:
        parts: whose key signs.
        capture: with everything that was reported and replayed filled in.
        now: when it was replayed.

    Raises:
        FatalError: a part of the receipt is missing; nothing is signed on less than a replay.
    """
    if capture.timestamp is None or capture.final_url is None or capture.sha256 is None:
        raise FatalError(f"capture {capture.id} was not replayed, and must not be signed for")
    if capture.http_status is None or not capture.x_archive_src:
        raise FatalError(f"capture {capture.id} lacks status or source of what was replayed")
    payload = {
        "archive": "wayback",
        "original_url": capture.url,
        "final_url": capture.final_url,
        "capture_url": f"{parts.policy.wayback_url}/web/{capture.timestamp}/{capture.final_url}",
        "captured_at": utc(moment_of(capture.timestamp)),
        "http_status": capture.http_status,
        "grade": "replayed",
        "sha256": capture.sha256.hex(),
        "size": capture.size or 0,
        "x_archive_src": capture.x_archive_src,
    }
    new = _new(parts.signer, event.CAPTURED, payload, now, None, capture.place + 1)
    return Intent(
        batch_id=capture.batch_id, series=msgspec.structs.replace(new, start=capture.place)
    )


def item_series(
    parts: Parts, file: ItemFile, ranges: Sequence[Range], now: int
) -> tuple[Intent, ...]:
    """Intend `item_stored` for every member of a ZIP that the item's metadata lists as ours."""
    payload = {
        "archive": parts.policy.item_host,
        "identifier": file.identifier,
        "file": file.name,
        "size": file.size,
        "md5": file.md5.hex(),
        "sha1": file.sha1.hex(),
        "sha256": file.sha256.hex(),
    }
    intents = []
    for stretch in ranges:
        new = _new(parts.signer, event.ITEM_STORED, payload, now, None, stretch.stop)
        series = msgspec.structs.replace(new, start=stretch.start, file_id=file.id)
        intents.append(Intent(batch_id=stretch.batch_id, series=series))
    return tuple(intents)


def _new(
    signer: Signer,
    event_type: str,
    payload: dict[str, Any],
    now: int,
    proof: bytes | None,
    stop: int,
) -> NewSeries:
    return NewSeries(
        event_type=event_type,
        created_at=now,
        payload=event.canonical_body(payload),
        proof=proof,
        signer=_signer_json(signer),
        key_id=signer.key_id,
        stop=stop,
    )


def _signer_json(signer: Signer) -> bytes:
    block = event.signer_block(signer.key_id, signer.public_key, signer.signer_id)
    return event.canonical_body(block)


def live_anchored(store: Store, batch_id: int) -> list[Series]:
    """Return the anchored series of a batch that nothing has withdrawn."""
    found = store.ledger.series_of(batch_id, (event.ANCHORED, event.WITHDRAWN))
    gone = {series.withdraws for series in found}
    return [
        series
        for series in found
        if series.event_type == event.ANCHORED
        and series.id not in gone
        and series.stop > series.start
    ]


# ---------------------------------------------------------------------- appending


def append_all(parts: Parts, now: int) -> int:
    """Sign and append every event that is due; return how many."""
    appended = 0
    with ThreadPoolExecutor(max_workers=_SIGNING_THREADS, thread_name_prefix="sign") as pool:
        while open_series := parts.store.ledger.open_series():
            for group in _alike(open_series):
                signer = _signer_of(parts, group[0])
                if signer is None:
                    for series in group:
                        _hand_over(parts, series, now)
                    continue
                appended += _append(parts, group, signer, pool)
    return appended


def _alike(open_series: Sequence[Series]) -> Iterator[list[Series]]:
    """Group what one transaction can take: neighbours of one event each, begun by one key.

    Thousands of adopted proofs are as many series of one event; a large batch stands alone.
    """
    group: list[Series] = []
    for series in open_series:
        single = series.stop - series.next == 1
        if group and not (single and series.key_id == group[0].key_id):
            yield group
            group = []
        group.append(series)
        if not single:
            yield group
            group = []
    if group:
        yield group


def _signer_of(parts: Parts, series: Series) -> Signer | None:
    """Return the key a series was begun with; None when it may not sign any more.

    Raises:
        UnknownKeyError: a newer one than any here: ours may have ended, and must not relieve it.
    """
    if series.key_id == parts.signer.key_id:
        return parts.signer
    try:
        return parts.signer_for(series.key_id, series.created_at)
    except UnknownKeyError:
        raise
    except ConfigError:
        return None


def _hand_over(parts: Parts, series: Series, now: int) -> None:
    """The key was revoked or destroyed while a series was open: the active key signs the rest.

    The rest is dated now, because the active key was not valid when the series began.
    """
    rest = NewSeries(
        event_type=series.event_type,
        created_at=now,
        payload=series.payload,
        proof=series.proof,
        signer=_signer_json(parts.signer),
        key_id=parts.signer.key_id,
        withdraws=series.withdraws,
        file_id=series.file_id,
        start=series.next,
        stop=series.stop,
    )
    parts.store.ledger.split(series, rest)


def _append(parts: Parts, group: list[Series], signer: Signer, pool: ThreadPoolExecutor) -> int:
    """Append what is left of a group of series; return the number of events.

    One draft is ahead: while it is being signed, the next one is rendered.
    """
    appended = 0
    ahead: _Draft | None = None
    for draft in _drafts(parts, group, signer, pool):
        if ahead is not None:
            appended += _write(parts, ahead)
        ahead = draft
    return appended + (0 if ahead is None else _write(parts, ahead))


def _drafts(
    parts: Parts, group: list[Series], signer: Signer, pool: ThreadPoolExecutor
) -> Iterator[_Draft]:
    """Yield what one transaction takes each: some tiles of one series, or a group of small ones."""
    moves: list[tuple[Series, int]] = []
    calls: list[_Call] = []
    for series in group:
        batch = parts.store.batches.get(series.batch_id)
        renderer = Renderer(parts.store, batch, series)
        at, stop = series, series.next
        for tile in parts.store.batches.tiles(batch, series.next, series.stop):
            calls.append(_sign_tile(series, signer, renderer, tile, pool))
            stop += len(tile.members)
            if len(calls) == _TILES_PER_TRANSACTION and len(group) == 1:
                yield _Draft([(at, stop)], calls)
                at, calls = msgspec.structs.replace(at, next=stop), []
        if calls:
            moves.append((at, stop))
    if calls:
        yield _Draft(moves, calls)


class _Call(msgspec.Struct, frozen=True):
    """One tile whose events are being signed."""

    series: Series
    tile: Tile
    numbered: list[bool]
    digests: list[bytes]
    signing: Future[list[bytes]]


class _Draft(msgspec.Struct, frozen=True):
    """Events being signed that one transaction will append."""

    moves: list[tuple[Series, int]]
    """Each series as it must still be, and where it will stand."""
    calls: list[_Call]


def _sign_tile(
    series: Series, signer: Signer, renderer: Renderer, tile: Tile, pool: ThreadPoolExecutor
) -> _Call:
    """Render a tile and hand it to the signing threads; the caller renders the next meanwhile."""
    numbered = [member.number is not None for member in tile.members]
    digests = [event.event_digest(body) for body in renderer.bodies(tile, numbered)]
    return _Call(series, tile, numbered, digests, pool.submit(_sign_many, signer, digests))


def _write(parts: Parts, draft: _Draft) -> int:
    """Append a draft in one transaction. If we crash before it, all of it is made again."""
    with parts.store.exclusive():
        return _append_draft(parts, draft)


def _append_draft(parts: Parts, draft: _Draft) -> int:
    seq, chain = parts.store.ledger.head()
    rows = []
    for call in draft.calls:
        series_id = call.series.id
        for member, by_number, digest, signature in zip(
            call.tile.members, call.numbered, call.digests, call.signing.result(), strict=True
        ):
            seq += 1
            chain = event.chain_next(chain, digest, signature)
            rows.append(
                SignedRow(seq, member.record_id, series_id, by_number, digest, signature, chain)
            )
    parts.store.ledger.append(draft.moves, rows)
    series, stop = draft.moves[-1]
    parts.on_progress(f"sign {series.event_type}", stop, series.stop)
    return len(rows)


def _sign_many(signer: Signer, digests: list[bytes]) -> list[bytes]:
    if isinstance(signer, BulkSigner):
        return signer.sign_many(digests)
    sign = signer.sign
    return [sign(digest) for digest in digests]
