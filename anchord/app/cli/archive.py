"""`anchord archive check`: would the Internet Archive take what we have, and how fast?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.archive_rate import backlog_words
from anchord.app.cli.output import console, emit_json, printable
from anchord.app.cli.storage_words import lane_words
from anchord.app.wiring import open_app

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Look after the way to the Internet Archive."""


@command.command(short_help="Try keys, quotas and one look-up; tell the day rate.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def check(config_path: str | None, as_json: bool) -> int:
    """Try the keys, read the quotas, make one look-up, and tell how long the backlog takes.

    Nothing is captured, uploaded or written. It asks five small questions, and may be run while a
    pass is under way.

    Exit code: 0 all is well, 2 a person must act (something is missing, or the keys are refused),
    3 the archive is away, overloaded or at its limit.
    """
    from anchord.app.archive_check import inspect

    with open_app(config_path) as app:
        if not as_json and not any(one.startswith("nothing is sent") for one in app.archive_gaps()):
            click.echo("asking; a service that is silent is waited for up to two minutes", err=True)
        document = inspect(app)
    if as_json:
        emit_json(document)
    else:
        for line in _lines(document):
            console().print(printable(line), markup=False, style=_style(line))
    return exit_code(document)


def exit_code(document: dict[str, Any]) -> int:
    """Return 2 when a person must act, else 3 when waiting helps, else 0."""
    outcomes = {one["outcome"] for one in document["checks"]}
    if document["blocked"] or "refused" in outcomes:
        return 2
    return 3 if "temporary" in outcomes else 0


def _style(line: str) -> str | None:
    alarming = " REFUSED" in line or line.startswith(("nothing is sent", "stopped"))
    return "bold red" if alarming else None


_MARKS = {"ok": "ok", "refused": "REFUSED", "temporary": "NOT NOW"}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield from document["missing"]
    for one in document["checks"]:
        yield f"{one['check']:<11} {_MARKS[one['outcome']]:<8} {one['detail']}"
    if document["blocked"]:
        yield "What to set, and why, stands in docs/internet-archive.md."
        return
    rate = document["rate"]
    if rate is not None:
        duration = f"{rate['capture_duration_s']:.0f} s a capture"
        how = "measured" if rate["measured"] else "as others report"
        yield ""
        per_day = f"{rate['captures_per_day']:,}"
        yield f"day rate    {per_day} captures a day, bound by {rate['bound_by']}"
        yield f"            ({duration}, {how})"
        yield f"backlog     {backlog_words(rate)}"
    if document["stopped"]:
        yield ""
        yield f"stopped     {', '.join(lane_words(name) for name in document['stopped'])}"
        yield "            `anchord status` tells why; `anchord retry --archive` opens it again"
