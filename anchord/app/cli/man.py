"""`anchord man`: manual pages of all commands and of the configuration."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from anchord.errors import ConfigError


@click.command(short_help="Write manual pages of all commands.")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a manual page for each command, and anchord.toml(5), into DIR/man1 and DIR/man5.

    They are made from the commands' own help. SOURCE_DATE_EPOCH, when it is set, dates them.

    \b
    Examples:
      anchord man /usr/local/share/man
      anchord man here && man -l here/man1/anchord-add.1
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.cli.main import cli
    from anchord.app.manpage import pages

    count = 0
    try:
        for name, text in pages(cli, _day()):
            path = folder / f"man{name[-1]}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "ascii")
            count += 1
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None
    click.echo(f"{count} pages in {folder}")


def _day() -> str:
    """Return the pages' date (https://reproducible-builds.org/specs/source-date-epoch/)."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = int(given) if given.isdecimal() else int(time.time())
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
