"""`anchord verify`: check a record, a bundle or an `.ots` file, and say what was proved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json_line, progress
from anchord.app.cli.witness_options import witness_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.engine.report import Report


@click.command(short_help="Check a record, a bundle or an .ots file, and say what was proved.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--file", "about", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="The file the evidence is about.")  # fmt: skip
@click.option("--digest", metavar="HEX", help="The digest the evidence is about.")
@click.option("--tsa-ca", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="PEM file with the root of a time-stamping authority you trust.")  # fmt: skip
@witness_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document a target, one a line.")
@click.pass_obj
def command(
    config_path: str | None, /, *, targets: tuple[str, ...], as_json: bool, **asked: Any
) -> int:
    """Verify each TARGET: a record's name, a bundle.json, an .ots file, or an item's manifest.

    An .ots is compared with the file or digest it is about: --file, --digest, the file beside it
    whose name it has, or its own name when that is a digest or a Pith Number's suffix. Bundles and
    .ots need no configuration; block headers come from --headers, --node, --explorer or the
    configuration. A manifest-YYYY-MM-DD.json out of an archive.org item is held against the files
    beside it.

    \b
    Examples:
      anchord verify thesis.pdf.ots
      anchord verify proof.ots --file thesis.pdf --offline
      anchord verify paper.bundle.json --key signer.json --headers headers.bin
      anchord verify thesis.pdf.ots --node http://127.0.0.1:8332 --cookie ~/.bitcoin/.cookie

    Exit code: 0 all is proved, 1 something is not, 3 only headers could not be had.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    if len(targets) > 1 and (asked["about"] or asked["digest"]):
        raise click.UsageError("--file and --digest are about one TARGET: name one")
    from anchord.app.cli.evidence import Verifier

    worst = 0
    with Verifier(config_path, **asked) as verifier:
        for report in _shown(verifier.each(targets), len(targets)):
            worst = _worse(worst, report)
            if as_json:
                emit_json_line(_document(report))
            else:
                _print(report, short=len(targets) > 3)
    return worst


def _shown(reports: Iterator[Report], total: int) -> Iterator[Report]:
    """Pass reports on; a bar on stderr where there are many."""
    with progress(quiet=total < 100) as bars:
        task = bars.add_task("verify", total=total)
        for report in reports:
            yield report
            bars.advance(task)


def _worse(worst: int, report: Report) -> int:
    """Return the exit code so far: 1 outweighs 3, which outweighs 0."""
    if report.result == "proved":
        return worst
    return 3 if report.temporary and worst != 1 else 1


def _document(report: Report) -> dict[str, Any]:
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(report)
    return document


def _print(report: Report, *, short: bool) -> None:
    from anchord.app.cli.output import console, printable

    out = console()
    head = printable(f"{report.target}: {_headline(report)}")
    out.print(head, markup=False, style=_STYLES[report.result])
    if short and report.result == "proved":
        return
    for label, text in _lines(report):
        out.print(printable(f"  {label:<10} {text}"), markup=False)


_STYLES = {
    "proved": "bold green",
    "pending": "yellow",
    "not proved": "yellow",
    "failed": "bold red",
}


def _headline(report: Report) -> str:
    if report.kind == "day manifest" and report.result == "proved":
        return "signed, and every file it lists is here as it was signed for"
    if report.result != "proved":
        return f"{report.result}: {report.reason}" if report.reason else report.result
    when = (report.existed_before or "").replace("T", " ").replace("Z", " UTC")
    chain = "" if report.chain == "bitcoin" else f" of {report.chain or 'an unnamed chain'}"
    return f"existed before {when}, block {report.block_height}{chain} (good to hours)"


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    if report.pith_number:
        yield "record", report.pith_number
    if report.digest:
        yield "about", f"{report.digest_algorithm} {report.digest}"
    for check in report.checks:
        mark = "" if check.outcome == "proved" else f"{check.outcome.upper()}: "
        yield check.check, mark + check.detail
    for path in report.paths:
        if path.outcome == "answered":
            continue
        if path.kind == "pending":
            yield "pending", path.uri or ""
        elif path.kind != "bitcoin":
            yield path.kind, f"{path.outcome} {path.height or ''} {path.detail}".strip()
    yield from _withdrawals(report)


def _withdrawals(report: Report) -> Sequence[tuple[str, str]]:
    return [
        ("withdrawn", f"{event.event_type} {event.event_id} by {event.withdrawn_by}")
        for event in report.events
        if event.withdrawn_by
    ]
