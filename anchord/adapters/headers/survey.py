"""Look at a peer's chain before anything of it is kept.

A chain with too little work costs an attacker nothing, so it may cost us nothing either: its
headers are checked and counted, and only one hash per message is remembered. What has proven
its work is then fetched again, and each message must end in the hash that was seen (the same
thought as `HeadersSyncState` in Bitcoin Core's headerssync.h). A short branch is kept at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from anchord.adapters.headers.chainfile import ChainFile
from anchord.adapters.headers.p2p import MAX_HEADERS, Peer
from anchord.core.chain import ChainState, extend
from anchord.core.header import HEADER_SIZE, block_hash, display, parse_header
from anchord.core.network import Network
from anchord.errors import ProtocolError

KEPT_MESSAGES = 20
"""A branch of at most this many messages stays in memory and is not fetched twice."""
NATURAL_FORK = 144
"""A lighter branch this deep happens to honest peers; a deeper one is a cheap fork."""
Progress = Callable[[str, int, int], None]
"""Told what is being done, the height reached, and the height the peer claims."""

_FULL = MAX_HEADERS * HEADER_SIZE


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a peer has beyond our chain."""

    fork: ChainState
    """The last header it shares with us."""
    end: ChainState
    """The end of what was looked at; `fork` when there is nothing beyond it."""
    marks: tuple[tuple[int, bytes], ...]
    """Height and hash at the end of each message."""
    kept: tuple[bytes, ...] | None
    """The messages' headers; None when the branch was too long to keep."""
    is_proven: bool
    """Whether it is worth taking: more work than ours, and no cheap fork."""
    is_all: bool
    """Whether the peer has nothing beyond it."""


def survey(peer: Peer, chain: ChainFile, now: int, progress: Progress) -> Offer:
    """Follow a peer's chain from where it leaves ours until it proves its work or ends.

    Raises:
        NetworkError: the peer is silent, slow or hung up.
        ProtocolError: its headers do not connect, fork below a checkpoint, or never end.
        HeaderError: a header breaks a rule.
    """
    fork, batch, is_all = _where_it_leaves(peer, chain)
    state, limit = fork, _longest(chain.network, now)
    marks: list[tuple[int, bytes]] = []
    kept: list[bytes] = []
    while batch:
        state = extend(state, batch, chain.network, now)
        marks.append((state.height, state.hash))
        kept = [*kept, batch] if len(marks) <= KEPT_MESSAGES else []
        progress("looking at", state.height, peer.height)
        if state.height > limit:
            raise ProtocolError(f"sends headers without end: {limit} are more than time allows")
        if is_all or _is_proven(fork, state, chain):
            break
        batch = peer.headers_after([state.hash])
        is_all = len(batch) < _FULL
    return Offer(
        fork=fork,
        end=state,
        marks=tuple(marks),
        kept=tuple(kept) if len(marks) <= KEPT_MESSAGES else None,
        is_proven=_is_proven(fork, state, chain),
        is_all=is_all,
    )


def batches(peer: Peer, offer: Offer) -> Iterator[bytes]:
    """Yield an offer's headers, fetched again where they were not kept.

    Raises:
        NetworkError: as `survey`.
        ProtocolError: the peer now tells another story.
    """
    if offer.kept is not None:
        yield from offer.kept
        return
    height, last = offer.fork.height, offer.fork.hash
    for mark, block in offer.marks:
        size = (mark - height) * HEADER_SIZE
        batch = peer.headers_after([last])[:size]
        if len(batch) != size or block_hash(batch[-HEADER_SIZE:]) != block:
            raise ProtocolError(
                f"told another chain when asked again: header {mark} was {display(block)}"
            )
        yield batch
        height, last = mark, block


def why_not(offer: Offer, chain: ChainFile) -> str:
    """Return why an unproven offer is a reason to drop the peer; empty when it is none."""
    tip, network = chain.tip, chain.network
    depth = tip.height - offer.fork.height
    is_branch = offer.end.height > offer.fork.height and depth > 0
    if is_branch and offer.end.work <= tip.work and depth > NATURAL_FORK:
        return (
            f"cheap fork: leaves our chain at height {offer.fork.height}, {depth} below our tip, "
            f"and ends with work {offer.end.work:x}, ours is {tip.work:x}"
        )
    if max(offer.end.work, tip.work) < network.min_work:
        return (
            f"cheap fork, or still syncing itself: its chain ends at height {offer.end.height} "
            f"with work {offer.end.work:x}, {network.name} has at least {network.min_work:x}"
        )
    return ""


def _where_it_leaves(peer: Peer, chain: ChainFile) -> tuple[ChainState, bytes, bool]:
    """Return the last header a peer shares with us, what it has next, and whether that is all."""
    known = locator(chain)
    batch = peer.headers_after(list(known))
    while batch:
        fork = known.get(batch[4:36])
        if fork is None:
            raise ProtocolError(
                f"its headers do not connect: they follow {display(batch[4:36])}, "
                "which it was not asked about"
            )
        same = _shared(batch, chain.read(fork + 1, MAX_HEADERS))
        is_all = len(batch) < _FULL
        if same < len(batch) or is_all:
            fork += same // HEADER_SIZE
            _refuse_below_checkpoint(fork, batch[same:], chain)
            return chain.state_at(fork), batch[same:], is_all
        known = {block_hash(batch[-HEADER_SIZE:]): fork + MAX_HEADERS}
        batch = peer.headers_after(list(known))
    return chain.tip, b"", True


def locator(chain: ChainFile) -> dict[bytes, int]:
    """Return hashes of our chain with their heights: the last ten, then in doubling steps."""
    heights, step = [chain.tip.height], 1
    while heights[-1] > 0:
        step = step * 2 if len(heights) >= 10 else 1
        heights.append(max(0, heights[-1] - step))
    return {block_hash(chain.read(height, 1)): height for height in heights}


def _shared(theirs: bytes, ours: bytes) -> int:
    """Return how many bytes, in whole headers, two runs have in common at the beginning."""
    for at in range(0, len(theirs), HEADER_SIZE):
        if theirs[at : at + HEADER_SIZE] != ours[at : at + HEADER_SIZE]:
            return at
    return len(theirs)


def _refuse_below_checkpoint(fork: int, rest: bytes, chain: ChainFile) -> None:
    """Refuse a branch that would undo a checkpoint, before any of it is looked at."""
    passed = [height for height in chain.network.checkpoints if fork < height <= chain.tip.height]
    if rest and passed:
        raise ProtocolError(
            f"cheap fork: leaves our chain at height {fork}, below the checkpoint at {max(passed)}"
        )


def _is_proven(fork: ChainState, end: ChainState, chain: ChainFile) -> bool:
    """Return whether a branch has more work than ours and is no cheap fork of the network."""
    network = chain.network
    meets = any(fork.height < height <= end.height for height in network.checkpoints)
    return end.work > chain.tip.work and (meets or end.work >= network.min_work)


def _longest(network: Network, now: int) -> int:
    """Return more headers than a network can have by now: four times as many as planned."""
    age = max(0, now - parse_header(network.genesis).time)
    return age * 4 // network.spacing_s + 10_000
