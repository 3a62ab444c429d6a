"""The header file: what survives a crash, what is believed at opening, and what is cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.headerfiles import branch, chain, fill, opened
from support.mining import NOW, mine

from anchord.adapters.headers import chainmemo
from anchord.adapters.headers.chainfile import ChainFile, writing
from anchord.core.chain import HeaderError, extend, start
from anchord.core.network import MAINNET, REGTEST
from anchord.errors import ConfigError, ProtocolError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "headers.bin"


@pytest.fixture
def filled(path: Path) -> Path:
    return fill(path)


def test_the_file_is_headers_back_to_back_from_genesis(filled: Path) -> None:
    assert filled.read_bytes() == REGTEST.genesis + chain()[0]
    state, notes = opened(filled)
    assert state == chain()[1]
    assert notes == []


def test_a_file_of_another_program_needs_no_memo(path: Path) -> None:
    path.write_bytes(REGTEST.genesis + chain()[0])
    assert opened(path) == (chain()[1], [])
    assert not chainmemo.memo_path(path).exists()


@pytest.mark.parametrize("extra", [b"\0", b"\xff" * 79, b"\0" * 80, b"garbage" * 100])
def test_a_torn_or_garbage_tail_is_noted_and_cut_by_the_next_writer(
    filled: Path, extra: bytes
) -> None:
    with filled.open("ab") as file:
        file.write(extra)
    state, notes = opened(filled)
    assert state == chain()[1]
    assert f"{len(extra)} bytes after header 3000" in notes[-1]
    assert filled.stat().st_size == 3001 * 80 + len(extra)
    with writing(filled, REGTEST) as writer:
        assert writer.tip == chain()[1]
        assert writer.notes
    assert filled.read_bytes() == REGTEST.genesis + chain()[0]
    assert opened(filled) == (chain()[1], [])


@settings(max_examples=25, deadline=None)
@given(cut=st.integers(80, 3001 * 80))
def test_a_file_cut_anywhere_is_the_chain_up_to_there(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "headers.bin"
    path.write_bytes((REGTEST.genesis + chain()[0])[:cut])
    state, _ = opened(path)
    assert state is not None
    assert state.height == cut // 80 - 1
    with writing(path, REGTEST) as writer:
        writer.append(chain()[0][(writer.tip.height) * 80 :], NOW)
    assert opened(path) == (chain()[1], [])


@pytest.mark.parametrize("at", [80, 81, 1000 * 80 + 5, 3000 * 80 + 79])
def test_a_changed_byte_is_found_whatever_the_memo_says(filled: Path, at: int) -> None:
    stat = filled.stat()
    raw = bytearray(filled.read_bytes())
    raw[at] ^= 1
    filled.write_bytes(raw)
    os.utime(filled, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    state, notes = opened(filled)
    assert state is not None
    assert state.height <= at // 80
    assert state != chain()[1]
    assert "not what was checked before" in notes[0]


def test_a_memo_of_a_longer_file_is_not_believed(filled: Path) -> None:
    os.truncate(filled, 100 * 80)
    state, _ = opened(filled)
    assert state == extend(start(REGTEST), chain()[0][: 99 * 80], REGTEST, NOW)


@pytest.mark.parametrize("memo", [b"", b"{}", b"\xff\xfe", b"[1]", b'{"format":1}'])
def test_a_broken_memo_costs_a_check_and_nothing_else(filled: Path, memo: bytes) -> None:
    chainmemo.memo_path(filled).write_bytes(memo)
    assert opened(filled) == (chain()[1], [])


def test_a_memo_of_another_network_is_not_believed(filled: Path) -> None:
    assert chainmemo.load_memo(filled, "regtest") is not None
    assert chainmemo.load_memo(filled, "signet") is None


def test_another_networks_file_is_refused_and_left_alone(filled: Path) -> None:
    before = filled.read_bytes()
    with pytest.raises(ConfigError, match="genesis header of mainnet"):
        ChainFile(filled, MAINNET)
    with pytest.raises(ConfigError, match="genesis"), writing(filled, MAINNET):
        pass
    assert filled.read_bytes() == before


def test_a_header_file_says_what_network_it_is_of(filled: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="but of regtest: say --network regtest"):
        ChainFile(filled, MAINNET)
    none = tmp_path / "notes.bin"
    none.write_bytes(b"x" * 100)
    with pytest.raises(ConfigError, match="it is no header file"):
        ChainFile(none, MAINNET)


@pytest.mark.parametrize("content", [b"# my notes\n" * 20, b"short", REGTEST.genesis[:79] + b"x"])
def test_a_file_that_is_none_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="genesis"), writing(path, REGTEST):
        pass
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [0, 1, 79])
def test_a_torn_first_header_is_made_whole(path: Path, size: int) -> None:
    path.write_bytes(REGTEST.genesis[:size])
    with writing(path, REGTEST) as file:
        assert file.tip == start(REGTEST)
    assert path.read_bytes() == REGTEST.genesis


def test_opening_for_writing_writes_nothing_when_all_is_in_order(filled: Path) -> None:
    memo = chainmemo.memo_path(filled)
    before = memo.stat().st_ino, filled.stat().st_mtime_ns
    with writing(filled, REGTEST):
        pass
    assert (memo.stat().st_ino, filled.stat().st_mtime_ns) == before


def test_a_file_or_folder_that_cannot_be_used_asks_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be opened"), writing(tmp_path, REGTEST):
        pass
    nowhere = tmp_path / "none" / "headers.bin"
    with pytest.raises(ConfigError, match=r"headers\.file\.path"), writing(nowhere, REGTEST):
        pass


def test_bad_headers_are_not_appended(filled: Path) -> None:
    before = filled.read_bytes()
    with writing(filled, REGTEST) as file:
        with pytest.raises(HeaderError, match="3001"):
            file.append(chain()[0][:80], NOW)
        assert file.tip == chain()[1]
    assert filled.read_bytes() == before


def test_a_branch_replaces_what_is_above_its_fork(filled: Path) -> None:
    with writing(filled, REGTEST) as file:
        file.replace(2990, [branch()[0]], NOW)
        assert file.tip == branch()[1]
        more, end = mine(3, after=branch()[1])
        file.append(more, NOW)
    assert filled.read_bytes() == REGTEST.genesis + chain()[0][: 2990 * 80] + branch()[0] + more
    assert opened(filled) == (end, [])


def test_a_branch_that_breaks_off_changes_nothing(filled: Path) -> None:
    before = filled.read_bytes()

    def broken() -> Iterator[bytes]:
        yield branch()[0][:400]
        raise ProtocolError("gone")

    with writing(filled, REGTEST) as file:
        with pytest.raises(ProtocolError):
            file.replace(2990, broken(), NOW)
        with pytest.raises(HeaderError):
            file.replace(2990, [branch()[0][80:]], NOW)
        assert file.tip == chain()[1]
    assert filled.read_bytes() == before
    names = {each.name for each in filled.parent.iterdir()}
    assert names == {"headers.bin", "headers.bin.checked", "headers.bin.lock"}


def test_any_state_survives_its_memo(path: Path) -> None:
    state = msgspec.structs.replace(chain()[1], work=(1 << 255) + 3)
    chainmemo.save_memo(path, "mainnet", state, bytes(range(32)))
    assert chainmemo.load_memo(path, "mainnet") == (state, bytes(range(32)))
