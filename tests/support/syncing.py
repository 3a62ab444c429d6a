"""A regtest chain to sync, and syncs that ask scripted peers for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from anchord.adapters.headers.chainfile import writing
from anchord.adapters.headers.sync import SyncPlan, SyncReport, sync
from anchord.core.chain import ChainState, extend, start
from anchord.core.network import REGTEST, Network
from support.mining import NOW, mine
from support.scripted_peer import ScriptedPeer


@cache
def chain() -> tuple[bytes, ChainState]:
    return mine(6500)


def upto(height: int) -> bytes:
    return chain()[0][: height * 80]


@cache
def branch(fork: int, count: int, salt: int = 1) -> bytes:
    """Return a whole chain that leaves ours at `fork`."""
    state = extend(start(REGTEST), upto(fork), REGTEST, NOW)
    return upto(fork) + mine(count, after=state, salt=salt)[0]


class FixedClock:
    def now(self) -> int:
        return NOW


def run(
    path: Path,
    *peers: ScriptedPeer | str,
    network: Network = REGTEST,
    min_peers: int = 2,
    timeout_s: float = 5.0,
    deadline_s: float | None = None,
) -> SyncReport:
    names = [peer if isinstance(peer, str) else peer.address for peer in peers]
    plan = SyncPlan(peers=names, min_peers=min_peers, timeout_s=timeout_s, deadline_s=deadline_s)
    return sync(path, network, plan, FixedClock(), lambda _phase, _height, _goal: None)


def fill(path: Path, headers: bytes) -> None:
    with writing(path, REGTEST) as file:
        file.append(headers, NOW)


def content(path: Path) -> bytes:
    return path.read_bytes()[80:]
