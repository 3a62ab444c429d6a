"""A calendar's stamper: pending commitments go into a transaction, and come out as paths.

After otsserver/stamper.py: every commitment is hashed, a Merkle tree gives the tip, the tip
goes into an OP_RETURN; a path is served once the block has enough confirmations; a reorg
brings the commitments back to pending, but only while their path was not served yet.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
from opentimestamps.core.op import OpPrepend, OpSHA256
from opentimestamps.core.serialize import BytesSerializationContext
from opentimestamps.core.timestamp import Timestamp, cat_sha256d, make_merkle_tree

from anchord.sandbox.block import Block, Coin, Transaction, commitment_transaction
from anchord.sandbox.chain import Chain

FEE = 1000
"""Satoshi a transaction pays; nothing else competes for the blocks."""


class Stamped:
    """A transaction in a block, and the commitments behind it."""

    def __init__(self, tx: Transaction, commitments: list[bytes], coin: Coin, block: Block) -> None:
        self.tx = tx
        self.commitments = commitments
        self.members = frozenset(commitments)
        self.coin = coin
        self.block = block
        self.served = False

    @property
    def change(self) -> Coin:
        """The coin the next transaction spends."""
        return Coin(self.tx.txid, 0, max(0, self.coin.value - FEE))


class Stamper:
    """The stamper of one calendar; a participant of the chain.

    Every method runs under the chain's lock.

    Args:
        chain: where transactions go.
        number: which coinbase pays, from 1; every stamper has its own.
        confirmations: blocks, the one with the transaction included, before a path is served.
        folder: where paths and transactions are kept; None: only in memory.
        repair: also stamp again what a reorg deeper than `confirmations` made void.
            The real server never does.
    """

    def __init__(
        self,
        chain: Chain,
        number: int,
        *,
        confirmations: int,
        folder: Path | None = None,
        repair: bool = False,
    ) -> None:
        self._chain = chain
        self._confirmations = confirmations
        self._repair = repair
        self._first_coin = chain.coin(number)
        self._paths_file = folder / "paths.jsonl" if folder else None
        self._sent_file = folder / "transactions.jsonl" if folder else None
        self._pending: dict[bytes, None] = {}
        self._stack: list[Stamped] = []
        self._revived: list[Transaction] = []
        self._sent: dict[bytes, tuple[Transaction, list[bytes], Coin]] = {}
        self._paths: dict[bytes, bytes] = {}
        self._load()
        chain.attach(self)

    def add(self, commitment: bytes) -> None:
        """Take a commitment from the journal, unless it is stamped already."""
        with self._chain.lock:
            mined = any(commitment in s.members for s in self._stack if not s.served)
            if not mined and commitment not in self._paths:
                self._pending[commitment] = None

    def path(self, commitment: bytes) -> bytes | None:
        """Return the serialised timestamp from a commitment to its block, once it is served."""
        with self._chain.lock:
            return self._paths.get(commitment)

    def reason(self, commitment: bytes) -> str | None:
        """Return why there is no path yet; None when the commitment is unknown."""
        with self._chain.lock:
            if commitment in self._pending:
                return "Pending confirmation in Bitcoin blockchain"
            for stamped in self._stack:
                if not stamped.served and commitment in stamped.members:
                    return (
                        f"Timestamped by transaction {stamped.tx.display_txid}; "
                        f"waiting for {self._confirmations - 1} confirmations"
                    )
        return None

    def tip(self) -> bytes | None:
        """Return the root of the transaction that waits to be mined."""
        with self._chain.lock:
            return _tree(list(self._pending))[0].msg if self._pending else None

    def counts(self) -> tuple[int, int]:
        """Return how many commitments are pending, and how many transactions are unconfirmed."""
        with self._chain.lock:
            waiting = sum(not stamped.served for stamped in self._stack)
            return len(self._pending), waiting

    def latest(self) -> Transaction | None:
        """Return the newest mined transaction whose paths are not served yet."""
        with self._chain.lock:
            waiting = [stamped.tx for stamped in self._stack if not stamped.served]
            return waiting[-1] if waiting else None

    def propose(self, tip_height: int) -> list[Transaction]:
        """Return what a reorg threw out, and a transaction for all that is pending."""
        # A lower block may be too early for an old transaction's lock time, and what follows
        # it spends its change: both wait for a later block.
        ready = [tx.lock_time <= tip_height for tx in self._revived]
        proposed = self._revived[: ready.index(False) if False in ready else None]
        if self._pending and all(ready):
            commitments = list(self._pending)
            root, _ = _tree(commitments)
            coin = self._coin()
            tx = commitment_transaction(coin, root.msg, fee=FEE, tip_height=tip_height)
            self._remember(tx, commitments, coin)
            proposed.append(tx)
        return proposed

    def connected(self, block: Block) -> None:
        """Find own transactions in a block, and serve what has enough confirmations now."""
        for tx in block.transactions:
            if tx.txid in self._sent:
                self._mined(tx, block)
        for stamped in self._stack:
            if (
                not stamped.served
                and block.height >= stamped.block.height + self._confirmations - 1
            ):
                self._serve(stamped)

    def disconnected(self, block: Block, *, drop: bool) -> None:
        """Take back what was stamped in a block that is no longer on the best chain."""
        if drop:
            self._revived.clear()
        while self._stack and self._stack[-1].block is block:
            stamped = self._stack.pop()
            if stamped.served and not self._repair:
                if not drop:
                    self._revived.insert(0, stamped.tx)
                continue
            self._withdraw(stamped)
            self._pending = dict.fromkeys([*stamped.commitments, *self._pending])

    def _coin(self) -> Coin:
        """Return the end of the own chain of change."""
        if self._revived:
            tx, _, coin = self._sent[self._revived[-1].txid]
            return Coin(tx.txid, 0, max(0, coin.value - FEE))
        return self._stack[-1].change if self._stack else self._first_coin

    def _mined(self, tx: Transaction, block: Block) -> None:
        _, commitments, coin = self._sent[tx.txid]
        stamped = Stamped(tx, commitments, coin, block)
        # A path that was served before a deep reorg stays as it was: void, like the server's.
        stamped.served = all(commitment in self._paths for commitment in commitments)
        self._stack.append(stamped)
        self._revived = [other for other in self._revived if other.txid != tx.txid]
        for commitment in commitments:
            self._pending.pop(commitment, None)

    def _serve(self, stamped: Stamped) -> None:
        tip, stamps = _tree(stamped.commitments)
        _extend_to_block(tip, stamped.tx, stamped.block)
        new = {stamp.msg: _serialised(stamp) for stamp in stamps}
        self._paths.update(new)
        stamped.served = True
        _append_lines(self._paths_file, [[key.hex(), path.hex()] for key, path in new.items()])

    def _withdraw(self, stamped: Stamped) -> None:
        """Forget paths that a reorg made void; an empty path in the file says so."""
        gone = [c for c in stamped.commitments if self._paths.pop(c, None) is not None]
        _append_lines(self._paths_file, [[commitment.hex(), ""] for commitment in gone])

    def _remember(self, tx: Transaction, commitments: list[bytes], coin: Coin) -> None:
        # Written before the block: after a crash in between, the commitments are simply pending.
        self._sent[tx.txid] = (tx, commitments, coin)
        line = [
            tx.raw.hex(),
            [c.hex() for c in commitments],
            [coin.txid.hex(), coin.index, coin.value],
        ]
        _append_lines(self._sent_file, [line])

    def _load(self) -> None:
        for key, path in _lines(self._paths_file):
            self._paths[bytes.fromhex(key)] = bytes.fromhex(path)
        self._paths = {key: path for key, path in self._paths.items() if path}
        for raw, commitments, (txid, index, value) in _lines(self._sent_file):
            tx = Transaction(bytes.fromhex(raw))
            coin = Coin(bytes.fromhex(txid), index, value)
            self._sent[tx.txid] = (tx, [bytes.fromhex(c) for c in commitments], coin)


def _tree(commitments: list[bytes]) -> tuple[Timestamp, list[Timestamp]]:
    """Return the tip over all commitments, and their timestamps, which lead there."""
    stamps = [Timestamp(commitment) for commitment in commitments]
    return make_merkle_tree([stamp.ops.add(OpSHA256()) for stamp in stamps]), stamps


def _extend_to_block(tip: Timestamp, tx: Transaction, block: Block) -> None:
    """Lead a tip through its transaction and the block's tree to the attestation."""
    before, _, after = tx.raw.partition(tip.msg)
    level = [
        cat_sha256d(tip.ops.add(OpPrepend(before)), after)
        if other.raw == tx.raw
        else Timestamp(other.txid)
        for other in block.transactions
    ]
    while len(level) > 1:
        if len(level) % 2:
            level.append(Timestamp(level[-1].msg))
        level = [cat_sha256d(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    level[0].attestations.add(BitcoinBlockHeaderAttestation(block.height))


def _serialised(stamp: Timestamp) -> bytes:
    context = BytesSerializationContext()
    stamp.serialize(context)
    return bytes(context.getbytes())


def _append_lines(file: Path | None, lines: list[list[Any]]) -> None:
    if file is not None:
        with file.open("a", encoding="ascii") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)


def _lines(file: Path | None) -> list[list[Any]]:
    """Read whole lines; one that a crash cut short is not there."""
    if file is None or not file.exists():
        return []
    text = file.read_text("ascii")
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
