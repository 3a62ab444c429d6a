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
    from rich.text import Text


_PIPED_WIDTH = 250
"""A pipe has no width, and what is folded cannot be searched for."""


def emit_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(_escaped(json.dumps(value, indent=2, ensure_ascii=False)) + "\n")


def emit_json_line(value: Any) -> None:
    """Print one line of JSON Lines on stdout."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.write(_escaped(text) + "\n")


def _escaped(text: str) -> str:
    """Return the same JSON with what a terminal might obey, or no encoding has, as escapes."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1]
        for letter in text
    )


def printable(text: str) -> str:
    """Return text that cannot move the cursor: what strangers wrote may hold control characters."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def one_line(text: str) -> str:
    """Return text on one line that cannot move the cursor, as messages and log lines are."""
    return printable(" ".join(text.splitlines()))


def _clean_console(**options: Any) -> Console:
    """Return a console that takes text for text: rich keeps escape sequences, and reads markup."""
    from rich.console import Console

    class Clean(Console):
        def render_str(self, text: str, **how: Any) -> Text:
            return super().render_str("\n".join(map(printable, text.split("\n"))), **how)

    return Clean(markup=False, emoji=False, **options)


def console() -> Console:
    """Return the console for data on stdout; plain, and wide enough for all, when no terminal.

    Lines are never folded: a hash or an address stays one word that can be copied.
    """
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return _clean_console(soft_wrap=True, highlight=False, width=width)


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
    return _clean_console(stderr=True, soft_wrap=not sys.stderr.isatty(), highlight=False)


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
