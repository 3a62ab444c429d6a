"""`anchord run-once`: one pass, or passes until everything is anchored and stored."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from anchord.app.cli import storage
from anchord.app.cli.output import emit_json, printable, utc
from anchord.app.cli.ranges import Finite
from anchord.app.cli.run_display import display, stoppable
from anchord.app.cli.show import words_for
from anchord.app.cli.status import next_attempt
from anchord.app.cli.storage_words import lane_words, report_lines
from anchord.app.service.clock import BY_HAND, ClockWatch
from anchord.app.service.keys import KeyWatch
from anchord.app.wiring import App, open_app
from anchord.engine.run import PassReport, run_pass, run_storing
from anchord.errors import AnchordError, ConfigError, StoreBusyError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.engine.archiving import Archiving
    from anchord.engine.delivering import Delivered
    from anchord.engine.parts import Parts

_LONGEST_NAP_S = 30.0
_TAIL_S = 60.0
"""How long a single pass goes on asking the archive: a service that is slow enough always has a
next call due by the time it answers, and new records wait to be sealed meanwhile."""
_GRACE_S = 3.0
"""How long calls in flight are waited for after a signal."""
_LOOK_S = 0.5
"""How soon a signal is noticed while calls are in flight."""


@click.command(short_help="Make one pass: seal, submit, upgrade, verify, store, sign.")
@click.option(
    "--wait",
    is_flag=True,
    help="Keep passing until everything is anchored and stored, or waits for a person.",
)
@click.option(
    "--deadline",
    type=Finite(min=0),
    default=86_400,
    show_default=True,
    metavar="SECONDS",
    help="With --wait: stop after this long; what is done is kept.",
)
@click.option(
    "--accept-clock",
    is_flag=True,
    help="Take the clock for right, though the newest event says that it went back.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.pass_obj
def command(
    config_path: str | None,
    *,
    wait: bool,
    deadline: float,
    accept_clock: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Make one pass over the store: seal, submit, upgrade, verify, store, sign.

    Bitcoin takes hours, and a capture minutes; a pass does what can be done now and writes down
    when to go on. Run it from cron or a timer, or let it wait.

    Nothing is sent or signed while the clock shows a moment before the newest event.

    Exit code: 0 all that could be done is done, 2 a way to the archive is stopped until a person
    acts, or the clock went back, 3 calls failed and will be repeated, another process uses the
    archive's account, or the deadline of --wait came first.
    """
    with open_app(config_path) as app, stoppable() as stop, display(quiet=quiet) as shown:
        stage, waiting = shown
        parts = app.parts(stage)
        clock = _clock(app, accept=accept_clock)
        service = app.store.service()
        with _archiving(app, parts) as (archiving, trouble):
            run = _Run(app, parts, archiving, stop, clock)
            if wait:
                run.until_done(time.monotonic() + deadline, waiting)
            else:
                run.once()
            document = run.document()
    if as_json:
        emit_json(document)
    else:
        _tell(document)
    if service is not None:
        # Not a failure: what is to be stored is in its hands, and it has the account.
        click.echo(f"`anchord run` serves this store: {service}", err=True)
        trouble = None if isinstance(trouble, StoreBusyError) else trouble
    if trouble is not None:
        click.echo(f"nothing is sent to the Internet Archive: {trouble}", err=True)
    return _exit_code(document, trouble, wait=wait)


def _exit_code(document: dict[str, Any], trouble: AnchordError | None, *, wait: bool) -> int:
    if trouble is not None:
        return trouble.exit_code
    if document["stopped"]:
        return ConfigError.exit_code
    if wait and (document["left"] or document["left_to_store"]):
        return 3
    failed = document["problems"] or document["failed_calls"]
    failed = failed or (document["received"] or {}).get("failed")
    return 3 if failed or (document["delivered"] or {}).get("problems") else 0


def _clock(app: App, *, accept: bool) -> ClockWatch:
    """Watch the clock; one that is accepted is held against events that are newer only.

    Raises:
        ConfigError: the clock went back by more than is usual.
    """
    clock, last = ClockWatch(time.time, BY_HAND), app.store.ledger.last_moment()
    if accept:
        with contextlib.suppress(ConfigError):
            clock.check(last)
        if clock.accept():
            click.echo("the clock as it is now is taken for right", err=True)
    clock.check(last, app.store.server_time())
    return clock


@contextlib.contextmanager
def _archiving(app: App, parts: Parts) -> Iterator[tuple[Archiving | None, AnchordError | None]]:
    """Open the way to the Internet Archive; without it, anchoring goes on all the same."""
    with contextlib.ExitStack() as stack:
        trouble: AnchordError | None = None
        archiving = None
        try:
            archiving = stack.enter_context(app.archiving(parts))
        except (ConfigError, TransientError) as error:
            trouble = error
        yield archiving, trouble


class _Run:
    """The passes of one call of the command, and what they did."""

    def __init__(
        self, app: App, parts: Parts, archiving: Archiving | None, stop: threading.Event,
        clock: ClockWatch,
    ) -> None:  # fmt: skip
        self._app, self._parts, self._archiving, self._stop = app, parts, archiving, stop
        self._clock, self._keys = clock, KeyWatch(app.key_dir)
        self._total, self._passes = PassReport(), 0

    def once(self) -> None:
        """Pass once; then see the calls to the archive through that can be made now."""
        self._pass()
        end = time.monotonic() + _TAIL_S
        while self._archiving is not None and self._archiving.busy and not self._stop.is_set():
            if time.monotonic() > end:
                break
            if self._archiving.wait(_LOOK_S):
                self._store()
        self._take_in()

    def until_done(self, end: float, waiting: Callable[[str], None]) -> None:
        """Pass until done, deadline or signal; what is done next is never waited for in vain."""
        while True:
            self._pass_or_store()
            if self._stop.is_set() or not self._hopeful():
                break
            nap = min(self._nap_s(), end - time.monotonic())
            if nap <= 0:
                break
            waiting(self._left_words())
            self._rest(nap)
        self._take_in()

    def _pass_or_store(self) -> None:
        """Pass when calendars or headers are due; answers of the archive alone need no pass."""
        if self._archiving is not None and self._passes and not self._anchoring_due():
            self._store()
            return
        try:
            self._pass()
        except StoreBusyError:
            self._stop.wait(_LOOK_S)

    def _anchoring_due(self) -> bool:
        moment = self._app.store.counts.next_moment()
        due = moment is not None and moment <= self._app.clock.now()
        return due or bool(self._app.store.records.waiting()[0])

    def _pass(self) -> None:
        now = self._now()
        self._total = _sum(self._total, run_pass(self._parts, now, self._archiving))
        self._passes += 1

    def _now(self) -> int:
        """Return the moment of what is done now, unless the clock went back."""
        store = self._app.store
        self._clock.check(store.ledger.last_moment(), store.server_time())
        now = self._app.clock.now()
        if self._keys.changed():
            raise ConfigError("the keyring was changed meanwhile: say it again, with the new keys")
        return now

    def _store(self) -> None:
        """Take in what came back from the archive, and start what is due."""
        if self._archiving is None:
            return
        try:
            report = run_storing(self._parts, self._now(), self._archiving)
        except StoreBusyError:
            self._stop.wait(_LOOK_S)
            return
        self._total = msgspec.structs.replace(
            self._total,
            signed=self._total.signed + report.signed,
            stored=_added(self._total.stored, report.stored),
        )

    def _take_in(self) -> None:
        """Take in the calls that are still in flight; what they find is signed by the next pass.

        After a signal they are given a moment, and then left: the next pass looks them up.
        """
        left_at: float | None = None
        while self._archiving is not None and self._archiving.busy:
            if self._stop.is_set():
                left_at = left_at or time.monotonic() + _GRACE_S
                if time.monotonic() > left_at:
                    return
            if self._archiving.wait(_LOOK_S):
                try:
                    with self._app.store.exclusive():
                        self._archiving.take_in(self._app.clock.now())
                except StoreBusyError:
                    self._stop.wait(_LOOK_S)

    def _rest(self, nap_s: float) -> None:
        """Wait for a signal, an answer of the archive, or the next thing that is due."""
        end = time.monotonic() + nap_s
        while (left := end - time.monotonic()) > 0 and not self._stop.is_set():
            if self._archiving is None or not self._archiving.busy:
                self._stop.wait(left)
            elif self._archiving.wait(min(left, _LOOK_S)):
                return

    def _hopeful(self) -> bool:
        """Tell whether waiting can bring anything."""
        if _left(self._app):
            return True
        if self._archiving is None or not self._left_to_store() or self._next() is None:
            return False
        return self._archiving.busy or not storage.stuck(self._app)

    def _next(self) -> int | None:
        """Return when the archive can be asked next; now, while a call is in flight."""
        if self._archiving is None:
            return None
        now = self._app.clock.now()
        return now if self._archiving.busy else self._archiving.next_moment(now)

    def _nap_s(self) -> float:
        now = self._app.clock.now()
        moments = [self._app.store.counts.next_moment()]
        if self._archiving is not None:
            moments.append(self._archiving.next_moment(now))
        soonest = min((moment for moment in moments if moment is not None), default=now)
        return max(min(soonest - now, _LONGEST_NAP_S), 0.2)

    def _left_to_store(self) -> int:
        return 0 if self._archiving is None else self._archiving.unfinished()

    def _left_words(self) -> str:
        left, to_store = _left(self._app), self._left_to_store()
        if not left:
            lanes = self._app.store.storage.lanes.all() if to_store else []
            stopped = [lane_words(lane.name) for lane in lanes if lane.stopped]
            why = f"; STOPPED: {', '.join(stopped)}, see `anchord status`" if stopped else ""
            return f"{to_store:,} to store; waiting for the Internet Archive{why}"
        waits = self._app.store.counts.waits(1)
        if waits:
            reason = f"{waits[0].where}: {words_for(waits[0].status, waits[0].detail)}"
        else:
            coming = next_attempt(self._app, 0)
            reason = "nothing is due" if coming is None else coming["why"]
        return f"{left} to go; {reason}" + (f"; {to_store:,} to store" if to_store else "")

    def document(self) -> dict[str, Any]:
        """Return what was done and what is left, with stable keys."""
        document: dict[str, Any] = msgspec.to_builtins(self._total)
        document["passes"] = self._passes
        document["left"] = _left(self._app)
        document["left_to_store"] = self._left_to_store()
        document["next_attempt_at"] = utc(self._app.store.counts.next_moment())
        document["next_to_store_at"] = utc(self._next())
        lanes = self._app.store.storage.lanes.all()
        document["stopped"] = [lane.name for lane in lanes if lane.stopped]
        document["alerts"] = storage.alerts(lanes)
        return document


def _left(app: App) -> int:
    """Return how many records are not anchored, and how many events are decided and not signed."""
    counts = app.store.counts.by_state()
    waiting, _ = app.store.records.waiting()
    open_states = sum(counts.get(state, 0) for state in ("sealed", "submitted", "attested"))
    return waiting + open_states + app.store.counts.unsigned()


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
        received=a.received + b.received if a.received and b.received else b.received,
        stored=_added(a.stored, b.stored),
        delivered=_handed_over(a.delivered, b.delivered),
    )


def _handed_over(a: Delivered | None, b: Delivered | None) -> Delivered | None:
    """Add up what outlets were handed; an outlet's problem is the last pass's."""
    if a is None or b is None:
        return b if a is None else a
    events, aside = a.events + b.events, a.set_aside + b.set_aside
    return msgspec.structs.replace(b, events=events, set_aside=aside)


def _added(a: Any, b: Any) -> Any:
    """Add up two reports of one kind, field by field; counts by name too."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, msgspec.Struct):
        names = msgspec.structs.fields(a)
        return type(a)(
            **{one.name: _added(getattr(a, one.name), getattr(b, one.name)) for one in names}
        )
    if isinstance(a, dict):
        return {key: a.get(key, 0) + b.get(key, 0) for key in (*a, *(k for k in b if k not in a))}
    return a + b


def _tell(document: dict[str, Any]) -> None:
    words = [
        ("sealed", "record(s) sealed into a new batch"),
        ("submitted", "answer(s) from calendars"),
        ("upgraded", "path(s) to Bitcoin received"),
        ("anchored", "batch(es) anchored"),
        ("signed", "event(s) signed"),
    ]
    received = document["received"] or {"new": 0, "problems": {}}
    lines = [f"{received['new']:>9,} new record(s) from sources"] if received["new"] else []
    lines += [f"{document[key]:>9,} {text}" for key, text in words if document[key]]
    lines += report_lines(document["stored"])
    outlets = document["delivered"] or {"events": 0, "set_aside": 0, "problems": {}}
    if outlets["events"]:
        lines.append(f"{outlets['events']:>9,} event(s) handed over to outlets")
    click.echo("\n".join(lines) if lines else "nothing to do now")
    if document["left"]:
        when = document["next_attempt_at"] or "the next pass"
        click.echo(f"{document['left']:>9,} still to be anchored or signed; next try {when}")
    if document["left_to_store"]:
        click.echo(f"{document['left_to_store']:>9,} still to be stored; see `anchord status`")
    if document["failed_calls"]:
        click.echo(
            f"{document['failed_calls']} call(s) failed and will be repeated: `anchord status`",
            err=True,
        )
    for name, problem in document["problems"].items():
        click.echo(f"{name}: {problem}", err=True)
    for name, problem in received["problems"].items():
        click.echo(f"source {name}: {printable(problem)}", err=True)
    for name, problem in outlets["problems"].items():
        click.echo(f"outlet {name}: {printable(problem)}", err=True)
    if outlets["set_aside"]:
        count = outlets["set_aside"]
        click.echo(f"{count:,} event(s) refused and set aside: `anchord outlets`", err=True)
    for alert in document["alerts"]:
        click.echo(f"ALERT {printable(alert)}; see `anchord status`", err=True)
