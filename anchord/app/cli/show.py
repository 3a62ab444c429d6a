"""`anchord show`: one record and its receipts, by any of its names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli import show_claims, show_log, show_witnesses, storage_record
from anchord.app.cli.output import console, emit_json, printable, utc
from anchord.app.cli.references import find_records, name_of
from anchord.app.wiring import App, chain_name, open_app
from anchord.core import event
from anchord.core.canonical import aliases, record_id, short_pith_number
from anchord.core.model import Batch, BatchState, Record
from anchord.core.proof import attestations, parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.core.model import StoredRecord


@click.command(short_help="Show one record and its receipts, by any of its names.")
@click.argument("record", metavar="RECORD")
@click.option("--full", is_flag=True, help="Also the canonical record and whole events.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, record: str, full: bool, as_json: bool) -> int:
    """Show the record that RECORD names: its timestamp, its captures and its place in an item.

    RECORD is a Pith Number, 8 or more characters of its suffix, a SHA-256, an arXiv id or a DOI.
    Where several records fit, all are listed and none is shown: exit code 1.

    \b
    Examples:
      anchord show pith:2025:LOHGU5AX
      anchord show 2507.10392
      anchord show $(sha256sum thesis.pdf | cut -c 1-64)
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    with open_app(config_path) as app:
        found = find_records(app.store, record)
        if len(found) > 1:
            _list(record, found, as_json=as_json)
            return 1
        document = describe(app, found[0], full=full)
        now = utc(app.clock.now()) or ""
    if as_json:
        emit_json(document)
    else:
        for line in _lines(document, now):
            console().print(printable(line), markup=False)
    return 0


def _list(text: str, found: Sequence[StoredRecord], *, as_json: bool) -> None:
    names = [{"name": name_of(item), "source_id": item.source_id, "label": item.label,
              "version": item.source_version} for item in found]  # fmt: skip
    if as_json:
        emit_json({"reference": text, "matches": names})
    else:
        click.echo(f"{text} means {len(found)} records:")
        for item in names:
            version = "" if item["version"] is None else f"v{item['version']}"
            source = printable(str(item["source_id"] or item["label"] or ""))
            click.echo(f"  {item['name']}  {source}{version}")
    click.echo("nothing is guessed: name one of them in full", err=True)


def describe(app: App, record: StoredRecord, *, full: bool) -> dict[str, Any]:
    """Return what is known about a record, with stable keys."""
    from anchord.engine.stored import check_record

    body = app.store.records.body(record.id)
    batches = app.store.batches.of_record(record.id, record.batch_id)
    standing = next((batch for batch in batches if batch.id == record.batch_id), None)
    check_record(record, body)
    whole = _whole_events(app, record)
    stored = storage_record.describe(app, record, batches, [one for one, gone in whole if not gone])
    claims = show_claims.describe(app, record)
    document: dict[str, Any] = {
        "name": name_of(record),
        "pith_number": None if record.year is None else name_of(record),
        "short_pith_number": None if record.year is None else short_pith_number(record.digest),
        "record_id": record_id(record.digest),
        "canonical_sha256": record.digest.hex(),
        "scheme": record.scheme.value,
        "label": record.label,
        "source": _source(record),
        "aliases": _aliases(record),
        "added_at": utc(record.added_at),
        "strip": _strip(standing, stored["word"], claims),
        "state": "not_anchored" if standing is None else standing.state.value,
        "batches": [_batch(app, batch) for batch in batches],
        "stored": stored,
        "claims": claims,
        "log": show_log.describe(app, record),
        "events": [_event(one, gone, full=full) for one, gone in whole],
    }
    if full:
        document["canonical_record"] = None if body is None else body.decode("utf-8")
    return document


def _source(record: StoredRecord) -> dict[str, Any] | None:
    if record.source_id is None:
        return None
    return {"kind": record.source_kind, "id": record.source_id, "version": record.source_version}


def _aliases(record: StoredRecord) -> list[dict[str, str]]:
    whole = Record(
        digest=record.digest, scheme=record.scheme, source_kind=record.source_kind,
        source_id=record.source_id, source_version=record.source_version,
    )  # fmt: skip
    return [
        {"alias_kind": kind, "alias_value": text}
        for kind, text in aliases(whole)
        if record.year is not None or not kind.startswith("pith_")
    ]


def _strip(standing: Batch | None, stored: str, claims: dict[str, Any]) -> str:
    """Return the strip of the record's page."""
    words = {BatchState.ANCHORED: "anchored", BatchState.SUBMITTED: "submitted",
             BatchState.ATTESTED: "submitted"}  # fmt: skip
    anchored = "not anchored" if standing is None else words.get(standing.state, "not anchored")
    return f"{claims['attested']} | {anchored} | {stored} | {claims['refs']}"


def _batch(app: App, batch: Batch) -> dict[str, Any]:
    from anchord.engine.stored import check_block

    check_block(app.store, batch)
    block = None
    if batch.block_height is not None and batch.block_hash is not None:
        block = {
            "chain": chain_name(app.config.headers.network),
            "height": batch.block_height,
            "hash": batch.block_hash.hex(),
            "merkle_root": None
            if batch.block_merkle_root is None
            else batch.block_merkle_root.hex(),
            "time": utc(batch.block_time),
        }
    return {
        "batch": batch.id,
        "kind": batch.kind,
        "state": batch.state.value,
        "root": batch.root.hex(),
        "size": batch.size,
        "sealed_at": utc(batch.created_at),
        "submitted_at": utc(batch.submitted_at),
        "anchored_at": utc(batch.anchored_at),
        "final_at": utc(batch.final_at),
        "next_check_at": utc(batch.next_check_at),
        "note": batch.note,
        "block": block,
        "calendars": app.store.calls.answered(batch.id),
        "attestations": _attestations(batch),
        **show_witnesses.describe(app, batch),
        "waits": [
            {
                "where": wait.where,
                "what": wait.what,
                "status": wait.status,
                "words": words_for(wait.status, wait.detail),
                "attempts": wait.attempts,
                "next_attempt_at": utc(wait.next_attempt_at),
            }
            for wait in app.store.counts.waits(50, batch.id)
        ],
    }


def _attestations(batch: Batch) -> list[dict[str, Any]]:
    if batch.proof is None:
        return []
    return [
        {"kind": found.attestation.kind, "height": found.attestation.height,
         "uri": found.attestation.uri}
        for found in attestations(parse_timestamp(batch.proof, batch.root))
    ]  # fmt: skip


def words_for(status: str, detail: str | None) -> str:
    """Return what a wait means, in words."""
    if status == "transaction" and detail and detail.startswith("Timestamped by transaction "):
        txid = detail.removeprefix("Timestamped by transaction ").split(";")[0].split(" ")[0]
        return f"in transaction {txid}, waiting for confirmations"
    words = {
        "waiting": "handed in, not asked yet",
        "journal": "in the calendar's journal",
        "transaction": "in a transaction, waiting for confirmations",
        "unknown": "the calendar does not know it",
        "void": "a reorg undid its block, waiting for a new path",
        "due": "to be handed in",
        "stranger": "not asked: no configured calendar has this among its uris",
    }
    return words.get(status) or f"failed: {detail or status}"


def _whole_events(app: App, record: StoredRecord) -> list[tuple[dict[str, Any], str | None]]:
    """Return a record's events, each with the id of the one that withdraws it."""
    from anchord.engine.event_reader import read_event

    events = [read_event(app.store, record, row) for row in app.store.ledger.of_record(record.id)]
    gone = {
        one["payload"]["withdraws"]: one["event_id"]
        for one in events
        if one["event_type"] == event.WITHDRAWN
    }
    return [(one, gone.get(one["event_id"])) for one in events]


def _event(one: dict[str, Any], withdrawn_by: str | None, *, full: bool) -> dict[str, Any]:
    return {
        "event_id": one["event_id"],
        "event_type": one["event_type"],
        "created_at": one["created_at"],
        "signer_id": one["signer"]["signer_id"],
        "key_id": one["signer"]["key_id"],
        "confirmations": one["payload"].get("confirmations"),
        "withdrawn_by": withdrawn_by,
        **({"event": one} if full else {}),
    }


def _lines(document: dict[str, Any], now: str) -> Iterator[str]:
    yield document["name"]
    yield document["strip"]
    yield ""
    yield f"{'digest':<14}{document['canonical_sha256']}  ({document['scheme']})"
    if document["label"]:
        yield f"{'file':<14}{document['label']}"
    for alias in document["aliases"]:
        yield f"{alias['alias_kind']:<14}{alias['alias_value']}"
    yield f"{'added':<14}{document['added_at']}"
    for batch in document["batches"]:
        yield ""
        yield from _batch_lines(batch, document["events"])
    yield from storage_record.lines(document["stored"], now)
    yield from show_claims.lines(document["claims"])
    yield from show_log.lines(document["log"])
    if document["events"]:
        yield ""
    for one in document["events"]:
        mark = f"  WITHDRAWN by {one['withdrawn_by']}" if one["withdrawn_by"] else ""
        yield f"{one['event_type']}  {one['created_at']}  key {one['key_id']}{mark}"
        yield f"    {one['event_id']}"
    if document.get("canonical_record"):
        yield ""
        yield document["canonical_record"]


def _batch_lines(batch: dict[str, Any], events: Sequence[dict[str, Any]]) -> Iterator[str]:
    what = "batch" if batch["kind"] == "sealed" else "adopted proof, batch"
    yield f"{what} {batch['batch']}: {batch['state']}, {batch['size']:,} record(s)"
    block = batch["block"]
    if block:
        chain = "" if block["chain"] == "bitcoin" else f" of {block['chain']}"
        yield f"  existed before {block['time']}, block {block['height']}{chain} (good to hours)"
        yield f"  block       {block['hash']}"
        signed = [one["confirmations"] for one in events if one["confirmations"] is not None]
        if batch["state"] == BatchState.ANCHORED.value and signed:
            yield f"  signed with {signed[-1]} confirmations"
    if batch["note"]:
        yield f"  note        {batch['note']}"
    if batch["calendars"]:
        yield f"  calendars   {', '.join(batch['calendars'])}"
    paths = [(a["kind"], a["height"]) for a in batch["attestations"] if a["kind"] != "pending"]
    for kind, height in dict.fromkeys(paths):
        times = paths.count((kind, height))
        yield f"  path to     {kind} block {height}" + (f", {times} times" if times > 1 else "")
    yield from show_witnesses.batch_lines(batch)
    for wait in batch["waits"]:
        yield f"  {wait['where']}: {wait['words']}"
        if wait["next_attempt_at"] is not None:
            yield f"      tried {wait['attempts']} time(s), next {wait['next_attempt_at']}"
