"""The end of a checked chain as it was at an earlier height: where a branch begins."""

from __future__ import annotations

from collections.abc import Callable

from anchord.core.chain import CHECKED_FIELDS, MEDIAN_SPAN, ChainState
from anchord.core.header import HEADER_SIZE, bits_of, block_hash, parse_header, work_of
from anchord.core.network import Network

_PIECE = 2000


def state_before(
    tip: ChainState, height: int, read: Callable[[int, int], bytes], network: Network
) -> ChainState:
    """Return a checked chain's end as it was at an earlier height.

    Args:
        tip: the chain's end now.
        height: at most the tip's.
        read: gives headers of this chain: first height and count, 80 bytes each.
        network: whose rules.
    """
    if height == tip.height:
        return tip
    begin = height - height % network.interval
    period = [parse_header(raw) for raw in _split(read(begin, height - begin + 1))]
    window = read(max(0, height - MEDIAN_SPAN + 1), min(height + 1, MEDIAN_SPAN))
    easiest = bits_of(network.pow_limit)
    real = [each.bits for each in period[1:] if each.bits != easiest]
    return ChainState(
        height=height,
        hash=block_hash(read(height, 1)),
        bits=period[-1].bits,
        work=tip.work - _work_above(tip, height, read),
        times=tuple(parse_header(raw).time for raw in _split(window)),
        period_time=period[0].time,
        period_bits=period[0].bits,
        real_bits=real[-1] if real else period[0].bits,
    )


def _work_above(tip: ChainState, height: int, read: Callable[[int, int], bytes]) -> int:
    """Return the work of the headers above `height`."""
    total, known, work = 0, -1, 0
    for first in range(height + 1, tip.height + 1, _PIECE):
        for _, _, _, bits in CHECKED_FIELDS.iter_unpack(read(first, _PIECE)):
            if bits != known:
                known, work = bits, work_of(bits)
            total += work
    return total


def _split(headers: bytes) -> list[bytes]:
    return [headers[at : at + HEADER_SIZE] for at in range(0, len(headers), HEADER_SIZE)]
