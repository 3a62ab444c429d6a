"""Catch up with the network: ask several peers, keep the chain with most work."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from anchord.adapters.headers.chainfile import ChainFile, writing
from anchord.adapters.headers.p2p import Address, Peer
from anchord.adapters.headers.peers import candidates
from anchord.adapters.headers.survey import Offer, Progress, batches, survey, why_not
from anchord.core.chain import HeaderError
from anchord.core.network import Network
from anchord.errors import NetworkError, ProtocolError
from anchord.ports import Clock


class PeerReport(msgspec.Struct, frozen=True, kw_only=True):
    """How one peer did."""

    address: str
    ok: bool
    reason: str
    """Why it was dropped; else what it had."""
    height: int
    """The last height seen of its chain, checked; what it claimed when nothing was seen."""


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did."""

    added: int
    """Headers taken in, branches included."""
    reorged: int
    """Headers given up for branches with more work."""
    height: int
    work: int
    peers: tuple[PeerReport, ...]
    needed: int
    """How many peers had to agree on what has most work."""
    notes: tuple[str, ...] = ()
    """What was found wrong with the header file and put right."""

    @property
    def is_enough(self) -> bool:
        """Whether as many peers were compared as were asked for."""
        return sum(peer.ok for peer in self.peers) >= self.needed


class SyncPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask and for how long."""

    peers: Sequence[str] = ()
    """host:port; empty asks the network's DNS seeds."""
    min_peers: int = 2
    timeout_s: float = 20.0
    """How long one answer of a peer may take."""
    deadline_s: float | None = None
    """How long everything may take; what was caught up by then is kept."""


class _Tally:
    """Counts what changed while several peers are followed."""

    def __init__(self) -> None:
        self.added = 0
        self.reorged = 0


def sync(
    path: Path, network: Network, plan: SyncPlan, clock: Clock, progress: Progress
) -> SyncReport:
    """Bring the header file up to the chain with most work that peers show.

    Each message's headers are on the disk before the next is asked for, so whatever ends a
    sync, the next one goes on from there.

    Raises:
        ConfigError: no peers to ask, or the file is not this network's.
        NetworkError: no peer was any good; each is named with the reason.
        StoreBusyError: another process is syncing.
        FatalError: the disk refused.
    """
    until = time.monotonic() + (plan.deadline_s or 86400.0)
    addresses = candidates(plan.peers, network, until)
    with writing(path, network) as chain:
        needed = min(plan.min_peers, len(addresses))
        reports: list[PeerReport] = []
        tally = _Tally()
        for address in addresses:
            if sum(report.ok for report in reports) >= needed:
                break
            ask = _Ask(address, chain, tally, clock, progress)
            reports.append(ask.report(plan.timeout_s, until))
        _refuse_if_all_failed(reports, network)
        return SyncReport(
            added=tally.added,
            reorged=tally.reorged,
            height=chain.tip.height,
            work=chain.tip.work,
            peers=tuple(reports),
            needed=needed,
            notes=tuple(chain.notes),
        )


class _Ask:
    """One peer asked for its chain."""

    def __init__(
        self, address: Address, chain: ChainFile, tally: _Tally, clock: Clock, progress: Progress
    ) -> None:
        self._address = address
        self._chain = chain
        self._tally = tally
        self._clock = clock
        self._progress = progress
        self._height = 0

    def report(self, timeout_s: float, until: float) -> PeerReport:
        """Follow the peer to the end of its chain; whatever it does becomes words."""
        try:
            peer = Peer(self._address, self._chain.network, timeout_s=timeout_s, until=until)
            try:
                self._height = peer.height
                words, ok = self._follow(peer), True
            finally:
                peer.close()
        except (NetworkError, ProtocolError, HeaderError) as error:
            words, ok = str(error), False
        return PeerReport(address=str(self._address), ok=ok, reason=words, height=self._height)

    def _follow(self, peer: Peer) -> str:
        """Take over what the peer has and we lack; return what it had."""
        before = self._tally.added
        while True:
            offer = survey(peer, self._chain, self._clock.now(), self._progress)
            self._height = offer.end.height
            if offer.is_proven:
                self._take(peer, offer)
            elif drop := why_not(offer, self._chain):
                raise ProtocolError(drop)
            if offer.is_all or not offer.is_proven:
                break
        brought = self._tally.added - before
        return f"brought {brought} headers" if brought else "has no more work than we have"

    def _take(self, peer: Peer, offer: Offer) -> None:
        """Put a proven offer on the disk: message by message, or at once when it is a branch."""
        chain, now = self._chain, self._clock.now()
        if offer.fork.height == chain.tip.height:
            for headers in batches(peer, offer):
                chain.append(headers, now)
                self._tally.added += len(headers) // 80
                self._progress("keeping", chain.tip.height, peer.height)
            return
        before = chain.tip.height
        chain.replace(offer.fork.height, batches(peer, offer), now)
        self._tally.reorged += before - offer.fork.height
        self._tally.added += chain.tip.height - offer.fork.height


def _refuse_if_all_failed(reports: list[PeerReport], network: Network) -> None:
    if any(report.ok for report in reports):
        return
    words = "; ".join(f"{report.address} {report.reason}" for report in reports)
    raise NetworkError(
        f"no {network.name} peer gave headers that can be used: {words}. What was caught up is "
        "kept; name other peers in headers.file.peers or with --peer, or try again"
    )
