"""`anchord doctor`: look at everything a working anchord needs, and say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from anchord.app.cli.output import console, emit_json, printable
from anchord.app.doctor.result import Result, State, exit_code, failed
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_STYLES = {State.FAIL: "bold red", State.WARN: "yellow", State.SKIPPED: "dim", State.OK: None}
_VERDICTS = {0: "well", 2: "a person must act", 3: "wait and try again", 4: "unsafe: stop and look"}


@click.command(short_help="Look at everything anchord needs, and say what to do.")
@click.option("--offline", is_flag=True, help="Open no connection.")
@click.option(
    "--full",
    is_flag=True,
    help="Read every page of the store, every row of the ledger and every header.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, offline: bool, full: bool, as_json: bool) -> int:
    """Look at configuration, key, clock, disk, store, ledger, calendars, headers and archive.

    Nothing is written, and passes may go on meanwhile. Calendars, authorities, nodes and
    explorers get one small question each; the Internet Archive is asked by `anchord archive
    check` only.

    \b
    Examples:
      anchord doctor
      anchord doctor --offline --json

    Exit code: 0 all is well or worth a look (warn), 2 a person must act, 3 only waiting helps,
    4 the store is unsafe: stop and look.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    results = _examined(config_path, online=not offline, full=full)
    tell(results, as_json=as_json)
    return exit_code(results)


def _examined(config_path: str | None, *, online: bool, full: bool) -> list[Result]:
    from anchord.app.doctor.examination import examine, worst_first
    from anchord.app.doctor.patient import Patient
    from anchord.app.wiring import open_app

    try:
        app = open_app(config_path)
    except ConfigError as error:
        todo = "mend what is named; `anchord config explain KEY` tells what may stand at a key"
        return [failed("configuration", error, todo)]
    patient = Patient(app, online=online, full=full)
    try:
        return worst_first(examine(patient))
    finally:
        patient.close()


def tell(results: list[Result], *, as_json: bool, path: str | None = None) -> None:
    """Print results: one JSON document, or a line each and what to do below it."""
    code = exit_code(results)
    if as_json:
        import msgspec

        document = {"verdict": _VERDICTS[code], "checks": msgspec.to_builtins(results)}
        emit_json(document if path is None else {"path": path, **document})
        return
    for line, style in _lines(results):
        console().print(printable(line), markup=False, style=style)
    bad = sum(one.state is State.FAIL for one in results)
    odd = sum(one.state is State.WARN for one in results)
    words = f"{_VERDICTS[code]}: {len(results)} looked at, {bad} failed, {odd} worth a look"
    click.echo(words, err=True)


def _lines(results: list[Result]) -> Iterator[tuple[str, str | None]]:
    width = max((len(one.name) for one in results), default=0)
    width = min(width, 32)
    for one in results:
        yield f"{one.state.value.upper():<8}{one.name:<{width}}  {one.what}", _STYLES[one.state]
        if one.todo:
            yield f"{'':8}{'':{width}}  -> {one.todo}", None
