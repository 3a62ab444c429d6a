"""`anchord add`: records, files, checksum lists and proofs go into the store."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json, notes, print_table, progress
from anchord.app.database_address import passfile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.progress import Progress

    from anchord.app.config import Config, Loaded
    from anchord.core.model import Rejection
    from anchord.engine.scan import Taken
    from anchord.ports import RecordSource

KINDS = ("record", "records", "bundle", "list", "ots", "file")
"""What `--as` takes: the words of `anchord.adapters.sources.kinds.Kind`."""
SCHEMES = ("pith-json-v1", "rfc8785")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("inputs", nargs=-1, metavar="INPUT...")
@click.option(
    "--files-from",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Also add every path this file names, one a line or NUL-terminated (-: standard input).",
)
@click.option(
    "--as", "kind", type=click.Choice(KINDS), help="Do not look: every INPUT is of this kind."
)
@click.option(
    "--scheme",
    type=click.Choice(SCHEMES),
    default="pith-json-v1",
    show_default=True,
    help="How JSON records are made canonical before they are hashed.",
)
@click.option(
    "--max-errors",
    type=click.IntRange(min=0),
    metavar="N",
    help="Name at most this many refusals; all are counted (default: name all).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; refusals stay.")
@click.pass_context
def command(
    ctx: click.Context,
    inputs: tuple[str, ...],
    files_from: str | None,
    kind: str | None,
    scheme: str,
    max_errors: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Take in records: INPUT is a file, a folder, or - for standard input.

    \b
    What an INPUT is, is told by its content, then by its name:
      Pith record JSON   alone, in an object that states its hash or number, in a
                         bundle, in an array, or one a line (.jsonl, .jsonl.gz)
      sha256sum list     GNU or BSD form; the digests go in, files are not read
      .ots proof         complete or pending: adopted, and upgraded later
      anything else      its SHA-256 goes in, its content is not looked into

    In a folder, names decide: .json and .jsonl are records, .ots proofs, SHA256SUMS lists, all
    others files; hidden files are passed over. What was stated and does not recompute is refused,
    named on standard error, and everything else goes in. Adding twice changes nothing.

    \b
    Examples:
      anchord add records.jsonl photos/ thesis.pdf
      sha256sum *.iso | anchord add -
      find /archive -name '*.ots' -print0 | anchord add --files-from -

    Exit code: 0 all is in, 1 something was refused, 2 an INPUT does not exist.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    if not inputs and files_from is None:
        raise click.UsageError("name at least one INPUT, or --files-from")
    if [*inputs, files_from].count("-") > 1:
        raise click.UsageError("standard input (-) can be read once only")
    taken, refusals = _take(
        ctx.obj,
        lambda loaded: _sources(loaded, inputs, files_from, kind, scheme),
        lambda tell: _Refusals(tell, max_errors, keep=as_json),
        quiet=quiet or as_json,
    )
    if as_json:
        emit_json(_document(taken, refusals.kept))
    elif not quiet:
        _summary(taken)
    if taken.rejected:
        ctx.exit(1)


def _take(
    config_path: str | None,
    find: Callable[[Loaded], list[RecordSource]],
    listen: Callable[[Callable[[str], None]], _Refusals],
    *,
    quiet: bool,
) -> tuple[Taken, _Refusals]:
    """Find all inputs first, so that a wrong name stops before anything is taken in."""
    from anchord.app.wiring import open_app
    from anchord.engine.scan import take_in, without_forgeries

    with open_app(config_path) as app, progress(quiet=quiet) as bar:
        sources = find(app.loaded)
        task = bar.add_task("taking in", total=None)
        refusals = listen(_teller(bar))
        taken = take_in(
            without_forgeries(itertools.chain.from_iterable(sources), lambda: app.keyring),
            app.store,
            app.clock.now(),
            refusals,
            lambda count: bar.update(task, completed=count),
        )
        refusals.finish()
    return taken, refusals


def _sources(
    loaded: Loaded, inputs: Sequence[str], files_from: str | None, kind: str | None, scheme: str
) -> list[RecordSource]:
    from anchord.adapters.sources.inputs import source_for, source_from_list
    from anchord.core.model import Scheme

    skip = own_files(loaded)
    chosen = Scheme(scheme)
    sources = [source_for(path, kind=kind, scheme=chosen, skip=skip) for path in inputs]
    if files_from is not None:
        sources.append(source_from_list(files_from, kind=kind, scheme=chosen, skip=skip))
    return sources


def own_files(loaded: Loaded) -> list[Path]:
    """Return what `anchord init` made: passed over when a folder around it is added."""
    config = loaded.config
    headers = config.headers.file.path
    names = [config.signer.key_dir, headers, f"{headers}.lock", config.archive.items.spool_dir]
    names += _secrets(config)
    if config.store.url.startswith("sqlite:///"):
        database = config.store.url.removeprefix("sqlite:///")
        names += [database + tail for tail in ("", "-wal", "-shm", "-journal", ".lock")]
    return [loaded.path, *map(loaded.resolve, names)]


def _secrets(config: Config) -> list[str]:
    """Return the files that hold secrets, as the configuration names them."""
    names = [
        config.archive.credentials_file,
        config.signer.passphrase_file,
        config.headers.node.cookie_file,
        config.headers.node.password_file,
        passfile(config.store.url) or "",
        *(source.password_file for source in config.sources),
        *(name for outlet in config.outlets for name in (outlet.password_file, outlet.secret_file)),
    ]
    return [name for name in names if name]


class _Refusals:
    """Names refusals as they are met, up to a limit."""

    def __init__(self, tell: Callable[[str], None], limit: int | None, *, keep: bool) -> None:
        self._tell = tell
        self._limit = limit
        self._keep = keep
        self._count = 0
        self.kept: list[Rejection] = []
        """Those that were named, when they are wanted again."""

    def __call__(self, rejection: Rejection) -> None:
        self._count += 1
        if self._limit is not None and self._count > self._limit:
            return
        if self._keep:
            self.kept.append(rejection)
        line = "" if rejection.line is None else f"{rejection.line}:"
        self._tell(shown(f"{rejection.where}:{line} {rejection.reason}"))

    def finish(self) -> None:
        """Say how many were not named."""
        if self._limit is not None and self._count > self._limit:
            self._tell(f"{self._count - self._limit} more refused, not named (--max-errors)")


def shown(text: str) -> str:
    """Return text for a terminal: what could move its cursor is escaped."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def _teller(bar: Progress) -> Callable[[str], None]:
    """Return what prints a line on stderr, above the progress bar when there is one."""
    if bar.disable:
        return lambda line: click.echo(line, err=True)
    return lambda line: bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _document(taken: Taken, refusals: Sequence[Rejection]) -> dict[str, Any]:
    return {
        "new": taken.new,
        "known": taken.known,
        "adopted": taken.adopted,
        "refused": taken.rejected,
        "refusals": [
            {"where": one.where, "line": one.line, "reason": one.reason} for one in refusals
        ],
    }


def _summary(taken: Taken) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    rows = (
        ("new", taken.new),
        ("already there", taken.known),
        ("proofs adopted", taken.adopted),
        ("refused", taken.rejected),
    )
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    print_table(table)
    sys.stdout.flush()
    if taken.new or taken.adopted:
        notes().print("Next: anchord run-once --wait", markup=False)
    elif not taken.rejected:
        notes().print("nothing changed", markup=False)
