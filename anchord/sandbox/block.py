"""Bitcoin transactions and blocks as bytes, as far as a regtest miner needs them.

Written independently of `anchord.core.header`, so that the two can witness against each
other; libbitcoinkernel judges both in the tests. Layout: the Bitcoin developer reference
("Block Chain"); height in the coinbase: BIP 34.
"""

from __future__ import annotations

import hashlib
import struct
from functools import cached_property

MAGIC = bytes.fromhex("fabfb5da")
"""Start of a regtest message, and of a block in a blk*.dat file (Core: chainparams.cpp)."""
BITS = 0x207FFFFF
"""The regtest difficulty: about every second hash is good."""
TARGET = 0x7FFFFF << (8 * (0x20 - 3))
DIFFICULTY = 4.656542373906925e-10
"""The same as Core states it."""
VERSION = 0x20000000
ANYONE_CAN_SPEND = b"\x51"
"""Script OP_TRUE: the sandbox has no keys."""
GENESIS_HEADER = bytes.fromhex(
    "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b2"
    "7ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4adae5494dffff7f2002000000"
)
GENESIS_COINBASE = bytes.fromhex(
    "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04"
    "ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e2062"
    "72696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a010000"
    "00434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4"
    "f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000"
)


def double_sha256(data: bytes) -> bytes:
    """Return SHA-256 of SHA-256, Bitcoin's hash."""
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def compact_size(number: int) -> bytes:
    """Return Bitcoin's variable-length count."""
    if number < 0xFD:
        return bytes([number])
    if number <= 0xFFFF:
        return b"\xfd" + struct.pack("<H", number)
    return b"\xfe" + struct.pack("<I", number)


def push_height(height: int) -> bytes:
    """Return the script that pushes a block height, minimally (BIP 34)."""
    if height == 0:
        return b"\0"
    if height <= 16:
        return bytes([0x50 + height])
    number = height.to_bytes((height.bit_length() + 8) // 8, "little")
    return bytes([len(number)]) + number


class Coin:
    """An output that anyone can spend."""

    __slots__ = ("index", "txid", "value")

    def __init__(self, txid: bytes, index: int, value: int) -> None:
        self.txid = txid
        self.index = index
        self.value = value


class Transaction:
    """A transaction without witness; its first output is change for whoever made it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @cached_property
    def txid(self) -> bytes:
        """The hash, in the order it has inside blocks."""
        return double_sha256(self.raw)

    @property
    def lock_time(self) -> int:
        """The height that must be past before a block may hold it."""
        return int.from_bytes(self.raw[-4:], "little")

    @property
    def display_txid(self) -> str:
        """The hash as people see it."""
        return self.txid[::-1].hex()


def _output(value: int, script: bytes) -> bytes:
    return struct.pack("<q", value) + compact_size(len(script)) + script


def _transaction(inputs: bytes, outputs: list[bytes], lock_time: int) -> Transaction:
    head = struct.pack("<i", 2) + b"\x01" + inputs + compact_size(len(outputs))
    return Transaction(head + b"".join(outputs) + struct.pack("<I", lock_time))


def coinbase(height: int, value: int, extra: bytes) -> Transaction:
    """Return the transaction that makes a block's new coins; `extra` makes it one of its kind."""
    script = push_height(height) + bytes([len(extra)]) + extra
    prevout = b"\0" * 32 + b"\xff" * 4
    inputs = prevout + compact_size(len(script)) + script + b"\xff" * 4
    return _transaction(inputs, [_output(value, ANYONE_CAN_SPEND)], 0)


def commitment_transaction(coin: Coin, root: bytes, *, fee: int, tip_height: int) -> Transaction:
    """Return what otsd's stamper sends: one input, change, an OP_RETURN of 32 bytes.

    Replaceable (BIP 125) and locked to the height after the tip, as otsserver/stamper.py does.
    """
    inputs = coin.txid + struct.pack("<I", coin.index) + b"\0" + struct.pack("<I", 0xFFFFFFFD)
    change = _output(max(0, coin.value - fee), ANYONE_CAN_SPEND)
    return _transaction(inputs, [change, _output(0, b"\x6a\x20" + root)], tip_height)


def merkle_root(txids: list[bytes]) -> bytes:
    """Return the root of a block's transactions; an odd last one is paired with itself."""
    level = txids
    while len(level) > 1:
        if len(level) % 2:
            level = [*level, level[-1]]
        level = [double_sha256(level[i] + level[i + 1]) for i in range(0, len(level), 2)]
    return level[0]


def mine_header(previous: bytes, root: bytes, time: int) -> bytes:
    """Return an 80-byte header with enough work."""
    head = struct.pack("<i", VERSION) + previous + root + struct.pack("<II", time, BITS)
    for nonce in range(1 << 32):
        header = head + struct.pack("<I", nonce)
        if int.from_bytes(double_sha256(header), "little") <= TARGET:
            return header
    raise AssertionError("2^32 hashes without one below the regtest target")


class Block:
    """A block of the sandbox's chain."""

    def __init__(self, height: int, header: bytes, transactions: list[Transaction]) -> None:
        self.height = height
        self.header = header
        self.transactions = transactions
        self.hash = double_sha256(header)

    @property
    def raw(self) -> bytes:
        """The whole block as it goes over the wire."""
        body = b"".join(tx.raw for tx in self.transactions)
        return self.header + compact_size(len(self.transactions)) + body

    @property
    def previous(self) -> bytes:
        """Hash of the block before."""
        return self.header[4:36]

    @property
    def root(self) -> bytes:
        """Merkle root, in the order it has in the header."""
        return self.header[36:68]

    @property
    def time(self) -> int:
        """Unix seconds the header states."""
        return int.from_bytes(self.header[68:72], "little")

    @property
    def nonce(self) -> int:
        """What was counted up to find the work."""
        return int.from_bytes(self.header[76:80], "little")

    @property
    def display_hash(self) -> str:
        """The hash as people see it."""
        return self.hash[::-1].hex()


def genesis() -> Block:
    """Return the real first block of regtest."""
    return Block(0, GENESIS_HEADER, [Transaction(GENESIS_COINBASE)])
