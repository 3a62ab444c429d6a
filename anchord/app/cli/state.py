"""`anchord state`: what the events of a record come to, merged by `anchord-merge-v1`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.app.cli.witnesses import Witnesses


@click.command(short_help="Merge a bundle's events and print the state they come to.")
@click.argument("target", metavar="RECORD|BUNDLE.json|-")
@click.option("--key", "--public-key", "keys", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="Public key document of a signer you trust; may be repeated.")  # fmt: skip
@click.option("--summary", is_flag=True, help="A few lines for people in place of the document.")
@click.pass_obj
def command(config_path: str | None, target: str, keys: tuple[str, ...], summary: bool) -> int:
    """Print the state of a record's bundle: what stands, what is withdrawn, what is invalid.

    The state is one line of canonical JSON, described in docs/protocol.md. It follows from the
    bundle and the keyring alone: no header is looked at and nothing is fetched, so it is the same
    bytes wherever it is made. Without a configuration the keyring is the registry's key and what
    --key names; keys that only the bundle states make nothing valid.

    \b
    Examples:
      anchord state 2507.10392 --summary
      anchord bundle 2507.10392 | anchord state - --key signer.json
      anchord state paper.bundle.json | sha256sum

    Exit code: 0 the state was computed, also where events are invalid (their number is told on
    standard error); 1 there is no such record, or it is no bundle.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.cli.witnesses import Witnesses
    from anchord.core.canonical import canonical_bytes
    from anchord.core.state import state_of
    from anchord.core.trust import Keys
    from anchord.errors import RefusedError

    with Witnesses(config_path, keys=keys, headers=None, network=None, node=None, cookie=None,
                   explorers=(), offline=True, confirmations=None) as who:  # fmt: skip
        bundle = _bundle(target, who)
        try:
            state = state_of(bundle, Keys(who.keyring, who.given))
        except RefusedError as error:
            raise RefusedError(f"{_named(target)}: expected a bundle: {error}") from None
    if summary:
        _print(state)
    else:
        sys.stdout.buffer.write(canonical_bytes(state) + b"\n")
        _warn(state)
    return 0


def _bundle(target: str, who: Witnesses) -> bytes:
    from anchord.app.cli.evidence import read_target
    from anchord.app.cli.references import one_record
    from anchord.engine.export import record_bundle
    from anchord.errors import ConfigError

    if target == "-" or Path(target).is_file():
        return read_target(target)
    if Path(target).is_dir():
        raise ConfigError(f"{target:.200} is a folder: name one bundle in it")
    if who.app is None:
        raise ConfigError(
            f"{target:.200} is no file here, and without a configuration there is no store to find "
            "a record in: name one with -c FILE or ANCHORD_CONFIG"
        )
    return record_bundle(who.app.store, who.keyring, one_record(who.app.store, target))


def _named(target: str) -> str:
    return "standard input" if target == "-" else target[:200]


def _warn(state: dict[str, Any]) -> None:
    for name, what in _DOUBTS:
        count = state[name]
        if count:
            click.echo(f"{count} {what}", err=True)


_DOUBTS = (
    ("invalid_event_count", "event(s) invalid: see invalid_events"),
    ("equivocation_count", "contradiction(s) of one signer: see equivocations"),
)


def _print(state: dict[str, Any]) -> None:
    from anchord.app.cli.output import console, printable

    out = console()
    for line in _lines(state):
        out.print(printable(line), markup=False)


def _lines(state: dict[str, Any]) -> Iterator[str]:
    current = state["current"]
    yield state.get("pith_number") or state["record_id"]
    yield " | ".join(current["completeness"].values())
    yield ""
    counts = [f"{state['event_count']} events", f"{state['valid_event_count']} valid"]
    counts += [f"{state[f'{name}_event_count']} {name}" for name in ("invalid", "unverified")]
    yield ", ".join([*counts, f"{state['equivocation_count']} contradictions"])
    for name, events in _groups(current):
        for event in events:
            signer = event["signer"] if isinstance(event["signer"], dict) else {}
            yield f"{name:<16}{event['created_at']}  {signer.get('signer_id')}  {event['event_id']}"
    for one in current["withdrawn"]:
        yield f"{'withdrawn':<16}{one['event_id']} by {one['withdrawn_by']}: {one['reason']}"
    for kind in ("invalid", "unverified"):
        for one in state[f"{kind}_events"]:
            yield f"{kind:<16}{one['event_id']}: {one['reason']}"
    for one in state["equivocations"]:
        yield f"{'contradiction':<16}{one['signer_id']} on {one['about']}: " + ", ".join(
            one["event_ids"]
        )


def _groups(current: dict[str, Any]) -> Iterator[tuple[str, Sequence[dict[str, Any]]]]:
    for name in ("record_created", "graph_snapshots", "timestamps", "storage", "author_claims"):
        yield name.rstrip("s"), current[name]
    yield from current["citations"].items()
    yield "replication", current["replications"]
    yield "other", current["other"]
