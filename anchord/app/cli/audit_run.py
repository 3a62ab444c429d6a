"""Running an audit as it was asked for: open, audit, hold against thresholds, write reports."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from anchord.app.cli.output import notes, progress
from anchord.app.cli.witnesses import Witnesses
from anchord.app.config import Loaded
from anchord.app.report.contents import Audited
from anchord.app.report.forms import check_place, form_of, write_reports, write_whole
from anchord.app.thresholds import FailUnder, MaxAge, judge, read_fail_under, read_max_age
from anchord.app.wiring import SystemClock, store_url
from anchord.core import checkpoint
from anchord.core.audit import AuditOptions, AuditReport
from anchord.engine.audit.outcome import Outcome, ReportFacts
from anchord.errors import ConfigError, RefusedError

_EVERY_S = 10.0
"""Between two lines of progress where nobody sees a bar."""
_MAX_NOTE = 1 << 20

OnProgress = Callable[[str, int, int], None]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """An audit that makes sense."""

    targets: tuple[str, ...]
    since: bytes | None
    sample: int | None
    seed: int
    jobs: int
    online: int | None
    reports: tuple[str, ...]
    thresholds: tuple[FailUnder | MaxAge, ...]
    save: Path | None
    quiet: bool
    fleet: bool
    witnesses: dict[str, Any]
    """Arguments of `Witnesses`."""


def ask(
    *, targets: tuple[str, ...], since: str | None, sample: int | None, seed: int, jobs: int,
    online: int | None, reports: tuple[str, ...], fail_under: Sequence[str],
    max_age: Sequence[str], save: str | None, quiet: bool, fleet: bool, **witnesses: Any,
) -> Asked:  # fmt: skip
    """Read the options; what cannot work is told before the audit, not after hours.

    Raises:
        ConfigError: options that contradict each other, or files that cannot be used.
    """
    if fleet and targets:
        raise ConfigError("--fleet: workers audit the store they share: name no folder or file")
    if online and witnesses["offline"]:
        raise ConfigError("--offline opens no connection: leave out --online")
    if sample and save:
        raise ConfigError(
            "--save-checkpoint: a sample does not check all that a checkpoint covers: leave out "
            "--sample, or audit twice"
        )
    if since and targets and (fail_under or max_age):
        raise ConfigError(
            "--since-checkpoint only hashes what an earlier audit of a tree has seen, so how "
            "complete it is, is not counted: leave out --fail-under and --max-age, or audit all"
        )
    for name in reports:
        form_of(name)
    if save is not None:
        check_place(Path(save), "--save-checkpoint")
        _check_kept(Path(save))
    shares = tuple(read_fail_under(one) for one in fail_under)
    ages = tuple(read_max_age(one) for one in max_age)
    return Asked(
        targets=targets, since=_since(since), sample=sample, seed=seed, jobs=jobs, online=online,
        reports=reports, thresholds=(*shares, *ages), save=None if save is None else Path(save),
        quiet=quiet, fleet=fleet, witnesses=witnesses,
    )  # fmt: skip


def run(config_path: str | None, asked: Asked) -> tuple[Audited, int]:
    """Audit, write the reports, and return what was found and the exit code.

    Raises:
        ConfigError: nothing to audit, or a configuration that cannot be used.
    """
    started, unreached = time.monotonic(), 0
    with Witnesses(config_path, **asked.witnesses) as who, _progress(asked.quiet) as on_progress:
        outcome, facts = _audit(who, asked, on_progress)
        if asked.online:
            from anchord.app.audit_online import check_online

            archive = None if who.app is None else who.app.config.archive
            unreached = check_online(outcome, archive, on_progress).unreached
    report = msgspec.structs.replace(
        outcome.report(**msgspec.structs.asdict(facts)),
        seconds=round(time.monotonic() - started, 1),
    )
    judged = tuple(judge(one, report.completeness) for one in asked.thresholds)
    audited = Audited(report=report, thresholds=judged)
    write_reports(audited, asked.reports)
    if asked.save is not None:
        _save(report, asked.save)
    return audited, exit_code(audited, unreached)


def exit_code(audited: Audited, unreached: int) -> int:
    """Return 0 for sound, 3 where only headers or archives were missing, else 1."""
    report = audited.report
    if report.result == "sound" and not audited.missed:
        return 0
    temporary = (report.coverage.headers_missing > 0) + (unreached > 0)
    only = report.result == "not proved" and len(report.reasons) == temporary
    return 3 if only and not audited.missed else 1


def _audit(who: Witnesses, asked: Asked, on_progress: OnProgress) -> tuple[Outcome, ReportFacts]:
    options = AuditOptions(
        now=SystemClock().now(),
        jobs=asked.jobs,
        sample=asked.sample,
        seed=asked.seed,
        since=asked.since,
        online=asked.online,
        confirmations=who.confirmations,
    )
    if asked.targets:
        from anchord.app.audit_targets import open_tree
        from anchord.engine.audit.tree import audit_tree

        with open_tree(asked.targets) as tree:
            return audit_tree(tree, who.keyring, who.given, who.view, options, on_progress)
    if who.app is None:
        raise ConfigError(
            "there is no configuration here, and so no store: name one with -c FILE or "
            "ANCHORD_CONFIG, or name what to audit: a folder, a .tar, bundles, or -"
        )
    from anchord.app.audit_wiring import audit_configured

    given, name = who.given, _store_name(who.app.loaded)
    about = who.keyring, given, who.view, options, on_progress
    outcome, facts = audit_configured(who.app.loaded, *about, fleet=asked.fleet)
    return outcome, msgspec.structs.replace(facts, source=name)


def _store_name(loaded: Loaded) -> str:
    """Return what people call the store: its file, or its address without the password."""
    url = sa.make_url(store_url(loaded))
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.render_as_string(hide_password=True)


def _since(name: str | None) -> bytes | None:
    """Read the checkpoint of an earlier audit; None while there is none yet."""
    if name is None:
        return None
    try:
        with Path(name).open("rb") as file:
            raw = file.read(_MAX_NOTE)
        checkpoint.parse(raw)
    except FileNotFoundError:
        notes().print(f"anchord: {name} is not there yet: all is checked", markup=False)
        return None
    except (OSError, RefusedError) as error:
        raise ConfigError(f"--since-checkpoint {name}: expected a checkpoint: {error}") from None
    return raw


def _check_kept(path: Path) -> None:
    """Make sure that nothing but a checkpoint is written over.

    Raises:
        ConfigError: something else lies there.
    """
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        raw = file.read(_MAX_NOTE)
        try:
            if raw:
                checkpoint.parse(raw)
        except RefusedError:
            raise ConfigError(
                f"--save-checkpoint {path}: it is there and is no checkpoint: name another file"
            ) from None


def _save(report: AuditReport, path: Path) -> None:
    """Keep the checkpoint; only a sound audit vouches for what it covers."""
    if report.result != "sound":
        said = f"the audit is {report.result}: an audit since then would skip what was not checked"
    elif report.checkpoint is None:
        said = "no checkpoint was found"
    else:
        write_whole(path, report.checkpoint.encode("utf-8"))
        return
    notes().print(f"anchord: {path} is left as it is: {said}", markup=False)


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[OnProgress]:
    """Show stages on stderr: a bar at a terminal, elsewhere a plain line now and then."""
    if quiet:
        yield lambda _stage, _done, _total: None
    elif sys.stderr.isatty():
        with progress() as bars:
            tasks: dict[str, Any] = {}

            def told(stage: str, done: int, total: int) -> None:
                # A total that is not known yet is 0, for which the bar only moves.
                if stage not in tasks:
                    tasks[stage] = bars.add_task(stage, total=None)
                bars.update(tasks[stage], completed=done, total=total or None)

            yield told
    else:
        yield partial(_plain, {})


def _plain(last: dict[str, float], stage: str, done: int, total: int) -> None:
    """Print a line every few seconds, and so none of a stage that is over soon."""
    now = time.monotonic()
    since = last.setdefault(stage, now)
    if now - since >= _EVERY_S:
        last[stage] = now
        of = f" of {total:,}" if total else ""
        sys.stderr.write(f"anchord: audit: {stage} {done:,}{of}\n")
        sys.stderr.flush()
