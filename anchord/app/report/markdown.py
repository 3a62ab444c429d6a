"""An audit as GitHub-flavoured Markdown (https://github.github.com/gfm/), for wikis and issues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from anchord.app.report import contents
from anchord.app.report.contents import Audited, Group
from anchord.core.audit import AuditReport

SHOWN = 20
"""Findings of one code that are written out."""
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|~!&@$])")
_LINK = re.compile(r"(?i)(https?|ftp|www)([:.])")
_FIRST = re.compile(r"^([-+=]|[0-9]+[.)])")
_FENCE = "~~~~"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no table cell, no link, one line."""
    # A word that begins a link ends before its colon or dot: an escaped sign is no link's part.
    flat = _LINK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", contents.plain(text)))
    return _FIRST.sub(r"\\\1", flat)


def render(audited: Audited) -> str:
    """Return the document."""
    return "\n".join(_lines(audited)) + "\n"


def _lines(audited: Audited) -> Iterator[str]:
    report = audited.report
    yield f"# {escape(contents.heading(report))}"
    yield ""
    yield f"**{escape(contents.verdict(audited))}**"
    yield ""
    if audited.thresholds:
        yield from _thresholds(audited)
    yield from _completeness(report)
    yield from _coverage(report)
    yield from _findings(report)
    if report.checkpoint is not None:
        yield from _checkpoint(report.checkpoint)
    if report.seconds is not None:
        yield ""
        yield f"This audit took {report.seconds:,.1f} s."


def _thresholds(audited: Audited) -> Iterator[str]:
    rows = [
        (escape(one.asked), "holds" if one.holds else "**missed**", escape(one.words))
        for one in audited.thresholds
    ]
    yield from _table("Thresholds", ("Asked", "", "Found"), rows)


def _completeness(report: AuditReport) -> Iterator[str]:
    rows = [(row.facet, escape(row.state), f"{row.records:,}", row.share)
            for row in contents.facet_rows(report)]  # fmt: skip
    yield from _table("Completeness", ("Facet", "State", "Records>", "Share>"), rows)
    found = report.completeness
    for title, table in (("By source", found.by_source), ("By month added", found.by_cohort)):
        grouped = [
            (escape(row.name), f"{row.records:,}", row.share("anchored"), row.share("stored"),
             row.share("both"))
            for row in contents.group_rows(table)
        ]  # fmt: skip
        heads = ("", "Records>", "Anchored>", "Stored>", "Both>")
        yield from _table(title, heads, grouped, level=3)
    ages = [(name, f"{count:,}") for name, count in contents.age_rows(report)]
    yield from _table("What waits, by age", ("Added", "Records>"), ages, level=3)
    for facet, words in contents.oldest(report):
        yield f"- oldest not {facet}: {escape(words)}"
    yield ""


def _coverage(report: AuditReport) -> Iterator[str]:
    rows = [(words, f"{count:,}") for words, count in contents.checked(report) if count]
    yield from _table("What was checked", ("", "Checked>"), rows)
    yield "What was not checked:"
    yield ""
    yield from [f"- {escape(words)}" for words in contents.unchecked(report)] or ["- nothing"]
    yield ""
    if report.keys:
        yield "Signed by:"
        yield ""
        yield from (f"- {escape(words)}" for words in report.keys)
        yield ""


def _findings(report: AuditReport) -> Iterator[str]:
    yield "## Findings"
    yield ""
    found = contents.groups(report)
    if not found:
        yield "None."
        yield ""
    for group in found:
        yield from _group(group)


def _group(group: Group) -> Iterator[str]:
    rows = [(escape(one.part), escape(one.subject), escape(one.what)) for one in group.kept[:SHOWN]]
    title = f"{group.severity}: {escape(group.code)}, {group.count:,} times"
    yield from _table(title, ("Part", "Which", "What"), rows, level=3)
    if group.count > len(rows):
        yield f"{group.count - len(rows):,} more are not shown here."
        yield ""
    yield f"What to do: {escape(group.todo)}"
    yield ""


def _checkpoint(note: str) -> Iterator[str]:
    yield "## Checkpoint to keep for the next audit"
    yield ""
    # Longer than any run of its own sign inside, so that nothing in the note ends it (GFM 4.5).
    runs = re.findall("~+", note)
    fence = max([_FENCE, *(run + "~" for run in runs)], key=len)
    yield fence
    yield from contents.lines_of(note.removesuffix("\n"))
    yield fence


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], level: int = 2
) -> Iterator[str]:
    """Yield a table; a head that ends in `>` is of numbers."""
    yield f"{'#' * level} {title}"
    yield ""
    kept = list(rows)
    if not kept:
        yield "There is nothing."
        yield ""
        return
    yield f"| {' | '.join(head.removesuffix('>') for head in heads)} |"
    yield f"| {' | '.join('---:' if head.endswith('>') else '---' for head in heads)} |"
    for row in kept:
        yield f"| {' | '.join(row)} |"
    yield ""
