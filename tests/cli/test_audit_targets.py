"""What is named to be audited is a bundle or broken, and a packed tree has one of each file."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from support.evidence import bundle_with
from support.workplace import run, sample

from anchord.core.model import Record

ONE, TWO = sample(1), sample(2)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANCHORD_CONFIG", raising=False)


def line(record: Record) -> bytes:
    return bundle_with(record, []) + b"\n"


def counts(*words: str, stdin: bytes | None = None) -> dict[str, int]:
    found = run("audit", *words, "--offline", "--json", stdin=stdin)
    assert found.exit_code == 1, found.output
    report = json.loads(found.stdout)
    assert report["result"] == ("broken" if report["counts"] else "not proved")
    return report["counts"]


def test_a_stream_that_was_cut_off_is_broken() -> None:
    whole = line(ONE) + line(TWO)
    assert counts("-", stdin=whole) == {}
    assert counts("-", stdin=whole[:-30]) == {"file-unknown": 1}
    assert counts("-", stdin=whole + whole[:-30]) == {"file-unknown": 1, "bundle-repeated": 1}


def test_a_named_file_that_is_no_bundle_is_broken() -> None:
    Path("one.json").write_bytes(line(ONE))
    for name in ("two.json", "two.bundle.json", "two"):
        Path(name).write_bytes(line(TWO)[:-30])
        assert counts("one.json", name) == {"file-unknown": 1}
        Path(name).write_bytes(line(TWO).replace(b"pith_open_graph_bundle", b"another"))
        assert counts("one.json", name) == {"file-unknown": 1}


def test_an_archive_that_has_a_path_twice_is_refused() -> None:
    for names in (("a/b.json", "a/b.json"), ("a/b.json", "a/./b.json"), ("a/b.json", "/a/b.json")):
        with tarfile.open("twice.tar", "w") as archive:
            for name, data in zip(names, (line(ONE), line(TWO)), strict=True):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        result = run("audit", "twice.tar", "--offline")
        assert (result.exit_code, "twice" in result.stderr) == (2, True)


def test_a_threshold_is_not_held_against_the_few_records_that_are_new() -> None:
    """What waits since before the checkpoint is not looked at, and must not count as done."""
    Path("one.json").write_bytes(line(ONE))
    for asked in (["--max-age", "1h"], ["--fail-under", "anchored=0"]):
        result = run("audit", "one.json", "--offline", "--since-checkpoint", "none.note", *asked)
        assert (result.exit_code, "--since-checkpoint" in result.stderr) == (2, True)
