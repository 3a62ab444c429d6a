"""`anchord status --watch`: what `anchord status` says, kept up to date on a terminal.

The store is asked for a mark that changes with every commit, which costs next to nothing; all is
counted again only when that changed, or when ages have moved on. However large the store, counting
takes at most a small share of a processor.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import one_line
from anchord.errors import StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, RenderableType

Frame = tuple[dict[str, Any], "Sequence[tuple[str, str]]"]
"""What `status --json` says, and the lines under the bars: (words, style)."""

_LOOK_S = 0.5
AGES_S = 5.0
"""Nothing was written: ages are told anew this often."""
_LEAST_S = 1.0
_SHARE = 20
"""At least this many times as long as counting took, before it is done again."""
_LEAVE = ("q", "Q", "\x03", "\x04")


class Pace:
    """When to count again.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._mark: Any = None
        self._began = self._not_before = self._by = clock()

    def is_due(self, mark: Any) -> bool:
        """Tell whether to count now; `mark` differs from the last one after a commit."""
        now = self._clock()
        return now >= self._not_before and (mark != self._mark or now >= self._by)

    def begins(self, mark: Any) -> None:
        """Note that counting begins; what is written from here on is seen by the next."""
        self._mark, self._began = mark, self._clock()

    def ends(self) -> None:
        """Note that counting is over."""
        now = self._clock()
        rest = max(_LEAST_S, _SHARE * (now - self._began))
        self._not_before, self._by = now + rest, now + max(rest, AGES_S)


def check_terminal() -> None:
    """Refuse to show a view that moves where nothing can show it.

    Raises:
        click.UsageError: stdout is no terminal.
    """
    if not sys.stdout.isatty():
        raise click.UsageError(
            "--watch needs a terminal: leave it out, or ask for `anchord status --json` again "
            "and again"
        )


def watch(console: Console, mark: Callable[[], Any], frame: Callable[[], Frame]) -> None:
    """Show frames until a person leaves with q or Ctrl-C, or the process is told to end.

    Args:
        console: a terminal.
        mark: changes with every commit.
        frame: counts, and says what is to be seen.

    Raises:
        AnchordError: the store cannot be read; that it is busy is shown, and passes.
    """
    from rich.live import Live

    from anchord.app.cli.run_display import stoppable

    pace, shown = Pace(), _Shown()
    with (
        stoppable() as stop,
        contextlib.suppress(KeyboardInterrupt),
        _keys() as pressed,
        Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live,
    ):
        while not stop.is_set():
            if _count(pace, mark, frame, shown) or shown.resized():
                live.update(shown.picture(), refresh=True)
            if pressed(_LOOK_S):
                return


class _Shown:
    """What is on the screen."""

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self.trouble: str | None = None
        self._size: tuple[int, int] = (0, 0)

    def resized(self) -> bool:
        """Tell whether the terminal has another size than at the last call."""
        size = shutil.get_terminal_size()
        changed, self._size = size != self._size, size
        return changed

    def picture(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        foot = Text("q or Ctrl-C leaves", style="dim")
        if self.trouble is not None:
            foot = Text(self.trouble, style="bold red")
        if self.frame is None:
            return foot
        document, lines = self.frame
        return Group(
            Text(f"anchord status  {document['now']}", style="bold"), foot, Text(),
            _bars(document), Text(),
            *(Text(words, style, no_wrap=True, overflow="ellipsis") for words, style in lines),
        )  # fmt: skip


def _count(pace: Pace, mark: Callable[[], Any], frame: Callable[[], Frame], shown: _Shown) -> bool:
    """Count where that is due, and tell whether there is something new to be seen."""
    try:
        found = mark()
        if not pace.is_due(found):
            return False
        pace.begins(found)
        shown.frame, shown.trouble = frame(), None
    except StoreBusyError as error:
        shown.trouble = one_line(str(error))
        pace.begins(None)
    pace.ends()
    return True


def _bars(document: dict[str, Any]) -> RenderableType:
    """Return how much of the records is anchored and stored, as bars."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    records = document["records"]
    total = sum(records.values())
    table = Table.grid(padding=(0, 2))
    for name, done in (("anchored", records["anchored"]),
                       ("stored", document["stored"]["records"]["stored"])):  # fmt: skip
        share = 100 * done / total if total else 0.0
        # Never rounded up to all: one record that is missing is to be seen.
        shown = f"{min(share, 99.9):5.1f} %" if done < total else f"{share:5.1f} %"
        bar = ProgressBar(
            total=max(total, 1), completed=done, width=40,
            complete_style="green", finished_style="green",
        )  # fmt: skip
        table.add_row(name, bar, shown, f"{done:,} of {total:,}")
    return table


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """Give what waits some seconds for a key, and tells whether it was one to leave by.

    The terminal gives keys at once and without showing them, and is put back at the end.
    """
    if not sys.stdin.isatty():
        yield _slept
        return
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    tty.setcbreak(handle)
    try:
        yield lambda seconds: _left(handle, seconds)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _slept(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _left(handle: int, seconds: float) -> bool:
    import os

    ready, _, _ = select.select([handle], [], [], seconds)
    if not ready:
        return False
    pressed = os.read(handle, 64).decode("ascii", "replace")
    # Nothing to be read although something is there: the terminal is gone.
    return not pressed or any(key in pressed for key in _LEAVE)
