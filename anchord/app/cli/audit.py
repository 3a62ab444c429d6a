"""`anchord audit`: derive every claim of a store, a published tree or bundles again, and report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.witness_options import witness_options
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.app.report.contents import Audited

_FORMATS = ("text", "json", "csv", "markdown", "html")


@click.command(short_help="Derive every claim again, and report: store, tree or bundles.")
@click.argument("targets", nargs=-1, metavar="[FOLDER|TAR|BUNDLE...|-]")
@click.option(
    "--since-checkpoint",
    "since",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Checkpoint of an earlier audit: what it covers was checked then.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Verify N records only, drawn by --seed.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="S",
    show_default=True,
    help="Of --sample and --online: the same seed draws the same.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=256),
    metavar="N",
    help="Processes that verify at once (default: one a core).",
)
@click.option(
    "--fleet",
    is_flag=True,
    help="Let the workers of a PostgreSQL store verify; what they say is believed.",
)
@witness_options
@click.option(
    "--online",
    type=click.IntRange(min=1),
    metavar="N",
    help="Fetch N stored copies again, drawn by --seed (default: none).",
)
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), help="What is printed (default: text)."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "-o",
    "--report",
    "reports",
    multiple=True,
    metavar="FILE",
    help="Also write a report; .txt, .json, .csv, .md or .html. May be repeated.",
)
@click.option(
    "--fail-under",
    multiple=True,
    metavar="FACET=PERCENT",
    help="Exit 1 if fewer records are anchored, stored or both. May be repeated.",
)
@click.option(
    "--max-age",
    multiple=True,
    metavar="[FACET=]DURATION",
    help="Exit 1 if a record has waited longer: 90m, 24h, 7d. May be repeated.",
)
@click.option(
    "--save-checkpoint",
    "save",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep the newest checkpoint of a sound audit for --since-checkpoint.",
)
@click.option(
    "-q", "--quiet", is_flag=True, help="No progress, and no text unless the exit code is not 0."
)
@click.pass_obj  # fmt: skip
def command(
    config_path: str | None, /, *, targets: tuple[str, ...], jobs: int | None, form: str | None,
    as_json: bool, reports: tuple[str, ...], quiet: bool, fleet: bool, **asked: Any,
) -> int:  # fmt: skip
    """Check that all evidence holds and that nothing is missing; report what does not.

    Without an argument the configured store is audited; none of its rows is ever written. A FOLDER
    (as `anchord mirror publish` or `anchord export --bundle` makes it), a TAR of one, BUNDLEs, or
    - for standard input need no store and no configuration: only the signer's key (--key) and
    block headers (--headers, --node, --explorer).

    Nothing is believed: ids, signatures, the ledger's chain, its Merkle log, proofs and block
    headers are computed again. A record counts as anchored only if a block header confirmed it.

    --fleet has the records verified by the workers of a PostgreSQL store (`anchord worker`), and
    believes what they say, and so whoever runs them or may write to the database.

    \b
    Examples:
      anchord audit
      anchord audit mirror/ --key signer.json --headers headers.bin
      anchord audit --sample 1000 --seed 7 --online 20 -o audit.html
      anchord export --all --bundle -o - | anchord audit - --key signer.json --offline

    \b
    From cron, silent while all is well; the next night starts where the last sound one ended:
      17 4 * * *  anchord -c /etc/anchord.toml audit -q --fail-under anchored=99.5 \\
                  --max-age 24h --since-checkpoint last.note --save-checkpoint last.note

    \b
    In CI:
      anchord audit public/ --key signer.json --headers headers.bin -o audit.json -o audit.md

    --since-checkpoint may name a file that --save-checkpoint is still to make: then all is checked.

    Exit code: 0 sound and all thresholds hold; 1 something is broken or not proved, or a threshold
    is missed; 2 the question or the configuration is wrong; 3 only headers or archives did not
    answer: try again later.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    if as_json and form not in (None, "json"):
        raise ConfigError(f"--json is --format json, and --format {form} was asked for: choose one")
    if fleet and jobs is not None:
        raise ConfigError("--jobs uses this machine, --fleet the workers' machines: choose one")
    from anchord.app.cli.audit_run import ask, run

    question = ask(
        targets=targets, jobs=jobs or _cores(), reports=reports, quiet=quiet, fleet=fleet, **asked
    )
    audited, code = run(config_path, question)
    shown = "json" if as_json else form or "text"
    if shown != "text" or code or not quiet:
        _print(audited, shown)
    return code


def _print(audited: Audited, form: str) -> None:
    """Print the report; text is coloured and folded for a terminal."""
    from anchord.app.cli.output import console
    from anchord.app.report import forms, text

    if form == "text" and sys.stdout.isatty():
        text.show(console(), audited)
        return
    # A terminal of another encoding gets an escape for what it cannot show, not an error.
    encoding = sys.stdout.encoding or "utf-8"
    shown = forms.render(form, audited).decode("utf-8").encode(encoding, "backslashreplace")
    sys.stdout.write(shown.decode(encoding))


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
