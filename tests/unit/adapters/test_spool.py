"""A ZIP is a function of its members; a file in the spool is whole and durable, or not there."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.adapters.archives import spool as module
from anchord.adapters.archives.spool import FolderSpool
from anchord.errors import FatalError, LedgerError
from anchord.ports.archive import Packed

MEMBERS = (("b.json", b'{"b":1}'), ("a.json", b""), ("Łódź ü.json", bytes(range(256)) * 40))
PLENTY = 1 << 30

GOLDEN = "8df12f247a1eaea26fe84da8c33031c527d75cddd624b965dbd826ab68526562"
"""SHA-256 of the ZIP of MEMBERS; another value means that no old ZIP can be made again."""

NAMES = st.text(
    st.characters(exclude_categories=("C",), exclude_characters="/\\"), min_size=1, max_size=40
).filter(lambda name: name[0] != "." and len(name.encode()) <= 200)


def _by_the_book(members: Iterable[tuple[str, bytes]]) -> bytes:
    """The same ZIP by Python's own writer."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data)
    return out.getvalue()


def _true_of(packed: Packed) -> None:
    """Hold what was computed in passing against the file itself."""
    data = packed.path.read_bytes()
    assert packed.size == len(data)
    for digest, stated in (("md5", packed.md5), ("sha1", packed.sha1), ("sha256", packed.sha256)):
        assert hashlib.new(digest, data, usedforsecurity=False).digest() == stated


@given(members=st.lists(st.tuples(NAMES, st.binary(max_size=2_000)), min_size=1, max_size=12))
def test_a_zip_is_byte_by_byte_what_an_independent_writer_makes(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, bytes]]
) -> None:
    distinct = list(dict(members).items())
    spool = FolderSpool(tmp_path_factory.mktemp("spool"))
    packed = spool.pack("x.zip", iter(distinct), PLENTY)
    assert packed.path.read_bytes() == _by_the_book(distinct)
    _true_of(packed)
    assert packed.members == len(distinct)
    sums = b"".join(hashlib.sha256(data).digest() for _, data in distinct)
    assert packed.member_sha256s == sums
    assert packed.left_over is None


def test_the_bytes_are_the_same_for_ever(tmp_path: Path) -> None:
    packed = FolderSpool(tmp_path).pack("x.zip", MEMBERS, PLENTY)
    again = FolderSpool(tmp_path / "elsewhere").pack("y.zip", MEMBERS, PLENTY)
    assert packed.path.read_bytes() == again.path.read_bytes()
    assert packed.sha256.hex() == GOLDEN


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_finds_no_fault(tmp_path: Path) -> None:
    packed = FolderSpool(tmp_path).pack("x.zip", MEMBERS, PLENTY)
    subprocess.run(["unzip", "-t", packed.path], check=True, capture_output=True)


def test_every_member_comes_out_as_it_went_in(tmp_path: Path) -> None:
    packed = FolderSpool(tmp_path).pack("x.zip", MEMBERS, PLENTY)
    with zipfile.ZipFile(packed.path) as archive:
        assert archive.testzip() is None
        assert [(name, archive.read(name)) for name in archive.namelist()] == list(MEMBERS)


@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=30), limit=st.integers(1, 4_000))
def test_files_are_as_long_as_allowed_and_nothing_is_lost_between_them(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int
) -> None:
    members = [(f"m{at:03}", bytes([at]) * size) for at, size in enumerate(sizes)]
    spool = FolderSpool(tmp_path_factory.mktemp("spool"))
    rest, found = iter(members), []
    left_over: tuple[str, bytes] | None = next(rest)
    for count in range(len(members)):
        if left_over is None:
            break
        first = left_over
        packed = spool.pack(f"{count}.zip", _before(first, rest), limit)
        left_over = packed.left_over
        _true_of(packed)
        with zipfile.ZipFile(packed.path) as archive:
            found += [(name, archive.read(name)) for name in archive.namelist()]
        assert packed.size <= limit or packed.members == 1
        if left_over is not None:
            longer = [*found[-packed.members :], left_over]
            assert len(_by_the_book(longer)) > limit
    assert found == members
    assert left_over is None


def _before(
    first: tuple[str, bytes], rest: Iterator[tuple[str, bytes]]
) -> Iterator[tuple[str, bytes]]:
    yield first
    yield from rest


def test_a_zip_ends_before_it_would_need_the_extension_for_many_members(tmp_path: Path) -> None:
    members = ((f"{at:05}", b"") for at in range(65_600))
    packed = FolderSpool(tmp_path).pack("x.zip", members, PLENTY)
    assert packed.members == 65_534
    assert packed.left_over == ("65534", b"")
    assert b"PK\x06\x06" not in packed.path.read_bytes()[-200:]
    with zipfile.ZipFile(packed.path) as archive:
        assert len(archive.namelist()) == 65_534


def test_a_plain_file_is_written_whole(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path / "made" / "when needed")
    packed = spool.write("x.jsonl", b"{}\n" * 1_000)
    _true_of(packed)
    assert packed.path.read_bytes() == b"{}\n" * 1_000
    assert (packed.members, packed.member_sha256s, packed.left_over) == (0, b"", None)
    assert spool.path("x.jsonl") == packed.path
    spool.remove("x.jsonl")
    spool.remove("x.jsonl")
    assert spool.path("x.jsonl") is None


def test_writing_again_replaces(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path)
    spool.pack("x.zip", MEMBERS, PLENTY)
    spool.pack("x.zip", MEMBERS[:1], PLENTY)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]
    assert (tmp_path / "x.zip").read_bytes() == _by_the_book(MEMBERS[:1])


def test_memory_stays_flat(tmp_path: Path) -> None:
    members = ((f"{at:04}", bytes([at % 256]) * 200_000) for at in range(200))
    tracemalloc.start()
    packed = FolderSpool(tmp_path).pack("x.zip", members, PLENTY)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert packed.size > 40_000_000
    assert peak < 4_000_000


BAD_NAMES = ["", ".", "..", ".x", "a/b", "../x", "a\\b", "a\nb", "a\0b", "x" * 201, "é" * 101]


@pytest.mark.parametrize("name", [*BAD_NAMES, "\ud800"])
def test_a_name_is_one_part_of_a_path(tmp_path: Path, name: str) -> None:
    spool = FolderSpool(tmp_path)
    for use in (
        lambda: spool.pack(name, MEMBERS, PLENTY),
        lambda: spool.pack("x.zip", [(name, b"")], PLENTY),
        lambda: spool.write(name, b""),
        lambda: spool.path(name),
        lambda: spool.remove(name),
    ):
        with pytest.raises(FatalError, match="name of a file"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("members", [[], [("a", b"1"), ("a", b"2")]])
def test_nothing_and_a_name_twice_are_refused_and_leave_nothing(
    tmp_path: Path, members: list[tuple[str, bytes]]
) -> None:
    with pytest.raises(FatalError, match="bug"):
        FolderSpool(tmp_path).pack("x.zip", members, PLENTY)
    assert list(tmp_path.iterdir()) == []


def test_members_that_cannot_be_made_leave_nothing(tmp_path: Path) -> None:
    def members() -> Iterator[tuple[str, bytes]]:
        yield "a", b"1"
        raise LedgerError("a row was changed")

    with pytest.raises(LedgerError):
        FolderSpool(tmp_path).pack("x.zip", members(), PLENTY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["fsync", "replace", "sync_folder"])
def test_a_failing_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    owner = {"fsync": module.os, "replace": Path, "sync_folder": module}[call]
    monkeypatch.setattr(owner, call, full)
    with pytest.raises(FatalError, match="No space left"):
        FolderSpool(tmp_path).pack("x.zip", MEMBERS, PLENTY)
    assert list(tmp_path.iterdir()) == []


_LIMITED = """
import resource, signal, sys
from pathlib import Path
from anchord.adapters.archives.spool import FolderSpool
from anchord.errors import FatalError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
spool = FolderSpool(Path(sys.argv[1]))
for write in (
    lambda: spool.pack("x.zip", ((str(at), bytes(9_000)) for at in range(50)), 1 << 30),
    lambda: spool.write("y", bytes(200_000)),
):
    try:
        write()
    except FatalError as error:
        print(error)
"""


def test_a_file_the_system_does_not_take_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("cannot be written: File too large") == 2, done.stderr
    assert list(tmp_path.iterdir()) == []


_KILLED = """
import os, signal, sys
from pathlib import Path
from anchord.adapters.archives.spool import FolderSpool
def members():
    yield "a", bytes(100_000)
    os.kill(os.getpid(), signal.SIGKILL)
FolderSpool(Path(sys.argv[1])).pack("x.zip", members(), 1 << 30)
"""


def test_what_a_killed_writer_left_is_taken_away_and_what_is_being_written_is_not(
    tmp_path: Path,
) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    assert FolderSpool(tmp_path).path("x.zip") is None
    held = tmp_path / ".other.zip.1.part"
    with held.open("wb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        FolderSpool(tmp_path).pack("x.zip", MEMBERS, PLENTY)
        assert {path.name for path in tmp_path.iterdir()} == {"x.zip", held.name}


# ---------------------------------------------------------------------- holding against


def test_a_zip_holds_its_members_in_their_order_and_nothing_else(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path)
    packed = spool.pack("a.zip", MEMBERS, PLENTY)
    right = [(name, hashlib.sha256(data).digest()) for name, data in MEMBERS]
    assert spool.holds("a.zip", packed.sha256, right)
    assert not spool.holds("a.zip", bytes(32), right)
    assert not spool.holds("a.zip", packed.sha256, right[:-1])
    assert not spool.holds("a.zip", packed.sha256, [*right, right[0]])
    assert not spool.holds("a.zip", packed.sha256, right[::-1])
    assert not spool.holds("a.zip", packed.sha256, [(right[0][0], bytes(32)), *right[1:]])
    assert not spool.holds("b.zip", packed.sha256, right)


def test_what_is_no_zip_holds_nothing(tmp_path: Path) -> None:
    spool = FolderSpool(tmp_path)
    packed = spool.write("a.zip", b"no zip")
    assert not spool.holds("a.zip", packed.sha256, [])
