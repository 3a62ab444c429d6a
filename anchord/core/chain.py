"""Header chains: whether headers may follow each other, and the work they add up to.

The rules are those of Bitcoin Core's `CheckBlockHeader`, `ContextualCheckBlockHeader` and
`GetNextWorkRequired` (validation.cpp, pow.cpp): proof of work, difficulty, median time past,
two hours' future limit, BIP 34/65/66 versions, and BIP 94 on testnet4. BIP 325 signatures of
signet are not in headers and not checked.
"""

from __future__ import annotations

import hashlib
import struct
from collections import deque

import msgspec

from anchord.core.header import (
    HEADER_SIZE,
    bits_of,
    block_hash,
    display,
    parse_header,
    target_of,
    work_of,
)
from anchord.core.network import Network
from anchord.errors import VerificationError

MEDIAN_SPAN = 11
"""How many times the median is taken of (`CBlockIndex::nMedianTimeSpan`)."""
MAX_FUTURE_S = 2 * 60 * 60
"""How far ahead of our clock a header may be (`MAX_FUTURE_BLOCK_TIME`)."""
MAX_TIMEWARP_S = 600
"""How far a period's first block may be before the last of the period before (BIP 94)."""

CHECKED_FIELDS = struct.Struct("<i32s32xII4x")
"""version, previous hash, time, bits: what the rules look at besides the hash."""

_LOOSE_VERSION = -(1 << 31)


class HeaderError(VerificationError):
    """A header may not stand where it stands.

    Attributes:
        height: where it would have stood.
        rule: the rule's short name, as Bitcoin Core gives it.
    """

    def __init__(self, height: int, rule: str, message: str) -> None:
        super().__init__(f"header {height} is refused ({rule}): {message}")
        self.height = height
        self.rule = rule


class ChainState(msgspec.Struct, frozen=True):
    """The end of a checked chain: all that is needed to judge the next header."""

    height: int
    hash: bytes
    """Internal order."""
    bits: int
    work: int
    """Of all headers together, genesis included."""
    times: tuple[int, ...]
    """Of the last headers, at most eleven, the newest at the end."""
    period_time: int
    """Time of this difficulty period's first header."""
    period_bits: int
    """Bits of this difficulty period's first header."""
    real_bits: int
    """Bits of the period's last header that did not use the easiest target as an exception."""

    @property
    def time(self) -> int:
        """Time of the last header."""
        return self.times[-1]

    @property
    def median_time(self) -> int:
        """Median of the last times: the next header must be later."""
        return sorted(self.times)[len(self.times) // 2]


def start(network: Network) -> ChainState:
    """Return the chain that is the network's genesis block alone."""
    genesis = parse_header(network.genesis)
    return ChainState(
        height=0,
        hash=block_hash(network.genesis),
        bits=genesis.bits,
        work=work_of(genesis.bits),
        times=(genesis.time,),
        period_time=genesis.time,
        period_bits=genesis.bits,
        real_bits=genesis.bits,
    )


def next_bits(state: ChainState, time: int, network: Network) -> int:
    """Return the bits a header with this time must have after `state` (`GetNextWorkRequired`)."""
    if (state.height + 1) % network.interval == 0:
        return _retarget(state, network)
    if not network.eases:
        return state.bits
    if time > state.time + 2 * network.spacing_s:
        return bits_of(network.pow_limit)
    return state.real_bits


def _retarget(state: ChainState, network: Network) -> int:
    """Return the bits of a new period (`CalculateNextWorkRequired`)."""
    if not network.retargets:
        return state.bits
    span = state.time - state.period_time
    span = max(network.timespan_s // 4, min(span, network.timespan_s * 4))
    base = state.period_bits if network.bip94 else state.bits
    return bits_of(min(network.pow_limit, target_of(base) * span // network.timespan_s))


def version_floor(height: int, network: Network) -> int:
    """Return the lowest version allowed at `height` (BIP 34, 66, 65; versions are signed)."""
    floors = [floor for first, floor in network.version_floors if first <= height]
    return max(floors, default=_LOOSE_VERSION)


def extend(
    state: ChainState, headers: bytes | memoryview, network: Network, now: int
) -> ChainState:
    """Check headers that follow `state`, back to back, and return the longer chain's end.

    Memory does not grow with the length; hand over a few thousand at a time.

    Args:
        state: the chain they follow.
        headers: a multiple of 80 bytes.
        network: whose rules.
        now: our clock, Unix seconds.

    Raises:
        HeaderError: the first header that breaks a rule.
        VerificationError: not a multiple of 80 bytes.
    """
    view = memoryview(headers)
    if len(view) % HEADER_SIZE:
        raise VerificationError(
            f"headers come in multiples of {HEADER_SIZE} bytes, got {len(view)}: the end is torn"
        )
    while view:
        # One run: at most up to the period's end, where everything derived is computed anew.
        length = network.interval - 1 - state.height % network.interval or 1
        run, view = view[: length * HEADER_SIZE], view[length * HEADER_SIZE :]
        state = _extend_run(state, run, network, now)
    return state


def _extend_run(state: ChainState, run: memoryview, network: Network, now: int) -> ChainState:
    """Check headers within one period (or the one that begins a period): the hot loop.

    Everything that changes rarely is computed before the loop; a header is an object nowhere.
    """
    first = state.height + 1
    begins = first % network.interval == 0
    eased = network.eases and not begins
    marks = _marks(first, len(run) // HEADER_SIZE, network)
    expected, easiest = next_bits(state, 0, network), bits_of(network.pow_limit)
    known, target, work = expected, target_of(expected), work_of(expected)
    floor, latest = version_floor(first, network), now + MAX_FUTURE_S
    earliest = state.time - MAX_TIMEWARP_S if begins and network.bip94 else 0
    times, newest = deque(state.times, MEDIAN_SPAN), max(state.times)
    total, last, time, real = state.work, state.hash, state.time, state.real_bits
    sha256, number, gap = hashlib.sha256, int.from_bytes, 2 * network.spacing_s
    height, offset = state.height, 0
    for version, prev, stamp, bits in CHECKED_FIELDS.iter_unpack(run):
        height += 1
        if eased:
            expected = easiest if stamp > time + gap else real
            if expected != known:
                known, target, work = expected, target_of(expected), work_of(expected)
        if height in marks:
            floor = version_floor(height, network)
        block = sha256(sha256(run[offset : offset + 80]).digest()).digest()
        if (
            prev != last
            or bits != expected
            or number(block, "little") > target
            or (stamp <= newest and stamp <= sorted(times)[len(times) // 2])
            or not earliest <= stamp <= latest
            or version < floor
            or (height in marks and marks[height] not in (None, block))
        ):
            before = _State(height - 1, last, expected, sorted(times)[len(times) // 2])
            raise _refusal(before, bytes(run[offset : offset + 80]), network, (earliest, latest))
        if bits != easiest or begins:
            real = bits
        times.append(stamp)
        newest = max(newest, stamp)
        last, time, total, offset = block, stamp, total + work, offset + 80
    return ChainState(
        height=height,
        hash=last,
        bits=bits,
        work=total,
        times=tuple(times),
        period_time=time if begins else state.period_time,
        period_bits=bits if begins else state.period_bits,
        real_bits=real,
    )


class _State(msgspec.Struct, frozen=True):
    """What a refused header was held against."""

    height: int
    hash: bytes
    bits: int
    median: int


def _marks(first: int, count: int, network: Network) -> dict[int, bytes | None]:
    """Return the heights of a run where something besides the header matters."""
    end = first + count
    marks: dict[int, bytes | None] = {
        height: None for height, _ in network.version_floors if first <= height < end
    }
    marks |= {h: block for h, block in network.checkpoints.items() if first <= h < end}
    return marks


def _has_work(block: bytes, bits: int, network: Network) -> bool:
    """Return whether a hash meets the bits stated with it (`CheckProofOfWork`)."""
    try:
        target = target_of(bits)
    except VerificationError:
        return False
    return int.from_bytes(block, "little") <= target <= network.pow_limit


def _refusal(before: _State, raw: bytes, network: Network, window: tuple[int, int]) -> HeaderError:
    """Return the first rule a header breaks, in the words of Bitcoin Core."""
    header, height, block = parse_header(raw), before.height + 1, block_hash(raw)
    earliest, latest = window
    floor = version_floor(height, network)
    cases = [
        (
            not _has_work(block, header.bits, network),
            "high-hash",
            f"hash {display(block)} does not meet bits {header.bits:08x}, or these are too easy",
        ),
        (
            header.prev_hash != before.hash,
            "bad-prevblk",
            f"it follows {display(header.prev_hash)}, expected {display(before.hash)}",
        ),
        (
            header.bits != before.bits,
            "bad-diffbits",
            f"bits {header.bits:08x}, expected {before.bits:08x}",
        ),
        (
            int.from_bytes(block, "little") > target_of(before.bits),
            "high-hash",
            f"hash {display(block)} does not meet bits {before.bits:08x}",
        ),
        (
            header.time <= before.median,
            "time-too-old",
            f"time {header.time}, expected later than {before.median}, the median of eleven",
        ),
        (
            header.time < earliest,
            "time-timewarp-attack",
            f"time {header.time}, a period begins at {earliest} or later",
        ),
        (
            header.time > latest,
            "time-too-new",
            f"time {header.time}, expected at most {latest}, two hours ahead; check the clock",
        ),
        (
            header.version < floor,
            "bad-version",
            f"version {header.version}, expected at least {floor}",
        ),
    ]
    for wrong, rule, message in cases:
        if wrong:
            return HeaderError(height, rule, message)
    shown = display(network.checkpoints.get(height, block))
    return HeaderError(
        height, "checkpoint-mismatch", f"hash {display(block)}, {network.name} has {shown} there"
    )
