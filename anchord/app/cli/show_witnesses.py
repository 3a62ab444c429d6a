"""What `anchord show` and `anchord status` say of the further witnesses of batches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anchord.app.cli.output import utc
from anchord.core.header import display
from anchord.core.tsa import read_token
from anchord.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.wiring import App
    from anchord.core.model import Batch
    from anchord.ports.log import StoredToken

_HASH = 32


def describe(app: App, batch: Batch) -> dict[str, Any]:
    """Return the block a batch is younger than, and its tokens, with stable keys."""
    from anchord.engine.ledger import live_anchored

    before = None
    if batch.not_before_height is not None and batch.trailer is not None:
        carried = display(batch.trailer[-_HASH:])
        stated = {"block_height": batch.not_before_height, "block_hash": carried}
        signed = any(
            json.loads(series.payload).get("not_before") == stated
            for series in live_anchored(app.store, batch.id)
        )
        before = {"height": batch.not_before_height, "hash": carried, "signed": signed}
    tokens = [_token(one, batch.root) for one in app.store.tokens.of_batch(batch.id)]
    return {"not_before": before, "tokens": tokens}


def _token(stored: StoredToken, root: bytes) -> dict[str, Any]:
    """Return a token or the intent to get one; one that was kept is checked again."""
    found: dict[str, Any] = {
        "url": stored.url,
        "time": None,
        "signed_by": None,
        "serial": None,
        "attempts": stored.attempts,
        "next_attempt_at": utc(stored.next_attempt_at),
        "problem": stored.last_error,
    }
    if stored.raw is None:
        return found
    try:
        token = read_token(stored.raw, root)
    except VerificationError as error:
        return found | {"problem": f"the store is damaged: {error}"}
    serial = str(token.serial)
    return found | {"time": utc(token.time), "signed_by": token.name, "serial": serial}


def batch_lines(batch: dict[str, Any]) -> Iterator[str]:
    """Yield what people read below a batch."""
    before = batch["not_before"]
    if before:
        said = "" if before["signed"] else "; no signed event says so"
        yield f"  not before  block {before['height']}, whose hash is in it{said}"
    for token in batch["tokens"]:
        if token["time"]:
            yield f"  token       existed before {token['time']}, says {token['signed_by']}"
            yield f"      {token['url']}, serial {token['serial']}"
            continue
        tried = f"tried {token['attempts']} time(s), next {token['next_attempt_at'] or 'never'}"
        yield f"  no token    {token['url']}: {token['problem'] or 'not asked yet'}"
        yield f"      {tried}"


def authorities(app: App) -> list[dict[str, Any]]:
    """Return the health of every time-stamping authority, configured ones first."""
    known = {health.url: health for health in app.store.tokens.health()}
    configured = [authority.url for authority in app.config.anchoring.authorities]
    found = []
    for url in [*configured, *(url for url in known if url not in configured)]:
        health = known.get(url)
        found.append(
            {
                "url": url,
                "configured": url in configured,
                "kept": 0 if health is None else health.kept,
                "pending": 0 if health is None else health.pending,
                "last_ok_at": None if health is None else utc(health.last_ok_at),
                "last_error": None if health is None else health.last_error,
                "next_attempt_at": None if health is None else utc(health.next_attempt_at),
            }
        )
    return found


def authority_lines(authority: dict[str, Any]) -> Iterator[str]:
    """Yield what people read of an authority."""
    note = "" if authority["configured"] else " (not configured any more)"
    yield f"authority {authority['url']}{note}"
    last = f", last {authority['last_ok_at']}" if authority["last_ok_at"] else ""
    yield f"      {authority['kept']:,} token(s){last}; {authority['pending']:,} batch(es) wait"
    if authority["last_error"]:
        yield f"      {authority['last_error']}; next {authority['next_attempt_at']}"
