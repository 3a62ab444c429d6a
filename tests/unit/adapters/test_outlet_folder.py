"""The folder of bundles: whole files under names that records cannot choose."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.handing_over import Exchange
from support.passes import bare
from support.workplace import sample

from anchord.adapters.outlets.folder import SUFFIX, FolderOutlet
from anchord.core.bundle import read_bundle
from anchord.core.model import Scheme, StoredRecord
from anchord.engine.delivering import deliver
from anchord.errors import TransientError
from anchord.ports.outlet import Delivery


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "bundles"


@pytest.fixture
def go(tmp_path: Path, folder: Path) -> Any:
    found = Exchange(tmp_path, FolderOutlet("files", folder))
    yield found
    found.parts.store.close()


def bundles(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".json"}


def delivery(document: bytes, number: int = 1) -> Delivery:
    record = StoredRecord(
        id=number, digest=bytes([number]) * 32, scheme=Scheme.SHA256, year=None,
        source_kind="../../etc", source_id="a/b\0", source_version=1, label="../x", batch_id=None,
        added_at=0,
    )  # fmt: skip
    return Delivery(
        seq=number, record=record, number=None, event_id=f"sha256:{number:064x}",
        event_type="timestamp_anchored", facet="anchored", created_at=0, document=document,
    )  # fmt: skip


def test_the_folder_always_holds_the_newest_bundle_of_every_record(go: Any, folder: Path) -> None:
    go.add([sample(1), *bare(12)])
    go()
    before = bundles(folder)
    assert len(before) == 13
    go.anchor()
    after = bundles(folder)
    assert after.keys() == before.keys()
    for name, data in after.items():
        bundle = read_bundle(data)
        stem = name.removesuffix(SUFFIX)
        assert stem in (bundle.digest.hex(), (bundle.number or "").rpartition(":")[2])
        assert [event["event_type"] for event in bundle.events] == [
            "timestamp_submitted", "timestamp_anchored",
        ]  # fmt: skip
    assert not list(folder.glob("*.part"))


def test_names_are_made_of_digests_only(folder: Path) -> None:
    FolderOutlet("files", folder).hand_over([delivery(b"{}")])
    assert set(bundles(folder)) == {"01" * 32 + SUFFIX}


def test_what_is_there_already_is_not_written_again(go: Any, folder: Path) -> None:
    go.add(bare(2))
    go()
    times = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    go.use(FolderOutlet("another", folder))
    assert deliver(go.parts, go.clock.now()).events == 2
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.json")} == times


def test_a_bundle_never_gives_way_to_one_that_says_less(go: Any, folder: Path) -> None:
    """A worker that slept wakes up with an old bundle in its hands."""
    go.add(bare(1))
    go()
    (name, old), = bundles(folder).items()  # fmt: skip
    go.anchor()
    new = bundles(folder)[name]
    record = go.parts.store.records.get(1)
    stale = Delivery(
        seq=1, record=record, number=None, event_id="sha256:" + "0" * 64,
        event_type="timestamp_submitted", facet="anchored", created_at=0, document=old,
    )  # fmt: skip
    FolderOutlet("late", folder).hand_over([stale])
    assert bundles(folder)[name] == new != old


@pytest.mark.parametrize("spoilt", [b"", b"{", b"not a bundle"])
def test_a_spoilt_file_is_replaced(go: Any, folder: Path, spoilt: bytes) -> None:
    go.add(bare(1))
    go()
    ((name, whole),) = bundles(folder).items()
    (folder / name).write_bytes(spoilt)
    go.use(FolderOutlet("again", folder))
    deliver(go.parts, go.clock.now())
    assert bundles(folder)[name] == whole


def _read_only(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_bytes(b"a file")


def _locked(folder: Path) -> None:
    (folder / ".anchord-outlet.lock").mkdir(parents=True)


def _led_away(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".anchord-outlet.lock").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize("spoil", [_read_only, _locked, _led_away])
def test_a_disk_that_refuses_is_tried_again_later(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(folder)
    with pytest.raises(TransientError, match="make room or correct"):
        FolderOutlet("files", folder).hand_over([delivery(b"{}")])
    assert not (folder.parent / "elsewhere").exists()


@pytest.mark.parametrize("name", ["{}", ".{}.part"])
def test_a_foreign_folder_in_a_bundle_s_place_refuses_that_bundle_alone(
    folder: Path, name: str
) -> None:
    (folder / name.format("01" * 32 + SUFFIX)).mkdir(parents=True)
    refused = FolderOutlet("files", folder).hand_over([delivery(b"{}"), delivery(b"{}", 2)])
    assert list(refused) == [1]
    assert (folder / ("02" * 32 + SUFFIX)).read_bytes() == b"{}"


def _pipe(path: Path) -> int:
    os.mkfifo(path)
    return os.open(path, os.O_RDWR)  # somebody may write any time, and never does


def _socket(path: Path) -> int:
    os.mknod(path, stat.S_IFSOCK | 0o600)
    return os.open(os.devnull, os.O_RDONLY)


def _endless(path: Path) -> int:
    path.symlink_to("/dev/zero")
    return os.open(os.devnull, os.O_RDONLY)


@pytest.mark.parametrize("put", [_pipe, _socket, _endless])
def test_whatever_else_lies_in_a_bundle_s_place_gives_way(
    folder: Path, put: Callable[[Path], int]
) -> None:
    folder.mkdir(parents=True)
    handle = put(folder / ("01" * 32 + SUFFIX))
    try:
        assert FolderOutlet("files", folder).hand_over([delivery(b"{}")]) == {}
    finally:
        os.close(handle)
    assert bundles(folder) == {"01" * 32 + SUFFIX: b"{}"}


def test_nothing_is_written_through_a_link_that_somebody_put_there(
    folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"precious")
    folder.mkdir(parents=True)
    for name in ("." + "01" * 32 + SUFFIX + ".part", "01" * 32 + SUFFIX):
        (folder / name).symlink_to(target)
    FolderOutlet("files", folder).hand_over([delivery(b"{}")])
    assert target.read_bytes() == b"precious"
    assert bundles(folder) == {"01" * 32 + SUFFIX: b"{}"}


def test_two_processes_do_not_write_at_once(folder: Path) -> None:
    folder.mkdir(parents=True)
    handle = os.open(folder / ".anchord-outlet.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(TransientError, match="another process"):
        FolderOutlet("files", folder).hand_over([delivery(b"{}")])
    os.close(handle)
    FolderOutlet("files", folder).hand_over([delivery(b"{}")])


def test_what_a_crash_left_half_written_is_used_up(folder: Path) -> None:
    folder.mkdir(parents=True)
    left = folder / ("." + "01" * 32 + SUFFIX + ".part")
    left.write_bytes(b"{ half a bundle, longer than the whole one")
    FolderOutlet("files", folder).hand_over([delivery(b"{}")])
    assert not left.exists()
    assert bundles(folder) == {"01" * 32 + SUFFIX: b"{}"}
