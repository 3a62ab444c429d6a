"""`anchord audit` as people, cron and CI run it: what is told, written, kept, and the exit code."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import stat
import tarfile
from pathlib import Path

import pytest
from click.testing import Result
from support.crowd import STRANGER, claim
from support.evidence import bundle_with
from support.schemas import assert_valid
from support.stored_place import store_capture
from support.workplace import Workplace, run, sample

from anchord.app.cli.audit_run import exit_code
from anchord.app.report.contents import Audited
from anchord.core.checkpoint import parse
from anchord.core.model import Document


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Four anchored records, one of them stored, and one that waits; all of it published."""
    place = Workplace(tmp_path_factory.mktemp("audited"))
    place.anchor(*[sample(number) for number in range(1, 5)])
    store_capture(place)
    place.add(sample(9))
    place.step()
    out = place.folder / "out"
    assert place.run("mirror", "publish", str(place.folder / "mirror")).exit_code == 0
    assert place.run("export", "--all", "--bundle", "-o", str(out)).exit_code == 0
    return place


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder without a configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def witnesses(place: Workplace) -> list[str]:
    key = str(place.folder / "mirror" / "pith-signing-key.json")
    headers = str(place.folder / "headers.bin")
    return ["--key", key, "--headers", headers, "--network", "regtest", "--jobs", "1"]


def bundles(place: Workplace) -> list[str]:
    return [str(path) for path in sorted((place.folder / "out").iterdir())]


def told(result: Result, code: int) -> dict[str, object]:
    assert result.exit_code == code, (result.output, result.stderr)
    found: dict[str, object] = json.loads(result.stdout)
    assert_valid("audit-report", found)
    return found


# ---------------------------------------------------------------------- what is audited


def test_the_configured_store_is_audited_without_an_argument(place: Workplace) -> None:
    found = told(place.run("audit", "--json", "--jobs", "1"), 0)
    assert (found["kind"], found["result"], found["chain"]) == ("store", "sound", "bitcoin-regtest")
    assert found["completeness"]["anchored"] == {"anchored": 4, "submitted": 1}
    assert found["completeness"]["stored"] == {"stored": 1, "not stored": 4}
    assert "anchord.db" in found["source"]


def test_a_published_tree_needs_nothing_but_a_key_and_headers(
    place: Workplace, elsewhere: Path
) -> None:
    mirror = str(place.folder / "mirror")
    found = told(run("audit", mirror, *witnesses(place), "--json"), 0)
    assert (found["kind"], found["result"], found["source"]) == ("tree", "sound", mirror)
    assert found["completeness"]["anchored"]["anchored"] == 4
    assert list(elsewhere.iterdir()) == []


def test_store_and_tree_say_the_same_of_the_same_records(place: Workplace, elsewhere: Path) -> None:
    own = told(place.run("audit", "--json", "--jobs", "1"), 0)["completeness"]
    public = told(run("audit", str(place.folder / "mirror"), *witnesses(place), "--json"), 0)
    for name in ("records", "sound", "anchored", "stored", "by_source"):
        assert own[name] == public["completeness"][name]


def test_bundles_come_as_a_folder_as_files_as_lines_or_packed(
    place: Workplace, elsewhere: Path
) -> None:
    files = bundles(place)
    packed = elsewhere / "bundles.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(place.folder / "out", "out")
    lines = b"".join(Path(name).read_bytes() for name in files)
    wide = json.dumps(json.loads(Path(files[0]).read_bytes()), indent=2).encode()
    ways: list[tuple[list[str], bytes | None, int]] = [
        ([str(place.folder / "out")], None, 5),
        (files, None, 5),
        (files[:1], None, 1),
        ([str(packed)], None, 5),
        (["-"], lines, 5),
        (["-"], packed.read_bytes(), 5),
        (["-"], wide, 1),
    ]
    for targets, stdin, count in ways:
        result = run("audit", *targets, *witnesses(place), "--json", stdin=stdin)
        found = told(result, 0)
        assert (found["kind"], found["completeness"]["records"]) == ("bundles", count), targets


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "there is no configuration here"),
        (["nothing.json"], "cannot be read"),
        (["a.txt"], "expected a folder"),
        (["folder", "a.txt"], "is a folder"),
        (["folder", "--offline", "--online", "1"], "leave out --online"),
        (["folder", "--fail-under", "anchored"], "FACET=PERCENT"),
        (["folder", "--max-age", "soon"], "24h"),
        (["folder", "-o", "report.pdf"], "expected a name that ends"),
        (["folder", "-o", "none/report.html"], "folder that exists"),
        (["folder", "--save-checkpoint", "x", "--sample", "1"], "leave out --sample"),
        (["folder", "--since-checkpoint", "a.txt"], "expected a checkpoint"),
        (["folder", "--json", "--format", "csv"], "choose one"),
        (["folder", "--explorer", "https://one.example.org"], "two servers or more"),
    ],
)
def test_a_question_that_makes_no_sense_is_told_before_the_audit(
    words: list[str], told: str, elsewhere: Path
) -> None:
    (elsewhere / "folder").mkdir()
    (elsewhere / "a.txt").write_text("words")
    result = run("audit", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


# ---------------------------------------------------------------------- exit codes


def test_a_missed_threshold_is_exit_code_1_and_one_that_holds_is_0(
    place: Workplace, elsewhere: Path
) -> None:
    mirror = str(place.folder / "mirror")
    common = ["audit", mirror, *witnesses(place)]
    assert run(*common, "--fail-under", "anchored=80", "--max-age", "5000d").exit_code == 0
    result = run(*common, "--fail-under", "anchored=99.5", "--fail-under", "stored=20")
    assert result.exit_code == 1
    assert "anchored is 80 %, asked for 99.5 %: 1 record of 5 is not" in result.stdout
    assert "1 of 2 thresholds is missed" in result.stdout
    assert run(*common, "--max-age", "24h").exit_code == 1


def test_headers_that_cannot_be_had_are_exit_code_3(place: Workplace, elsewhere: Path) -> None:
    key = witnesses(place)[:2]
    mirror = str(place.folder / "mirror")
    found = told(run("audit", mirror, *key, "--offline", "--json"), 3)
    assert found["result"] == "not proved"
    assert found["completeness"]["anchored"].get("anchored", 0) == 0
    # A threshold that is missed beside it is no matter of trying again.
    asked = ["--offline", "--fail-under", "anchored=1"]
    assert run("audit", mirror, *key, *asked).exit_code == 1


def test_a_key_nobody_gave_proves_nothing(place: Workplace, elsewhere: Path) -> None:
    result = run("audit", str(place.folder / "out"), *witnesses(place)[2:])
    assert result.exit_code == 1
    assert "Sound" not in result.stdout


def test_an_empty_folder_is_not_sound(elsewhere: Path) -> None:
    (elsewhere / "empty").mkdir()
    result = run("audit", "empty")
    assert result.exit_code == 1
    assert "there is nothing to audit" in result.stdout


def test_a_changed_byte_is_exit_code_1_and_named(place: Workplace, elsewhere: Path) -> None:
    raw = Path(bundles(place)[0]).read_bytes()
    Path("bent.bundle.json").write_bytes(
        raw.replace(b'"schema_version":"1.0"', b'"schema_version":"1.1"')
    )
    result = run("audit", "bent.bundle.json", *witnesses(place))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].startswith("Broken: ")
    assert "what to do: " in result.stdout


def test_only_what_can_pass_by_itself_is_exit_code_3() -> None:
    from support import audits

    missing = audits.outcome()
    missing.count("headers_missing")
    missing.count("records_counted")
    report = audits.report_of(missing)
    assert exit_code(Audited(report=report), 0) == 3
    missing.doubt("stored copies could not be fetched again", 2)
    assert exit_code(Audited(report=audits.report_of(missing)), 2) == 3
    missing.doubt("events are signed by a key nobody gave")
    assert exit_code(Audited(report=audits.report_of(missing)), 2) == 1
    assert exit_code(Audited(report=audits.broken()), 0) == 1


# ---------------------------------------------------------------------- reports


def test_reports_are_written_in_the_form_of_their_extension(
    place: Workplace, elsewhere: Path
) -> None:
    names = ["a.txt", "b.json", "c.csv", "d.md", "e.html"]
    wanted = [word for name in names for word in ("-o", name)]
    result = run("audit", str(place.folder / "mirror"), *witnesses(place), *wanted)
    assert result.exit_code == 0
    assert sorted(path.name for path in elsewhere.iterdir()) == names
    beginnings = [(elsewhere / name).read_text("utf-8")[:7] for name in names]
    assert beginnings == ["Audit o", '{\n  "so', "section", "# Audit", "<!DOCTY"]
    assert (elsewhere / "a.txt").read_text("utf-8") == result.stdout


@pytest.mark.parametrize(
    ("form", "beginning"),
    [("text", "Audit of"), ("csv", "section,"), ("markdown", "# Audit"), ("html", "<!DOCTYPE")],
)
def test_one_form_is_printed(form: str, beginning: str, place: Workplace, elsewhere: Path) -> None:
    result = run("audit", bundles(place)[0], *witnesses(place), "--format", form)
    assert (result.exit_code, result.stdout[: len(beginning)]) == (0, beginning)


def test_quiet_says_nothing_while_all_is_well(place: Workplace, elsewhere: Path) -> None:
    common = ["audit", str(place.folder / "mirror"), *witnesses(place), "-q"]
    result = run(*common)
    assert (result.exit_code, result.output) == (0, "")
    result = run(*common, "--fail-under", "stored=100")
    assert result.exit_code == 1
    assert "stored is 20 %" in result.stdout
    assert json.loads(run(*common, "--json").stdout)["result"] == "sound"


def test_progress_is_plain_lines_on_stderr_where_nobody_sees_a_bar(
    place: Workplace, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.app.cli.audit_run._EVERY_S", 0.0)
    common = ["audit", str(place.folder / "mirror"), *witnesses(place)]
    result = run(*common)
    assert "anchord: audit: records 5 of 5\n" in result.stderr
    assert "\x1b" not in result.stderr
    assert "audit: records" not in result.stdout
    assert run(*common, "-q").stderr == ""


# ---------------------------------------------------------------------- checkpoints and samples


def test_a_sound_audit_keeps_its_checkpoint_and_the_next_one_begins_there(
    place: Workplace, elsewhere: Path
) -> None:
    kept = ["--since-checkpoint", "last.note", "--save-checkpoint", "last.note"]
    common = ["audit", str(place.folder / "mirror"), *witnesses(place), *kept]
    first = run(*common)
    assert first.exit_code == 0
    assert "last.note is not there yet: all is checked" in first.stderr
    note = (elsewhere / "last.note").read_bytes()
    assert parse(note).size > 0
    second = told(run(*common, "--json"), 0)
    assert second["sampled"]
    assert (elsewhere / "last.note").read_bytes() == note


def test_an_audit_that_is_not_sound_keeps_no_checkpoint(place: Workplace, elsewhere: Path) -> None:
    before = (place.folder / "mirror" / "log" / "checkpoint").read_bytes()
    Path("last.note").write_bytes(before)
    result = run(
        "audit", str(place.folder / "mirror"), *witnesses(place)[:2], "--offline",
        "--save-checkpoint", "last.note",
    )  # fmt: skip
    assert result.exit_code == 3
    assert "is left as it is" in result.stderr
    assert Path("last.note").read_bytes() == before


def test_a_sample_says_so_and_the_same_seed_draws_the_same(place: Workplace) -> None:
    common = ["audit", "--json", "--jobs", "1", "--sample", "2", "--seed", "7"]
    first, second = (told(place.run(*common), 0) for _ in range(2))
    assert first["sampled"] == second["sampled"]
    assert first["coverage"]["records"] == 2
    assert first["coverage"] == second["coverage"]


# ---------------------------------------------------------------------- nothing is written


def test_an_audit_writes_nothing_into_the_store(place: Workplace) -> None:
    database = place.folder / "anchord.db"
    before = hashlib.sha256(database.read_bytes()).digest()
    mode = database.stat().st_mode
    database.chmod(stat.S_IRUSR)
    try:
        assert place.run("audit", "--jobs", "1", "-q").exit_code == 0
    finally:
        database.chmod(mode)
    assert hashlib.sha256(database.read_bytes()).digest() == before


def test_a_store_that_was_changed_is_found_out(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2))
    with sqlite3.connect(place.folder / "anchord.db") as connection:
        connection.execute(
            "UPDATE events SET signature = zeroblob(64) WHERE seq = (SELECT max(seq) FROM events)"
        )
    connection.close()
    result = place.run("audit", "--jobs", "1")
    assert result.exit_code == 1
    assert "Broken: " in result.stdout


def test_what_was_unpacked_is_removed_again(
    place: Workplace, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = elsewhere / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert run("audit", *bundles(place), *witnesses(place), "-q").exit_code == 0
    assert not list(folder.iterdir())


def test_an_archive_cannot_lay_files_elsewhere(elsewhere: Path) -> None:
    (elsewhere / "x.bundle.json").write_text("{}")
    with tarfile.open("evil.tar", "w") as archive:
        archive.add("x.bundle.json", "../../outside.bundle.json")
    result = run("audit", "evil.tar")
    assert result.exit_code == 2
    assert not (elsewhere.parent.parent / "outside.bundle.json").exists()


@pytest.mark.parametrize("raw", [b"", b"hello", b"\x00\xff" * 2000])
def test_a_file_of_another_kind_is_told_on_one_line(raw: bytes, elsewhere: Path) -> None:
    Path("notes.bin").write_bytes(raw)
    result = run("audit", "notes.bin")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "notes.bin: expected a folder, a bundle" in result.stderr


def test_what_strangers_say_of_a_record_does_not_spoil_its_audit(tmp_path: Path) -> None:
    """Anybody may sign a claim and hand it to a mirror: no cron job may fail of it."""
    place = Workplace(tmp_path)
    said = claim("author_claim", "author", STRANGER, author={"name": "Anybody"})
    record = sample(1)
    place.anchor(Document(record=record, raw=bundle_with(record, [said], [STRANGER])))
    assert place.run("mirror", "publish", str(tmp_path / "mirror")).exit_code == 0
    found = told(run("audit", str(tmp_path / "mirror"), *witnesses(place), "--json"), 0)
    assert (found["result"], found["reasons"]) == ("sound", [])
    assert found["coverage"]["foreign_events"] == 1


def test_a_checkpoint_is_not_saved_over_something_else(place: Workplace, tmp_path: Path) -> None:
    mine = tmp_path / "notes.txt"
    mine.write_text("mine\n")
    result = place.run("audit", "--jobs", "1", "-q", "--save-checkpoint", str(mine))
    assert (result.exit_code, "notes.txt: it is there" in result.stderr) == (2, True)
    assert mine.read_text() == "mine\n"
