"""An audit for people at a terminal: the verdict first, what to do with each kind of finding."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from anchord.app.report import contents
from anchord.app.report.contents import Audited, Group
from anchord.core.audit import AuditReport
from anchord.core.finding import Severity

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 3
"""Findings of one code that are written out."""
FILE_WIDTH = 100
_TONES = {"good": "bold green", "doubtful": "bold yellow", "bad": "bold red"}
_STYLES = {Severity.BROKEN: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def render(audited: Audited) -> str:
    """Return the report as plain text."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=FILE_WIDTH, color_system=None, highlight=False,
                      force_terminal=False, soft_wrap=True)  # fmt: skip
    show(console, audited)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def show(out: Console, audited: Audited) -> None:
    """Print the report."""
    report = audited.report
    _say(out, contents.heading(report))
    _say(out, contents.verdict(audited), _TONES[audited.tone])
    for one in audited.thresholds:
        style = "" if one.holds else "yellow"
        _say(out, f"  {'holds ' if one.holds else 'missed'}  {one.asked}: {one.words}", style)
    _completeness(out, report)
    _coverage(out, report)
    _findings(out, report)
    _ending(out, report)


def _completeness(out: Console, report: AuditReport) -> None:
    _title(out, "Completeness")
    rows = [(row.facet, row.state, f"{row.records:,}", row.share)
            for row in contents.facet_rows(report)]  # fmt: skip
    _table(out, ("facet", "state", "records>", "share>"), rows)
    found = report.completeness
    for title, table in (("By source", found.by_source), ("By month added", found.by_cohort)):
        _title(out, title)
        grouped = [
            (row.name, f"{row.records:,}", row.share("anchored"), row.share("stored"),
             row.share("both"))
            for row in contents.group_rows(table)
        ]  # fmt: skip
        _table(out, ("", "records>", "anchored>", "stored>", "both>"), grouped)
    _title(out, "What waits, by age")
    _table(out, ("added", "records>"), [(n, f"{c:,}") for n, c in contents.age_rows(report)])
    for facet, words in contents.oldest(report):
        _say(out, f"  oldest not {facet}: {words}")


def _coverage(out: Console, report: AuditReport) -> None:
    _title(out, "What was checked")
    counted = [(f"{count:,}", words) for words, count in contents.checked(report) if count]
    _table(out, (">", ""), counted, headed=False)
    for words in contents.unchecked(report):
        _say(out, f"  not checked: {words}")
    for words in report.keys:
        _say(out, f"  signed by {words}")
    if report.chain is not None:
        _say(out, f"  headers of {report.chain}")


def _findings(out: Console, report: AuditReport) -> None:
    told = contents.summary(report)
    counts = ", ".join(contents.severity_words(*one) for one in told.items() if one[1])
    _title(out, f"Findings: {counts or 'none'}")
    for group in contents.groups(report):
        _group(out, group)


def _group(out: Console, group: Group) -> None:
    head = f"  {group.severity}: {group.code}, {group.count:,} times"
    _say(out, head.removesuffix("1 times") + "once" if group.count == 1 else head,
         _STYLES[group.severity])  # fmt: skip
    for one in group.kept[:SHOWN]:
        # "batch 12" says already what it is.
        part = "" if one.subject.startswith(f"{one.part} ") else f"{one.part} "
        _say(out, f"    {part}{one.subject}: {one.what}")
    if group.count > SHOWN:
        _say(out, f"    and {group.count - SHOWN:,} more")
    _say(out, f"    what to do: {group.todo}")


def _ending(out: Console, report: AuditReport) -> None:
    if report.checkpoint is not None:
        _title(out, "Checkpoint to keep for the next audit (--save-checkpoint, --since-checkpoint)")
        for line in contents.lines_of(report.checkpoint.removesuffix("\n")):
            out.print(f"  {line}".rstrip(), markup=False)
    if report.seconds is not None:
        out.print()
        _say(out, f"This audit took {report.seconds:,.1f} s.")


def _title(out: Console, text: str) -> None:
    out.print()
    _say(out, text, "bold")


def _say(out: Console, text: str, style: str = "") -> None:
    """Print one line; the indent stays, all else that strangers wrote is made harmless."""
    indent = len(text) - len(text.lstrip(" "))
    out.print(" " * indent + contents.plain(text), markup=False, style=style)


def _table(
    out: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], *, headed: bool = True
) -> None:
    """Print a table; a head that ends in `>` is of numbers."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=headed)
    table.add_column("  ")
    for head in heads:
        justify = "right" if head.endswith(">") else "left"
        table.add_column(Text(head.removesuffix(">")), justify=justify)  # type: ignore[arg-type]
    kept = list(rows)
    for row in kept:
        table.add_row("", *(Text(contents.plain(text)) for text in row))
    if kept:
        out.print(table, soft_wrap=False)
    else:
        _say(out, "  there is nothing")
