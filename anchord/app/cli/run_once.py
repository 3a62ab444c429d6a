"""`anchord run-once`: one pass, or passes until everything is anchored."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from anchord.app.cli.output import emit_json, notes, progress
from anchord.app.cli.show import words_for
from anchord.app.cli.status import next_attempt
from anchord.app.wiring import App, open_app
from anchord.engine.run import PassReport, run_pass
from anchord.errors import StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST_NAP_S = 30.0


@click.command(short_help="Make one pass: seal, submit, upgrade, verify, sign.")
@click.option("--wait", is_flag=True, help="Keep passing until everything is anchored.")
@click.option(
    "--deadline",
    type=click.FloatRange(min=0),
    default=86_400,
    show_default=True,
    metavar="SECONDS",
    help="With --wait: stop after this long; what is done is kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_obj
def command(
    config_path: str | None, wait: bool, deadline: float, as_json: bool, quiet: bool
) -> int:
    """Make one pass over the store: seal, submit, upgrade, verify, sign.

    Bitcoin takes hours; a pass does what can be done now and writes down when to go on. Run it
    from cron or a timer, or let it wait.

    Exit code: 0 all that could be done is done, 3 calls failed and will be repeated, or the
    deadline of --wait came first.
    """
    with open_app(config_path) as app, _stoppable() as stop:
        total, passes = _passes(app, stop, wait=wait, deadline_s=deadline, quiet=quiet)
        left = _left(app)
        document = _document(app, total, passes, left)
    if as_json:
        emit_json(document)
    else:
        _tell(document)
    if wait and left:
        return 3
    return 3 if total.problems or total.failed_calls else 0


def _passes(
    app: App, stop: threading.Event, *, wait: bool, deadline_s: float, quiet: bool
) -> tuple[PassReport, int]:
    """Pass once, or until done, deadline or signal; sleep until the next thing is due."""
    end = time.monotonic() + deadline_s
    total, passes = PassReport(), 0
    with _display(quiet=quiet) as (stage, waiting):
        parts = app.parts(stage)
        while True:
            try:
                total = _sum(total, run_pass(parts, app.clock.now()))
                passes += 1
            except StoreBusyError:
                if not wait:
                    raise
            if not wait or not _left(app) or stop.is_set():
                return total, passes
            nap = min(_nap_s(app), end - time.monotonic())
            if nap <= 0:
                return total, passes
            waiting(_left_words(app))
            stop.wait(nap)


def _nap_s(app: App) -> float:
    moment = app.store.counts.next_moment()
    now = app.clock.now()
    return max(min((moment or now) - now, _LONGEST_NAP_S), 0.2)


def _left(app: App) -> int:
    """Return how many records are not anchored, or anchored but not signed for."""
    counts = app.store.counts.by_state()
    waiting, _ = app.store.records.waiting()
    open_states = sum(counts.get(state, 0) for state in ("sealed", "submitted", "attested"))
    return waiting + open_states + app.store.counts.unsigned()


def _left_words(app: App) -> str:
    waits = app.store.counts.waits(1)
    if waits:
        reason = f"{waits[0].where}: {words_for(waits[0].status, waits[0].detail)}"
    else:
        coming = next_attempt(app, 0)
        reason = "nothing is due" if coming is None else coming["why"]
    return f"{_left(app)} to go; {reason}"


def _sum(a: PassReport, b: PassReport) -> PassReport:
    """Add up what passes did; failures and problems are the last pass's, older ones are over."""
    return PassReport(
        sealed=a.sealed + b.sealed,
        batch_id=b.batch_id or a.batch_id,
        submitted=a.submitted + b.submitted,
        upgraded=a.upgraded + b.upgraded,
        anchored=a.anchored + b.anchored,
        signed=a.signed + b.signed,
        failed_calls=b.failed_calls,
        problems=b.problems,
    )


def _document(app: App, total: PassReport, passes: int, left: int) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(total)
    document["passes"] = passes
    document["left"] = left
    document["next_attempt_at"] = None
    moment = app.store.counts.next_moment()
    if moment is not None:
        from anchord.app.cli.output import utc

        document["next_attempt_at"] = utc(moment)
    return document


def _tell(document: dict[str, Any]) -> None:
    words = [
        ("sealed", "record(s) sealed into a new batch"),
        ("submitted", "answer(s) from calendars"),
        ("upgraded", "path(s) to Bitcoin received"),
        ("anchored", "batch(es) anchored"),
        ("signed", "event(s) signed"),
    ]
    lines = [f"{document[key]:>9,} {text}" for key, text in words if document[key]]
    click.echo("\n".join(lines) if lines else "nothing to do now")
    if document["left"]:
        when = document["next_attempt_at"] or "the next pass"
        click.echo(f"{document['left']:>9,} still to be anchored; next try {when}")
    if document["failed_calls"]:
        click.echo(
            f"{document['failed_calls']} call(s) failed and will be repeated: `anchord status`",
            err=True,
        )
    for name, problem in document["problems"].items():
        click.echo(f"{name}: {problem}", err=True)


@contextlib.contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Let SIGTERM end the waiting between passes; a pass itself is never cut in the middle."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _display(
    *, quiet: bool
) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """Show stages as bars on a terminal, and as one line per change elsewhere."""
    console, said = notes(), [""]
    with progress(quiet=quiet) as bars:
        tasks: dict[str, Any] = {}

        def stage(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        def waiting(text: str) -> None:
            if not quiet and text != said[0]:
                said[0] = text
                console.print(text, markup=False)

        yield stage, waiting
