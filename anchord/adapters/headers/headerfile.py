"""Own headers as a header source: a file of checked headers, caught up from peers.

What it proves: the work of each header and that all follow each other, with more work in total
than any cheap fork can have. It trusts no peer; only that one of those asked is honest about
the newest blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from anchord.adapters.headers.chainfile import ChainFile
from anchord.adapters.headers.sync import SyncPlan, SyncReport, sync
from anchord.core.chain import MAX_FUTURE_S
from anchord.core.header import HEADER_SIZE
from anchord.core.network import network as network_of
from anchord.errors import TransientError
from anchord.ports import Clock, Tip

REFRESH_DEADLINE_S = 3600.0
"""A first sync takes minutes; whatever peers do, a pass is not held up for longer than this."""


class HeaderFileSource:
    """Header source over the header file at `path`. Threads may share it.

    Between two calls of `refresh` all answers come from one and the same chain, whatever other
    processes do to the file.

    Args:
        path: the header file; need not be there yet.
        network: "mainnet", "testnet4", "signet" or "regtest".
        peers: host:port; empty asks the network's DNS seeds.
        min_peers: how many peers' chains are compared, when there are as many.
        timeout_s: how long one answer of a peer may take.
        clock: where the time comes from.
        recall: False for a file of somebody else: what its memo says is not believed.

    Raises:
        ConfigError: the network is not known.
    """

    name = "own headers"

    def __init__(
        self,
        path: Path,
        network: str,
        peers: Sequence[str],
        min_peers: int,
        timeout_s: float,
        clock: Clock,
        *,
        recall: bool = True,
    ) -> None:
        self._path, self._recall = path, recall
        self._network = network_of(network)
        self._plan = SyncPlan(
            peers=tuple(peers),
            min_peers=min_peers,
            timeout_s=timeout_s,
            deadline_s=REFRESH_DEADLINE_S,
        )
        self._clock = clock
        self._lock = threading.RLock()
        self._file: ChainFile | None = None

    def refresh(self) -> None:
        """Catch up with the peers; one question and answer each when there is nothing new.

        Raises:
            ConfigError: no peers, or the file is not this network's.
            TransientError: no peer, or fewer than were to be compared, could be used; or another
                process is syncing. What was caught up is kept.
            FatalError: the disk refused.
        """
        report = self.sync()
        if not report.is_enough:
            words = "; ".join(f"{peer.address} {peer.reason}" for peer in report.peers)
            raise TransientError(
                f"{report.needed} peers' chains were to be compared (headers.file.min_peers), "
                f"fewer could be: {words}. Name more peers, or lower min_peers"
            )

    def sync(self) -> SyncReport:
        """Catch up and say how each peer did.

        Raises:
            AnchordError: as `refresh`, except that fewer peers than wanted are only reported.
        """
        try:
            return sync(self._path, self._network, self._plan, self._clock, _silent)
        finally:
            with self._lock:  # what was caught up is seen by the next question
                if self._file is not None and self._file.is_changed:
                    self.close()

    def tip(self) -> Tip:
        """Return the end of the chain.

        Age alone is no reason to refuse: an old chain only knows fewer confirmations than there
        are. Too little work, or a tip later than our clock allows, is.

        Raises:
            TransientError: no headers yet, not enough work yet, or the clock is wrong.
            ConfigError: the file cannot be read or is not this network's.
        """
        state = self._chain().tip
        if state.work < self._network.min_work:
            raise TransientError(
                f"own headers end at {state.height}, with less work than {self._network.name} has "
                "had for long: let `anchord headers sync` finish"
            )
        if state.time > self._clock.now() + MAX_FUTURE_S:
            raise TransientError(
                f"own headers end at Unix time {state.time}, our clock says "
                f"{self._clock.now()}: set the clock"
            )
        return Tip(state.height, state.hash[::-1], state.time)

    def header(self, height: int) -> bytes | None:
        """Return the header at `height`; None when the chain is shorter.

        Raises:
            TransientError: no headers yet.
            ConfigError: the file cannot be read or is not this network's.
            ProtocolError: another program shortened the file.
        """
        if height < 0:
            return None
        with self._lock:
            raw = self._chain().read(height, 1)
        return raw if len(raw) == HEADER_SIZE else None

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _chain(self) -> ChainFile:
        with self._lock:
            if self._file is None:
                file = ChainFile(self._path, self._network, recall=self._recall)
                if file.state is None:
                    file.close()
                    raise TransientError(
                        f"there are no headers in {self._path} yet: run `anchord headers sync`"
                    )
                self._file = file
            return self._file


def _silent(phase: str, height: int, goal: int) -> None:
    """Tell nobody about progress."""
