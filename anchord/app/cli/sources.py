"""`anchord sources`: where records come from by themselves, and how far each was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json, notes, print_table, printable, progress, utc
from anchord.app.wiring import App, open_app
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anchord.engine.receiving import Received
    from anchord.errors import AnchordError
    from anchord.ports.source import Source, SourceRow

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@_JSON
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show each source: how far it was read, when it is looked at next, what went wrong.

    Passes look at sources by themselves, each as often as `every_s` says. Nobody is asked here and
    nothing is written.
    """
    if ctx.invoked_subcommand is not None:
        return
    with open_app(ctx.obj) as app:
        document = {"sources": list(_described(app))}
    if as_json:
        emit_json(document)
    elif document["sources"]:
        _show(document["sources"])
    else:
        click.echo("no sources: see [[sources]] in config/anchord.toml")


@command.command(short_help="Look at sources now, to their end.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--again", is_flag=True, help="Read from the beginning: what is known stays as it is."
)
@_JSON
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; refusals stay.")
@click.pass_obj
def pull(
    config_path: str | None, *, names: tuple[str, ...], again: bool, as_json: bool, quiet: bool
) -> int:
    """Look at the sources named, or at all, whether they are due or not, until there is no more.

    What is refused is named on standard error, and everything else is taken in; the next pass
    seals it. An interrupted pull goes on where it stopped. A service may run meanwhile.

    Exit code: 0 all is in, 1 something was refused, 2 a person must act, 3 a source could not be
    read now.
    """
    with open_app(config_path) as app, progress(quiet=quiet or as_json) as bar:
        task = bar.add_task("receiving", total=None)
        chosen = _chosen(app, names)
        total, error = _pull(
            app,
            chosen,
            lambda count: bar.update(task, completed=count),
            lambda line: (
                bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
                if not bar.disable
                else click.echo(line, err=True)
            ),
            again=again,
        )
    if as_json:
        emit_json(_pulled(chosen, total))
    elif not quiet:
        _summary(total)
    if error is not None:
        return error.exit_code
    return 1 if total.refused else 0


def _chosen(app: App, names: Sequence[str]) -> list[Source]:
    known = {source.name: source for source in app.sources}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"no source {printable(name)!r:.60} is configured: there are "
                f"{', '.join(known) or 'none'}"
            )
    if not known:
        raise ConfigError("no source is configured: see [[sources]] in config/anchord.toml")
    return [known[name] for name in dict.fromkeys(names or known)]


def _pull(
    app: App,
    chosen: Sequence[Source],
    on_count: Callable[[int], None],
    tell: Callable[[str], None],
    *,
    again: bool,
) -> tuple[Received, AnchordError | None]:
    """Look at each to its end; one that fails never stops the others."""
    from anchord.engine.receiving import Received, look

    total, failed = Received(), None
    read = [0]

    def counted(_stage: str, done: int, _total: int) -> None:
        on_count(read[0] + done)

    parts = app.parts(counted)
    for source in chosen:
        if again:
            app.store.sources.forget(source.name)
        paused = True
        while paused:
            read[0] = total.new + total.known
            looked = look(
                parts, source, app.clock.now(),
                lambda one: tell(printable(
                    f"{one.where}: {one.reason}" if one.line is None
                    else f"{one.where}:{one.line}: {one.reason}"
                )),
            )  # fmt: skip
            total += looked.received
            paused = looked.paused
            if looked.error is not None:
                failed = failed or looked.error
                tell(printable(f"{source.name}: {looked.error}"))
    return total, failed


def _pulled(chosen: Sequence[Source], total: Received) -> dict[str, Any]:
    return {
        "looked_at": [source.name for source in chosen],
        "new": total.new,
        "known": total.known,
        "adopted": total.adopted,
        "refused": total.refused,
        "failed": total.failed,
        "problems": total.problems,
    }


def _summary(total: Received) -> None:
    words = (
        ("new", total.new),
        ("already there", total.known),
        ("proofs adopted", total.adopted),
        ("refused", total.refused),
    )
    for name, count in words:
        click.echo(f"{count:>12,} {name}")
    if total.new or total.adopted:
        notes().print("Next: anchord run-once --wait", markup=False)


def _described(app: App) -> Iterator[dict[str, Any]]:
    """Yield every source with stable keys: the configured ones first."""
    rows = {row.name: row for row in app.store.sources.all()}
    for source in app.sources:
        row = rows.pop(source.name, None)
        mine = row if row is not None and row.kind == source.kind else None
        where = source.place(mine.cursor if mine else None)
        yield _source(source.name, source.kind, where, row, configured=True)
    for row in rows.values():
        yield _source(row.name, row.kind, None, row, configured=False)


def _source(
    name: str, kind: str, place: str | None, row: SourceRow | None, *, configured: bool
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "configured": configured,
        "place": place,
        "looked_at": utc(row.looked_at if row else None),
        "next_at": utc(row.next_at if row and configured else None),
        "last_ok_at": utc(row.last_ok_at if row else None),
        "last_error_at": utc(row.last_error_at if row else None),
        "last_error": row.last_error if row else None,
        "failures": row.failures if row else 0,
        "taken": row.taken if row else 0,
        "refused": row.refused if row else 0,
    }


def _show(sources: Sequence[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("source", "kind", "read", "last look", "next look"):
        table.add_column(name)
    table.add_column("taken", justify="right")
    table.add_column("refused", justify="right")
    for one in sources:
        soon = (one["next_at"] or "at once") if one["configured"] else "not configured"
        cells = (one["name"], one["kind"], one["place"] or "-", one["looked_at"] or "never", soon)
        table.add_row(
            *(printable(cell) for cell in cells), f"{one['taken']:,}", f"{one['refused']:,}"
        )
    print_table(table)
    for one in sources:
        if one["failures"]:
            words = f"{one['name']}: failed {one['failures']:,} time(s): {one['last_error']}"
            notes().print(printable(words), markup=False)
