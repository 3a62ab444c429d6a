"""Reports of audits: complete, honest, the same bytes each time, deaf to what strangers wrote."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from support import audits
from support.schemas import assert_valid

from anchord.app.report import contents, json_document, markdown, page, table, text
from anchord.app.report.forms import EXTENSIONS, FORMATS, form_of, render
from anchord.core.audit import AuditReport
from anchord.core.finding import Part
from anchord.errors import ConfigError

CASES = {
    "empty": audits.empty, "sound": audits.sound, "broken": audits.broken,
    "many": lambda: audits.many(10_000), "hostile": audits.hostile,
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def report(request: pytest.FixtureRequest) -> AuditReport:
    return CASES[request.param]()


def whole(report: AuditReport) -> contents.Audited:
    return audits.audited(report, "anchored=99.5", "stored=50", "24h")


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


# ---------------------------------------------------------------------- every form


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_audit_gives_the_same_bytes(report: AuditReport, form: str) -> None:
    assert render(form, whole(report)) == render(form, whole(report))


@pytest.mark.parametrize("form", FORMATS)
def test_every_form_says_the_verdict(report: AuditReport, form: str) -> None:
    said = render(form, whole(report)).decode()
    assert {"json": report.result}.get(form, report.result.capitalize()) in said


def test_each_form_has_an_extension() -> None:
    assert sorted(EXTENSIONS.values()) == sorted(FORMATS)


@pytest.mark.parametrize("name", ["report", "report.pdf", "none/report.json", "."])
def test_a_report_nobody_can_write_is_refused_before_the_audit(
    name: str, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="-o"):
        form_of(name)


# ---------------------------------------------------------------------- words


def test_a_missed_threshold_is_part_of_the_verdict() -> None:
    said = contents.verdict(audits.audited(audits.sound(), "anchored=99.5", "stored=1"))
    assert said.startswith("Sound: ")
    assert "1 of 2 thresholds is missed." in said


def test_an_audit_of_nothing_is_not_called_sound() -> None:
    said = contents.verdict(audits.audited(audits.empty()))
    assert said == "Not proved: nothing was found broken, but there is nothing to audit."


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "html"])
def test_blocks_of_a_test_network_are_never_called_bitcoin(form: str) -> None:
    report = msgspec.structs.replace(audits.sound(), chain="bitcoin-regtest")
    said = html.unescape(render(form, audits.audited(report)).decode())
    assert "Blocks are of bitcoin-regtest: that proves nothing about Bitcoin." in said
    assert "anchored in bitcoin" not in said.lower().replace("in bitcoin-regtest", "")
    real = msgspec.structs.replace(report, chain="bitcoin")
    assert "proves nothing about Bitcoin" not in render(form, audits.audited(real)).decode()


def test_records_of_no_known_day_are_told_beside_the_picture_they_are_not_in() -> None:
    completeness = msgspec.structs.replace(
        audits.sound().completeness,
        records=9,
        backlog=((20_000, 3, 2),),
        by_cohort={"unknown": {"records": 4, "anchored": 0, "stored": 0, "both": 0}},
    )
    report = msgspec.structs.replace(audits.sound(), completeness=completeness)
    said = " ".join(Page(render("html", audits.audited(report)).decode()).words)
    assert "not anchored: 3 now" in said
    assert "not stored: 2 now" in said
    assert "of 4 more no day is known" in said


def test_what_was_audited_is_named_by_its_kind() -> None:
    for kind, words in (("store", "a store: x"), ("tree", "a published tree: x"),
                        ("bundles", "bundles: x")):  # fmt: skip
        report = msgspec.structs.replace(audits.sound(), kind=kind, source="x")
        assert contents.heading(report).startswith(f"Audit of {words}, ")


def test_one_finding_is_not_called_findings() -> None:
    found = audits.records(audits.outcome())
    found.find("code", contents.Severity.BROKEN, Part.RECORD, "x", "what", "todo")
    said = contents.verdict(audits.audited(audits.report_of(found)))
    assert said.startswith("Broken: 1 finding says that evidence does not hold.")


def test_what_was_not_checked_is_told() -> None:
    found = audits.records(audits.outcome())
    found.count("records_counted", 5)
    found.count("foreign_events", 2)
    found.count("headers_missing")
    said = "\n".join(contents.unchecked(audits.report_of(found, sampled="a sample of 7")))
    for words in ("a sample of 7", "5 of ", "2 events of others", "1 block:", "--online"):
        assert words in said


def test_findings_are_grouped_the_worst_first_and_all_are_counted() -> None:
    found = audits.outcome()
    for severity in reversed(contents.Severity):
        for number in range(3):
            found.find(f"code-{severity}", severity, Part.RECORD, str(number), "what", "todo")
    groups = contents.groups(audits.report_of(found))
    assert [(group.severity, group.count) for group in groups] == [
        ("broken", 3), ("warning", 3), ("note", 3),
    ]  # fmt: skip
    many = contents.groups(audits.many(10_000))
    assert sum(group.count for group in many) == 10_000
    assert max(len(group.kept) for group in many) == 1_000


# ---------------------------------------------------------------------- text


def test_text_moves_no_cursor(report: AuditReport) -> None:
    said = text.render(whole(report))
    assert all(character.isprintable() or character == "\n" for character in said)


def test_text_shows_a_few_findings_of_each_kind_and_counts_the_rest() -> None:
    said = text.render(audits.audited(audits.many(10_000)))
    assert said.count("  broken: ") == 3
    assert "and 3,331 more" in said
    assert len(said) < 10_000


def test_text_ends_with_the_checkpoint_to_keep() -> None:
    said = text.render(audits.audited(audits.sound()))
    _, _, tail = said.partition("Checkpoint to keep")
    for line in audits.NOTE.splitlines():
        assert line in tail


# ---------------------------------------------------------------------- JSON


def test_json_meets_its_schema(report: AuditReport) -> None:
    assert_valid("audit-report", json.loads(render("json", whole(report))))


def test_json_says_what_the_report_says(report: AuditReport) -> None:
    found = json.loads(json_document.render(whole(report)))
    assert found["counts"] == report.counts
    assert [one["holds"] for one in found["thresholds"]] == [
        one.holds for one in whole(report).thresholds
    ]
    said = [(one["code"], one["subject"], one["what"]) for one in found["findings"]]
    assert said == [(one.code, one.subject, one.what) for one in report.findings]


# ---------------------------------------------------------------------- CSV


def rows(report: AuditReport) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.render(whole(report)), newline="")))


def test_csv_is_a_table_in_which_no_cell_is_a_formula(report: AuditReport) -> None:
    raw = table.render(whole(report))
    assert raw.endswith("\r\n")
    assert "\n" not in raw.replace("\r\n", "")
    for row in csv.reader(io.StringIO(raw, newline="")):
        assert len(row) == len(table.COLUMNS)
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", " ")) for cell in row)


def test_csv_has_a_row_for_each_finding_and_each_count(report: AuditReport) -> None:
    found = rows(report)
    assert sum(row["section"] == "finding" for row in found) == len(report.findings)
    counts = {row["name"]: row["count"] for row in found if row["section"] == "findings"}
    assert counts == {code: str(count) for code, count in report.counts.items()}


@given(st.text(max_size=40))
def test_no_text_becomes_a_formula(words: str) -> None:
    assert not table.cell(words).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


# ---------------------------------------------------------------------- Markdown


def test_markdown_tables_keep_their_columns(report: AuditReport) -> None:
    width = None
    for line in markdown.render(whole(report)).splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


def test_markdown_lets_no_markup_of_strangers_through() -> None:
    said = markdown.render(audits.audited(audits.hostile()))
    body = said.partition("## Checkpoint")[0]
    assert not re.search(r"(?<!\\)[<`]", body)
    assert not re.search(r"https?://|www\.", body)
    assert not re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\(", body)


def test_a_note_cannot_leave_its_fence() -> None:
    _, _, tail = markdown.render(audits.audited(audits.hostile())).partition("## Checkpoint")
    lines = [line for line in tail.splitlines() if line.startswith("~~~~")]
    assert lines[0] == lines[-1]
    assert all(len(line) < len(lines[0]) for line in lines[1:-1])


@settings(max_examples=200)
@given(st.text(alphabet="ab |\\`*_<>[]()#!~&@$.:/\n-+=1w", max_size=30))
def test_escaped_text_has_no_bare_sign(words: str) -> None:
    said = markdown.escape(words)
    unescaped = re.sub(r"\\.", "", said)
    assert not re.search(r"[\\`*_<>\[\]()#|~!&@$]", unescaped)
    assert "\n" not in said


# ---------------------------------------------------------------------- HTML


def test_the_page_needs_nothing_from_outside(report: AuditReport) -> None:
    made = Page(page.render(whole(report)))
    names = {name for name, _ in made.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "a", "form", "use"}
    for _, attrs in made.tags:
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name in attrs)
    policies = [one["content"] for one in made.of("meta") if "http-equiv" in one]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "url(" not in page.render(whole(report))


def test_what_strangers_wrote_is_text_in_the_page() -> None:
    made = Page(page.render(audits.audited(audits.hostile())))
    said = "".join(made.words)
    for words in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}"):
        assert words in said
    assert "\x1b" not in said


def test_each_picture_has_a_title_a_description_and_a_table_of_its_numbers(
    report: AuditReport,
) -> None:
    source = page.render(whole(report))
    made = Page(source)
    pictures = made.of("svg")
    assert len(pictures) == 3
    ids = [attrs["id"] for _, attrs in made.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    for picture in pictures:
        assert picture["role"] == "img"
        assert set((picture["aria-labelledby"] or "").split()) <= set(ids)
    for figure in source.split("<figure>")[1:]:
        assert "<table>" in figure.partition("</figure>")[0]


def test_a_page_of_many_findings_stays_readable() -> None:
    source = page.render(audits.audited(audits.many(100_000)))
    assert len(source) < 300_000
    assert "200 of 33,334 shown" in source


def test_a_report_without_its_duration_says_none() -> None:
    for form in FORMATS:
        timed = render(form, audits.audited(audits.timed(audits.sound())))
        assert timed != render(form, audits.audited(audits.sound()))
        assert b"12.3" in timed


def test_a_terminal_gets_colours_and_no_other_escape(report: AuditReport) -> None:
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=True, color_system="standard", width=90, soft_wrap=True,
        highlight=False, legacy_windows=False,
    )  # fmt: skip
    text.show(console, whole(report))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert all(character.isprintable() or character == "\n" for character in plain)
