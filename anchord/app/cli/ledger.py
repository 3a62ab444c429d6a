"""`anchord ledger`: check the log over all events, prove what is in it, and that it only grew."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from anchord.app.cli.output import console, emit_json, printable, progress, utc
from anchord.app.cli.ranges import whole
from anchord.app.wiring import App, open_app
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.core.note import Verifier
    from anchord.engine.ledger_check import LedgerReport
    from anchord.ports.log import StoredCheckpoint
    from anchord.ports.store import Store

_OTS_MAGIC = 31
"""Bytes that every .ots begins with."""

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Check the log over all events, prove what is in it, and that it only grew.

    Every event stands in a Merkle log (RFC 6962). After each pass that signs events a checkpoint
    is signed: size and root of the log. Whoever keeps one can show later if an event was changed
    or left out; each checkpoint goes into Bitcoin with the next batch.
    """


@command.command(short_help="Check every row, tile and checkpoint of the ledger.")
@click.option("--offline", is_flag=True, help="Own header file only: no connection is opened.")
@_JSON
@click.pass_obj
def check(config_path: str | None, offline: bool, as_json: bool) -> int:
    """Recompute the log from all rows of the ledger, and hold everything against it.

    Each row must chain to the one before, each tile and each checkpoint must have the root of the
    rows below it, each checkpoint must be signed, stand in its batch, and be confirmed by the
    block header when that batch is anchored. Nothing is written.

    \b
    Examples:
      anchord ledger check
      anchord ledger check --offline --json

    Exit code: 0 all of it holds, 1 something does not, 3 only block headers could not be had.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    report = _checked(config_path, offline=offline, quiet=as_json)
    if as_json:
        import msgspec

        emit_json({"result": "broken" if report.faults else "sound", **msgspec.to_builtins(report)})
    else:
        for line in _report_lines(report):
            console().print(printable(line), markup=False)
    if report.faults:
        return 1
    return 3 if report.problems else 0


def _checked(config_path: str | None, *, offline: bool, quiet: bool) -> LedgerReport:
    from anchord.app.audit_wiring import open_store
    from anchord.app.cli.witnesses import Witnesses
    from anchord.engine.ledger_check import LedgerCheck

    with (
        open_app(config_path) as app,
        # As it was at one moment: what a pass adds meanwhile would look as if its rows were gone.
        contextlib.closing(open_store(app.loaded)()) as store,
        Witnesses(config_path, keys=(), headers=None, network=None, node=None, cookie=None,
                  explorers=(), offline=offline, confirmations=None) as who,
        progress(quiet=quiet) as bars,
    ):  # fmt: skip
        task = bars.add_task("check ledger", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bars.update(task, description=what, completed=done, total=total)

        return LedgerCheck(cast("Store", store), app.keyring, who.view, tell).run()


def _report_lines(report: LedgerReport) -> Iterator[str]:
    yield "BROKEN" if report.faults else "sound"
    left = report.rows - report.covered
    behind = f", {left:,} after the newest checkpoint" if left > 0 else ""
    yield f"{'rows':<14}{report.rows:,}{behind}"
    yield f"{'tiles':<14}{report.tiles:,}"
    waiting = report.checkpoints - report.carried
    yield f"{'checkpoints':<14}{report.checkpoints:,}, {waiting:,} of them wait for a batch"
    yield f"{'in Bitcoin':<14}{report.confirmed:,} confirmed by block headers"
    if report.unconfirmed:
        yield f"{'':<14}{report.unconfirmed:,} more in anchored batches, no header was looked at"
    for problem in report.problems:
        yield f"{'':<14}{problem}"
    for finding in report.findings:
        yield f"{finding.subject}: {finding.what}"
        yield f"    {finding.todo}"
    if report.faults > len(report.findings):
        yield f"{report.faults:,} faults, the first of each kind are listed"


# ---------------------------------------------------------------------- proofs of events


@command.command(short_help="Prove that events are in the log (tlog-proof).")
@click.argument("target", metavar="RECORD|EVENT")
@click.option("--checkpoint", "size", type=whole(), metavar="SIZE",
              help="Of this checkpoint (default: the oldest that covers the event).")  # fmt: skip
@click.option("-o", "--output", metavar="WHERE",
              help="Folder, or one .tlog-proof file (default: standard output).")  # fmt: skip
@click.pass_obj
def prove(config_path: str | None, target: str, size: int | None, output: str | None) -> int:
    """Write a proof for each event of a record, or for one event by its id.

    A proof is a file of its own (https://c2sp.org/tlog-proof): the event's place, the hashes up to
    the root, and the signed checkpoint. `anchord ledger verify` checks it without a store.

    \b
    Examples:
      anchord ledger prove 2507.10392 -o proofs
      anchord ledger prove sha256:5f4d... --checkpoint 1200 > event.tlog-proof

    Exit code: 0 all were proved, 1 there is no such record, event or checkpoint.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.engine.proving import event_proof_text

    with open_app(config_path) as app:
        seqs = _rows_of(app, target)
        found = {name: event_proof_text(app.store, seq, size) for name, seq in seqs.items()}
    if output is None:
        sys.stdout.buffer.write(b"".join(found.values()))
        return 0
    if output.endswith(".tlog-proof") and len(found) > 1:
        raise RefusedError(f"{target} has {len(found)} events: name a folder with -o")
    for name, raw in found.items():
        _write(_path(output, name + ".tlog-proof"), raw, "tlog-proof")
    proofs = "1 proof" if len(found) == 1 else f"{len(found):,} proofs"
    click.echo(f"{proofs} in {output}", err=True)
    return 0


def _rows_of(app: App, target: str) -> dict[str, int]:
    """Return the ledger rows a person means, by the hex of their event's id."""
    from anchord.app.cli.references import one_record

    try:
        record = one_record(app.store, target)
    except RefusedError:
        text = target.strip().lower().removeprefix("sha256:")
        digest = bytes.fromhex(text) if len(text) == 64 and _is_hex(text) else b""
        place = app.store.log.place_of(digest) if digest else None
        if place is None:
            raise
        return {text: place + 1}
    rows = app.store.ledger.of_record(record.id)
    if not rows:
        raise RefusedError(f"{target} has no signed event yet: run `anchord run-once`")
    return {row.event_id.hex(): row.seq for row in rows}


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)


@command.command(short_help="Check a tlog-proof; needs no store.")
@click.argument("proof", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--vkey", "vkeys", multiple=True, required=True, metavar="KEY|FILE",
              help="Verifier key of the log (name+hash+base64), or a file with it.")  # fmt: skip
@_JSON
def verify(proof: str, file: str, vkeys: tuple[str, ...], as_json: bool) -> int:
    """Check that PROOF, a .tlog-proof, proves an event in FILE to be in the log of --vkey.

    FILE is an event as JSON, or a bundle; each proof in PROOF must be of one of its events. The
    event is hashed anew from what FILE says. Get the verifier key from whoever keeps the log, by
    `anchord ledger checkpoint --vkey`.

    \b
    Example:
      anchord ledger verify event.tlog-proof paper.bundle.json --vkey log.vkey

    Exit code: 0 each proof holds, 1 one does not.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.cli.ledger_proof import verify_files

    proved = verify_files(Path(proof), Path(file), [_vkey(text) for text in vkeys])
    if as_json:
        emit_json(proved)
    else:
        for one in proved["events"]:
            words = f"entry {one['index']:,} of {one['origin']}, in its log of {one['size']:,}"
            console().print(printable(f"{one['event_id']}: {words}"), markup=False)
    return 0


def _vkey(text: str) -> Verifier:
    from anchord.adapters.disk import read_small
    from anchord.core.note import parse_vkey

    if "+" not in text and Path(text).is_file():
        text = read_small(Path(text)).decode("utf-8", "replace").strip()
    return parse_vkey(text)


# ---------------------------------------------------------------------- checkpoints


@command.command(short_help="Print a signed checkpoint of the log.")
@click.option("--size", type=whole(), metavar="SIZE", help="Which one (default: the newest).")
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
              help="Write it to a file (default: standard output).")  # fmt: skip
@click.option("--ots", is_flag=True,
              help="Also write FILE.ots, its Bitcoin timestamp (default: the newest that has "
              "one).")  # fmt: skip
@click.option("--vkey", is_flag=True, help="Print the verifier keys that check checkpoints.")
@click.option("--list", "as_list", is_flag=True, help="List all checkpoints.")
@click.pass_obj
def checkpoint(
    config_path: str | None,
    size: int | None,
    output: str | None,
    ots: bool,
    vkey: bool,
    as_list: bool,
) -> int:
    """Print a checkpoint: the log's name, size and root, signed (https://c2sp.org/tlog-checkpoint).

    Give it to others, and keep some of theirs: `anchord ledger consistency` shows whether a log
    that is shown later continues it. With --ots it is a file anybody can date with `ots verify`.

    \b
    Examples:
      anchord ledger checkpoint > head.txt
      anchord ledger checkpoint --ots -o head.txt && ots verify head.txt.ots
      anchord ledger checkpoint --vkey > log.vkey

    Exit code: 0, or 1 when there is no such checkpoint, or no timestamp of it yet.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    if vkey + as_list + bool(ots or output or size) > 1:
        raise click.UsageError("--vkey, --list and the options about one checkpoint exclude others")
    if ots and output is None:
        raise click.UsageError("--ots writes FILE.ots: say -o FILE")
    from anchord.engine.ledger_check import signers_of
    from anchord.engine.proving import checkpoint_ots

    with open_app(config_path) as app:
        if vkey:
            for key in signers_of(app.store, app.keyring):
                click.echo(key)
        elif as_list:
            for line in _listed(app):
                click.echo(line)
        else:
            found = _chosen(app, size, timestamped=ots)
            proof = checkpoint_ots(app.store, found) if ots else None
            if output is None:
                sys.stdout.buffer.write(found.note)
            else:
                _write(Path(output), found.note, "checkpoint of this log")
                click.echo(_written(app, found, output), err=True)
                if proof is not None:
                    _write(Path(output + ".ots"), proof, ".ots")
    return 0


def _chosen(app: App, size: int | None, *, timestamped: bool) -> StoredCheckpoint:
    log = app.store.log
    if size is not None:
        found = log.covering(size)
        if found is None or found.size != size:
            raise RefusedError(
                f"no checkpoint of {size} events: `anchord ledger checkpoint --list` shows all"
            )
        return found
    if timestamped:
        found = None
        for one in log.checkpoints():
            carried = one.batch_id is not None
            if carried and app.store.batches.get(one.batch_id or 0).proof is not None:
                found = one
        if found is None:
            raise RefusedError(
                "no checkpoint has a timestamp yet: it comes with the next batch of records"
            )
        return found
    found = log.last()
    if found is None:
        raise RefusedError("no checkpoint yet: nothing was signed; run `anchord run-once`")
    return found


def _written(app: App, found: StoredCheckpoint, output: str) -> str:
    """Say which checkpoint it is: with --ots it need not be the newest."""
    newest = app.store.log.last()
    older = newest is not None and newest.size != found.size
    later = f"; the newest is of {newest.size:,}" if newest is not None and older else ""
    return f"checkpoint of {found.size:,} events in {output}{later}"


def _listed(app: App) -> Iterator[str]:
    for one in app.store.log.checkpoints():
        where = "waits for a batch" if one.batch_id is None else f"batch {one.batch_id}"
        yield f"{one.size:>12}  {utc(one.created_at)}  {one.root.hex()}  {where}"


# ---------------------------------------------------------------------- consistency


@command.command(short_help="Prove that the log only grew since a checkpoint.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", required=False)
@_JSON
@click.pass_obj
def consistency(config_path: str | None, old: str, new: str | None, as_json: bool) -> int:
    """Prove that the log of NEW begins with the log of OLD: nothing was changed or left out.

    OLD and NEW are sizes, or files of checkpoints, as somebody kept them. NEW is the newest
    checkpoint by default. The proof is RFC 6962's, and is checked before it is printed.

    \b
    Examples:
      anchord ledger consistency kept-last-year.txt
      anchord ledger consistency 1200 3400 --json

    Exit code: 0 it holds, 1 it does not: the ledger was rewritten; 2 there is no such size or
    checkpoint to compare.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.cli.ledger_proof import compare

    with open_app(config_path) as app:
        document = compare(app, old, new)
    if as_json:
        emit_json(document)
    else:
        for line in _consistency_lines(document):
            console().print(printable(line), markup=False)
    return 0 if document["holds"] else 1


def _consistency_lines(document: dict[str, Any]) -> Iterator[str]:
    yield document["words"]
    for name in ("old", "new"):
        end = document[name]
        signed = "" if end["signed_by"] is None else f"  signed by {end['signed_by']}"
        yield f"{name:<7}{end['size']:>12}  {end['root_b64']}{signed}"
    for line in document["proof"]:
        yield f"{'proof':<21}{line}"


def _path(where: str, name: str) -> Path:
    path = Path(where)
    if where.endswith(".tlog-proof") and not path.is_dir():
        return path
    path.mkdir(parents=True, exist_ok=True)
    return path / name


def _write(path: Path, raw: bytes, what: str) -> None:
    """Write a file whole, in place of one of the same kind only: those begin with the same line.

    Raises:
        RefusedError: something else lies there.
    """
    from anchord.app.report.forms import write_whole

    beginning = raw[: raw.find(b"\n") + 1] if raw[:1].isalnum() else raw[:_OTS_MAGIC]
    if path.exists():
        with path.open("rb") as file:
            if file.read(len(beginning)) not in (beginning, b""):
                raise RefusedError(f"{path} is there and is no {what}: name another file")
    write_whole(path, raw)
