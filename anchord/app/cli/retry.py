"""`anchord retry`: bring parked work back, and open stopped ways to the Internet Archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json, printable
from anchord.app.cli.set_aside import batch_number, find_work
from anchord.app.cli.storage_words import lane_words
from anchord.app.wiring import open_app
from anchord.core.model import BatchState
from anchord.core.storage import CaptureState, FileState
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.app.cli.set_aside import Work
    from anchord.app.wiring import App


@click.command(short_help="Bring parked work back.")
@click.argument("work", nargs=-1, metavar="[BATCH|RECORD|URL|ITEM/FILE]...")
@click.option("--all", "everything", is_flag=True, help="Every parked batch.")
@click.option(
    "--archive",
    is_flag=True,
    help="Parked captures and files, and stopped ways to the Internet Archive.",
)
@click.option(
    "--outlet",
    "outlets",
    multiple=True,
    metavar="NAME",
    help="Events that an outlet refused and that are parked, and an outlet that is stopped.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
    config_path: str | None,
    work: tuple[str, ...],
    everything: bool,
    archive: bool,
    outlets: tuple[str, ...],
    as_json: bool,
) -> int:
    """Bring parked work back: the next pass tries it anew.

    Names are those `anchord status` shows, and those `anchord park` takes. Nothing is lost by
    trying, but mend first what the alert of `anchord status` is about: an archive that is asked on
    against its will blocks addresses and accounts.

    Exit code: 0 all are back, 1 one of them is not parked.
    """
    if (bool(work) and everything) or not (work or everything or archive or outlets):
        raise click.UsageError(
            "name parked work (see `anchord status`), or say --all, --archive or --outlet"
        )
    document: dict[str, Any] = {
        "retried": [], "not_parked": [], "captures": 0, "files": 0, "lanes": [], "outlets": {},
    }  # fmt: skip
    with open_app(config_path) as app, app.store.exclusive():
        for text in dict.fromkeys(work):
            _retry(app, text, document)
        if everything:
            for batch in app.store.batches.in_state(BatchState.PARKED):
                _back(app, batch.id, document)
        if archive:
            _revive(app, document)
        for name in dict.fromkeys(outlets):
            _go_on(app, name, document)
    document["retried"].sort()
    if as_json:
        emit_json(document)
    else:
        _tell(document, archive=archive, batches=bool(work) or everything)
    shown = "`anchord status` and `anchord outlets` show what is"
    for name in document["not_parked"]:
        click.echo(f"{_named(name)} is not parked: {shown}", err=True)
    return 1 if document["not_parked"] else 0


def _retry(app: App, text: str, document: dict[str, Any]) -> None:
    """Bring back what one name means; one that is not parked is noted."""
    try:
        done = _bring_back(app, find_work(app, text, parked=True), document)
    except RefusedError:
        done = False
    if not done:
        number = batch_number(text)
        document["not_parked"].append(text if number is None else number)


def _bring_back(app: App, found: Work, document: dict[str, Any]) -> bool:
    from anchord.engine.reviving import revive_captures, revive_files

    tables, now = app.store.storage, app.clock.now()
    batches = [one for one in found.batches if one.state is BatchState.PARKED]
    captures = [one for one in found.captures if one.state is CaptureState.PARKED]
    files = [one for one in found.files if one.state is FileState.PARKED]
    for batch in batches:
        _back(app, batch.id, document)
    document["captures"] += revive_captures(tables, captures, now)
    document["files"] += revive_files(tables, files, now)
    return bool(batches or captures or files)


def _back(app: App, number: int, document: dict[str, Any]) -> None:
    app.store.batches.unpark(number, app.clock.now())
    document["retried"].append(number)


def _revive(app: App, document: dict[str, Any]) -> None:
    from anchord.engine.reviving import revive

    done = revive(app.store.storage, app.clock.now())
    document["captures"] += done.captures
    document["files"] += done.files
    document["lanes"] = list(done.lanes)


def _go_on(app: App, name: str, document: dict[str, Any]) -> None:
    """Let an outlet go on, with the events of it that are parked."""
    table = app.store.outlets
    if table.get(name) is None:
        document["not_parked"].append(f"outlet {name}")
        return
    document["outlets"][name] = table.revive(name, app.clock.now())


def _named(name: str | int) -> str:
    return f"batch {name}" if isinstance(name, int) else printable(name)


def _tell(document: dict[str, Any], *, archive: bool, batches: bool) -> None:
    if batches:
        click.echo(f"{len(document['retried'])} batch(es) brought back")
    if archive or document["captures"] or document["files"]:
        back = f"{document['captures']:,} capture(s) and {document['files']:,} file(s) back"
        click.echo(back)
    for name in document["lanes"]:
        click.echo(f"open again: {lane_words(name)}")
    for name, count in document["outlets"].items():
        click.echo(f"outlet {name} goes on, {count:,} parked event(s) back")
    if archive:
        click.echo("Next: anchord archive check, then anchord run-once", err=True)
