"""Header files of other programs: checked from their first byte, and taken into ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from anchord.adapters.headers.chainfile import CHUNK, ChainFile
from anchord.core.chain import ChainState, HeaderError, extend, start
from anchord.core.header import HEADER_SIZE, display
from anchord.core.network import Network
from anchord.errors import RefusedError

Progress = Callable[[int], None]
"""Told the height reached."""


class InputRefusedError(RefusedError):
    """Headers that are not a good chain.

    Attributes:
        offset: the byte where the first bad header begins.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"at byte {offset}: {reason}")
        self.offset = offset


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did."""

    added: int
    reorged: int
    height: int


def check_headers(source: BinaryIO, network: Network, now: int, progress: Progress) -> ChainState:
    """Check a whole header file from genesis, believing nothing, and return its end.

    Raises:
        InputRefusedError: the first header that is not good, or a torn end.
    """
    if source.read(HEADER_SIZE) != network.genesis:
        raise InputRefusedError(
            0, f"expected the genesis header of {network.name}: not a header file of this network"
        )
    return _check(source, HEADER_SIZE, start(network), network, now, progress)


def import_headers(source: BinaryIO, chain: ChainFile, now: int, progress: Progress) -> Imported:
    """Take headers into our file: from genesis, or from where ours ends.

    Everything is checked before anything is kept, and once more while it is kept, because
    the source may have changed in between.

    Args:
        source: 80-byte headers back to back; must be seekable.
        chain: our file, opened for writing.
        now: our clock.
        progress: told how far the check is.

    Raises:
        InputRefusedError: the first header that is not good, or a torn end.
        RefusedError: it is a branch with no more work than ours has.
    """
    fork, offset = _where_it_leaves(source, chain)
    base, tip = chain.state_at(fork), chain.tip
    source.seek(offset)
    end = _check(source, offset, base, chain.network, now, progress)
    if fork < tip.height and fork < end.height and end.work <= tip.work:
        raise RefusedError(
            f"the headers leave our chain at height {fork} and end at {end.height} with work "
            f"{end.work:x}, ours has {tip.work:x}: the chain with most work is kept"
        )
    if end.height == fork:
        return Imported(added=0, reorged=0, height=tip.height)
    source.seek(offset)
    if fork == tip.height:
        for chunk in _chunks(source):
            chain.append(chunk, now)
    else:
        chain.replace(fork, _chunks(source), now)
    return Imported(added=end.height - fork, reorged=tip.height - fork, height=end.height)


def _where_it_leaves(source: BinaryIO, chain: ChainFile) -> tuple[int, int]:
    """Return the last height a source shares with our chain, and the offset of what follows."""
    source.seek(0)
    first = source.read(HEADER_SIZE)
    if len(first) < HEADER_SIZE:
        raise InputRefusedError(0, f"{len(first)} bytes are no header")
    if first != chain.network.genesis:
        if first[4:36] != chain.tip.hash:
            raise InputRefusedError(
                0,
                f"expected the genesis header of {chain.network.name} or the header after our tip "
                f"{display(chain.tip.hash)} ({chain.tip.height}); this one follows "
                f"{display(first[4:36])}",
            )
        return chain.tip.height, 0
    height = 1
    for chunk in _chunks(source):
        ours = chain.read(height, len(chunk) // HEADER_SIZE)
        if ours == chunk:
            height += len(chunk) // HEADER_SIZE
            continue
        same = next(
            at
            for at in range(0, len(chunk) + HEADER_SIZE, HEADER_SIZE)
            if chunk[at : at + HEADER_SIZE] != ours[at : at + HEADER_SIZE]
        )
        height += same // HEADER_SIZE
        break
    return height - 1, height * HEADER_SIZE


def _check(
    source: BinaryIO,
    offset: int,
    state: ChainState,
    network: Network,
    now: int,
    progress: Progress,
) -> ChainState:
    """Check what follows `state` from the source's position on."""
    first = state.height + 1
    for chunk in _chunks(source):
        torn = len(chunk) % HEADER_SIZE
        try:
            state = extend(state, chunk[: len(chunk) - torn], network, now)
        except HeaderError as error:
            place = offset + (error.height - first) * HEADER_SIZE
            raise InputRefusedError(place, str(error)) from None
        if torn:
            place = offset + (state.height + 1 - first) * HEADER_SIZE
            raise InputRefusedError(place, f"{torn} bytes at the end are no whole header")
        progress(state.height)
    return state


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is left, in pieces of whole headers; only the last may be torn."""
    while chunk := source.read(CHUNK):
        while len(chunk) % HEADER_SIZE and (more := source.read(CHUNK - len(chunk))):
            chunk += more
        yield chunk
