"""`anchord status`: counts, what waits and why, and the health of those it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli import show_witnesses, storage
from anchord.app.cli.output import console, emit_json, printable, utc
from anchord.app.cli.show import words_for
from anchord.app.wiring import App, chain_name, open_app, store_url
from anchord.core.header import HEADER_SIZE, parse_header
from anchord.core.model import BatchState
from anchord.engine.continuity import check_chain
from anchord.errors import AnchordError, ConfigError, FatalError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATES = ("not_anchored", "sealed", "submitted", "attested", "anchored", "parked")
_SHOWN = 20


@click.command(short_help="Show counts, what waits and why, and the services' health.")
@click.option("--online", is_flag=True, help="Ask the header sources for their newest block.")
@click.option("--watch", "watched", is_flag=True, help="Stay, and show it anew as it changes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, online: bool, watched: bool, as_json: bool) -> None:
    """Show where the records stand, and what anchord waits for.

    Without --online no connection is opened, and the Internet Archive is never asked: that does
    `anchord archive check`. Nothing is written.
    """
    if watched:
        if online or as_json:
            raise click.UsageError("--watch goes with neither --online nor --json")
        _watch(config_path)
        return
    with open_app(config_path) as app:
        document = describe(app, online=online)
        _warn(app)
    if as_json:
        emit_json(document)
        return
    out = console()
    for line in storage.alert_lines(document["stored"]):
        out.print(printable(line), markup=False, style="bold red")
    for line in _lines(document):
        out.print(printable(line), markup=False)


def _watch(config_path: str | None) -> None:
    from anchord.adapters.store.measures import Changes
    from anchord.app.cli.status_watch import check_terminal, watch

    check_terminal()
    with open_app(config_path) as app:
        changes = Changes(store_url(app.loaded))
        try:
            watch(console(), changes.mark, lambda: _frame(app))
        finally:
            changes.close()


def _frame(app: App) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return all there is to be seen, and its lines with their styles."""
    document = describe(app, online=False)
    alerts = storage.alert_lines(document["stored"])
    lines = [(printable(line), "bold red") for line in alerts]
    return document, [*lines, *((printable(line), "") for line in _lines(document))]


def _warn(app: App) -> None:
    """Say on stderr why no pass would begin."""
    try:
        check_chain(app.store, chain_name(app.config.headers.network))
    except ConfigError as error:
        click.echo(f"anchord: {error}", err=True)


def describe(app: App, *, online: bool) -> dict[str, Any]:
    """Return the state of everything, with stable keys; cheap at any number of records."""
    counts = app.store.counts
    waiting, waiting_since = app.store.records.waiting()
    now = app.clock.now()
    oldest = min((at for at in (waiting_since, counts.oldest_unfinished()) if at), default=None)
    states = counts.by_state()
    states["not_anchored"] = waiting
    return {
        "now": utc(now),
        "records": {state: states.get(state, 0) for state in STATES},
        "events": {"signed": counts.events(), "due": counts.unsigned()},
        "oldest_waiting_at": utc(oldest),
        "oldest_waiting_s": None if oldest is None else max(now - oldest, 0),
        "next_attempt": next_attempt(app, waiting),
        "waits": [
            {
                "batch": wait.batch_id,
                "what": wait.what,
                "where": wait.where,
                "status": wait.status,
                "words": words_for(wait.status, wait.detail),
                "attempts": wait.attempts,
                "next_attempt_at": utc(wait.next_attempt_at),
            }
            for wait in counts.waits(_SHOWN)
        ],
        "not_asked": [
            {"uri": one.uri, "commitments": one.commitments} for one in counts.strangers()
        ],
        "calendars": _calendars(app),
        "authorities": show_witnesses.authorities(app),
        "headers": [_header_source(app, name, online=online) for name in _names(app)],
        "parked": _parked(app),
        "workers": _workers(app),
        "stored": storage.describe(app),
    }


def next_attempt(app: App, waiting: int) -> dict[str, Any] | None:
    """Return when something is due next, and why; None when nothing is."""
    moment = app.store.counts.next_moment()
    if waiting:
        return {"at": "next pass", "why": f"seal {waiting:,} waiting record(s)"}
    if app.store.counts.unsigned():
        return {"at": "next pass", "why": "sign events that are due"}
    if moment is None:
        return None
    overdue = moment <= app.clock.now()
    return {"at": "next pass" if overdue else utc(moment), "why": _why(app, moment)}


def _why(app: App, moment: int) -> str:
    for wait in app.store.counts.waits(1):
        if wait.next_attempt_at == moment:
            doing = "hand the root to" if wait.what == "submit" else "ask"
            return f"{doing} {wait.where}: {words_for(wait.status, wait.detail)}"
    for health in app.store.tokens.health():
        if health.next_attempt_at == moment:
            return f"ask {health.url} for a token"
    for batch in app.store.batches.due_checks(moment, 1):
        if batch.state is BatchState.ANCHORED:
            return f"check batch {batch.id} once more, deeper in the chain"
        return f"check batch {batch.id} against headers: {batch.note or 'a path has come'}"
    return "work is due"


def _calendars(app: App) -> list[dict[str, Any]]:
    """Return the health of every calendar, configured ones first."""
    known = {health.url: health for health in app.store.counts.calendars()}
    configured = [calendar.url for calendar in app.config.anchoring.calendars]
    found = []
    for url in [*configured, *(url for url in known if url not in configured)]:
        health = known.get(url)
        found.append(
            {
                "url": url,
                "configured": url in configured,
                "last_ok_at": None if health is None else utc(health.last_ok_at),
                "last_error_at": None if health is None else utc(health.last_error_at),
                "last_error": None if health is None else health.last_error,
                "failures": 0 if health is None else health.failures,
            }
        )
    return found


def _names(app: App) -> list[str]:
    return list(dict.fromkeys(app.config.headers.sources))


def _header_source(app: App, name: str, *, online: bool) -> dict[str, Any]:
    """Describe one source; only its file is looked at unless `online`."""
    headers = app.config.headers
    found: dict[str, Any] = {
        "source": name,
        "network": headers.network,
        "where": None,
        "height": None,
        "time": None,
        "age_s": None,
        "problem": None,
    }
    if name == "file":
        path = app.loaded.resolve(headers.file.path)
        found["where"] = str(path)
        _look_at(path, app.clock.now(), found)
    elif name == "node":
        found["where"] = headers.node.url
    else:
        found["where"] = ", ".join(headers.explorers.urls)
    if online:
        _ask(app, name, found)
    return found


def _look_at(path: Path, now: int, found: dict[str, Any]) -> None:
    """Read the last header of a header file; whether the chain holds is not checked here."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2) // HEADER_SIZE * HEADER_SIZE
            file.seek(max(size - HEADER_SIZE, 0))
            raw = file.read(HEADER_SIZE)
    except OSError as error:
        found["problem"] = f"{error.strerror}: run `anchord headers sync`"
        return
    if len(raw) != HEADER_SIZE:
        found["problem"] = "no headers yet: run `anchord headers sync`"
        return
    moment = parse_header(raw).time
    found |= {"height": size // HEADER_SIZE - 1, "time": utc(moment), "age_s": max(now - moment, 0)}


def _ask(app: App, name: str, found: dict[str, Any]) -> None:
    source = app.headers[_names(app).index(name)]
    try:
        tip = source.tip()
    except (FatalError, StoreBusyError):
        raise
    except AnchordError as error:
        found["problem"] = str(error)
        return
    age = max(app.clock.now() - tip.time, 0)
    found |= {"height": tip.height, "time": utc(tip.time), "age_s": age, "problem": None}


def _parked(app: App) -> list[dict[str, Any]]:
    return [
        {"batch": batch.id, "kind": batch.kind, "size": batch.size, "reason": batch.note}
        for batch in app.store.batches.in_state(BatchState.PARKED)
    ]


def _workers(app: App) -> list[dict[str, Any]]:
    """Return who shares the store's work; nobody shares a SQLite store's."""
    import msgspec
    import sqlalchemy as sa

    url = store_url(app.loaded)
    if sa.make_url(url).get_backend_name() != "postgresql":
        return []
    from anchord.app.fleet.roster import workers

    return [msgspec.to_builtins(worker) for worker in workers(url)]


# ---------------------------------------------------------------------- for people


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield from _count_lines(document)
    yield ""
    yield from _wait_lines(document)
    yield ""
    for calendar in document["calendars"]:
        yield from _calendar_lines(calendar)
    for authority in document["authorities"]:
        yield from show_witnesses.authority_lines(authority)
    for source in document["headers"]:
        yield from _source_lines(source)
    for parked in document["parked"][:_SHOWN]:
        yield f"parked: batch {parked['batch']}, {parked['size']:,} record(s): {parked['reason']}"
        yield f"      bring it back with `anchord retry {parked['batch']}`"
    if len(document["parked"]) > _SHOWN:
        yield f"parked: {len(document['parked']) - _SHOWN:,} more; `anchord retry --all`"
    for worker in document["workers"]:
        yield _worker_line(worker)
    yield ""
    yield from storage.lines(document["stored"], document["now"])


def _count_lines(document: dict[str, Any]) -> Iterator[str]:
    for state, count in document["records"].items():
        if count or state in ("not_anchored", "anchored"):
            yield f"{count:>12,} {state.replace('_', ' ')}"
    events = document["events"]
    due = f", {events['due']:,} due" if events["due"] else ""
    yield f"{events['signed']:>12,} events signed{due}"


def _wait_lines(document: dict[str, Any]) -> Iterator[str]:
    if document["oldest_waiting_s"] is not None:
        yield f"oldest waiting  {_span(document['oldest_waiting_s'])}"
    coming = document["next_attempt"]
    yield f"next attempt    {coming['at']}: {coming['why']}" if coming else "nothing is due"
    for wait in document["waits"]:
        yield f"  batch {wait['batch']}, {wait['where']}"
        yield f"      {wait['words']}; next {wait['next_attempt_at']}"
    if document["not_asked"]:
        yield "not asked       no configured calendar has these uris (anchoring.calendars)"
    for one in document["not_asked"][:_SHOWN]:
        yield f"      {one['commitments']:,} commitment(s) at {one['uri']}"


def _calendar_lines(calendar: dict[str, Any]) -> Iterator[str]:
    state = "not asked yet"
    if calendar["failures"]:
        state = f"{calendar['failures']} failure(s) in a row"
    elif calendar["last_ok_at"]:
        state = f"ok, last {calendar['last_ok_at']}"
    note = "" if calendar["configured"] else " (not configured any more)"
    yield f"calendar {calendar['url']}{note}"
    yield f"      {state}"
    if calendar["failures"]:
        yield f"      {calendar['last_error_at']}: {calendar['last_error']}"
        yield f"      last ok {calendar['last_ok_at'] or 'never'}"


def _source_lines(source: dict[str, Any]) -> Iterator[str]:
    yield f"headers  {source['source']} ({source['network']}) {source['where']}"
    if source["height"] is not None:
        yield f"      block {source['height']:,}, {_span(source['age_s'])} old"
    if source["problem"]:
        yield f"      {source['problem']}"


def _worker_line(worker: dict[str, Any]) -> str:
    doing = ", ".join(worker["duties"]) or "waits for work"
    if worker["pid"] is None:
        silent = _span(int(worker["silent_s"]))
        return f"worker {worker['id']} is gone, silent for {silent}; others take over: {doing}"
    who = f"pid {worker['pid']} on {worker['host']} since {worker['since']}"
    return f"worker {worker['id']}: {who}: {doing}"


def _span(seconds: int) -> str:
    """Return a duration in the two units that matter."""
    for name, size, smaller, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if seconds >= size:
            return f"{seconds // size} {name} {seconds % size // part} {smaller}"
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
