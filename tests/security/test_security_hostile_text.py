"""No text of strangers reaches a terminal, a page, a file name or a log as anything but text."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.evidence import bundle_with
from support.parties import FakeSigner
from support.stored_place import change, claim, store_capture
from support.trees import publish_tree, tree_files
from support.workplace import Workplace, bare, sample

from anchord.adapters.sources.inputs import source_for
from anchord.app.cli.main import main
from anchord.app.cli.output import one_line, printable
from anchord.app.service.logs import formatter
from anchord.core.key_document import to_document
from anchord.core.model import Record
from anchord.core.tree_index import safe_path

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m<script>alert(1)</script>\r\nanchord: ALERT all is lost\n"
    "'; DROP TABLE records; -- $(touch owned) `touch owned` | [x](javascript:alert(1)) [/bold]"
    "{{7*7}} %s %n ../../owned \u202egnp.exe \u2028 \u0085 \U000e0041 \udc80"
)
MARK = "alert(1)"
"""Shows that the text went through, and was not merely left out."""
NASTY = HOSTILE.encode("utf-8", "replace").decode()


def _is_text(text: str, *, lines: bool = True) -> None:
    """Hold what was printed against the law: printable characters and line ends of ours."""
    odd = {
        letter for letter in text
        if not letter.isprintable() and not (lines and letter == "\n")
    }  # fmt: skip
    assert not odd, {f"U+{ord(letter):04X} {unicodedata.category(letter)}" for letter in odd}


def _no_forged_line(text: str) -> None:
    assert not re.search(r"^anchord: ALERT all is lost", text, re.MULTILINE)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A workplace whose records, files, keys and captures are named by an enemy."""
    place = Workplace(tmp_path_factory.mktemp("place"))
    source = {"id": NASTY, "kind": NASTY, "version": 1}
    records = [sample(1), sample(2, source=source, **{NASTY: NASTY})]
    place.anchor(*records, *_from_files(place.folder / "in"), bare(b"\1" * 32, NASTY))
    store_capture(place)
    change(place, claim(place, 2, role="other"), state="parked", code="x", note=NASTY)
    enemy = FakeSigner(NASTY[:80], NASTY[:80])
    (place.folder / "enemy.json").write_text(json.dumps(to_document(enemy.public())), "utf-8")
    place.run("key", "trust", str(place.folder / "enemy.json"), "--target", "timestamp")
    (place.folder / "x.bundle.json").write_bytes(bundle_with(records[1], [], [enemy]))
    return place


def _from_files(folder: Path) -> list[Record]:
    """Take in files and lists as `anchord add` does."""
    folder.mkdir()
    name = NASTY.replace("/", "_").replace("\0", "")[:60]
    (folder / name).write_bytes(b"a file")
    (folder / "SHA256SUMS").write_text(f"\\{'ab' * 32}  {NASTY[:20]!r}\n".replace("\\x", "x"))
    found = [item for path in folder.iterdir() for item in source_for(str(path))]
    return [item for item in found if isinstance(item, Record)]


READING = [
    ("status",), ("show", sample(1).digest.hex()), ("show", "01" * 32), ("key", "list"),
    ("verify", sample(1).digest.hex(), "--offline"), ("ledger", "check"), ("db", "status"),
    ("config", "show"), ("headers", "status"), ("retry",), ("audit", "--offline"),
    ("sources",), ("outlets",), ("metrics",),
]  # fmt: skip


def _second(place: Workplace) -> str:
    source = {"id": NASTY, "kind": NASTY, "version": 1}
    return sample(2, source=source, **{NASTY: NASTY}).digest.hex()


@pytest.mark.parametrize("words", READING, ids=[" ".join(one[:2])[:20] for one in READING])
def test_what_people_read_is_printable_text(place: Workplace, words: tuple[str, ...]) -> None:
    for result in (place.run(*words), place.run(words[0], *_other(place, words))):
        _sound(result)


def _other(place: Workplace, words: tuple[str, ...]) -> tuple[str, ...]:
    """The same about the enemy's record, where the command is about one."""
    return tuple(
        _second(place) if re.fullmatch("[0-9a-f]{64}", word) else word for word in words[1:]
    )


def _sound(result: Result) -> None:
    for text in (result.stdout, result.stderr):
        _is_text(text)
        _no_forged_line(text)


@pytest.fixture
def anchord(place: Workplace, monkeypatch, capsys) -> Iterator[Callable[..., str]]:
    """Return what runs the command line as a process does, to its last words."""
    logger = logging.getLogger("anchord")
    before = logger.handlers[:]

    def run(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["anchord", "-c", str(place.config), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code
        return capsys.readouterr().err

    yield run
    logger.handlers[:] = before


@pytest.mark.parametrize("command", ["add", "verify", "state", "audit", "certificate", "show"])
def test_refusals_are_printable_lines_of_ours(
    place: Workplace, tmp_path: Path, anchord: Callable[..., str], command: str
) -> None:
    file = tmp_path / ("b" + NASTY.replace("/", "_")[:40] + ".json")
    file.write_text(json.dumps({"pith_number": NASTY, NASTY: NASTY}), "utf-8")
    for name in (str(file), str(place.folder / "missing"), NASTY.replace("\0", "")):
        said = anchord(command, name)
        _is_text(said)
        _no_forged_line(said)


@pytest.mark.parametrize("words", [("status",), ("show",), ("key", "list"), ("audit", "--offline")])
def test_what_scripts_read_holds_the_text_as_it_is(
    place: Workplace, words: tuple[str, ...]
) -> None:
    if words == ("show",):
        words = ("show", _second(place))
    result = place.run(*words, "--json")
    whole: Any = json.loads(result.stdout)
    if words[0] in ("show", "key"):
        assert MARK in json.dumps(whole)
    _is_text(result.stdout)
    _is_text(result.stderr)


class _Page(HTMLParser):
    """Collects what a page can do."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def _harmless(html: str) -> None:
    page = _Page()
    page.feed(html)
    assert not page.tags & {"script", "iframe", "object", "embed", "form", "base", "link", "img"}
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert not value.strip().lower().startswith(("javascript:", "data:text", "vbscript:"))
    odd = {letter for letter in html if not letter.isprintable() and letter != "\n"}
    assert not odd


@pytest.mark.parametrize("form", ["html", "md", "txt", "json"])
def test_reports_of_an_audit_are_text(place: Workplace, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"report.{form}"
    place.run("audit", "--offline", "--report", str(file))
    text = file.read_text("utf-8")
    if form == "html":
        _harmless(text)
    if form != "json":
        _is_text(text)
    assert "\x1b" not in text


def test_certificates_are_text(place: Workplace, tmp_path: Path) -> None:
    result = place.run("certificate", _second(place), "-o", str(tmp_path / "made"))
    _sound(result)
    for file in tmp_path.rglob("*.html"):
        _harmless(file.read_text("utf-8"))


def test_no_name_of_a_published_or_exported_file_comes_from_a_record(
    place: Workplace, tmp_path: Path
) -> None:
    publish_tree(place, tmp_path / "tree")
    names = set(tree_files(tmp_path / "tree"))
    assert all(map(safe_path, names))
    place.run("export", "--all", "--kind", "bundle", "-o", str(tmp_path / "out"))
    exported = (
        [path.name for path in (tmp_path / "out").rglob("*")] if (tmp_path / "out").exists() else []
    )
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,128}", name) for name in exported)
    assert not any("owned" in name for name in (*names, *exported))


def test_text_reaches_the_database_as_a_value(place: Workplace) -> None:
    with sqlite3.connect(place.folder / "anchord.db") as database:
        (count,) = database.execute("SELECT count(*) FROM records").fetchone()
        found = database.execute("SELECT label, source_id FROM records").fetchall()
    assert count >= 4
    assert sum(MARK in str(row) for row in found) >= 2
    assert not list(Path.cwd().glob("owned")) + list(place.folder.rglob("owned"))


@pytest.mark.parametrize("text", [NASTY, HOSTILE, "a\nb", "\x9b", "\u2028", "\x1b[8mhidden"])
def test_cleaned_text_is_printable_and_on_one_line(text: str) -> None:
    _is_text(printable(text), lines=False)
    _is_text(one_line(text), lines=False)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_of_the_log_of_services_is_one_line(form: str) -> None:
    facts = {"facts": {NASTY: NASTY, "level": NASTY}, "event": NASTY}
    record = logging.makeLogRecord({"msg": HOSTILE, "levelname": "ERROR", **facts})
    line = formatter(form).format(record)
    _is_text(line, lines=False)
    assert form == "text" or json.loads(line)["level"] == "error"
