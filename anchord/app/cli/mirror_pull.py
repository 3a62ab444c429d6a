"""`anchord mirror pull`: bundles from mirrors, checked, taken in, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from anchord.app.cli.mirror_publish import teller
from anchord.app.cli.output import emit_json, notes, print_table, printable, progress
from anchord.app.cli.ranges import Finite
from anchord.app.wiring import App, open_app
from anchord.errors import AnchordError, ConfigError, RefusedError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anchord.engine.pull_names import Place, Target
    from anchord.engine.pull_report import Differences

_SHOWN = 40
_NAME_WIDTH = 40


@click.command(
    short_help="Fetch, check and take in the bundles of mirrors, and compare them.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("mirrors", nargs=-1, required=True, metavar="URL|FOLDER...")
@click.option(
    "--record",
    "records",
    multiple=True,
    metavar="RECORD",
    help="Only this record (may be given again); one the store lacks by its whole number or hash.",
)
@click.option(
    "--rate",
    type=Finite(0.01, 1000),
    default=5.0,
    metavar="NUMBER",
    show_default=True,
    help="Most requests a second to one mirror.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Fetch at most N bundles of a mirror."
)
@click.option("--only-this", is_flag=True, help="Leave out other mirrors the manifest names.")
@click.option("--no-states", is_flag=True, help="Do not fetch and compare states.")
@click.option("--dry-run", is_flag=True, help="Say what would be fetched; fetch manifests only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_obj
def command(
    config_path: str | None,
    *,
    mirrors: tuple[str, ...],
    records: tuple[str, ...],
    rate: float,
    limit: int | None,
    only_this: bool,
    no_states: bool,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Fetch what is new from mirrors, check it, take it in, and say where mirrors differ.

    URL or FOLDER has a pith-mirrors.json; every mirror named there is pulled, retired ones aside.
    A mirror with an index is asked for the bundles that are new in it; one without, such as the
    registry, for those of the records in the store. Each bundle is checked as `anchord add` checks
    it. An interrupted pull goes on where it stopped.

    \b
    Examples:
      anchord mirror pull https://mirror.example.org
      anchord mirror pull /media/usb/mirror --only-this --no-states
      anchord mirror pull https://pith.science --record 2507.10392 --rate 1

    Exit code: 0 all agrees, or a mirror is only behind; 1 a mirror served something false; 3 a
    mirror could not be reached, and work remains.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.mirror_wiring import Opener
    from anchord.engine.pull_report import Differences, Kind
    from anchord.engine.pulling import PullOptions

    differences = Differences()
    opener = Opener(
        rate, only_this=only_this,
        on_refused=lambda name, why: differences.add(Kind.MANIFEST_REFUSED, name, why),
    )  # fmt: skip
    with open_app(config_path) as app, progress(quiet=quiet or as_json) as bars:
        options = PullOptions(
            targets=tuple(target for text in records for target in _targets(app, text)),
            states=not no_states,
            limit=limit,
            dry_run=dry_run,
        )
        places = _places(opener, mirrors, differences)
        document = _pull(app, places, options, differences, teller(bars))
    if as_json:
        emit_json(document)
    else:
        _tell(document)
    return 1 if differences.false else 3 if differences.unfinished else 0


def _targets(app: App, text: str) -> list[Target]:
    """Return what a person named: records of the store, or a whole number or hash elsewhere."""
    from anchord.core.canonical import pith_suffix
    from anchord.core.reference import parse_reference
    from anchord.engine.pull_names import Target, target_of

    reference = parse_reference(text)
    found = app.store.records.find(reference, 20)
    if found:
        return [target_of(record) for record in found]
    if reference.digest is not None:
        return [Target(suffix=pith_suffix(reference.digest), digest=reference.digest.hex())]
    if reference.prefix is not None and len(reference.prefix) == 26:
        return [Target(suffix=reference.prefix, numbered=True)]
    raise RefusedError(
        f"no record {text.strip()!r:.100} in this store: to pull one that is not there, give its "
        "whole Pith Number or its SHA-256"
    )


def _places(opener: Any, texts: Sequence[str], differences: Differences) -> list[Place]:
    """Open all mirrors; one that cannot be opened never stops the rest."""
    from anchord.engine.pull_report import Kind

    found: dict[str, Place] = {}
    for text in texts:
        try:
            for place in opener.open(text):
                found.setdefault(place.source.name, place)
        except ConfigError:
            raise
        except AnchordError as error:
            transient = isinstance(error, TransientError)
            kind = Kind.UNREACHABLE if transient else Kind.MANIFEST_REFUSED
            differences.add(kind, text, str(error))
    return list(found.values())


def _pull(
    app: App,
    places: list[Place],
    options: Any,
    differences: Differences,
    on_progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    from anchord.engine.pull_compare import compare
    from anchord.engine.pulling import Parts, pull

    parts = Parts(
        store=app.store, records=app.store, keyring=app.keyring, clock=app.clock,
        differences=differences, on_progress=on_progress,
    )  # fmt: skip
    done = pull(places, parts, options)
    whole = frozenset(
        one.address for one in done.mirrors
        if one.complete and one.index is not None and not options.targets
    )  # fmt: skip
    compared = 0 if options.dry_run else compare(app.store, places, whole, differences)
    return {
        "mirrors": [msgspec.to_builtins(one) for one in done.mirrors],
        "new": done.new,
        "known": done.known,
        "compared": compared,
        "false": differences.false,
        "unfinished": differences.unfinished,
        "counts": {str(kind): count for kind, count in sorted(differences.counts.items())},
        "differences": [msgspec.to_builtins(one) for one in differences.kept()],
        "dry_run": options.dry_run,
    }


def _tell(document: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    columns = ["fetched", "unchanged", "absent", "refused", "states"]
    if document["dry_run"]:
        columns = ["wanted", "unchanged"]
    table.add_column("mirror")
    for name in (*columns, "index"):
        table.add_column(name, justify="left" if name == "index" else "right")
    for one in document["mirrors"]:
        counts = [f"{one[name]:,}" for name in columns]
        table.add_row(_short(one["name"]), *counts, one["index"] or "none")
    print_table(table)
    say = notes().print
    for one in document["differences"][:_SHOWN]:
        say(printable(_line(one)), markup=False)
    rest = sum(document["counts"].values()) - min(len(document["differences"]), _SHOWN)
    if rest:
        say(f"{rest:,} more differences: --json names up to 1,000 of each kind")
    say(f"{document['new']:,} records new, {document['known']:,} known", markup=False)
    if document["unfinished"]:
        say("work remains: pull again")


def _line(one: dict[str, Any]) -> str:
    about = "" if one["record"] is None else f" {one['record']}"
    return f"{one['kind']}: {_short(one['mirror'], 200)}{about}: {one['what']}"


def _short(name: str, width: int = _NAME_WIDTH) -> str:
    """Return the name of a mirror on one line: its manifest may call it anything."""
    name = printable(" ".join(name.split()))
    return name if len(name) <= width else f"{name[: width - 1]}\u2026"
