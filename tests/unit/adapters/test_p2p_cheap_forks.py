"""Chains without work behind them: never kept, whoever sends them is named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support import scripted_peer as scripts
from support.mining import mine
from support.scripted_peer import ScriptedPeer, Talk, split
from support.syncing import branch, chain, content, fill, run, upto

from anchord.adapters.headers import survey as surveys
from anchord.core.header import block_hash
from anchord.core.network import REGTEST, Network
from anchord.errors import NetworkError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "headers.bin"


MIN_WORK = 5000


def strict(**more: object) -> Network:
    return msgspec.structs.replace(REGTEST, **{"min_work": MIN_WORK, **more})


def test_a_cheap_chain_leaves_nothing_on_the_disk(path: Path) -> None:
    cheap = mine(2100, salt=9)[0]
    with ScriptedPeer(cheap, claims=900_000) as peer:
        with pytest.raises(NetworkError) as caught:
            run(path, peer, network=strict())
        assert "cheap fork" in str(caught.value)
        assert peer.address in str(caught.value)
    assert content(path) == b""
    assert not path.with_name("headers.bin.branch").exists()


@pytest.mark.parametrize("kept", [0, 1, 20])
def test_a_chain_is_kept_once_it_has_shown_its_work(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Two hashes a header: the minimum of 5000 is reached in the second message."""
    monkeypatch.setattr(surveys, "KEPT_MESSAGES", kept)
    cheap = mine(2100, salt=9)[0]
    with ScriptedPeer(cheap) as liar, ScriptedPeer(chain()[0]) as good:
        report = run(path, liar, good, network=strict())
        assert [peer.ok for peer in report.peers] == [False, True]
        assert "cheap fork" in report.peers[0].reason
    assert content(path) == chain()[0]


def test_who_tells_another_chain_the_second_time_is_dropped(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown its work once, then a cheap chain: the cheap one is not taken."""
    monkeypatch.setattr(surveys, "KEPT_MESSAGES", 0)
    cheap = [REGTEST.genesis, *split(mine(2100, salt=9)[0])]

    def other(talk: Talk, locator: list[bytes]) -> None:
        talk.peer.chain = cheap
        scripts.honest(talk, locator)

    with (
        ScriptedPeer(chain()[0], scripts.after(2, other)) as peer,
        pytest.raises(NetworkError, match="told another chain"),
    ):
        run(path, peer, network=strict())
    assert content(path) == b""


def test_a_fork_below_a_checkpoint_is_refused_before_it_is_looked_at(path: Path) -> None:
    there = block_hash(upto(1000)[-80:])
    network = msgspec.structs.replace(REGTEST, checkpoints={1000: there})
    fill(path, upto(1500))
    with ScriptedPeer(branch(900, 2000)) as peer:
        with pytest.raises(NetworkError, match="below the checkpoint at 1000"):
            run(path, peer, network=network)
        assert len(peer.locators) == 1
    assert content(path) == upto(1500)


def test_another_chain_at_a_checkpoint_is_refused(path: Path) -> None:
    there = block_hash(upto(1000)[-80:])
    network = msgspec.structs.replace(REGTEST, checkpoints={1000: there})
    with (
        ScriptedPeer(branch(900, 2000)) as peer,
        pytest.raises(NetworkError, match="checkpoint-mismatch"),
    ):
        run(path, peer, network=network)
    assert content(path) == b""


def test_headers_up_to_a_checkpoint_are_kept_before_the_minimum_is_shown(path: Path) -> None:
    """So that a first sync that is interrupted goes on from there."""
    network = strict(min_work=13_000, checkpoints={3000: block_hash(upto(3000)[-80:])})
    with (
        ScriptedPeer(chain()[0], scripts.after(3, scripts.hang_up)) as peer,
        pytest.raises(NetworkError, match="hung up"),
    ):
        run(path, peer, network=network)
    assert content(path) == upto(4000)


def test_a_deep_lighter_fork_is_a_cheap_one_and_a_shallow_one_is_not(path: Path) -> None:
    fill(path, upto(1000))
    with ScriptedPeer(branch(800, 100)) as deep, ScriptedPeer(branch(990, 5)) as shallow:
        report = run(path, deep, shallow)
    assert [peer.ok for peer in report.peers] == [False, True]
    assert "cheap fork: leaves our chain at height 800, 200 below our tip" in report.peers[0].reason
    assert content(path) == upto(1000)


def test_headers_without_end_are_cut_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveys, "_longest", lambda _network, _now: 3000)
    with ScriptedPeer(chain()[0]) as peer, pytest.raises(NetworkError, match="without end"):
        run(path, peer, network=strict(min_work=1 << 40))
    assert content(path) == b""
