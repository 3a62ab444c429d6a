"""What strangers send or lay down costs no more than its size: reads end, messages are short."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import os
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
from support.fuzzing import samples
from support.http_server import ScriptedServer, always
from support.trees import publish_tree
from support.workplace import Workplace, run, sample

import anchord
from anchord.adapters.disk import SMALL, TarHeader, read_small
from anchord.adapters.http import Client
from anchord.adapters.outputs.tree_files import compare
from anchord.adapters.signers.keyring import load_keyring
from anchord.app import audit_targets
from anchord.app.cli.ledger_proof import verify_files
from anchord.app.config import load
from anchord.core import cms, stricttoml, tsa
from anchord.core.bundle import MAX_BUNDLE_BYTES
from anchord.core.bundle_text import follows
from anchord.engine.audit.tree_items import _unlike
from anchord.engine.item_verification import is_day_manifest
from anchord.errors import (
    MAX_MESSAGE,
    AnchordError,
    ConfigError,
    RefusedError,
    TransientError,
    VerificationError,
)

ROOT = Path(anchord.__file__).parent
DEEP = b'{"a":' * 100_000


# ---------------------------------------------------------------------- messages


@pytest.mark.parametrize("kind", [ConfigError, TransientError, RefusedError])
def test_a_message_is_bounded_and_keeps_both_ends(kind: type[AnchordError]) -> None:
    said = str(kind("expected a name, got " + "x" * 10**6 + ": choose another"))
    assert len(said) <= MAX_MESSAGE
    assert said.startswith("expected a name, got x")
    assert said.endswith("x: choose another")


def test_a_short_message_stays_as_it_is() -> None:
    assert str(ConfigError("a" * MAX_MESSAGE)) == "a" * MAX_MESSAGE
    assert str(AnchordError()) == ""


def test_the_http_library_logs_nothing_of_what_a_server_sends(capfd, caplog) -> None:
    """It warns of bad headers by a traceback that quotes them; without a handler, on stderr."""
    bad = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nno colon here \x1b[31m\r\n\r\nok"
    caplog.set_level(logging.WARNING)
    with ScriptedServer(always(bad)) as server, contextlib.suppress(AnchordError):
        Client(2).get(server.url + "/?token=secret")
    assert caplog.records == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "size", [b"-c", b"-1", b"0x1g", b"1_0", b"\xd9\xa1", b"f" * 40, b"", b";x"]
)
def test_a_chunk_of_a_size_that_is_none_is_no_answer(size: bytes) -> None:
    """Python's reader of chunks takes any number that `int` does, negative ones too."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with ScriptedServer(always(head + size + b"\r\nabc\r\n0\r\n\r\n")) as server:
        try:
            answer = Client(2).get(server.url, max_bytes=100)
        except AnchordError:
            return
    assert len(answer.body) <= 100


# ---------------------------------------------------------------------- nesting


def test_json_nested_without_end_is_refused_like_any_other_text(tmp_path: Path) -> None:
    assert not is_day_manifest(DEEP)
    assert not follows(DEEP, DEEP)
    assert not audit_targets._is_json(DEEP)


def test_a_tree_of_files_nested_without_end_is_audited(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    tree = tmp_path / "tree"
    publish_tree(place, tree)
    for name in ("manifest-2024-08-01.json", "bundles-000000001-000000002.manifest.jsonl",
                 "loose.json", "x.bundle.json"):  # fmt: skip
        (tree / name).write_bytes(DEEP)
    result = place.run("audit", str(tree), "--offline")
    assert result.exit_code in (1, 3), result.output
    assert "Traceback" not in result.output


def test_a_key_and_a_file_to_audit_that_are_nested_without_end_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_bytes(DEEP)
    bundle = tmp_path / "x.bundle.json"
    bundle.write_bytes(samples.bundles()[0])
    assert run("verify", str(bundle), "--key", str(file), "--offline").exit_code == 2
    assert run("verify", str(file), "--offline").exit_code in (1, 2)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a" + ".a" * 50_000 + " = 1", "\xff"])
def test_toml_that_costs_more_than_its_size_is_refused(tmp_path: Path, text: str) -> None:
    raw = text.encode("latin-1")
    with pytest.raises(RefusedError, match="cannot be read as TOML"):
        stricttoml.parse(raw)
    (tmp_path / "anchord.toml").write_bytes(raw)
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load(str(tmp_path / "anchord.toml"))
    (tmp_path / "keyring.toml").write_bytes(raw)
    with pytest.raises(ConfigError, match="cannot be read as TOML"):
        load_keyring(tmp_path)


# ---------------------------------------------------------------------- files


def test_a_small_file_is_read_whole_and_a_long_one_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * SMALL)
    assert len(read_small(file)) == SMALL
    with pytest.raises(OSError, match="longer than"):
        read_small(file, SMALL - 1)
    with pytest.raises(OSError, match="longer than"):
        read_small(Path("/dev/zero"))


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("anchord.toml", "keyring.toml"):
        os.mkfifo(tmp_path / name)
    assert read_small(tmp_path / "keyring.toml") == b""
    with pytest.raises(ConfigError):
        load_keyring(tmp_path)
    assert compare(str(tmp_path / "keyring.toml"), b"") == "updated"


def test_a_pipe_somebody_writes_into_is_heard_out(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    threading.Timer(0.1, lambda: (os.write(writer, b"late"), os.close(writer))).start()
    assert read_small(Path(f"/dev/fd/{reader}")) == b"late"
    os.close(reader)


def test_a_list_of_paths_has_an_end() -> None:
    result = run("add", "--from-file", "/dev/zero")
    assert result.exit_code == 2, result.output


WHOLE = {
    "app/config_keys.py": "our own source",
    "app/cli/init.py": "our own template",
    "app/cli/demo_audit.py": "a report that the demo has just written",
    "app/face/assets.py": "files of this package",
    "app/face/latex_package.py": "a file of this package",
    "app/face/schemas.py": "files of this package",
    "app/fleet/schema.py": "migrations of the library",
    "app/tree_pages.py": "our own source",
    "adapters/backups/tarball.py": "a member whose size was looked at",
    "adapters/store/vitals.py": "the kernel's list of locks",
}
"""Files that read something whole without saying how much, and what that is."""


def test_whoever_reads_a_file_says_how_much_at_most() -> None:
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, of = node.func.attr, ast.unparse(node.func.value)
                endless = name in ("read", "readline", "readlines") and not node.args
                ours = of in ("self._login", "index")  # methods of ours that read with a limit
                if name in ("read_bytes", "read_text") or (endless and not ours):
                    found.add(path.relative_to(ROOT).as_posix())
    assert {name for name in found if not name.startswith("sandbox/")} <= set(WHOLE)


def test_many_proofs_against_many_events_are_not_tried_one_by_one(tmp_path: Path) -> None:
    event = json.loads(samples.events()[0])
    events = [
        {**event, "created_at": f"2024-08-01T11:{n // 60:02}:{n % 60:02}Z"} for n in range(200)
    ]
    record = json.loads(samples.bundles()[0])
    (tmp_path / "bundle").write_text(json.dumps({**record, "events": events}))
    (tmp_path / "proofs").write_bytes(samples.log_proof() * 200)
    with pytest.raises(RefusedError, match="one bundle at a time"):
        verify_files(tmp_path / "proofs", tmp_path / "bundle", [samples.VERIFIER])


# ---------------------------------------------------------------------- archives


def _tar(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def test_a_packed_tree_that_would_fill_the_disk_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(audit_targets, "_UNPACKED", 1 << 20)
    members = [(tarfile.TarInfo(f"tree/{n}.json"), bytes(1 << 20)) for n in range(4)]
    path = _tar(tmp_path / "bomb.tar.gz", *members, mode="w:gz")
    with (
        pytest.raises(ConfigError, match="far more than it is"),
        audit_targets.open_tree([str(path)]),
    ):
        pass


def _zipped(size: int, way: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("a.json")
    info.file_size, info.compress_type = size, way
    return info


def test_a_zip_that_unpacks_to_far_more_or_in_another_way_is_none_of_ours() -> None:
    for way in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        assert _unlike([_zipped(20_000, way)], 1, 1_000) is None
    named = [_zipped(MAX_BUNDLE_BYTES, zipfile.ZIP_DEFLATED) for _ in range(40)]
    for number, info in enumerate(named):
        info.filename = f"{number}.json"
    assert "far more" in str(_unlike(named, 40, 1_000))
    assert "deflated" in str(_unlike([_zipped(9, zipfile.ZIP_LZMA)], 1, 1_000))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_before_a_member_are_short(tmp_path: Path, kind: bytes) -> None:
    """The library reads them whole into memory, however long they say that they are."""
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 1 << 40
    path = tmp_path / "x.tar"
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 12))
    with pytest.raises(tarfile.TarError, match="bytes of headers"):
        tarfile.open(path, tarinfo=TarHeader).close()
    with pytest.raises(ConfigError), audit_targets.open_tree([str(path)]):
        pass


def test_long_names_and_pax_headers_of_honest_archives_are_read(tmp_path: Path) -> None:
    name = "tree/" + "n" * 150 + ".json"
    path = _tar(tmp_path / "x.tar", (tarfile.TarInfo(name), b"{}"))
    with audit_targets.open_tree([str(path)]) as tree:
        assert list(tree.walk()) == [name.removeprefix("tree/")]


# ---------------------------------------------------------------------- certificates


def test_what_is_used_of_a_certificate_was_read_when_it_was_loaded() -> None:
    """The library reads names and moments when they are asked for, and fails only then."""
    good = samples.authority().trusted()[0].public_bytes(_der())
    name = good.index(b"anchord sandbox root")
    bad = good[: name + 3] + b"\xff" + good[name + 4 :]
    with pytest.raises(VerificationError, match="cannot be read"):
        cms.load_certificate(bad)
    with pytest.raises(RefusedError):
        tsa.read_certificates(_pem(bad))


def _der():
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.DER


def _pem(der: bytes) -> bytes:
    import base64

    body = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE-----\n" + body + b"-----END CERTIFICATE-----\n"
