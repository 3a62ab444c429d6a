"""The header file: 80-byte block headers back to back from the genesis block (height = offset/80).

Any program can read or make such a file; which network it belongs to is seen from its first
header. Only checked headers are appended, each append is on the disk before it counts, and a
reorganisation is a new file that takes the old one's name in one step. So after kill -9 or a
power cut the file is a checked chain followed by at most one torn append, which is cut off.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anchord.adapters.disk import sync_folder
from anchord.adapters.headers.chainmemo import load_memo, save_memo
from anchord.adapters.headers.durable import (
    disk,
    locked,
    read_exactly,
    write_all,
)
from anchord.core.chain import ChainState, HeaderError, extend, start
from anchord.core.header import HEADER_SIZE
from anchord.core.network import NETWORKS, Network
from anchord.core.rewind import state_before
from anchord.errors import ConfigError, FatalError

if TYPE_CHECKING:
    from hashlib import _Hash

CHUNK = 2000 * HEADER_SIZE
"""Bytes read, checked and appended at a time."""
NO_FUTURE_LIMIT = 1 << 32
"""Clock for headers already taken in: a clock that was set back must not cut a good chain."""
LOCK_WAIT_S = 30.0


class ChainFile:
    """A header file as it was when it was opened; what another process appends is not seen.

    Reading is safe from several threads. Writing needs `writing`.

    Attributes:
        state: the end of the checked chain.
        notes: what was wrong with the file, in words; empty when nothing was.

    Args:
        path: the header file.
        network: whose headers it holds.
        recall: whether the memo beside it is our own. A memo that came with somebody else's file
            is as good as his word; without it everything is checked from the genesis block on.

    Raises:
        ConfigError: the file cannot be read, or is not a header file of this network.
    """

    def __init__(self, path: Path, network: Network, *, recall: bool = True) -> None:
        self.path = path
        self.network = network
        self.notes: list[str] = []
        self.state: ChainState | None = None
        self._digest: _Hash = hashlib.sha256()
        self._fd = -1
        self._is_remembered = False
        self._recalls = recall
        self._open(os.O_RDONLY)

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self, first: int, count: int) -> bytes:
        """Return up to `count` headers from height `first` on, back to back."""
        have = 0 if self.state is None else self.state.height + 1
        count = max(0, min(count, have - first))
        return read_exactly(self._fd, first * HEADER_SIZE, count * HEADER_SIZE)

    def state_at(self, height: int) -> ChainState:
        """Return the chain's end as it was when `height` was its last header."""
        return state_before(self.tip, height, self.read, self.network)

    @property
    def tip(self) -> ChainState:
        """The end of the checked chain.

        Raises:
            FatalError: the chain is empty; opening for writing puts the genesis block in.
        """
        if self.state is None:
            raise FatalError(f"{self.path} was used before its first header was written")
        return self.state

    @property
    def is_changed(self) -> bool:
        """Whether the file at `path` is another or a longer one than was opened."""
        try:
            there, here = self.path.stat(), os.fstat(self._fd)
        except OSError:
            return True
        size = 0 if self.state is None else (self.state.height + 1) * HEADER_SIZE
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino) or there.st_size != size

    def append(self, headers: bytes, now: int) -> None:
        """Check headers that follow the tip and put them on the disk.

        Raises:
            HeaderError: they may not stand there; nothing was written.
            FatalError: the disk refused.
        """
        state = extend(self.tip, headers, self.network, now)
        with disk(self.path):
            # A crash from here to the memo: a longer file, or a torn one; the next opening
            # checks what the memo does not cover and cuts the rest.
            write_all(self._fd, headers, (self.tip.height + 1) * HEADER_SIZE)
            os.fsync(self._fd)
            self._digest.update(headers)
            self.state = state
            self._remember()

    def replace(self, fork: int, branch: Iterable[bytes], now: int) -> None:
        """Put a branch in the place of everything above height `fork`.

        The branch is written to a new file first. If `branch` raises, nothing has happened.

        Raises:
            HeaderError: a header of the branch may not stand there; nothing has happened.
            FatalError: the disk refused.
        """
        fresh = self._side_file
        state = self.state_at(fork)
        digest = hashlib.sha256()
        try:
            with disk(fresh), fresh.open("wb") as file:
                for chunk in self._chunks(fork + 1):
                    file.write(chunk)
                    digest.update(chunk)
                for headers in branch:
                    state = extend(state, headers, self.network, now)
                    file.write(headers)
                    digest.update(headers)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        self._take_over(fresh, state, digest)

    def _take_over(self, fresh: Path, state: ChainState, digest: _Hash) -> None:
        """Make the new file the header file.

        Before the rename the old chain is true, after it the new one; a crash before the memo
        costs one check from genesis.
        """
        with disk(self.path):
            fresh.replace(self.path)
            sync_folder(self.path.parent)
            self.close()
            self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            self.state, self._digest = state, digest
            self._remember()

    @property
    def _side_file(self) -> Path:
        return self.path.with_name(self.path.name + ".branch")

    def _chunks(self, count: int) -> Iterator[bytes]:
        """Yield the first `count` headers in pieces."""
        for first in range(0, count, CHUNK // HEADER_SIZE):
            yield self.read(first, min(CHUNK // HEADER_SIZE, count - first))

    def _open(self, flags: int) -> None:
        try:
            self._fd = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConfigError(f"header file {self.path} cannot be opened: {error}") from None
        try:
            self._recall()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise ConfigError(
                    f"header file {self.path} cannot be read: {error.strerror}; "
                    "check headers.file.path"
                ) from None
            raise

    def _not_ours(self, head: bytes) -> str:
        """Say which network a file is of that does not begin as it should."""
        ours = self.network.name
        of = next((one.name for one in NETWORKS.values() if one.genesis.startswith(head)), None)
        if of is None:
            return (
                f"{self.path} does not begin with the genesis header of {ours}, nor of another "
                "network: it is no header file; move it away, or name another"
            )
        return (
            f"{self.path} does not begin with the genesis header of {ours}, but of {of}: say "
            f"--network {of}, or correct headers.network or the file"
        )

    def _recall(self) -> None:
        """Find out how far the file is a good chain: memo first, then check what is beyond it."""
        size = os.fstat(self._fd).st_size
        head = read_exactly(self._fd, 0, min(size, HEADER_SIZE))
        if not self.network.genesis.startswith(head):
            raise ConfigError(self._not_ours(head))
        if size < HEADER_SIZE:
            return
        if not (self._recalls and self._recall_memo(size)):
            self.state = start(self.network)
            self._digest = hashlib.sha256(self.network.genesis)
        self._check_rest(size)

    def _recall_memo(self, size: int) -> bool:
        """Believe the memo if the bytes it speaks of are the bytes that are there."""
        memo = load_memo(self.path, self.network.name)
        if memo is None or (memo[0].height + 1) * HEADER_SIZE > size:
            return False
        digest = hashlib.sha256()
        end = (memo[0].height + 1) * HEADER_SIZE
        for offset in range(0, end, CHUNK):
            digest.update(read_exactly(self._fd, offset, min(CHUNK, end - offset)))
        if digest.digest() != memo[1]:
            self.notes.append("the file is not what was checked before: checked again from genesis")
            return False
        self.state, self._digest = memo[0], digest
        self._is_remembered = end == size
        return True

    def _check_rest(self, size: int) -> None:
        """Check what is beyond the state; stop at the first header that is not good."""
        offset, state = (self.tip.height + 1) * HEADER_SIZE, self.tip
        while offset < size and size - offset >= HEADER_SIZE:
            length = min(CHUNK, (size - offset) // HEADER_SIZE * HEADER_SIZE)
            chunk = read_exactly(self._fd, offset, length)
            try:
                state = extend(state, chunk, self.network, NO_FUTURE_LIMIT)
            except HeaderError as error:
                good = (error.height - state.height - 1) * HEADER_SIZE
                state = extend(state, chunk[:good], self.network, NO_FUTURE_LIMIT)
                self._digest.update(chunk[:good])
                self.notes.append(f"{error}; the file counts up to there")
                break
            self._digest.update(chunk)
            offset += length
        self.state = state
        extra = size - (state.height + 1) * HEADER_SIZE
        if extra:
            self.notes.append(f"{extra} bytes after header {state.height} are not a checked chain")

    def _prepare(self) -> None:
        """Make the file ready for appending: genesis block in, bad tail off, memo written.

        When all is in order, nothing is written.
        """
        self._side_file.unlink(missing_ok=True)
        if self.state is None:
            write_all(self._fd, self.network.genesis, 0)
            self.state = start(self.network)
            self._digest = hashlib.sha256(self.network.genesis)
            sync_folder(self.path.parent)
        size = (self.tip.height + 1) * HEADER_SIZE
        if os.fstat(self._fd).st_size != size:
            os.ftruncate(self._fd, size)
        elif self._is_remembered:
            return
        os.fsync(self._fd)
        self._remember()

    def _remember(self) -> None:
        save_memo(self.path, self.network.name, self.tip, self._digest.digest())


@contextmanager
def writing(path: Path, network: Network, *, wait_s: float = LOCK_WAIT_S) -> Iterator[ChainFile]:
    """Open a header file for writing, alone among all processes; made when it is not there.

    Raises:
        ConfigError: as `ChainFile`, or the folder cannot be written.
        StoreBusyError: another process is writing it.
    """
    with locked(path.with_name(path.name + ".lock"), wait_s):
        file = _Writable(path, network)
        try:
            yield file
        finally:
            file.close()


class _Writable(ChainFile):
    """A header file opened under the lock, with its tail put in order."""

    def _open(self, flags: int) -> None:
        del flags
        super()._open(os.O_RDWR | os.O_CREAT)
        with disk(self.path):
            self._prepare()
