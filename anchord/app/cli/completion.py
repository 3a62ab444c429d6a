"""`anchord completion`: the script with which a shell completes anchord's commands and options."""

from __future__ import annotations

import click

PROGRAM = "anchord"
VARIABLE = "_ANCHORD_COMPLETE"


@click.command(short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL: bash (4.4 or newer), zsh or fish.

    The script asks anchord itself at each Tab, so it never gets old; only the command in question
    is loaded.

    \b
    Examples:
      anchord completion bash > /etc/bash_completion.d/anchord
      anchord completion zsh > "${fpath[1]}/_anchord"
      anchord completion fish > ~/.config/fish/completions/anchord.fish
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from click.shell_completion import get_completion_class

    from anchord.app.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    # `source` is not called: it would start bash to ask for its version.
    one = kind(cli, {}, PROGRAM, VARIABLE)
    click.echo(one.source_template % one.source_vars())
