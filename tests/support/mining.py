"""Headers with real proof of work at the easiest difficulty, and headers made wrong on purpose."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from anchord.core.chain import ChainState, extend, next_bits, start
from anchord.core.header import Header, block_hash, target_of
from anchord.core.network import MAINNET, REGTEST, TESTNET4, Network

NOW = 1_900_000_000
"""A clock later than every header made here."""

RETARGETING = msgspec.structs.replace(
    MAINNET,
    name="retargeting",
    genesis=REGTEST.genesis,
    magic=b"test",
    seeds=(),
    pow_limit=REGTEST.pow_limit,
    interval=16,
    timespan_s=16 * 600,
    version_floors=((5, 2), (9, 3), (12, 4)),
    min_work=0,
    checkpoints={},
)
"""Mainnet's rules at regtest's difficulty, in short periods."""

EASING = msgspec.structs.replace(
    RETARGETING,
    name="easing",
    eases=True,
    bip94=True,
    version_floors=TESTNET4.version_floors,
)
"""Testnet4's rules at regtest's difficulty, in short periods."""


def changed(header: Header, **fields: object) -> Header:
    """Return a header with other values in some fields."""
    return msgspec.structs.replace(header, **fields)


def solve(header: Header, bits: int | None = None) -> bytes:
    """Return the header with a nonce that meets `bits` (its own unless told otherwise)."""
    target = target_of(header.bits if bits is None else bits)
    for nonce in range(1 << 22):
        raw = msgspec.structs.replace(header, nonce=nonce).pack()
        if int.from_bytes(block_hash(raw), "little") <= target:
            return raw
    raise AssertionError("no nonce found: the difficulty is not for tests")


def unsolve(header: Header) -> bytes:
    """Return the header with a nonce that does not meet its bits."""
    target = target_of(header.bits)
    for nonce in range(1 << 22):
        raw = msgspec.structs.replace(header, nonce=nonce).pack()
        if int.from_bytes(block_hash(raw), "little") > target:
            return raw
    raise AssertionError("every nonce is good")


def child(state: ChainState, network: Network, *, time: int | None = None, salt: int = 0) -> Header:
    """Return an unsolved header that follows `state` by the rules."""
    moment = state.time + network.spacing_s if time is None else time
    root = salt.to_bytes(32, "big")
    return Header(4, state.hash, root, moment, next_bits(state, moment, network), 0)


def mine(
    count: int,
    network: Network = REGTEST,
    *,
    after: ChainState | None = None,
    salt: int = 0,
    time: Callable[[ChainState], int] | None = None,
) -> tuple[bytes, ChainState]:
    """Return `count` headers after a state (genesis unless told otherwise), and the new end."""
    state = after or start(network)
    parts = []
    for _ in range(count):
        moment = time(state) if time else None
        raw = solve(child(state, network, time=moment, salt=salt))
        state = extend(state, raw, network, NOW)
        parts.append(raw)
    return b"".join(parts), state
