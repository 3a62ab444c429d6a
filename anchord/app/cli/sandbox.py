"""`anchord sandbox`: run the stand-ins in the foreground, or drive running ones."""

from __future__ import annotations

import functools
import shlex
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from anchord.app.cli.output import emit_json, notes, print_table
from anchord.app.cli.ranges import Finite
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.sandbox.run import Sandbox

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FOLDER = click.Path(file_okay=False, path_type=Path)
_DIR_HELP = "The sandbox's folder (default: the configuration's, or this one)."
_NEXT = """\
Next, in another terminal:
  export ANCHORD_CONFIG={config}
  anchord init {folder}
  anchord add FILE...
  anchord run-once --wait
  anchord status
  ots --bitcoin-node {node} verify FILE.ots
Drive it: anchord sandbox mine 6, reorg 2, fault calendar-1 dead --count 3, status;
  its archive: advance 86400, site URL --status 404, fault wayback offline.
"""


def _many(
    name: str, default: int, bounds: tuple[int, int], words: str
) -> Callable[[_Command], _Command]:
    kind = click.IntRange(*bounds)
    return click.option(
        name, default=default, show_default=True, type=kind, metavar="N", help=words
    )


@click.group(invoke_without_command=True, short_help="Run or drive the stand-ins on loopback.")
@click.option("--dir", "directory", type=_FOLDER, help="Folder to run in; made if it is absent.")
@_many("--calendars", 3, (1, 10), "How many calendars.")
@_many("--explorers", 2, (0, 9), "How many explorers.")
@_many("--peers", 2, (0, 9), "How many peers.")
@click.option(
    "--confirmations",
    default=6,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="Blocks before a calendar serves a path and anchord signs.",
)
@click.option(
    "--tick",
    "tick_s",
    default=1.0,
    show_default=True,
    type=Finite(0.01, 60),
    metavar="SECONDS",
    help="Seconds a calendar collects digests.",
)
@click.option(
    "--mine-every",
    "mine_every_s",
    default=2.0,
    show_default=True,
    type=Finite(0.05),
    metavar="SECONDS",
    help="Mine a block this often while something is pending.",
)
@click.option("--no-auto-mine", is_flag=True, help="Mine only on command.")
@click.option(
    "--archive/--no-archive",
    default=True,
    show_default=True,
    help="Also stand in for the Internet Archive.",
)
@click.option(
    "--real-limits",
    is_flag=True,
    help="The archive keeps to its real limits and delays (minutes to hours).",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document: where everything is."
)
@click.pass_context
def command(ctx: click.Context, /, directory: Path | None, as_json: bool, **options: Any) -> None:
    """Run calendars, a regtest chain, a node, explorers, peers and an archive on loopback.

    Sandbox, not Bitcoin, not the Internet Archive: nothing here is timestamped or stored by
    anybody. Runs until it is stopped
    (Ctrl-C), and writes a ready anchord.toml into the folder; the next run in that folder
    goes on with the same chain and addresses.
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = directory or _folder_of(ctx.obj)
        return
    if directory is None:
        raise click.UsageError("name a folder: anchord sandbox --dir DIR", ctx)
    if options.pop("no_auto_mine"):
        options["mine_every_s"] = None
    if options.pop("real_limits"):
        options |= _real_limits()
    _run(directory, options, as_json=as_json)


def _real_limits() -> dict[str, Any]:
    from anchord.sandbox.items.rules import Rules as ItemRules
    from anchord.sandbox.wayback.rules import Rules

    return {"archive_rules": Rules(), "item_rules": ItemRules()}


def _run(directory: Path, options: dict[str, Any], *, as_json: bool) -> None:
    """Run in the foreground until SIGINT or SIGTERM."""
    from anchord.sandbox.run import Sandbox

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with Sandbox(directory, **options) as sandbox:
        config = sandbox.write_config()
        _welcome(sandbox, config)
        if as_json:
            _show(sandbox.status())
        stopped.wait()
    notes().print("The sandbox has stopped; run it again with the same --dir to go on.")


def _welcome(sandbox: Sandbox, config: Path) -> None:
    say = notes()
    say.soft_wrap = True
    say.print(f"sandbox, not Bitcoin: {sandbox.directory}", style="bold")
    for calendar in sandbox.calendars:
        say.print(f"  {calendar.name:<12}{calendar.url}")
    say.print(f"  {'node':<12}{sandbox.node_url} (cookie: {sandbox.cookie_file})")
    for number, url in enumerate(sandbox.explorer_urls, 1):
        say.print(f"  {f'explorer-{number}':<12}{url}")
    for number, address in enumerate(sandbox.peer_addresses, 1):
        say.print(f"  {f'peer-{number}':<12}{address}")
    for name, url in (sandbox.status().authorities | sandbox.status().archive).items():
        say.print(f"  {name:<12}{url}")
    # The sandbox's node password opens nothing but the sandbox; it is what `ots` needs here.
    config_, folder = shlex.quote(str(config)), shlex.quote(str(sandbox.directory))
    words = _NEXT.format(config=config_, folder=folder, node=sandbox.node_auth_url)
    say.print(words, end="", markup=False)


def _folder_of(config_path: str | None) -> Path:
    return Path(config_path).absolute().parent if config_path else Path.cwd()


def _drives(function: _Command) -> _Command:
    """Give a command `--dir` and `--json`, and the way to the running sandbox as `ask`."""

    @click.option("--dir", "directory", type=_FOLDER, help=_DIR_HELP)
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.pass_obj
    def wrapped(folder: Path, /, directory: Path | None, **options: Any) -> Any:
        from anchord.sandbox.state import ask, read_run_file

        def reach(method: str, path: str, body: Any = None) -> Any:
            running = read_run_file((directory or folder).absolute())
            return ask(running["control"], method, path, body)

        return function(reach, **options)

    return functools.update_wrapper(wrapped, function)  # type: ignore[return-value]


@command.command()
@click.argument("count", default=1, metavar="[COUNT]", type=click.IntRange(min=1))
@_drives
def mine(ask: Callable[..., Any], count: int, as_json: bool) -> None:
    """Mine COUNT blocks (default: 1); the first carries everything that is pending."""
    _told(ask("POST", "/mine", {"count": count}), as_json=as_json)


@command.command()
@click.argument("depth", default=1, metavar="[DEPTH]", type=click.IntRange(min=1))
@click.option("--drop", is_flag=True, help="The new blocks are empty; transactions are lost.")
@_drives
def reorg(ask: Callable[..., Any], depth: int, drop: bool, as_json: bool) -> None:
    """Replace the last DEPTH blocks (default: 1) by DEPTH + 1 others."""
    _told(ask("POST", "/reorg", {"depth": depth, "drop": drop}), as_json=as_json)


def _told(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        emit_json(document)
    else:
        click.echo(f"height {document['height']}  {document['best_block']}")


@command.command(short_help="Let a service go wrong, or heal it.")
@click.argument("service", required=False)
@click.argument("kind", required=False)
@click.option("--count", type=click.IntRange(min=1), metavar="N",
              help="Heal after so many requests (default: never).")  # fmt: skip
@click.option("--delay", "delay_s", type=Finite(min=0), metavar="SECONDS",
              help="For slow, drip and late ones.")  # fmt: skip
@click.option(
    "--on", metavar="ROUTE", help="Only requests of this route: digest, timestamp, header, ..."
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another option.")
@click.option("--list", "listing", is_flag=True, help="Show what can go wrong and what does.")
@click.option("--clear", is_flag=True, help="Heal SERVICE, or everything.")
@_drives
def fault(
    ask: Callable[..., Any],
    service: str | None,
    kind: str | None,
    listing: bool,
    clear: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Let SERVICE (calendar-1, node, explorers, ...) go wrong in the way KIND.

    \b
    Examples:
      anchord sandbox fault --list
      anchord sandbox fault calendar-1 dead --count 3
      anchord sandbox fault node slow --delay 2
      anchord sandbox fault --clear
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    if listing:
        _list_faults(ask("GET", "/status")["faults"], as_json=as_json)
        return
    if clear:
        document = ask("POST", "/clear", {"service": service})
    elif service and kind:
        body = {"service": service, "kind": kind, "count": options["count"]}
        document = ask("POST", "/fault", body | {"options": _settings(options)})
    else:
        raise click.UsageError("name SERVICE and KIND, or use --list or --clear")
    if as_json:
        emit_json(document)
    else:
        _show_faults(document["faults"])


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a fault, numbers as numbers."""
    chosen = {name: options[name] for name in ("delay_s", "on") if options[name] is not None}
    for setting in options["settings"]:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}: expected NAME=VALUE, as in --set size=20000")
        chosen[name] = float(value) if value.replace(".", "", 1).isdigit() else value
    return chosen


def _list_faults(waiting: list[dict[str, Any]], *, as_json: bool) -> None:
    from rich.table import Table

    from anchord.sandbox.faults import KINDS

    if as_json:
        kinds = {
            name: {
                "does": kind.words,
                "services": sorted(kind.groups),
                "options": sorted(kind.options | {"on"}),
            }
            for name, kind in KINDS.items()
        }
        emit_json({"kinds": kinds, "faults": waiting})
        return
    table = Table("fault", "of", "what the service does", box=None, pad_edge=False)
    for name, kind in KINDS.items():
        table.add_row(name, " ".join(sorted(kind.groups)), kind.words)
    print_table(table)
    _show_faults(waiting)


def _show_faults(waiting: list[dict[str, Any]]) -> None:
    if not waiting:
        click.echo("all services are well")
    for fault_ in waiting:
        left = "until cleared" if fault_["count"] is None else f"{fault_['count']} more time(s)"
        click.echo(f"{fault_['service']}  {fault_['kind']}  {left}")


@command.command(short_help="Move the archive's clock on.")
@click.argument("seconds", type=Finite(0, 315_360_000))
@_drives
def advance(ask: Callable[..., Any], seconds: float, as_json: bool) -> None:
    """Move the archive's clock on by SECONDS: jobs end, captures are listed, days begin.

    anchord goes by the machine's clock: what it does later, it still does later. The sandbox's
    configuration makes its waits short instead (`confirm_after_s` and others).
    """
    document = ask("POST", "/advance", {"seconds": seconds})
    if as_json:
        emit_json(document)
    else:
        click.echo(f"the archive's clock shows {document['archive_now']}")


@command.command(short_help="Change what the web says to the archive.")
@click.argument("url", required=False)
@click.option("--status", type=click.IntRange(200, 999), metavar="N", help="HTTP status.")
@click.option("--redirect", "location", metavar="URL", help="Redirect there.")
@click.option("--body", metavar="TEXT", help="The page (default: one that names its URL).")
@click.option("--type", "content_type", metavar="TYPE", help="Content-Type of the page.")
@click.option("--change", is_flag=True, help="Put a new edition of the page out.")
@click.option("--clear", is_flag=True, help="As usual again: URL, or everything.")
@_drives
def site(ask: Callable[..., Any], url: str | None, as_json: bool, **options: Any) -> None:
    """Let URL answer in another way when the sandbox's archive visits it.

    \b
    Examples:
      anchord sandbox site https://arxiv.org/abs/2401.00001v1 --status 404
      anchord sandbox site https://arxiv.org/abs/2401.00001v1 --body "Are you a robot?"
      anchord sandbox site --clear
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    chosen = {name: value for name, value in options.items() if value not in (None, False)}
    if not chosen or (url is None and not options["clear"]):
        raise click.UsageError("name URL and what it says, or use --clear")
    document = ask("POST", "/site", {"site": {"url": url or ""} | chosen})
    if as_json:
        emit_json(document)
    else:
        click.echo(f"changed: {document['url'] or 'every page is as usual'}")


@command.command(short_help="Show where everything is, and what was asked.")
@_drives
def status(ask: Callable[..., Any], as_json: bool) -> None:
    """Show where everything is, what is pending, and how often each service was asked."""
    document = ask("GET", "/status")
    if as_json:
        emit_json(document)
        return
    click.echo(document["notice"], err=True)
    click.echo(f"height        {document['height']}  {document['best_block']}")
    click.echo(
        f"pending       {document['pending_commitments']} commitments, "
        f"{document['waiting_transactions']} transactions waiting for confirmations"
    )
    places = document["calendars"] | {"node": document["node"]}
    places |= document["explorers"] | document["peers"] | document["archive"]
    for name, place in places.items():
        counts = document["requests"].get(name, {})
        asked = ", ".join(f"{route} {count}" for route, count in counts.items())
        click.echo(f"{name:<13} {place}  {asked}")
    if document["archive"]:
        _show_archive(document)
    _show_faults(document["faults"])


def _show_archive(document: dict[str, Any]) -> None:
    click.echo(f"archive       its clock shows {document['archive_now']}")
    for name, counts in document["archive_counts"].items():
        words = ", ".join(f"{key} {count:g}" for key, count in counts.items() if count)
        click.echo(f"{name:<13} {words or 'nothing was asked yet'}")


def _show(document: Any) -> None:
    import sys

    import msgspec

    emit_json(msgspec.to_builtins(document))
    sys.stdout.flush()
