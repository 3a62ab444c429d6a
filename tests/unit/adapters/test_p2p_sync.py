"""Catching up: most work wins, cheap forks cost nothing, whoever lies is named, nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from support import scripted_peer as scripts
from support.mining import NOW, RETARGETING, mine, solve, unsolve
from support.scripted_peer import ScriptedPeer, split
from support.syncing import FixedClock, branch, chain, content, fill, run, upto

from anchord.adapters.headers import survey as surveys
from anchord.adapters.headers.chainfile import ChainFile, writing
from anchord.adapters.headers.headerfile import HeaderFileSource
from anchord.core.chain import extend, start
from anchord.core.header import block_hash, parse_header
from anchord.core.network import REGTEST
from anchord.errors import NetworkError, StoreBusyError, TransientError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "headers.bin"


def test_two_honest_peers_bring_the_whole_chain(path: Path) -> None:
    with ScriptedPeer(chain()[0]) as one, ScriptedPeer(chain()[0]) as two:
        report = run(path, one, two)
        assert (report.added, report.reorged, report.height) == (6500, 0, 6500)
        assert report.work == chain()[1].work
        assert [peer.ok for peer in report.peers] == [True, True]
        assert report.is_enough
        assert content(path) == chain()[0]
        again = run(path, one, two)
        assert (again.added, again.reorged) == (0, 0)
        assert len(one.locators) == 4 + 1
        assert len(two.locators) == 1 + 1


def test_no_more_peers_are_asked_than_are_to_be_compared(path: Path) -> None:
    with ScriptedPeer(upto(10)) as one, ScriptedPeer(upto(10)) as two, ScriptedPeer(b"") as three:
        assert len(run(path, one, two, three).peers) == 2
        assert three.versions == []


def test_the_heavier_chain_wins_in_either_order(tmp_path: Path) -> None:
    light, heavy = upto(110), branch(100, 11)
    for order in ((light, heavy), (heavy, light)):
        path = tmp_path / f"{order[0] == light}.bin"
        with ScriptedPeer(order[0]) as one, ScriptedPeer(order[1]) as two:
            report = run(path, one, two)
        assert content(path) == heavy
        assert report.reorged == (10 if order[0] == light else 0)
        assert [peer.ok for peer in report.peers] == [True, True]
        assert [peer.height for peer in report.peers] == (
            [110, 111] if order[0] == light else [111, 110]
        )


def test_work_decides_and_not_height(path: Path) -> None:
    """The shorter chain has the harder headers: it was mined faster, so it was made harder."""
    fast, fast_end = mine(60, RETARGETING, time=lambda at: at.time + 100)
    slow, slow_end = mine(90, RETARGETING, salt=1)
    assert fast_end.work > slow_end.work
    genesis = RETARGETING.genesis
    with (
        ScriptedPeer(slow, magic=RETARGETING.magic, genesis=genesis) as one,
        ScriptedPeer(fast, magic=RETARGETING.magic, genesis=genesis, claims=3) as two,
    ):
        report = run(path, one, two, network=RETARGETING)
    assert (report.height, report.work) == (60, fast_end.work)
    assert content(path) == fast


@pytest.mark.parametrize("kept", [0, 20])
def test_a_long_branch_is_taken_whether_it_was_kept_or_is_fetched_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(surveys, "KEPT_MESSAGES", kept)
    fill(path, upto(4000))
    heavy = branch(100, 4100)
    with ScriptedPeer(heavy) as peer:
        report = run(path, peer)
        fetched = len(peer.locators)
    assert (report.reorged, report.added, report.height) == (3900, 4100, 4200)
    assert content(path) == heavy
    assert fetched == (3 if kept else 6)


def test_a_peer_behind_us_is_no_liar(path: Path) -> None:
    fill(path, upto(5000))
    for height in (0, 1, 4000, 4995, 5000):
        with ScriptedPeer(upto(height)) as peer:
            report = run(path, peer)
            assert report.peers[0].ok, height
            assert report.added == 0


def flawed(at: int, how: str) -> bytes:
    """Return a chain whose header at height `at` + 1 breaks a rule."""
    state = extend(start(REGTEST), upto(at), REGTEST, NOW)
    header = parse_header(chain()[0][at * 80 : at * 80 + 80])
    made = {
        "high-hash": lambda: unsolve(header),
        "bad-diffbits": lambda: solve(msgspec.structs.replace(header, bits=0x207FFFFE)),
        "time-too-old": lambda: solve(msgspec.structs.replace(header, time=state.median_time)),
        "time-too-new": lambda: solve(msgspec.structs.replace(header, time=NOW + 7201)),
        "bad-version": lambda: solve(msgspec.structs.replace(header, version=1)),
        "bad-prevblk": lambda: solve(msgspec.structs.replace(header, prev_hash=bytes(32))),
    }[how]()
    return upto(at) + made + chain()[0][(at + 1) * 80 :]


@pytest.mark.parametrize(
    "how",
    ["high-hash", "bad-diffbits", "time-too-old", "time-too-new", "bad-version", "bad-prevblk"],
)
def test_a_peer_with_a_bad_header_is_dropped_and_named_and_the_next_one_is_asked(
    path: Path, how: str
) -> None:
    with ScriptedPeer(flawed(4100, how)) as liar, ScriptedPeer(upto(4200)) as good:
        report = run(path, liar, good)
        first, second = report.peers
        assert (first.address, first.ok) == (liar.address, False)
        assert f"header 4101 is refused ({how})" in first.reason
        assert second.ok
        assert good.locators[0][0] == block_hash(upto(4000)[-80:])  # what was good was kept
    assert content(path) == upto(4200)


BAD_SCRIPTS = {
    "silent": (scripts.silent, "no whole answer"),
    "drip": (scripts.drip, "no whole answer"),
    "garbage": (scripts.garbage, "begins with"),
    "hangs up": (scripts.hang_up, "hung up"),
    "hangs up later": (scripts.after(1, scripts.hang_up), "hung up"),
    "stalls later": (scripts.after(1, scripts.silent), "no whole answer"),
    "pings": (scripts.pings_for_ever, "other messages"),
}


@pytest.mark.parametrize("name", BAD_SCRIPTS)
def test_a_peer_that_misbehaves_is_dropped_and_named(path: Path, name: str) -> None:
    script, words = BAD_SCRIPTS[name]
    # Short only where the test is about the time: a busy machine is no bad peer.
    timeout_s = 1.0 if words in ("no whole answer", "other messages") else 10.0
    with ScriptedPeer(upto(2500), script) as bad, ScriptedPeer(upto(2500)) as good:
        report = run(path, bad, good, timeout_s=timeout_s)
        assert [peer.ok for peer in report.peers] == [False, True]
        assert words in report.peers[0].reason
        assert not report.is_enough
    assert content(path) == upto(2500)


def test_headers_that_connect_to_nothing_we_named_are_refused(path: Path) -> None:
    with (
        ScriptedPeer(b"", scripts.says(split(upto(20)[800:]))) as peer,
        pytest.raises(NetworkError, match="do not connect"),
    ):
        run(path, peer)
    assert content(path) == b""


def test_a_peer_that_sends_the_same_headers_for_ever_ends(path: Path) -> None:
    full = split(upto(2000))
    with ScriptedPeer(b"", scripts.says(full)) as peer, pytest.raises(NetworkError) as caught:
        run(path, peer)
    assert "do not connect" in str(caught.value)
    assert content(path) == upto(2000)


def test_the_deadline_ends_a_sync_and_keeps_what_was_caught_up(path: Path) -> None:
    script = scripts.after(2, scripts.silent)
    with (
        ScriptedPeer(chain()[0], script) as peer,
        pytest.raises(NetworkError, match="whole sync ended"),
    ):
        run(path, peer, timeout_s=60, deadline_s=1.0)
    assert content(path) == upto(4000)


def test_all_peers_failing_names_each(path: Path) -> None:
    with ScriptedPeer(b"", scripts.hang_up) as one, ScriptedPeer(b"", scripts.garbage) as two:
        with pytest.raises(NetworkError) as caught:
            run(path, one, two)
        assert f"{one.address} hung up" in str(caught.value)
        assert f"{two.address} message begins" in str(caught.value)


def test_kill_in_the_middle_of_a_sync_and_go_on(path: Path) -> None:
    script = scripts.after(2, scripts.silent)
    with ScriptedPeer(chain()[0], script) as peer:
        command = [
            sys.executable,
            "-m",
            "anchord",
            "headers",
            "sync",
            "--network",
            "regtest",
            "--file",
            str(path),
            "--peer",
            peer.address,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        peer.wait_asked(3)
        with pytest.raises(StoreBusyError), writing(path, REGTEST, wait_s=0):
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    assert content(path) == upto(4000)
    with ScriptedPeer(chain()[0]) as peer:
        command[-1] = peer.address
        done = subprocess.run([*command, "--json"], capture_output=True, check=True)
        assert peer.locators[0][0] == block_hash(upto(4000)[-80:])
    document = json.loads(done.stdout)
    assert (document["added"], document["height"]) == (2500, 6500)
    assert content(path) == chain()[0]


def source(path: Path, *peers: ScriptedPeer, min_peers: int = 2) -> HeaderFileSource:
    names = [peer.address for peer in peers]
    return HeaderFileSource(path, "regtest", names, min_peers, 2.0, FixedClock())


def test_a_source_catches_up_and_sees_reorganisations(path: Path) -> None:
    with ScriptedPeer(upto(50)) as peer:
        own = source(path, peer)
        own.refresh()
        assert own.tip().height == 50
        peer.chain = [REGTEST.genesis, *split(upto(60))]
        own.refresh()
        assert own.header(60) == upto(60)[-80:]
        peer.chain = [REGTEST.genesis, *split(branch(55, 7))]
        own.refresh()
        assert own.tip().height == 62
        assert own.header(56) == branch(55, 7)[55 * 80 : 56 * 80]
        own.refresh()
        assert own.tip().height == 62
        own.close()


def test_a_source_with_fewer_peers_than_wanted_keeps_what_came_and_says_so(path: Path) -> None:
    with ScriptedPeer(upto(50)) as good, ScriptedPeer(b"", scripts.hang_up) as bad:
        own = source(path, good, bad)
        with pytest.raises(TransientError, match="hung up"):
            own.refresh()
        assert own.tip().height == 50
        own.close()
    with ScriptedPeer(upto(60)) as alone:
        own = source(path, alone)
        own.refresh()
        assert own.tip().height == 60
        own.close()


def test_the_locator_names_the_last_ten_and_then_doubles(path: Path) -> None:
    fill(path, upto(3000))
    file = ChainFile(path, REGTEST)
    heights = list(surveys.locator(file).values())
    file.close()
    assert heights[:11] == [*range(3000, 2990, -1), 2989]
    assert heights[-1] == 0
    assert len(heights) < 25
