"""`anchord export`: write out `.ots` files or bundles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json, progress
from anchord.app.wiring import App, open_app
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.app.cli.destination import Destination
    from anchord.engine.export import Item


@click.command(short_help="Write out .ots files or bundles.")
@click.argument("records", nargs=-1, metavar="[RECORD]...")
@click.option(
    "--ots", "kind", flag_value="ots", default=True, help="OpenTimestamps proofs (default)."
)
@click.option(
    "--bundle", "kind", flag_value="bundle", help="Bundles: record, events, proofs, keys."
)
@click.option("--all", "everything", is_flag=True, help="Every record that has a proof.")
@click.option(
    "--from-file",
    type=click.File("r", encoding="utf-8", errors="backslashreplace"),
    metavar="FILE",
    help="Also the records this file names, one a line (-: standard input).",
)
@click.option(
    "-o",
    "--output",
    metavar="WHERE",
    help="Folder (default: here), one file (.ots, .json), archive (.tar, .tar.gz), or - for "
    "standard output.",
)
@click.option(
    "--anchored-only/--pending-too",
    default=False,
    help="Leave out proofs that are still pending (default: they go out, too).",
)
@click.option("--force", is_flag=True, help="Replace files that say something ours do not.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document about what was done."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_obj
def command(
    config_path: str | None,
    *,
    records: tuple[str, ...],
    kind: str,
    everything: bool,
    from_file: Any,
    output: str | None,
    anchored_only: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Write the proofs of records as files that need no anchord.

    RECORD is any name of a record: Pith Number, short form, digest, arXiv id, DOI. Files are
    called after the Pith Number's suffix or the digest. A folder that was exported to before is
    brought up to date: what changed is replaced, unless it holds something ours does not.
    To standard output goes one file as it is; several as a tar archive, bundles as JSON Lines.

    \b
    Examples:
      anchord export 2507.10392 -o paper.ots
      anchord export --all -o proofs
      anchord export --all --bundle -o - | gzip > bundles.jsonl.gz

    Exit code: 0 all of it went out, 1 a record was refused or a file kept.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    texts = [*records, *(line.strip() for line in from_file or () if line.strip())]
    _check_usage(texts, output, everything=everything, as_json=as_json)
    from anchord.app.cli.destination import open_destination

    many = everything or len(texts) > 1
    with open_app(config_path) as app:
        refused: dict[str, str] = {}
        with open_destination(output or ".", kind, many=many, force=force, bulk=everything) as out:
            if everything:
                _export_all(app, kind, out, anchored_only=anchored_only, quiet=quiet)
            else:
                _export_named(app, kind, texts, out, refused, anchored_only=anchored_only)
        left = _left(app, out, everything=everything)
    document: dict[str, Any] = {
        "kind": kind,
        "output": output or ".",
        **out.counts(),
        "no_proof": left,
    }
    document["refused"] = refused
    if as_json:
        emit_json(document)
    _tell(document, anchored_only=anchored_only)
    return 1 if refused or document["kept"] else 0


def _check_usage(
    texts: Sequence[str], output: str | None, *, everything: bool, as_json: bool
) -> None:
    if bool(texts) == everything:
        raise click.UsageError("name records, or say --all")
    if everything and output is None:
        raise click.UsageError("--all needs -o: a folder, an archive (.tar, .tar.gz), or -")
    if as_json and output == "-":
        raise click.UsageError("--json and -o - both write to standard output: choose one")


def _export_all(app: App, kind: str, out: Destination, *, anchored_only: bool, quiet: bool) -> None:
    from anchord.engine.export import all_bundles, all_ots

    if kind == "ots":
        groups = all_ots(app.store, anchored_only=anchored_only)
    else:
        groups = all_bundles(app.store, app.keyring, anchored_only=anchored_only)
    counts = app.store.counts.by_state()
    with progress(quiet=quiet) as bars:
        task = bars.add_task("export", total=sum(counts.values()))
        for group in groups:
            for item in group:
                out.put(item)
            bars.advance(task, len(group))


def _export_named(
    app: App,
    kind: str,
    texts: Sequence[str],
    out: Destination,
    refused: dict[str, str],
    *,
    anchored_only: bool,
) -> None:
    """Export one by one; what cannot be exported is named, and the rest goes out."""
    done: set[str] = set()
    for text in texts:
        try:
            item = _item(app, kind, text, anchored_only=anchored_only)
        except RefusedError as error:
            refused[text] = str(error)
            continue
        if item.stem not in done:
            done.add(item.stem)
            out.put(item)


def _item(app: App, kind: str, text: str, *, anchored_only: bool) -> Item:
    from anchord.app.cli.references import one_record
    from anchord.engine.export import bundle_of, ots_of

    record = one_record(app.store, text)
    item = ots_of(app.store, record) if kind == "ots" else bundle_of(app.store, app.keyring, record)
    if item is None:
        raise RefusedError("no proof yet: run `anchord run-once`")
    if anchored_only and not item.anchored:
        raise RefusedError("its proof is still pending")
    return item


def _left(app: App, out: Destination, *, everything: bool) -> int | None:
    """Return how many records have no proof at all; None when only named ones were asked for."""
    if not everything:
        return None
    waiting, _ = app.store.records.waiting()
    return max(waiting + sum(app.store.counts.by_state().values()) - out.exported, 0)


def _tell(document: dict[str, Any], *, anchored_only: bool) -> None:
    say = _line
    changed = {key: document[key] for key in ("new", "updated", "same", "kept") if document[key]}
    detail = ", ".join(f"{count:,} {key}" for key, count in changed.items())
    say(f"{document['exported']:,} exported" + (f" ({detail})" if detail else ""))
    if document["pending"]:
        say(f"{document['pending']:,} of them still pending: export again after they are anchored")
    if document["no_proof"]:
        words = "are not anchored yet" if anchored_only else "have no proof yet"
        say(f"{document['no_proof']:,} records {words}")
    if document["kept"]:
        say(f"{document['kept']:,} kept: the file there says something ours does not; see --force")
    for text, reason in document["refused"].items():
        say(f"{text}: {reason}")


def _line(text: str) -> None:
    click.echo(text, err=True)
