"""`anchord retry`: bring parked work back."""

from __future__ import annotations

import click

from anchord.app.cli.output import emit_json
from anchord.app.wiring import open_app
from anchord.core.model import BatchState


@click.command(short_help="Bring parked work back.")
@click.argument("batch", nargs=-1, type=int, metavar="[BATCH]...")
@click.option("--all", "everything", is_flag=True, help="Every parked batch.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
    config_path: str | None, batch: tuple[int, ...], everything: bool, as_json: bool
) -> int:
    """Bring parked batches back: their calendars and headers are asked anew.

    BATCH is the number `anchord status` shows. Nothing is lost by trying.

    Exit code: 0 all are back, 1 one of them is not parked.
    """
    if bool(batch) == everything:
        raise click.UsageError("name parked batches (see `anchord status`), or say --all")
    with open_app(config_path) as app, app.store.exclusive():
        parked = {found.id for found in app.store.batches.in_state(BatchState.PARKED)}
        chosen = sorted(parked if everything else parked & set(batch))
        unknown = sorted(set(batch) - parked)
        for number in chosen:
            app.store.batches.unpark(number, app.clock.now())
    if as_json:
        emit_json({"retried": chosen, "not_parked": unknown})
    else:
        click.echo(f"{len(chosen)} batch(es) brought back")
    for number in unknown:
        click.echo(f"batch {number} is not parked", err=True)
    return 1 if unknown else 0
