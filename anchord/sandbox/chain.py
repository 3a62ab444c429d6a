"""A real regtest chain: blocks with work, mined and reorganised on command.

With a file, the chain goes on after a restart: every block, stale ones too, is appended as
Bitcoin Core's blk*.dat files have it (magic, size, block), and loading replays them.
"""

from __future__ import annotations

import io
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from anchord.errors import ConfigError
from anchord.sandbox.block import (
    MAGIC,
    Block,
    Coin,
    Transaction,
    coinbase,
    genesis,
    merkle_root,
    mine_header,
)

FLOOR = 115
"""Height below which no reorg goes, so that the first coins stay spendable: a coinbase is after
100 blocks (Core: consensus.h COINBASE_MATURITY)."""
START = 130
"""Height a new chain starts with."""
SPACING_S = 600
_SUBSIDY = 50 * 100_000_000
_HALVING = 150
_MEDIAN_SPAN = 11
MAX_BLOCKS = 20_000
"""Most blocks one call mines: more would push times beyond the two hours a node allows."""


class Participant(Protocol):
    """Someone who puts transactions into blocks. Called with the chain's lock held."""

    def propose(self, tip_height: int) -> list[Transaction]:
        """Return the transactions that shall be in the next block."""
        ...

    def connected(self, block: Block) -> None:
        """A block joined the best chain."""
        ...

    def disconnected(self, block: Block, *, drop: bool) -> None:
        """A block left the best chain, newest first; `drop`: its transactions are lost."""
        ...


class Chain:
    """The best chain and the stale blocks beside it. Threads may share it.

    Args:
        file: where blocks are kept; None: only in memory.
        now: the clock blocks are dated by.
    """

    def __init__(self, file: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.lock = threading.RLock()
        self._file = file
        self._now = now
        self._blocks = [genesis()]
        self._by_hash = {self._blocks[0].hash: self._blocks[0]}
        self._participants: list[Participant] = []
        self._watchers: list[Callable[[], None]] = []
        if file is not None and file.exists():
            self._load(file)
        if self.height < START:
            self._found()

    @property
    def height(self) -> int:
        """Height of the tip."""
        return len(self._blocks) - 1

    @property
    def tip(self) -> Block:
        """The newest block."""
        return self._blocks[-1]

    def block(self, height: int) -> Block | None:
        """Return the block at a height of the best chain."""
        with self.lock:
            return self._blocks[height] if 0 <= height < len(self._blocks) else None

    def find(self, block_hash: bytes) -> Block | None:
        """Return a block by its hash (inner order), stale ones included."""
        with self.lock:
            return self._by_hash.get(block_hash)

    def confirmations(self, block: Block) -> int:
        """Return 1 for the tip, and -1 for a stale block, as Bitcoin Core does."""
        with self.lock:
            on_best = self.block(block.height) is block
            return self.height - block.height + 1 if on_best else -1

    def median_time(self, height: int) -> int:
        """Return the median time of the block at `height` and the ten before it."""
        with self.lock:
            span = self._blocks[max(0, height + 1 - _MEDIAN_SPAN) : height + 1]
            return sorted(block.time for block in span)[len(span) // 2]

    def headers(self) -> list[bytes]:
        """Return every header of the best chain, genesis first."""
        with self.lock:
            return [block.header for block in self._blocks]

    def coin(self, number: int) -> Coin:
        """Return the coinbase output of block `number` (from 1), which is mature from the start."""
        made = self._blocks[number].transactions[0]
        return Coin(made.txid, 0, _subsidy(number))

    def attach(self, participant: Participant) -> None:
        """Let someone take part; the blocks so far are shown to it first."""
        with self.lock:
            for block in self._blocks:
                participant.connected(block)
            self._participants.append(participant)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` after the tip has changed; it must not block."""
        self._watchers.append(watcher)

    def mine(self, count: int = 1) -> list[Block]:
        """Mine blocks with whatever the participants propose.

        Raises:
            ConfigError: fewer than one or more than MAX_BLOCKS.
        """
        _check_count(count, MAX_BLOCKS, "blocks to mine")
        mined = [self._mine_one(empty=False) for _ in range(count)]
        self._tell()
        return mined

    def reorg(self, depth: int, *, drop: bool = False) -> list[Block]:
        """Replace the last `depth` blocks by `depth + 1` others.

        Args:
            depth: how many blocks become stale.
            drop: the new blocks are empty and the old transactions are lost.

        Raises:
            ConfigError: the chain is not that long above its floor.
        """
        with self.lock:
            _check_count(depth, self.height - FLOOR, "blocks to replace")
            for _ in range(depth):
                stale = self._blocks.pop()
                for participant in self._participants:
                    participant.disconnected(stale, drop=drop)
            new = [self._mine_one(empty=drop) for _ in range(depth + 1)]
        self._tell()
        return new

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()

    def _mine_one(self, *, empty: bool) -> Block:
        with self.lock:
            proposed: list[Transaction] = []
            for participant in [] if empty else self._participants:
                proposed.extend(participant.propose(self.height))
            return self._append(proposed, max(self.median_time(self.height) + 1, int(self._now())))

    def _append(self, proposed: list[Transaction], moment: int) -> Block:
        height = self.height + 1
        made = coinbase(height, _subsidy(height), os.urandom(8))
        transactions = [made, *proposed]
        root = merkle_root([tx.txid for tx in transactions])
        block = Block(height, mine_header(self.tip.hash, root, moment), transactions)
        # Kept before anyone is told: a participant never knows a block a restart would not.
        self._keep(block)
        self._connect(block)
        return block

    def _connect(self, block: Block) -> None:
        self._blocks.append(block)
        self._by_hash[block.hash] = block
        for participant in self._participants:
            participant.connected(block)

    def _found(self) -> None:
        """Mine the first blocks, dated so that the last of them is one spacing old."""
        start = int(self._now()) - (START - self.height) * SPACING_S
        for number in range(START - self.height):
            self._append([], max(self.median_time(self.height) + 1, start + number * SPACING_S))

    def _keep(self, block: Block) -> None:
        if self._file is None:
            return
        raw = block.raw
        with self._file.open("ab") as file:
            file.write(MAGIC + struct.pack("<I", len(raw)) + raw)

    def _load(self, path: Path) -> None:
        """Replay a file of blocks; the longest branch, first seen, is the best.

        A block cut short by a crash is cut away, so that the next one starts at its place.
        """
        good = 0
        data = path.read_bytes()
        while raw := _framed(data, good):
            self._replay(raw)
            good += 8 + len(raw)
        if good < len(data):
            with path.open("r+b") as file:
                file.truncate(good)

    def _replay(self, raw: bytes) -> None:
        parent = self._by_hash.get(raw[4:36])
        if parent is None:
            raise ConfigError(
                f"{self._file} holds a block whose parent is not in it: remove the folder it is "
                "in, and the sandbox starts anew"
            )
        block = Block(parent.height + 1, raw[:80], _transactions(raw))
        self._by_hash[block.hash] = block
        if block.height <= self.height:
            return
        branch = [block]
        while self._blocks[branch[-1].height - 1].hash != branch[-1].previous:
            branch.append(self._by_hash[branch[-1].previous])
        del self._blocks[branch[-1].height :]
        self._blocks.extend(reversed(branch))


def _framed(data: bytes, start: int) -> bytes | None:
    """Return the whole block that starts at `start`; None at the end or where it is cut."""
    if data[start : start + 4] != MAGIC:
        return None
    size = int.from_bytes(data[start + 4 : start + 8], "little")
    raw = data[start + 8 : start + 8 + size]
    return raw if size and len(raw) == size else None


def _transactions(raw: bytes) -> list[Transaction]:
    """Cut a block's transactions apart, with python-bitcoinlib."""
    from bitcoin.core import CTransaction
    from bitcoin.core.serialize import VarIntSerializer

    stream = io.BytesIO(raw[80:])
    count = VarIntSerializer.stream_deserialize(stream)
    return [Transaction(CTransaction.stream_deserialize(stream).serialize()) for _ in range(count)]


def _subsidy(height: int) -> int:
    return _SUBSIDY >> (height // _HALVING) if height < 64 * _HALVING else 0


def _check_count(count: int, most: int, what: str) -> None:
    if not 1 <= count <= most:
        raise ConfigError(f"{what}: {count} was asked for, possible is 1 to {most}")
