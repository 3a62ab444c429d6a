"""The `anchord` command: a group that imports a command's module only when it is called.

So `anchord --help` starts in well under 150 ms, however heavy the commands are.
"""

from __future__ import annotations

import importlib
import logging
import sys
from typing import TYPE_CHECKING, Any

import click

from anchord import __version__
from anchord.app.cli.ending import ReaderGoneError, fall, settle_streams
from anchord.app.cli.output import one_line
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "init": "Make a configuration, a signing key and a store in a folder.",
    "add": "Take in records, files, checksum lists or .ots proofs.",
    "sources": "Show where records come from by themselves, and look there now.",
    "run-once": "Make one pass: seal, submit, upgrade, verify, store, sign.",
    "run": "Serve: make passes until told to stop.",
    "worker": "Share a PostgreSQL store's work with other workers.",
    "status": "Show counts, what waits and why, and the services' health.",
    "show": "Show one record and its receipts, by any of its names.",
    "open": "Print the address of a record's page, or open it.",
    "verify": "Check a record, a bundle or an .ots file, and say what was proved.",
    "serve": "Serve records and a published tree over HTTP, to be read.",
    "audit": "Derive every claim again, and report: store, tree or bundles.",
    "bundle": "Print a record's bundle: record, events, whole proofs, keys.",
    "state": "Merge a bundle's events and print the state they come to.",
    "export": "Write out .ots files or bundles.",
    "certificate": "Make a one-page certificate, PDF and HTML, of what is proved.",
    "mirror": "Publish a static tree, and pull what others published.",
    "ledger": "Check the log over all events, and prove what is in it.",
    "outlets": "Show where receipts go, and how far that is.",
    "park": "Set work aside, until `retry` brings it back.",
    "retry": "Bring parked work back.",
    "doctor": "Look at everything anchord needs, and say what to do.",
    "metrics": "Print the store's numbers for Prometheus.",
    "config": "Show, check and explain the configuration.",
    "backup": "Write store, configuration and keyring to one verified file.",
    "restore": "Put a backup into an empty folder, verified first.",
    "migrate-store": "Move the store to another database, compared row by row.",
    "db": "Show the store's schema and rows, and migrate it.",
    "archive": "Try keys, quotas and pace of the Internet Archive.",
    "key": "Make, list, rotate and revoke signing keys.",
    "headers": "Keep and check anchord's own Bitcoin block headers.",
    "completion": "Print the script that completes commands in a shell.",
    "man": "Write manual pages of all commands.",
    "sandbox": "Run or drive the stand-ins on loopback (sandbox, not Bitcoin).",
    "demo": "Do the whole job on four seed records in the sandbox.",
}
"""Command name -> one line of help. The module is `anchord.app.cli.<name>` with `-` as `_`."""


class LazyGroup(click.Group):
    """A group whose commands are modules, imported on use."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that went away (`| head`) is told apart from a failure.

        click would end with exit code 1, which here means that a verification failed.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGoneError from error
        except SystemExit as error:
            # rich ends the process by itself, with the same code.
            if isinstance(error.__context__, BrokenPipeError):
                raise ReaderGoneError from error
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order people meet them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return its `command`."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"anchord.app.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any of them."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=words)
            for name, words in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        # The options; the group's own answer would import every command for its help.
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-c",
    "--config",
    "config_path",
    envvar="ANCHORD_CONFIG",
    type=click.Path(dir_okay=False),
    help="Configuration file (default: anchord.toml here; or ANCHORD_CONFIG).",
)
@click.version_option(__version__, prog_name="anchord")
@click.pass_context
def cli(ctx: click.Context, config_path: str | None) -> None:
    """Make records outlive their publisher.

    anchord timestamps the digests of records in Bitcoin through OpenTimestamps, stores records
    at the Internet Archive, and keeps the receipts as signed events that anyone can check
    without anchord.
    """
    ctx.obj = config_path


class _OneLine(logging.Formatter):
    """What strangers wrote can begin no line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return one_line(super().format(record))


def _log_to_stderr() -> None:
    """Let what anchord logs look like everything else it says; other libraries log nowhere."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine("anchord: %(message)s"))
    logging.getLogger("anchord").addHandler(handler)


def main() -> None:
    """Run the command line; whatever goes wrong becomes one line and an exit code."""
    settle_streams()
    _log_to_stderr()
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        click.echo("anchord: stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except AnchordError as error:
        click.echo(one_line(f"anchord: {error}"), err=True)
        sys.exit(error.exit_code)
    except (Exception, ReaderGoneError) as error:  # noqa: BLE001 - the last line of defence
        fall(error)
    sys.exit(code if isinstance(code, int) else 0)
