"""`anchord headers`: keep and check anchord's own Bitcoin block headers."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from anchord.app.cli.header_words import (
    Target,
    cautions,
    failure_json,
    plain,
    print_sync,
    status_json,
    sync_json,
    tell,
    tip_json,
    tip_line,
)
from anchord.app.cli.output import console, emit_json, notes, progress
from anchord.app.cli.ranges import Finite
from anchord.core.network import NETWORKS
from anchord.core.network import network as network_of
from anchord.errors import ConfigError, RefusedError

MAX_IMPORT_BYTES = 1 << 30
"""Standard input is kept in a temporary file up to this size: thirteen times Bitcoin's headers."""

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
network_option = click.option(
    "--network",
    "network_name",
    type=click.Choice(list(NETWORKS)),
    help="Whose headers (default: headers.network of the configuration).",
)
file_option = click.option(
    "--file",
    "file_name",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The header file (default: headers.file.path of the configuration).",
)


@click.group(short_help="Keep and check anchord's own Bitcoin block headers.")
def command() -> None:
    """Keep and check anchord's own Bitcoin block headers.

    The file holds 80-byte block headers back to back, from the genesis block on; any program
    can read it. Every header is checked for proof of work, linkage, difficulty and time, by the
    rules of Bitcoin Core. Signet's block signatures are not in headers and are not checked.
    """


@command.command("sync", short_help="Catch up with the Bitcoin network.")
@click.option("--peer", "peers", multiple=True, metavar="HOST:PORT",
              help="Ask this peer; may be repeated (default: those of the configuration, "
              "else the DNS seeds).")  # fmt: skip
@network_option
@file_option
@click.option(
    "--deadline",
    type=Finite(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after this long; what was caught up is kept.",
)
@as_json_option
@click.pass_obj
def sync_command(
    config_path: str | None,
    peers: tuple[str, ...],
    network_name: str | None,
    file_name: Path | None,
    deadline: float | None,
    as_json: bool,
) -> int:
    """Ask peers for headers and keep the chain with most work.

    A peer that stalls, lies or feeds a cheap fork is dropped and named. Interrupted, the next
    sync goes on from where this one was.

    Exit code: 0 enough peers could be compared, 3 too few.
    """
    from anchord.adapters.headers.sync import SyncPlan, sync
    from anchord.app.wiring import SystemClock

    target = _target(config_path, network_name, file_name, anonymous=bool(peers))
    plan = SyncPlan(
        peers=peers or target.peers,
        min_peers=target.min_peers,
        timeout_s=target.timeout_s,
        deadline_s=deadline,
    )
    with _shown_progress() as show:
        report = sync(target.path, target.network, plan, SystemClock(), show)
    tell([*report.notes, *cautions(target.network)])
    if as_json:
        emit_json(sync_json(report, target))
    else:
        print_sync(report, target)
    return 0 if report.is_enough else 3


@command.command("import", short_help="Take in headers from a file.")
@click.argument("source", metavar="FILE")
@network_option
@file_option
@as_json_option
@click.pass_obj
def import_command(
    config_path: str | None,
    source: str,
    network_name: str | None,
    file_name: Path | None,
    as_json: bool,
) -> None:
    """Take in 80-byte headers, back to back, from genesis or from where ours end.

    FILE may be - for standard input. All are checked before any is kept; the first bad one
    refuses the file, with its offset.
    """
    from anchord.adapters.headers.chainfile import writing
    from anchord.adapters.headers.intake import import_headers

    target = _target(config_path, network_name, file_name)
    with _opened(source) as stream, writing(target.path, target.network) as chain:
        with _shown_progress() as show, _naming(source):
            done = import_headers(stream, chain, _now(), lambda at: show("checking", at, at))
        tip = chain.tip
        tell(chain.notes)
    document = {"file": str(target.path), **msgspec.to_builtins(done), **tip_json(tip)}
    if as_json:
        emit_json(document)
        return
    console().print(f"{done.added} headers taken in, {done.reorged} given up")
    console().print(tip_line(tip, target.network))


@command.command("check", short_help="Check a header file again from genesis.")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@network_option
@as_json_option
@click.pass_obj
def check_command(
    config_path: str | None, file: Path | None, network_name: str | None, as_json: bool
) -> int:
    """Check every header from genesis, believing nothing that was noted before.

    With FILE and --network no configuration is needed. Exit code: 0 all are good, 1 one is not.
    """
    from anchord.adapters.headers.intake import InputRefusedError, check_headers

    target = _target(config_path, network_name, file)
    began = time.perf_counter()
    try:
        with _opened(str(target.path)) as stream, _shown_progress() as show:
            state = check_headers(
                stream, target.network, _now(), lambda at: show("checking", at, at)
            )
    except InputRefusedError as error:
        if as_json:
            emit_json(failure_json(target, error.offset, str(error)))
        click.echo(f"anchord: {target.path}: {error}", err=True)
        return 1
    took = time.perf_counter() - began
    tell(cautions(target.network))
    count = state.height + 1
    notes().print(
        f"{count} headers checked in {took:.2f} s, {count / max(took, 1e-9):,.0f} a second"
    )
    if as_json:
        where = {"ok": True, "file": str(target.path), "network": target.network.name}
        emit_json({**where, "headers": count, **tip_json(state), "took_s": round(took, 3)})
    else:
        console().print(tip_line(state, target.network))
    return 0


@command.command("status", short_help="Show how far the headers reach.")
@network_option
@file_option
@as_json_option
@click.pass_obj
def status_command(
    config_path: str | None, network_name: str | None, file_name: Path | None, as_json: bool
) -> None:
    """Show the header file's end, its age, and who is asked for more."""
    from anchord.adapters.headers.chainfile import ChainFile

    target = _target(config_path, network_name, file_name)
    chain = ChainFile(target.path, target.network)
    try:
        state = chain.state
        tell([*chain.notes, *cautions(target.network)])
    finally:
        chain.close()
    document = status_json(target, state, _now())
    if as_json:
        emit_json(document)
        return
    for name, value in document.items():
        console().print(f"{name.replace('_', ' '):20} {plain(value)}", markup=False)


def _target(
    config_path: str | None,
    network_name: str | None,
    file_name: Path | None,
    *,
    anonymous: bool = True,
) -> Target:
    """Return what is meant: options first, the configuration for what they leave open."""
    if network_name and file_name and anonymous:
        return Target(file_name, network_of(network_name))
    from anchord.app.config import load

    loaded = load(config_path)
    headers = loaded.config.headers
    return Target(
        file_name or loaded.resolve(headers.file.path),
        network_of(network_name or headers.network),
        tuple(headers.file.peers),
        headers.file.min_peers,
        headers.file.timeout_s,
    )


@contextmanager
def _opened(source: str) -> Iterator[BinaryIO]:
    """Open a file, or keep standard input in a temporary one so that it can be read twice."""
    if source == "-":
        with tempfile.TemporaryFile() as kept:
            while chunk := sys.stdin.buffer.read(1 << 20):
                kept.write(chunk)
                if kept.tell() > MAX_IMPORT_BYTES:
                    raise RefusedError(
                        f"standard input has over {MAX_IMPORT_BYTES} bytes: no "
                        "Bitcoin network has that many headers"
                    )
            kept.seek(0)
            yield kept
        return
    try:
        stream = Path(source).open("rb")  # noqa: SIM115 - closed below; opening alone may fail so
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{source} cannot be read: {reason}; name a header file") from None
    with stream:
        yield stream


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Put the file's name before the reason it was refused for."""
    try:
        yield
    except RefusedError as error:
        raise RefusedError(f"{source}: {error}; nothing was taken in") from None


@contextmanager
def _shown_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show the height reached on stderr."""
    with progress() as bar:
        task = bar.add_task("headers", total=None)
        yield lambda phase, height, goal: bar.update(
            task, description=phase, completed=height, total=max(height, goal)
        )


def _now() -> int:
    return int(time.time())
