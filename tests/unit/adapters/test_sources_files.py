"""Files, checksum lists, proofs and folders; and how anchord tells them apart."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.adapters.sources.checksums import read_checksum_line, unescape
from anchord.adapters.sources.inputs import source_for, source_from_list
from anchord.adapters.sources.kinds import Kind, kind_of
from anchord.adapters.sources.streams import lines, look
from anchord.core.model import Adoption, Record, Rejection, Scheme
from anchord.errors import ConfigError, RefusedError

HEX = hashlib.sha256(b"").hexdigest()
RECORD = b'{"metadata": {}, "source": {"id": "1", "kind": "example"}}'


def pretend_stdin(monkeypatch, raw):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


def sha256(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()


# Checksum lists


NAMES = [
    b"plain",
    b"two words",
    b"back\\slash",
    b"new\nline",
    b"return\r",
    b"*star",
    b" lead",
    b"trail ",
    b"a) = b",
    b"#hash",
    "zoë".encode(),
    b"raw\xff",
]


@pytest.mark.parametrize("flags", [[], ["--binary"], ["--tag"], ["--text"]])
def test_what_sha256sum_writes_comes_in_whatever_the_names(tmp_path, flags):
    folder = tmp_path / "files"
    folder.mkdir()
    paths = [os.fsencode(folder) + b"/" + name for name in NAMES]
    for number, path in enumerate(paths):
        Path(os.fsdecode(path)).write_bytes(b"%d" % number)
    run = subprocess.run(
        ["sha256sum", *flags, "--", *NAMES], cwd=folder, capture_output=True, check=True
    )
    listed = tmp_path / "SHA256SUMS"
    listed.write_bytes(b"# made today\n\n" + run.stdout)
    found = list(source_for(str(listed)))
    assert [one.digest for one in found] == [sha256(b"%d" % number) for number in range(len(NAMES))]
    assert [one.label for one in found] == [
        name.decode("utf-8", "backslashreplace") for name in NAMES
    ]
    assert {one.scheme for one in found} == {Scheme.SHA256}


GOOD_LINES = {
    f"{HEX}  name": "name",
    f"{HEX} *name": "name",
    f"{HEX.upper()}  name": "name",
    f"SHA256 (name) = {HEX}": "name",
    f"\\{HEX}  a\\nb\\\\c": "a\nb\\c",
    f"\\SHA256 (a\\nb) = {HEX}": "a\nb",
    f"{HEX}  back\\slash": "back\\slash",
    HEX: None,
}


@pytest.mark.parametrize("line", GOOD_LINES)
def test_each_form_of_a_line_is_read(line):
    record = read_checksum_line(line.encode())
    assert (record.digest.hex(), record.label) == (HEX, GOOD_LINES[line])


BAD_LINES = {
    "nonsense": "no sha256sum line",
    f"{HEX[:-1]}  name": "no sha256sum line",
    f"{HEX}0  name": "no sha256sum line",
    f"{HEX} name": "no sha256sum line",
    f"MD5 (name) = {HEX[:32]}": "MD5 checksum",
    f"\\{HEX}  a\\tb": "expected",
    f"\\{HEX}  a\\": "expected",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_of_a_list_refuses_that_line_only(tmp_path, line):
    path = tmp_path / "sums.sha256"
    path.write_text(f"{HEX}  a\n{line}\n{HEX}  b\n")
    first, refused, last = source_for(str(path))
    assert (first.label, last.label) == ("a", "b")
    assert (refused.where, refused.line) == (str(path), 2)
    assert BAD_LINES[line] in refused.reason


def test_an_endless_line_of_a_list_is_refused_alone(tmp_path):
    path = tmp_path / "sums.sha256"
    path.write_bytes(f"{HEX}  ".encode() + b"x" * 100_000 + f"\n{HEX}  b\n".encode())
    refused, last = source_for(str(path))
    assert (refused.line, last.label) == (1, "b")
    assert "longer than" in refused.reason


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=40))
def test_an_escaped_name_comes_back(name):
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    assert unescape(escaped) == name


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=90))
def test_random_lines_raise_only_our_errors(line):
    for text in (line, HEX.encode() + line, b"SHA256 (" + line + b") = " + HEX.encode()):
        with contextlib.suppress(RefusedError):
            read_checksum_line(text)


# Files


def test_any_file_is_its_hash_and_its_name(tmp_path):
    path = tmp_path / "photo.bin"
    path.write_bytes(bytes(range(256)) * 1000)
    assert list(source_for(str(path))) == [
        Record(digest=sha256(path.read_bytes()), scheme=Scheme.SHA256, label="photo.bin")
    ]


def test_a_big_sparse_file_is_streamed(tmp_path):
    path = tmp_path / "big.bin"
    with path.open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    program = (
        "import resource, sys\n"
        "from anchord.adapters.sources.inputs import source_for\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "early = peak()\n"
        "print(len(list(source_for(sys.argv[1]))), peak() - early)\n"
    )
    run = [sys.executable, "-c", program, str(path)]
    count, grown = subprocess.run(run, capture_output=True, check=True).stdout.split()
    assert (int(count), int(grown) < 8192) == (1, True)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(b"one")
    real = hashlib.file_digest

    def slow(stream, name):
        found = real(stream, name)
        path.write_bytes(b"one and two")
        return found

    monkeypatch.setattr(hashlib, "file_digest", slow)
    (refused,) = source_for(str(path))
    assert "changed while it was read" in refused.reason


def test_standard_input_can_be_a_file_without_a_name(monkeypatch):
    raw = b"\x00\x01binary" * 50_000
    pretend_stdin(monkeypatch, raw)
    assert list(source_for("-")) == [Record(digest=sha256(raw), scheme=Scheme.SHA256)]


def test_a_named_pipe_is_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=((RECORD + b"\n") * 2000,))
    writer.start()
    found = list(source_for(str(pipe)))
    writer.join(30)
    assert [type(one) for one in found] == [Record] * 2000


def test_what_is_not_there_or_cannot_be_read_once_named(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        source_for(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="not a path"):
        source_for("nul\0")
    with pytest.raises(ConfigError, match="device"):
        source_for("/dev/null")
    with pytest.raises(ConfigError, match="kind 'x'"):
        source_for(str(tmp_path), kind="x")


# Proofs


@pytest.mark.shared_data
def test_every_proof_of_the_index_is_adopted_or_refused_with_a_reason(shared_data):
    vectors = shared_data / "ots-vectors"
    for vector in json.loads((vectors / "index.json").read_bytes())["vectors"]:
        path = vectors / vector["name"]
        if path.suffix != ".ots":
            continue
        (found,) = source_for(str(path))
        if isinstance(found, Rejection):
            assert found.reason
            continue
        assert found.ots == path.read_bytes()
        assert found.record.digest.hex() == vector["digest"]
        assert found.record.scheme is Scheme.SHA256
        assert found.record.label == path.name[:-4]
        kinds = {one["kind"] for one in vector["attestations"]}
        assert kinds & {"pending", "bitcoin"}


@pytest.mark.shared_data
def test_the_312_real_pending_proofs_are_adopted_from_one_folder(tmp_path, shared_data):
    raw = (shared_data / "ots-vectors" / "pending-real.jsonl").read_bytes()
    rows = [json.loads(line) for line in raw.splitlines()]
    for number, row in enumerate(rows):
        (tmp_path / f"{number:03}.ots").write_bytes(base64.b64decode(row["ots_b64"]))
    found = list(source_for(str(tmp_path)))
    assert len(found) == 312
    assert all(isinstance(one, Adoption) for one in found)
    assert [one.record.digest.hex() for one in found] == [row["digest"] for row in rows]


REFUSED_PROOFS = {
    "pending/ripemd160-README.md.ots": "anchord verify",
    "pending/unknown-notary.txt.ots": "unknown attestations only",
    "generated/truncated.ots": "cut off",
    "generated/trailing-garbage.ots": "1 more bytes",
}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", REFUSED_PROOFS)
def test_a_proof_that_cannot_be_followed_is_refused_with_the_reason(shared_data, name):
    path = str(shared_data / "ots-vectors" / name)
    (refused,) = source_for(path)
    assert (refused.where, refused.line) == (path, None)
    assert REFUSED_PROOFS[name] in refused.reason


@pytest.mark.shared_data
def test_a_proof_is_known_by_its_content_whatever_its_name(shared_data, tmp_path, monkeypatch):
    raw = (shared_data / "ots-vectors" / "complete" / "hello-world.txt.ots").read_bytes()
    (tmp_path / "hello.ots.bak").write_bytes(raw)
    (named,) = source_for(str(tmp_path / "hello.ots.bak"))
    (met,) = source_for(str(tmp_path))
    pretend_stdin(monkeypatch, raw)
    (piped,) = source_for("-")
    assert named.ots == met.ots == piped.ots == raw
    assert piped.record.label is None


def test_a_file_that_is_called_a_proof_and_is_far_too_long_is_refused(tmp_path):
    path = tmp_path / "a.ots"
    path.write_bytes(bytes(1_000_000))
    (refused,) = source_for(str(path))
    assert isinstance(refused, Rejection)


# Folders


def test_in_a_folder_names_decide_and_order_is_by_name(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "inner.txt").write_bytes(b"inner")
    (tmp_path / "a.json").write_bytes(RECORD)
    (tmp_path / "c.jsonl").write_bytes(RECORD + b"\n" + RECORD)
    (tmp_path / "d.txt").write_bytes(RECORD)
    (tmp_path / "SHA256SUMS").write_text(f"{HEX}  x\n")
    (tmp_path / "sums.txt").write_text(f"{HEX}  x\n")
    (tmp_path / ".hidden").write_bytes(b"hidden")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"hidden")
    found = list(source_for(str(tmp_path)))
    assert [(one.label, one.scheme == Scheme.SHA256) for one in found] == [
        ("x", True),
        ("a.json", False),
        ("b/inner.txt", True),
        (None, False),
        (None, False),
        ("d.txt", True),
        ("sums.txt", True),
    ]
    (hidden,) = source_for(str(tmp_path / ".hidden"))
    assert hidden.digest == sha256(b"hidden")
    assert len(list(source_for(str(tmp_path / ".git")))) == 1


def test_loops_of_links_end_and_each_folder_is_read_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"1")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a" / "file")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    found = list(source_for(str(tmp_path)))
    labels = [one.label for one in found if isinstance(one, Record)]
    assert labels == ["a/file", "link"]
    assert [Path(one.where).name for one in found if isinstance(one, Rejection)] == ["gone", "self"]


def test_what_cannot_be_read_in_a_folder_is_refused_and_the_rest_goes_in(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    os.mkfifo(tmp_path / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    with listening:
        listening.bind(str(tmp_path / "socket"))
        found = list(source_for(str(tmp_path)))
    assert [type(one) for one in found] == [Record, Rejection, Rejection]
    assert "no regular file" in found[1].reason


def test_a_file_that_vanishes_between_listing_and_reading_is_refused(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(b"1")
    source = iter(source_for(str(tmp_path)))
    next(source)
    (tmp_path / "b").unlink()
    refused, last = source
    assert "No such file" in refused.reason
    assert last.label == "c"


def test_names_that_are_no_text_are_shown_as_text(tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/raw\xff"))
    odd.write_bytes(b"1")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/raw\xfe.json")).write_bytes(b"")
    refused, record = source_for(str(tmp_path))
    assert record.label == "raw\\xff"
    assert refused.where.endswith("raw\\xfe.json")
    (alone,) = source_for(str(odd))
    assert alone.label == "raw\\xff"


def test_what_anchord_itself_keeps_is_passed_over(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "secret.pem").write_bytes(b"1")
    (tmp_path / "anchord.db").write_bytes(b"2")
    (tmp_path / "data").write_bytes(b"3")
    skip = [tmp_path / "keys", tmp_path / "anchord.db", tmp_path / "absent"]
    found = list(source_for(str(tmp_path), skip=skip))
    assert [one.label for one in found] == ["data"]


def test_thousands_of_files_need_one_descriptor_at_a_time(tmp_path):
    for number in range(3000):
        (tmp_path / f"{number:04}").write_bytes(b"%d" % number)
    program = (
        "import resource, sys\n"
        "from anchord.adapters.sources.inputs import source_for\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n"
        "found = list(source_for(sys.argv[1]))\n"
        "print(len(found), {type(one).__name__ for one in found})\n"
    )
    run = [sys.executable, "-c", program, str(tmp_path)]
    printed = subprocess.run(run, capture_output=True, check=True).stdout
    assert printed == b"3000 {'Record'}\n"


# Lists of paths


@pytest.mark.parametrize("end", [b"\n", b"\0", b"\r\n"])
def test_paths_can_come_from_a_list(tmp_path, monkeypatch, end):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "-"):
        Path(name).write_bytes(name.encode())
    Path("list").write_bytes(end.join([b"a", b"gone", b"-", b"b", b""]))
    first, refused, dash, last = source_from_list("list")
    assert [one.label for one in (first, dash, last)] == ["a", "-", "b"]
    assert refused.where == "gone"
    with pytest.raises(ConfigError, match="No such file"):
        source_from_list("absent")


def test_a_list_of_paths_can_come_through_a_pipe(tmp_path, monkeypatch):
    (tmp_path / "a\nb").write_bytes(b"1")
    pretend_stdin(monkeypatch, os.fsencode(tmp_path / "a\nb") + b"\0")
    assert [one.label for one in source_from_list("-")] == ["a\nb"]


# Telling apart


KINDS = {
    # name, head, named directly, met in a folder
    "record": ("x", RECORD, Kind.RECORD, Kind.FILE),
    "wrapper": ("x.txt", b'{"canonical_record": {}}', Kind.RECORD, Kind.FILE),
    "lines": ("x.log", RECORD + b"\n" + RECORD + b"\n", Kind.RECORDS, Kind.FILE),
    "record and a line end": ("x", RECORD + b"\n", Kind.RECORD, Kind.FILE),
    "long lines": (
        "x.json",
        RECORD + b"\n" + RECORD[:-1] + b" " * 70_000,
        Kind.RECORDS,
        Kind.RECORDS,
    ),
    "array": ("x", b"[\n" + RECORD + b"\n]", Kind.RECORD, Kind.FILE),
    "pretty": (
        "x.json",
        json.dumps(json.loads(RECORD), indent=1).encode(),
        Kind.RECORD,
        Kind.RECORD,
    ),
    "other JSON named json": ("x.json", b'{"name": 1}', Kind.RECORD, Kind.RECORD),
    "other JSON": ("x.geojson", b'{"name": 1}', Kind.FILE, Kind.FILE),
    "no JSON named json": ("x.json", b"hello", Kind.RECORD, Kind.RECORD),
    "JSON Lines name": ("x.JSONL", b"hello", Kind.RECORDS, Kind.RECORDS),
    "INI file": ("x.ini", b"[section]\n", Kind.FILE, Kind.FILE),
    "list": ("x", f"# c\n\n{HEX}  a\n".encode(), Kind.LIST, Kind.FILE),
    "list by name": ("SHA256SUMS.txt", b"garbage", Kind.LIST, Kind.LIST),
    "list of one": ("x.iso.sha256", f"{HEX}\n".encode(), Kind.LIST, Kind.LIST),
    "signature of a list": ("SHA256SUMS.gpg", b"\x89", Kind.FILE, Kind.FILE),
    "source code": ("sha256sum.py", b"import hashlib", Kind.FILE, Kind.FILE),
    "md5 list": ("MD5SUMS", b"d41d8cd98f00b204e9800998ecf8427e  a\n", Kind.FILE, Kind.FILE),
    "proof by name": ("x.ots", b"", Kind.OTS, Kind.OTS),
    "zipped lines": ("x.jsonl.gz", gzip.compress(RECORD), Kind.RECORDS, Kind.RECORDS),
    "zipped other": ("x.gz", gzip.compress(RECORD), Kind.FILE, Kind.FILE),
    "empty": ("x", b"", Kind.FILE, Kind.FILE),
    "pipe of JSON": ("-", b'{"name": 1}', Kind.RECORD, None),
    "pipe of zipped JSON": ("-", gzip.compress(b'{"name": 1}\n' * 2), Kind.RECORDS, None),
    "pipe of bytes": ("-", b"\x1f\x8bx", Kind.FILE, None),
}


@pytest.mark.parametrize("case", KINDS)
def test_each_piece_of_input_is_told_by_content_then_name(case):
    name, head, named, met = KINDS[case]
    assert kind_of(name, head, named=True) is named
    if met is not None:
        assert kind_of(name, head, named=False) is met


def test_a_forced_kind_is_not_argued_with(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(RECORD)
    (found,) = source_for(str(path), kind="file")
    assert found.digest == sha256(RECORD)
    assert len(list(source_for(str(path), kind="list"))) == 1
    (tmp_path / "b").write_bytes(gzip.compress(RECORD))
    (found,) = source_for(str(tmp_path / "b"), kind="records")
    assert found.scheme is Scheme.PITH_JSON_V1
    pretend_stdin(monkeypatch, RECORD)
    (found,) = source_for("-", kind="file")
    assert found.digest == sha256(RECORD)


# Streams


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line)), st.booleans())
def test_lines_come_back_without_their_ends_and_long_ones_are_counted(texts, last_end):
    raw = b"\n".join(texts) + (b"\n" if last_end else b"")
    found = list(lines(io.BytesIO(raw), 8))
    expected = raw.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    ends = [*[True] * raw.count(b"\n"), False]
    shown = [
        line.removesuffix(b"\r") if end else line for line, end in zip(expected, ends, strict=False)
    ]
    assert found == [line if len(line) <= 8 else None for line in shown]


class Pipe(io.RawIOBase):
    """Gives a few bytes at a time and cannot seek."""

    def __init__(self, raw: bytes) -> None:
        self._inner = io.BytesIO(raw)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        return self._inner.readinto(memoryview(buffer)[:777])


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 300_000])
def test_looking_at_a_pipe_loses_nothing(size):
    raw = bytes(range(251)) * (size // 251 + 1)
    head, stream = look(io.BufferedReader(Pipe(raw[:size])))
    assert head == raw[: min(size, 65_536)]
    assert stream.read() == raw[:size]
