"""`anchord mirror`: publish what a store holds, and pull what others published."""

from __future__ import annotations

import click

from anchord.app.cli import mirror_publish, mirror_pull


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Publish what a store holds, and pull what others published.

    A mirror is a folder of files behind any web server. Nothing it says is believed: bundles are
    checked by their signatures and proofs wherever they came from.
    """


command.add_command(mirror_publish.command, "publish")
command.add_command(mirror_pull.command, "pull")
