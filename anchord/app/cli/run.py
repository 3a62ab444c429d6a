"""`anchord run`: the service, in the foreground."""

from __future__ import annotations

import os

import click

from anchord.app.config import load


@click.command(short_help="Serve: make passes until told to stop.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the log on stderr is written: a line for people, or a JSON object.",
)
@click.pass_obj
def command(config_path: str | None, log_format: str) -> int:
    """Serve the store: make passes, and store records, until told to stop.

    Does what `anchord run-once` does, whenever something is due: new records are sealed within
    `service.pass_every_s` seconds. It stays in the foreground and logs to stderr; a service manager
    starts it, and is told how it is (sd_notify, watchdog). One service to a store; `run-once` by
    hand takes turns with it.

    SIGTERM and SIGINT finish the item in hand and stop; a second one stops at once. SIGHUP reads
    the configuration again; the log says what was taken over and what needs a new start. Killing it
    at any moment loses nothing.

    Exit code: 0 stopped by a signal, 1 evidence does not hold, 2 the configuration cannot be used,
    3 another service has the store, 4 the store or the disk is unsafe.
    """
    from anchord.app.daemon import Daemon
    from anchord.app.service.logs import logging_as

    loaded = load(config_path)
    with logging_as(log_format):
        return Daemon(loaded, os.environ).run()
