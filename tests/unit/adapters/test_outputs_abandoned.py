"""What a killed export leaves behind, the next one takes away; what is being written stays."""

from __future__ import annotations

import os

import pytest

from anchord.adapters.outputs.archive import FileSink
from anchord.adapters.outputs.folder import FolderOutput


def old(path):
    os.utime(path, (0, 0))
    return path


@pytest.fixture
def left(tmp_path):
    """Parts as kill -9 leaves them, and files that only look alike."""
    names = (".a.ots.4711.part", ".x.tar.4711.part", ".part", "a.4711.part", ".a.ots.part")
    for name in names:
        (tmp_path / name).write_bytes(b"half")
        old(tmp_path / name)
    return tmp_path


def test_a_folder_is_cleared_of_abandoned_parts_only(left):
    FolderOutput(left, lambda _old, _new: True)
    assert sorted(entry.name for entry in left.iterdir()) == [".a.ots.part", ".part", "a.4711.part"]


def test_an_archive_clears_its_own_abandoned_parts_only(left):
    sink = FileSink(left / "x.tar", packed=False)
    sink.close()
    assert not (left / ".x.tar.4711.part").exists()
    assert (left / ".a.ots.4711.part").exists()


def test_what_another_export_writes_stays(tmp_path):
    sink = FileSink(tmp_path / "x.tar", packed=False)
    part = old(next(tmp_path.glob(".x.tar.*.part")))
    FolderOutput(tmp_path, lambda _old, _new: True)
    FileSink(tmp_path / "x.tar.gz", packed=True).abandon()
    assert part.exists()
    sink.write(b"whole")
    sink.close()
    assert (tmp_path / "x.tar").read_bytes() == b"whole"


def test_a_part_made_just_now_is_left_alone(tmp_path):
    (tmp_path / ".a.ots.4711.part").write_bytes(b"")
    FolderOutput(tmp_path, lambda _old, _new: True)
    assert (tmp_path / ".a.ots.4711.part").exists()
