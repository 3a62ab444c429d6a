"""`anchord retry`: bring parked work back, and open stopped ways to the Internet Archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import emit_json
from anchord.app.cli.storage_words import lane_words
from anchord.app.wiring import open_app
from anchord.core.model import BatchState

if TYPE_CHECKING:
    from anchord.app.wiring import App


@click.command(short_help="Bring parked work back.")
@click.argument("batch", nargs=-1, type=int, metavar="[BATCH]...")
@click.option("--all", "everything", is_flag=True, help="Every parked batch.")
@click.option(
    "--archive",
    is_flag=True,
    help="Parked captures and files, and stopped ways to the Internet Archive.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
    config_path: str | None,
    batch: tuple[int, ...],
    everything: bool,
    archive: bool,
    as_json: bool,
) -> int:
    """Bring parked work back: the next pass tries it anew.

    BATCH is the number `anchord status` shows. Nothing is lost by trying, but mend first what
    the alert of `anchord status` is about: an archive that is asked on against its will blocks
    addresses and accounts.

    Exit code: 0 all are back, 1 one of them is not parked.
    """
    if (bool(batch) and everything) or not (batch or everything or archive):
        raise click.UsageError(
            "name parked batches (see `anchord status`), or say --all or --archive"
        )
    with open_app(config_path) as app, app.store.exclusive():
        parked = {found.id for found in app.store.batches.in_state(BatchState.PARKED)}
        chosen = sorted(parked if everything else parked & set(batch))
        unknown = sorted(set(batch) - parked)
        for number in chosen:
            app.store.batches.unpark(number, app.clock.now())
        revived = _revive(app) if archive else {"captures": 0, "files": 0, "lanes": []}
    if as_json:
        emit_json({"retried": chosen, "not_parked": unknown, **revived})
    else:
        _tell(chosen, revived, archive=archive, batches=bool(batch) or everything)
    for number in unknown:
        click.echo(f"batch {number} is not parked", err=True)
    return 1 if unknown else 0


def _revive(app: App) -> dict[str, Any]:
    from anchord.engine.reviving import revive

    done = revive(app.store.storage, app.clock.now())
    return {"captures": done.captures, "files": done.files, "lanes": list(done.lanes)}


def _tell(chosen: list[int], revived: dict[str, Any], *, archive: bool, batches: bool) -> None:
    if batches:
        click.echo(f"{len(chosen)} batch(es) brought back")
    if archive:
        click.echo(f"{revived['captures']:,} capture(s) and {revived['files']:,} file(s) back")
        for name in revived["lanes"]:
            click.echo(f"open again: {lane_words(name)}")
        click.echo("Next: anchord archive check, then anchord run-once", err=True)
