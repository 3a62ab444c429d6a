"""Where exports go: archives other programs read, folders that are never half written."""

from __future__ import annotations

import io
import os
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.adapters.outputs.archive import MOMENT, FileSink, StreamSink, TarOutput, member
from anchord.adapters.outputs.folder import FolderOutput
from anchord.errors import ConfigError, FatalError, RefusedError

names = st.text("ABCXYZabcxyz0123456789._-", min_size=1, max_size=100).filter(
    lambda name: name.strip(".")
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(files=st.dictionaries(names, st.binary(max_size=1500), max_size=8))
def test_other_programs_read_the_archive(files):
    stream = io.BytesIO()
    output = TarOutput(StreamSink(stream))
    for name, data in files.items():
        output.put(name, data)
    output.close()
    stream.seek(0)
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        found = {entry.name: archive.extractfile(entry).read() for entry in archive}
        assert {(e.mode, e.uid, e.gid, e.mtime) for e in archive} <= {(0o644, 0, 0, MOMENT)}
    assert found == files


def test_headers_are_those_of_tarfile():
    info = tarfile.TarInfo("name.ots")
    info.size, info.mtime = 1234, MOMENT
    assert member(b"name.ots", 1234) == info.tobuf(tarfile.USTAR_FORMAT)


def test_a_name_that_does_not_fit_is_refused():
    with pytest.raises(RefusedError):
        member(b"x" * 101, 1)
    with pytest.raises(RefusedError):
        member(b"", 1)


def test_an_archive_takes_its_name_only_when_it_is_whole(tmp_path):
    sink = FileSink(tmp_path / "x.tar.gz", packed=True)
    sink.write(b"abc")
    assert not (tmp_path / "x.tar.gz").exists()
    sink.abandon()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_tells_what_became_of_each_file(tmp_path):
    folder = tmp_path / "a" / "b"

    def longer(old: bytes, new: bytes) -> bool:
        return new.startswith(old)

    first = FolderOutput(folder, longer)
    assert first.put("x", b"1") == "new"
    assert first.put("x", b"1") == "same"
    again = FolderOutput(folder, longer, durable=False)
    assert again.put("x", b"12") == "updated"
    assert again.put("x", b"3") == "kept"
    again.close()
    assert (folder / "x").read_bytes() == b"12"
    assert FolderOutput(folder, longer, force=True).put("x", b"3") == "updated"
    assert [entry.name for entry in folder.iterdir()] == ["x"]


def test_a_folder_that_cannot_be_made_is_a_persons_business(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError):
        FolderOutput(tmp_path / "file", lambda _old, _new: True)
    with pytest.raises(ConfigError):
        FileSink(tmp_path / "file" / "x.tar", packed=False)


def test_a_disk_that_refuses_stops_the_export(tmp_path):
    output = FolderOutput(tmp_path, lambda _old, _new: True)
    (tmp_path / f".x.{os.getpid()}.part").mkdir()
    with pytest.raises(FatalError):
        output.put("x", b"1")
