"""Feeds one parser and judges what it does."""

from __future__ import annotations

import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

import msgspec

from anchord.errors import AnchordError
from support.fuzzing.mutation import Mutator
from support.fuzzing.seen import Seen

CALL_S = 0.25
"""A call may take this long, whatever it is given,"""
BYTE_S = 10e-6
"""and this much for every byte: many times what honest work takes, far from what squares take."""
CALL_BYTES = 24 << 20
BYTES_A_BYTE = 200
"""The same of memory: small Python objects made of text of one or two bytes each."""
_KEPT = 2_000


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A parser and what it is fed with."""

    name: str
    feed: Callable[[bytes], object]
    """Parses, and does with the value what is done with it next; an assertion in it is a law."""
    seeds: Callable[[], Sequence[bytes]]
    """Good inputs, which must be taken without an error where it is `strict`."""
    strays: Callable[[], Sequence[bytes]] = tuple
    """Further inputs to begin with: real ones, and those others found, good or not."""
    strict: bool = True
    words: tuple[bytes, ...] = ()
    """What the format is made of."""
    lawful: tuple[type[Exception], ...] = (AnchordError,)
    """What may be raised."""
    longest: int = 1 << 14
    grows: bool = True
    """Its time and memory are measured on long inputs, too."""


class Fault(Exception):  # noqa: N818 - what is found, not what went wrong here
    """A parser broke the law.

    Args:
        target: its name.
        data: what it was given.
        why: what it did.
    """

    def __init__(self, target: str, data: bytes, why: str) -> None:
        shown = data if len(data) <= 400 else data[:400] + b"..."
        super().__init__(f"{target}: {why}\ngiven {len(data)} bytes: {shown!r}")
        self.target, self.data, self.why = target, data, why


def feed(target: Target, data: bytes) -> None:
    """Give one input.

    Raises:
        Fault: something else than a value or a lawful error came out, or it took too long.
    """
    allowed = CALL_S + BYTE_S * len(data)
    for _ in range(3):  # a machine that is busy with other things may be late once
        began = time.thread_time()
        why = _outcome(target, data)
        took = time.thread_time() - began
        if why is not None:
            raise Fault(target.name, data, why)
        if took <= allowed:
            return
    raise Fault(target.name, data, f"took {took:.2f} s, expected {allowed:.2f} s at most")


def _outcome(target: Target, data: bytes) -> str | None:
    try:
        target.feed(data)
    except target.lawful as error:
        text = str(error)
        if not text or len(text) > 4_000:
            return f"raised an error with a message of {len(text)} characters"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
        return "".join(traceback.format_exception(error, chain=False)[-6:])
    return None


def inputs(target: Target, seed: int | str, seen: Seen | None = None) -> Iterator[bytes]:
    """Yield broken inputs for ever; what reaches new lines is broken further."""
    pool = [*target.seeds(), *target.strays()]
    mutator = Mutator(f"{target.name} {seed}", target.words, target.longest)
    yield from pool
    while True:
        data = mutator.broken(pool)
        yield data
        if seen is not None and seen.is_new() and len(pool) < _KEPT:
            pool.append(data)


def run(target: Target, seed: int | str, seconds: float, most: int | None = None) -> int:
    """Feed a target for a while; return how many inputs it got.

    Raises:
        Fault: it broke the law; the input is made smaller first.
    """
    end, count = time.monotonic() + seconds, 0
    with Seen() as seen:
        for data in inputs(target, seed, seen):
            try:
                feed(target, data)
            except Fault as fault:
                raise smaller(target, fault) from None
            count += 1
            if time.monotonic() >= end or count == most:
                return count
    raise AssertionError  # inputs never end


def smaller(target: Target, fault: Fault) -> Fault:
    """Return the same fault with fewer bytes, as far as a second of cutting gets."""
    end, size = time.monotonic() + 1, len(fault.data) // 2
    kind = _kind(fault.why)
    while size and time.monotonic() < end:
        for start in range(0, len(fault.data), size):
            shorter = fault.data[:start] + fault.data[start + size :]
            why = _outcome(target, shorter)
            if why is not None and _kind(why) == kind:
                fault = Fault(target.name, shorter, why)
                break
        else:
            size //= 2
    return fault


def _kind(why: str) -> str:
    """Return the class of an error, which stands at the end of its traceback."""
    return why.strip().splitlines()[-1].partition(":")[0]


def grow(target: Target, seed: int | str, size: int, rounds: int) -> None:
    """Feed long inputs, each most of one word over and over, and measure time and memory.

    Raises:
        Fault: it took more than a line through the origin allows.
    """
    pool = [*target.seeds(), *target.strays()]
    mutator = Mutator(f"{target.name} grown {seed}", target.words, 1 << 30)
    dice = mutator._dice
    for _ in range(rounds):
        word = dice.choice([word for word in mutator._words if word] + [one[:64] for one in pool])
        data = mutator.grown(dice.choice(pool), word or b"\0", size)
        feed(target, data)
        _weigh(target, data)


def _weigh(target: Target, data: bytes) -> None:
    tracemalloc.start()
    try:
        _outcome(target, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    allowed = CALL_BYTES + BYTES_A_BYTE * len(data)
    if peak > allowed:
        raise Fault(target.name, data, f"took {peak:,} bytes, expected {allowed:,} at most")
