"""`anchord headers`: documents, exit codes, and files that are refused whole."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support import scripted_peer as scripts
from support.mining import NOW, mine
from support.scripted_peer import ScriptedPeer

from anchord.adapters.headers.chainfile import writing
from anchord.adapters.headers.intake import InputRefusedError, check_headers, import_headers
from anchord.app.cli.headers import command
from anchord.core.chain import ChainState, extend, start
from anchord.core.header import display
from anchord.core.network import REGTEST
from anchord.errors import AnchordError, ConfigError, RefusedError


@cache
def chain() -> tuple[bytes, ChainState]:
    return mine(2500)


@cache
def branch() -> bytes:
    state = extend(start(REGTEST), chain()[0][: 2400 * 80], REGTEST, NOW)
    return chain()[0][: 2400 * 80] + mine(101, after=state, salt=5)[0]


def whole(headers: bytes | None = None) -> bytes:
    return REGTEST.genesis + (chain()[0] if headers is None else headers)


def anchord(*parts: str, config: Path | None = None, stdin: bytes = b"") -> Result:
    name = None if config is None else str(config)
    return CliRunner().invoke(command, [*parts], obj=name, input=stdin, standalone_mode=False)


def document(result: Result) -> dict[str, Any]:
    assert result.exception is None, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "headers.bin"


@pytest.fixture
def where(path: Path) -> list[str]:
    return ["--network", "regtest", "--file", str(path)]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "anchord.toml"
    file.write_text('[headers]\nnetwork = "regtest"\n[headers.file]\npeers = ["127.0.0.1:1"]\n')
    return file


def test_check_needs_no_configuration(path: Path) -> None:
    path.write_bytes(whole())
    result = anchord("check", str(path), "--network", "regtest", "--json")
    found = document(result)
    assert found.pop("took_s") >= 0
    assert found == {
        "ok": True,
        "file": str(path),
        "network": "regtest",
        "headers": 2501,
        "height": 2500,
        "hash": display(chain()[1].hash),
        "time": found["time"],
        "work": f"{chain()[1].work:064x}",
    }
    assert "2501 headers checked in" in result.stderr


@pytest.mark.parametrize(
    ("at", "offset"), [(0, 0), (80 + 4, 80), (1000 * 80 + 5, 1000 * 80), (2500 * 80 + 4, 2500 * 80)]
)
def test_check_names_the_offset_of_the_first_bad_header(path: Path, at: int, offset: int) -> None:
    raw = bytearray(whole())
    raw[at] ^= 0x80
    path.write_bytes(raw)
    result = anchord("check", str(path), "--network", "regtest", "--json")
    found = document(result)
    assert result.return_value == 1
    assert (found["ok"], found["offset"]) == (False, offset)
    assert f"at byte {offset}" in result.stderr


def test_check_refuses_a_torn_end(path: Path) -> None:
    path.write_bytes(whole() + b"torn")
    found = document(anchord("check", str(path), "--network", "regtest", "--json"))
    assert found["offset"] == 2501 * 80
    assert "4 bytes at the end" in found["reason"]


def test_check_believes_no_memo(where: list[str], path: Path) -> None:
    assert anchord("import", "-", *where, stdin=whole()).exception is None
    raw = bytearray(path.read_bytes())
    raw[700 * 80 + 10] ^= 1
    path.write_bytes(raw)
    assert anchord("check", str(path), "--network", "regtest").return_value == 1


def test_check_without_a_file_checks_the_configured_one(config: Path, path: Path) -> None:
    path.write_bytes(whole())
    found = document(anchord("check", "--json", config=config))
    assert (found["file"], found["height"]) == (str(path), 2500)
    assert "regtest 2500" in anchord("check", config=config).stdout


def test_import_from_genesis_and_from_where_ours_end(
    where: list[str], path: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(whole()[: 1000 * 80])
    second.write_bytes(whole()[1000 * 80 :])
    one = document(anchord("import", str(first), *where, "--json"))
    assert (one["added"], one["reorged"], one["height"]) == (999, 0, 999)
    two = document(anchord("import", str(second), *where, "--json"))
    assert (two["added"], two["height"]) == (1501, 2500)
    assert path.read_bytes() == whole()
    three = document(anchord("import", str(first), *where, "--json"))
    assert (three["added"], three["height"]) == (0, 2500)
    four = anchord("import", "-", *where, stdin=whole())
    assert "0 headers taken in" in four.stdout


def test_import_takes_the_branch_with_more_work(where: list[str], path: Path) -> None:
    anchord("import", "-", *where, stdin=whole())
    found = document(anchord("import", "-", *where, "--json", stdin=whole(branch())))
    assert (found["added"], found["reorged"], found["height"]) == (101, 100, 2501)
    assert path.read_bytes() == whole(branch())
    back = anchord("import", "-", *where, stdin=whole())
    assert isinstance(back.exception, RefusedError)
    assert "most work is kept" in str(back.exception)
    assert path.read_bytes() == whole(branch())


@pytest.mark.parametrize(
    ("damage", "offset"),
    [
        (whole()[:80] + b"\0" * 80, 80),
        (whole()[: 2000 * 80 + 40], 2000 * 80),
        (b"short", 0),
        (b"", 0),
        (b"no headers at all " * 20, 0),
        (whole()[80 * 5 : 80 * 9], 0),
        (whole()[: 2400 * 80] + b"\1" + whole()[2400 * 80 + 1 :], 2400 * 80),
    ],
)
def test_import_refuses_the_whole_file_with_the_offset(
    where: list[str], path: Path, damage: bytes, offset: int
) -> None:
    anchord("import", "-", *where, stdin=whole()[: 100 * 80])
    result = anchord("import", "-", *where, stdin=damage)
    assert isinstance(result.exception, RefusedError)
    assert f"at byte {offset}: " in str(result.exception)
    assert "nothing was taken in" in str(result.exception)
    assert path.read_bytes() == whole()[: 100 * 80]


def test_an_import_whose_file_changes_while_it_is_read_is_refused(path: Path) -> None:
    class Changing(io.BytesIO):
        """Turns bad once it was read to its end."""

        def read(self, size: int | None = -1, /) -> bytes:
            chunk = super().read(size)
            if not chunk:
                self.getbuffer()[100 * 80] ^= 1
            return chunk

    with writing(path, REGTEST) as file:
        with pytest.raises(AnchordError):
            import_headers(Changing(whole()), file, NOW, lambda _: None)
        assert file.tip.height == 0


def test_files_that_cannot_be_read_ask_for_a_person(where: list[str], tmp_path: Path) -> None:
    for parts in (["import", str(tmp_path / "none"), *where], ["check", *where[:2], "none"]):
        result = anchord(*parts)
        assert isinstance(result.exception, ConfigError)
        assert "cannot be read" in str(result.exception)


def test_sync_says_how_each_peer_did(where: list[str]) -> None:
    with ScriptedPeer(b"", scripts.hang_up) as bad, ScriptedPeer(chain()[0]) as good:
        peers = ["--peer", bad.address, "--peer", good.address]
        result = anchord("sync", *where, *peers, "--json", "--deadline", "20")
        found = document(result)
        assert result.return_value == 3
        assert (found["added"], found["height"], found["enough_peers"]) == (2500, 2500, False)
        assert [(peer["address"], peer["ok"]) for peer in found["peers"]] == [
            (bad.address, False),
            (good.address, True),
        ]
        result = anchord("sync", *where, "--peer", good.address)
        assert result.return_value == 0
        assert f"ok      {good.address} at 2500" in result.stdout


def test_sync_takes_its_peers_from_the_configuration(config: Path, path: Path) -> None:
    with ScriptedPeer(chain()[0]) as peer:
        config.write_text(config.read_text().replace("127.0.0.1:1", peer.address))
        assert document(anchord("sync", "--json", config=config))["height"] == 2500
    assert path.read_bytes() == whole()


def test_what_headers_cannot_tell_about_signet_is_said(tmp_path: Path) -> None:
    for name, said in (("signet", True), ("testnet4", False)):
        result = anchord("status", "--network", name, "--file", str(tmp_path / "none.bin"))
        assert ("signatures are not in headers and are not checked" in result.stderr) is said


def test_status_before_and_after(where: list[str], path: Path, config: Path) -> None:
    found = document(anchord("status", *where, "--json"))
    assert (found["height"], found["size"], found["has_minimum_work"]) == (None, 0, False)
    assert not path.exists()
    path.write_bytes(whole() + b"x")
    result = anchord("status", "--json", config=config)
    found = document(result)
    assert (found["height"], found["hash"]) == (2500, display(chain()[1].hash))
    assert (found["size"], found["peers"]) == (2501 * 80 + 1, ["127.0.0.1:1"])
    assert found["has_minimum_work"]
    assert "1 bytes after header 2500" in result.stderr
    assert display(chain()[1].hash) in anchord("status", config=config).stdout


def test_the_program_exits_as_promised(path: Path) -> None:
    path.write_bytes(whole()[:-1])
    base = [sys.executable, "-m", "anchord", "headers"]

    def code(*parts: str) -> int:
        return subprocess.run([*base, *parts], capture_output=True, check=False).returncode

    assert code("check", str(path), "--network", "regtest") == 1
    assert code("check", str(path), "--network", "mainnet") == 1
    assert code("status", "--file", str(path), "--network", "mainnet") == 2
    assert code("sync", "--file", str(path), "--network", "regtest", "--peer", "127.0.0.1:1") == 3
    assert code("sync", "--network", "moon") == 2


def test_checking_streams_whatever_the_chunks(path: Path) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 777) if (size or 0) > 80 else size)

    assert check_headers(Slow(whole()), REGTEST, NOW, lambda _: None) == chain()[1]
    with pytest.raises(InputRefusedError):
        check_headers(Slow(whole() + b"1"), REGTEST, NOW, lambda _: None)
