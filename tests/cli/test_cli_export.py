"""`anchord export`: files that need no anchord, exported again after an upgrade."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
import sqlalchemy as sa
from opentimestamps.core.serialize import BytesDeserializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile
from support.schemas import assert_valid
from support.workplace import Workplace, sample

EVERY = 5


@pytest.fixture
def place(tmp_path):
    place = Workplace(tmp_path)
    place.add(*[sample(number) for number in range(EVERY)])
    return place


@pytest.fixture(scope="module")
def anchored(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("anchored"))
    place.anchor(*[sample(number) for number in range(EVERY)])
    return place


def test_a_record_without_a_proof_is_named_and_exits_1(place):
    result = place.run("export", "2507.00001", "-o", str(place.folder / "out"))
    assert result.exit_code == 1
    assert "no proof yet" in result.stderr
    assert not list((place.folder / "out").iterdir())


def test_with_all_missing_proofs_are_only_a_note(place):
    found = place.json("export", "--all", "-o", str(place.folder / "out"))
    assert (found["exported"], found["no_proof"]) == (0, EVERY)


def test_exporting_again_after_an_upgrade_brings_the_files_up_to_date(place):
    out = str(place.folder / "out")
    place.step()
    for kind in ("--ots", "--bundle"):
        first = place.json("export", "--all", kind, "-o", out)
        assert (first["new"], first["pending"]) == (EVERY, EVERY)
        assert place.json("export", "--all", kind, "-o", out)["same"] == EVERY
    place.mine()
    place.step(1000)
    for kind in ("--ots", "--bundle"):
        again = place.json("export", "--all", kind, "-o", out)
        assert (again["updated"], again["anchored"], again["kept"]) == (EVERY, EVERY, 0)
        assert place.json("export", "--all", kind, "-o", out)["same"] == EVERY
    assert len(list(Path(out).iterdir())) == 2 * EVERY


def test_a_file_that_says_something_ours_does_not_is_kept(place):
    out = place.folder / "out"
    place.step()
    place.run("export", "2507.00001", "2507.00002", "-o", str(out))
    first, second = sorted(out.iterdir())
    first.write_bytes(second.read_bytes())
    found = place.json("export", "2507.00001", "2507.00002", "-o", str(out), code=1)
    assert (found["same"], found["kept"]) == (1, 1)
    forced = place.json("export", "--force", "2507.00001", "2507.00002", "-o", str(out))
    assert (forced["same"], forced["updated"]) == (1, 1)


def test_an_empty_file_left_by_a_power_cut_is_replaced(place):
    out = place.folder / "out"
    place.step()
    place.run("export", "2507.00001", "-o", str(out))
    (file,) = out.iterdir()
    file.write_bytes(b"")
    assert place.json("export", "2507.00001", "-o", str(out))["updated"] == 1


def test_anchored_only_leaves_pending_ones_out(place):
    place.step()
    out = str(place.folder / "out")
    assert place.json("export", "--all", "--anchored-only", "-o", out)["exported"] == 0
    assert place.json("export", "2507.00001", "--anchored-only", "-o", out, code=1)["refused"]


def test_one_ots_on_standard_output_is_the_file_itself(anchored):
    raw = anchored.run("export", "2507.00001", "-o", "-").stdout_bytes
    detached = DetachedTimestampFile.deserialize(BytesDeserializationContext(raw))
    digest = anchored.json("show", "2507.00001")["canonical_sha256"]
    assert detached.file_digest.hex() == digest


def test_several_on_standard_output_are_an_archive(anchored):
    raw = anchored.run("export", "2507.00001", "2507.00002", "-o", "-").stdout_bytes
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        assert len(archive.getnames()) == 2


def test_bundles_on_standard_output_are_json_lines(anchored):
    result = anchored.run("export", "--all", "--bundle", "-o", "-")
    numbers = [json.loads(line)["pith_number"] for line in result.stdout.splitlines()]
    assert len(set(numbers)) == EVERY
    for line in result.stdout.splitlines():
        assert_valid("bundle", line)


@pytest.mark.parametrize("name", ["x.tar", "x.tar.gz", "x.tgz"])
def test_archives_hold_what_a_folder_holds_and_repeat_byte_for_byte(anchored, tmp_path, name):
    archives = [tmp_path / "a" / name, tmp_path / "b" / name]
    for path in archives:
        assert anchored.run("export", "--all", "-o", str(path)).exit_code == 0
    assert archives[0].read_bytes() == archives[1].read_bytes()
    assert anchored.run("export", "--all", "-o", str(tmp_path / "out")).exit_code == 0
    with tarfile.open(archives[0]) as archive:
        held = {member.name: archive.extractfile(member).read() for member in archive}
    assert held == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert [path.name for path in (tmp_path / "a").iterdir()] == [name]


def test_a_damaged_store_leaves_no_archive_behind(place, tmp_path):
    place.step()
    with place.app() as app, app.store._engine.begin() as connection:
        connection.execute(sa.text("UPDATE tiles SET nonces = zeroblob(80)"))
    result = place.run("export", "--all", "-o", str(tmp_path / "x.tar.gz"))
    assert result.exit_code == 4
    assert not list(tmp_path.glob("*x.tar*"))


def test_a_proof_of_somebody_else_or_no_proof_at_all_is_not_replaced(place):
    out = place.folder / "out"
    place.step()
    place.run("export", "2507.00001", "-o", str(out))
    (file,) = out.iterdir()
    file.write_bytes(b"notes")
    assert place.json("export", "2507.00001", "-o", str(out), code=1)["kept"] == 1
    assert file.read_bytes() == b"notes"


def test_named_and_bulk_export_write_the_same_bytes(anchored, tmp_path):
    names = [f"2507.{number:05d}" for number in range(EVERY)]
    for kind in ("--ots", "--bundle"):
        one, all_ = tmp_path / f"one{kind}", tmp_path / f"all{kind}"
        assert anchored.run("export", kind, *names, "-o", str(one)).exit_code == 0
        assert anchored.run("export", kind, "--all", "-o", str(all_)).exit_code == 0
        assert {p.name: p.read_bytes() for p in one.iterdir()} == {
            p.name: p.read_bytes() for p in all_.iterdir()
        }


def test_references_can_come_from_a_file(anchored, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("2507.00001\n\n2507.00002\nnot a record\n")
    found = anchored.json("export", "--from-file", str(listed), "-o", str(tmp_path / "o"), code=1)
    assert (found["exported"], list(found["refused"])) == (2, ["not a record"])


def test_usage_errors_exit_with_2(anchored):
    assert anchored.run("export").exit_code == 2
    assert anchored.run("export", "--all").exit_code == 2
    assert anchored.run("export", "--all", "2507.00001", "-o", "x").exit_code == 2
    assert anchored.run("export", "2507.00001", "-o", "-", "--json").exit_code == 2


@pytest.mark.parametrize(("kind", "name"), [("--ots", "mine.ots"), ("--bundle", "mine.json")])
def test_one_record_goes_into_the_file_that_is_named(anchored, tmp_path, kind, name):
    path = tmp_path / "deep" / name
    assert anchored.run("export", kind, "2507.00001", "-o", str(path)).exit_code == 0
    anchored.run("export", kind, "2507.00001", "-o", str(tmp_path / "out"))
    (named,) = (tmp_path / "out").iterdir()
    assert path.read_bytes() == named.read_bytes()
    assert anchored.json("export", kind, "2507.00001", "-o", str(path))["same"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("2507.00001", "2507.00002", "-o", "both.ots"),
        ("--all", "-o", "all.ots"),
        ("--bundle", "2507.00001", "-o", "bundle.ots"),
        ("2507.00001", "-o", "proof.json"),
    ],
)
def test_one_file_for_several_records_or_another_kind_is_a_misuse(
    anchored, tmp_path, monkeypatch, words
):
    monkeypatch.chdir(tmp_path)
    assert anchored.run("export", *words).exit_code == 2
    assert not list(tmp_path.iterdir())
