"""`anchord mirror`: publish what a store holds, and pull what others published."""

from __future__ import annotations

import importlib
from typing import Any

import click

_COMMANDS = {
    "publish": "Write a static tree that any web server can host.",
    "pull": "Fetch, check and take in the bundles of mirrors, and compare them.",
}


class _LazyGroup(click.Group):
    """Imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: Any = importlib.import_module(f"anchord.app.cli.mirror_{cmd_name}").command
        return command  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Publish what a store holds, and pull what others published.

    A mirror is a folder of files behind any web server. Nothing it says is believed: bundles are
    checked by their signatures and proofs wherever they came from.
    """
