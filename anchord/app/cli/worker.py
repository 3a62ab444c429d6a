"""`anchord worker`: one of any number of processes that share a PostgreSQL store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
import msgspec

from anchord.app.config import load

if TYPE_CHECKING:
    from anchord.app.config import Loaded


@click.command(short_help="Share a PostgreSQL store's work with other workers.")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Do only this duty; may be given several times. Without it: all of them.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 32),
    help="How much it does at once (fleet.concurrency).",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the log on stderr is written: a line for people, or a JSON object.",
)
@click.pass_obj
def command(
    config_path: str | None, queues: tuple[str, ...], concurrency: int | None, log_format: str
) -> int:
    """Share a PostgreSQL store's work with other workers, on this machine or others.

    Does what `anchord run` does, and stops, reloads and logs as it does; any number of workers may
    share a store, each thing is done by one of them at a time. `anchord run` and workers keep each
    other out. Killing one at any moment loses nothing: within `fleet.lease_s` seconds the others
    have its work. Needs `pip install 'anchord[fleet]'`.

    Exit code: 0 stopped by a signal, 1 evidence does not hold, 2 the configuration cannot be used,
    3 a daemon has the store, or the server does not answer, 4 the store or the disk is unsafe.
    """
    from anchord.app.fleet.duties import names
    from anchord.app.fleet.worker import FleetWorker
    from anchord.app.service.logs import logging_as

    unknown = [name for name in queues if name not in names()]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]!r} is no duty; there are {', '.join(names())}", param_hint="--queue"
        )
    loaded = _with(load(config_path), concurrency)
    with logging_as(log_format):
        return FleetWorker(loaded, os.environ, queues).run()


def _with(loaded: Loaded, concurrency: int | None) -> Loaded:
    if concurrency is None:
        return loaded
    replace = msgspec.structs.replace
    fleet = replace(loaded.config.fleet, concurrency=concurrency)
    return replace(loaded, config=replace(loaded.config, fleet=fleet))
