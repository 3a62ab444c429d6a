"""The header file in use: by several processes, on a bad disk, killed, and as a header source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.headerfiles import branch, chain, fill, opened
from support.mining import NOW, mine
from support.syncing import FixedClock

from anchord.adapters.headers import chainmemo
from anchord.adapters.headers.chainfile import ChainFile, writing
from anchord.adapters.headers.headerfile import HeaderFileSource
from anchord.core.network import MAINNET, REGTEST
from anchord.errors import FatalError, ProtocolError, StoreBusyError, TransientError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "headers.bin"


@pytest.fixture
def filled(path: Path) -> Path:
    return fill(path)


def source(path: Path, network: str = "regtest") -> HeaderFileSource:
    return HeaderFileSource(path, network, [], 1, 1.0, FixedClock())


def test_a_file_shortened_under_a_reader_is_said(filled: Path) -> None:
    reader = ChainFile(filled, REGTEST)
    os.truncate(filled, 80)
    with pytest.raises(ProtocolError, match="shortened"):
        reader.read(2000, 1)
    filled.unlink()
    assert reader.is_changed
    reader.close()


def test_a_reader_keeps_its_chain_while_another_is_put_in_place(filled: Path) -> None:
    reader = ChainFile(filled, REGTEST)
    assert not reader.is_changed
    with writing(filled, REGTEST) as file:
        file.replace(2990, [branch()[0]], NOW)
    assert reader.read(2991, 1) == chain()[0][2990 * 80 : 2991 * 80]
    assert reader.is_changed
    reader.close()


def test_two_writers_take_turns(filled: Path) -> None:
    with (
        writing(filled, REGTEST),
        pytest.raises(StoreBusyError, match="another anchord process"),
        writing(filled, REGTEST, wait_s=0.1),
    ):
        pass
    with writing(filled, REGTEST, wait_s=0.1) as file:
        assert file.tip == chain()[1]


def test_a_full_disk_is_said_and_loses_nothing(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more, end = mine(5, after=chain()[1])
    with writing(filled, REGTEST) as file:
        monkeypatch.setattr(os, "pwrite", _no_space)
        with pytest.raises(FatalError, match="No space"):
            file.append(more, NOW)
        monkeypatch.undo()
        file.append(more, NOW)
    assert opened(filled) == (end, [])


def _no_space(*_: object) -> int:
    raise OSError(28, "No space left on device")


KILLED = """
import os, signal, sys
from pathlib import Path
from anchord.adapters.headers import chainfile
from anchord.core.network import REGTEST
step, path, fork = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
data = sys.stdin.buffer.read()
count = 0
def counted(inner):
    def call(*parts, **named):
        global count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(*parts, **named)
    return call
with chainfile.writing(path, REGTEST) as file:
    os.fsync = counted(os.fsync)
    os.pwrite = counted(os.pwrite)
    Path.replace = counted(Path.replace)
    Path.write_bytes = counted(Path.write_bytes)
    if fork == file.tip.height:
        file.append(data, 1_900_000_000)
    else:
        file.replace(fork, [data], 1_900_000_000)
print("done", count)
"""


@pytest.mark.parametrize("fork", [3000, 2990])
def test_kill_between_any_two_effects_leaves_the_old_chain_or_the_new(
    filled: Path, fork: int
) -> None:
    """Each call that touches the disk is the last one once."""
    more, end = mine(5, after=chain()[1]) if fork == 3000 else branch()
    before = filled.read_bytes()
    memo = chainmemo.memo_path(filled).read_bytes()
    seen = set()
    for step in range(1, 12):
        filled.write_bytes(before)
        chainmemo.memo_path(filled).write_bytes(memo)
        run = subprocess.run(
            [sys.executable, "-c", KILLED, str(step), str(filled), str(fork)],
            input=more,
            capture_output=True,
            check=False,
            timeout=60,
        )
        state, _ = opened(filled)
        assert state in (chain()[1], end)
        seen.add(state.height if state else None)
        if run.returncode == 0:
            break
        assert run.returncode == -9
        with writing(filled, REGTEST) as file:
            assert file.tip == state
        assert not list(filled.parent.glob("*.branch"))
    assert run.stdout.startswith(b"done")
    assert seen == {3000, end.height}


def test_a_source_gives_headers_and_its_tip(filled: Path) -> None:
    own = source(filled)
    assert own.name == "own headers"
    tip = own.tip()
    assert (tip.height, tip.hash, tip.time) == (
        3000,
        chain()[1].hash[::-1],
        chain()[1].time,
    )
    assert own.header(0) == REGTEST.genesis
    assert own.header(3000) == chain()[0][-80:]
    assert own.header(3001) is None
    assert own.header(-1) is None
    own.close()
    own.close()
    assert own.header(1) == chain()[0][:80]
    own.close()


def test_a_source_without_headers_says_what_to_do(path: Path) -> None:
    with pytest.raises(TransientError, match="anchord headers sync"):
        source(path).tip()
    assert not path.exists()


def test_a_chain_short_of_work_is_no_answer(path: Path) -> None:
    path.write_bytes(MAINNET.genesis)
    own = source(path, "mainnet")
    with pytest.raises(TransientError, match="less work than mainnet"):
        own.tip()
    own.close()


def test_a_clock_before_the_tip_is_said(filled: Path) -> None:
    class Early:
        def now(self) -> int:
            return chain()[1].time - 7201

    own = HeaderFileSource(filled, "regtest", [], 1, 1.0, Early())
    with pytest.raises(TransientError, match="set the clock"):
        own.tip()
    own.close()
    assert opened(filled) == (chain()[1], [])
