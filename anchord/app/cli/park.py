"""`anchord park`: set work aside by hand, until `anchord retry` brings it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json, printable
from anchord.app.cli.set_aside import Work, find_work
from anchord.app.wiring import open_app
from anchord.engine.parking import park_batch, park_capture, park_file
from anchord.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from anchord.app.wiring import App

_LONGEST = 200


@click.command(short_help="Set work aside, until `retry` brings it back.")
@click.argument("work", nargs=-1, required=True, metavar="BATCH|RECORD|URL|ITEM/FILE...")
@click.option("--reason", required=True, metavar="TEXT", help="Why; `anchord status` shows it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, work: tuple[str, ...], reason: str, as_json: bool) -> int:
    """Set work aside: it is not tried, and nothing waits for it.

    BATCH is a batch's number, URL a page that is to be captured, ITEM/FILE a file on its way into
    an item, as `anchord status` shows them. RECORD, by any of its names, means its captures, and
    its batch when it is alone in it. What is anchored or stored is refused.

    Nothing is lost: `anchord retry` with the same words brings it back where it stood. Meanwhile a
    batch is not handed in, not asked for and not checked, and its events stay unsigned.

    \b
    Examples:
      anchord park 12 --reason "calendar b answers nonsense"
      anchord park https://arxiv.org/abs/2507.10392v1 --reason "site is moving"

    Exit code: 0 all of it is set aside, 1 some of it was refused.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    _check(reason)
    with open_app(config_path) as app, app.store.exclusive():
        document = _park_all(app, work, reason)
    if as_json:
        emit_json(document)
    else:
        _tell(document)
    for one in document["refused"]:
        click.echo(printable(f"{one['what']}: {one['reason']}"), err=True)
    return 1 if document["refused"] else 0


def _check(reason: str) -> None:
    if not (reason.strip() and reason.isprintable() and len(reason) <= _LONGEST):
        raise ConfigError(
            f"--reason: expected up to {_LONGEST} characters on one line, got {reason!r:.240}"
        )


def _park_all(app: App, work: tuple[str, ...], reason: str) -> dict[str, Any]:
    """Set aside what can be; each name stands alone."""
    document: dict[str, Any] = {"batches": [], "captures": [], "files": [], "refused": []}
    for text in dict.fromkeys(work):
        try:
            _park(app, find_work(app, text, parked=False), reason, document)
        except RefusedError as error:
            document["refused"].append({"what": text, "reason": str(error)})
    return document


def _park(app: App, found: Work, reason: str, document: dict[str, Any]) -> None:
    """Set aside all that a name means.

    Raises:
        RefusedError: it cannot be set aside.
    """
    tables = app.store.storage
    for batch in found.batches:
        park_batch(app.store, batch, reason)
        document["batches"].append(batch.id)
    for capture in found.captures:
        park_capture(tables, capture, reason)
        document["captures"].append(capture.url)
    for file in found.files:
        park_file(tables, file, reason)
        document["files"].append(f"{file.identifier}/{file.name}")


def _tell(document: dict[str, Any]) -> None:
    words = {"batches": "batch(es)", "captures": "capture(s)", "files": "file(s)"}
    done = [f"{len(document[key]):,} {unit}" for key, unit in words.items() if document[key]]
    if done:
        click.echo(f"set aside: {', '.join(done)}; `anchord retry` brings them back")
