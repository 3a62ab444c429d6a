"""`anchord outlets`: where receipts go, how far that is, and what was refused on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import console, emit_json, print_table, printable, utc
from anchord.app.wiring import open_app
from anchord.core.canonical import record_id
from anchord.ports.outlet import PARKED, WAITING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.outlet_config import OutletConfig
    from anchord.app.wiring import App
    from anchord.ports.outlet import OutletState, SetAside

_SHOWN = 20


@click.command(short_help="Show where receipts go, and how far that is.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, as_json: bool) -> None:
    """Show each outlet: how many events it was handed, how many it is behind, what it refused.

    Nobody is asked and nothing is written. Passes hand over by themselves; what was refused too
    often is parked until `anchord retry --outlet NAME`.
    """
    with open_app(config_path) as app:
        document = describe(app)
    if as_json:
        emit_json(document)
        return
    if not document["outlets"]:
        click.echo("no outlets: see [[outlets]] in config/anchord.toml")
        return
    _show(document)


def describe(app: App) -> dict[str, Any]:
    """Return how far every outlet is, with stable keys: the configured ones first."""
    known = {state.name: state for state in app.store.outlets.all()}
    configured = {outlet.name: outlet for outlet in app.config.outlets}
    aside, length = app.store.outlets.counts(), app.store.log.sizes()[0]
    names = [*configured, *(name for name in known if name not in configured)]
    return {
        "events": length,
        "outlets": [
            {
                **_described(name, configured.get(name), known.get(name), length),
                "waiting": aside.get((name, WAITING), 0),
                "parked": aside.get((name, PARKED), 0),
                "set_aside": _set_aside(app, name),
            }
            for name in names
        ],
    }


def _described(
    name: str, configured: OutletConfig | None, state: OutletState | None, length: int
) -> dict[str, Any]:
    kind = configured.kind if configured else state.kind if state else ""
    seq = 0 if state is None else state.seq
    return {
        "name": name,
        "kind": kind,
        "configured": configured is not None,
        "seq": seq,
        "behind": max(length - seq, 0),
        "delivered": 0 if state is None else state.delivered,
        "stopped": state is not None and state.next_attempt_at is None,
        "failures": 0 if state is None else state.failures,
        "next_attempt_at": utc(state.next_attempt_at if state and state.failures else None),
        "last_ok_at": utc(state.last_ok_at if state else None),
        "last_error_at": utc(state.last_error_at if state else None),
        "last_error": state.last_error if state else None,
    }


def _set_aside(app: App, name: str) -> list[dict[str, Any]]:
    """Return the oldest events that were refused, parked ones first."""
    table = app.store.outlets
    found = [*table.rows(name, PARKED, _SHOWN), *table.rows(name, WAITING, _SHOWN)][:_SHOWN]
    records = app.store.lookup.records([one.record_id for one in found])
    return [_row(one, record_id(records[one.record_id].digest)) for one in found]


def _row(one: SetAside, record: str) -> dict[str, Any]:
    return {
        "seq": one.seq,
        "record": record,
        "state": one.state,
        "attempts": one.attempts,
        "next_attempt_at": utc(one.next_attempt_at),
        "last_error": one.last_error,
    }


def _show(document: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("outlet", "kind", "state"):
        table.add_column(name)
    for name in ("delivered", "behind", "set aside", "parked"):
        table.add_column(name, justify="right")
    table.add_column("last taken")
    for one in document["outlets"]:
        numbers = (one["delivered"], one["behind"], one["waiting"], one["parked"])
        shown = [f"{number:,}" for number in numbers]
        last = one["last_ok_at"] or "never"
        table.add_row(printable(one["name"]), one["kind"], _state(one), *shown, last)
    print_table(table)
    out = console()
    for one in document["outlets"]:
        for line in _words(one):
            out.print(printable(line), markup=False)


def _state(one: dict[str, Any]) -> str:
    if not one["configured"]:
        return "not configured"
    if one["stopped"]:
        return "stopped"
    if one["failures"]:
        return "failing"
    return "behind" if one["behind"] else "up to date"


def _words(one: dict[str, Any]) -> Iterator[str]:
    name = one["name"]
    if one["failures"] or one["stopped"]:
        when = "stopped" if one["stopped"] else f"next try {one['next_attempt_at']}"
        yield f"{name}: {one['last_error']} ({when}, {one['failures']} failure(s) in a row)"
    for row in one["set_aside"]:
        if row["last_error"] is None:
            continue
        when = "parked" if row["state"] == PARKED else f"next try {row['next_attempt_at']}"
        yield (
            f"{name}: event {row['seq']} of {row['record']}: {row['last_error']} "
            f"({when}, tried {row['attempts']} time(s))"
        )
    if one["parked"]:
        yield f"{name}: when it is mended: anchord retry --outlet {name}"
