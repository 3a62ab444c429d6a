"""What people and scripts see: one JSON document on stdout, or tables; progress on stderr."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from anchord.core import moment as moments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table


_PIPED_WIDTH = 250
"""A pipe has no width, and what is folded cannot be searched for."""


def emit_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def emit_json_line(value: Any) -> None:
    """Print one line of JSON Lines on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def printable(text: str) -> str:
    """Return text that cannot move the cursor: what strangers wrote may hold control characters."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def console() -> Console:
    """Return the console for data on stdout; plain, and wide enough for all, when no terminal.

    Lines are never folded: a hash or an address stays one word that can be copied.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(soft_wrap=True, highlight=False, width=width)


def print_table(table: Table) -> None:
    """Print a table on stdout: folded to fit a terminal, elsewhere one line a row."""
    out = console()
    if out.is_terminal:
        out.print(table, soft_wrap=False)
        return
    with out.capture() as kept:
        out.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in kept.get().splitlines()))


def notes() -> Console:
    """Return the console for words beside the data, on stderr."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=not sys.stderr.isatty(), highlight=False)


def progress(*, quiet: bool = False) -> Progress:
    """Return a progress display on stderr; silent when stderr is no terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes(),
        disable=quiet or not sys.stderr.isatty(),
        transient=True,
    )


@contextlib.contextmanager
def shown_progress(*, quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Give what is told (what, done, total), and show it on stderr."""
    with progress(quiet=quiet) as bars:
        task = bars.add_task("", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bars.update(task, description=what, completed=done, total=total)

        yield tell


def utc(moment: int | None) -> str | None:
    """Return Unix seconds as `YYYY-MM-DDTHH:MM:SSZ`, or None for None."""
    return None if moment is None else moments.utc(moment)
