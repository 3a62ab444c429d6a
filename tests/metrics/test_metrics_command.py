"""`anchord metrics`: the same numbers for a file that is collected; all of it or what was there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support.monitored import filled, samples, value
from support.running import anchord

from anchord.app.config import Loaded


@pytest.fixture
def place(tmp_path: Path) -> Loaded:
    return filled(tmp_path)


def test_it_prints_what_the_store_has_and_nothing_of_itself(place: Loaded) -> None:
    ran = anchord("metrics", config=place.path)
    assert ran.code == 0, ran.err
    found = samples(ran.out.encode())
    assert value(found, "records", facet="anchored", state="anchored") == 3
    assert value(found, "store_up") == 1
    assert not [name for name, _ in found if name.startswith("process_")]
    assert value(found, "paused") is None


def test_a_file_is_written_at_once_and_others_may_read_it(place: Loaded, tmp_path: Path) -> None:
    file = tmp_path / "textfile" / "anchord.prom"
    file.parent.mkdir()
    file.write_text("what was there\n")
    before = file.stat().st_ino
    mask = os.umask(0o077)
    try:
        ran = anchord("metrics", "-o", file, config=place.path)
    finally:
        os.umask(mask)
    assert (ran.code, ran.out) == (0, "")
    assert value(samples(file.read_bytes()), "store_up") == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert file.stat().st_ino != before
    assert [path.name for path in file.parent.iterdir()] == ["anchord.prom"]


def test_where_the_store_cannot_be_read_the_file_stays_as_it_was(
    place: Loaded, tmp_path: Path
) -> None:
    file = tmp_path / "anchord.prom"
    file.write_text("what was there\n")
    (tmp_path / "anchord.db").write_bytes(b"no database")
    ran = anchord("metrics", "-o", file, config=place.path)
    assert ran.code == 4
    (tmp_path / "anchord.db").unlink()
    ran = anchord("metrics", "-o", file, config=place.path)
    assert ran.code == 2
    assert "anchord init" in ran.err
    assert file.read_text() == "what was there\n"


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(
    place: Loaded, tmp_path: Path
) -> None:
    for file in (tmp_path / "nowhere" / "a.prom", tmp_path / "taken"):
        if file.name == "taken":
            file.mkdir()
            (file / "in it").touch()
        ran = anchord("metrics", "-o", file, config=place.path)
        assert ran.code == 2
        assert str(file) in ran.err
    assert not list(tmp_path.rglob("*.part"))


def test_a_link_that_somebody_laid_in_the_way_is_not_followed(
    place: Loaded, tmp_path: Path
) -> None:
    file, victim = tmp_path / "anchord.prom", tmp_path / "victim"
    victim.write_text("mine")
    file.symlink_to(victim)
    (tmp_path / f".anchord.prom.{os.getpid()}.part").symlink_to(victim)
    ran = anchord("metrics", "-o", file, config=place.path)
    assert ran.code == 2
    assert victim.read_text() == "mine"
    (tmp_path / f".anchord.prom.{os.getpid()}.part").unlink(missing_ok=True)
    assert anchord("metrics", "-o", file, config=place.path).code == 0
    assert victim.read_text() == "mine"
    assert not file.is_symlink()
