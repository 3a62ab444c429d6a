"""A mined chain of 3,000 headers, a branch of it, and header files filled with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from anchord.adapters.headers.chainfile import ChainFile, writing
from anchord.core.chain import ChainState, extend, start
from anchord.core.network import REGTEST
from support.mining import NOW, mine


@cache
def chain() -> tuple[bytes, ChainState]:
    return mine(3000)


@cache
def branch() -> tuple[bytes, ChainState]:
    """Forks at 2990 and is longer by one."""
    state = extend(start(REGTEST), chain()[0][: 2990 * 80], REGTEST, NOW)
    return mine(11, after=state, salt=7)


def fill(path: Path) -> Path:
    """Write the chain, a message's worth at a time."""
    with writing(path, REGTEST) as file:
        for at in range(0, 3000 * 80, 160_000):
            file.append(chain()[0][at : at + 160_000], NOW)
    return path


def opened(path: Path) -> tuple[ChainState | None, list[str]]:
    file = ChainFile(path, REGTEST)
    file.close()
    return file.state, file.notes
