"""Every parser of foreign bytes is fed with broken ones, for a second or less each.

`make fuzz TIME=600` feeds them longer, with another seed every time. What it finds becomes a test
beside its subject, under the name of the law that was broken.
"""

from __future__ import annotations

import os
import time

import pytest
from support.fuzzing.engine import Fault, Target, feed, grow, run
from support.fuzzing.targets import TARGETS

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0.3"))
"""For each of about 70 parsers."""
LONG = 1 << 16
SLOW_S = 3.0


each = pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])


@each
def test_what_honest_parties_send_is_taken(target: Target) -> None:
    seeds = target.seeds()
    assert seeds
    if target.strict:
        for data in seeds:
            target.feed(data)


@each
def test_whatever_the_bytes_only_lawful_errors_come_out(target: Target) -> None:
    assert run(target, 5, SECONDS)


@pytest.mark.parametrize(
    "target", [one for one in TARGETS if one.grows], ids=[one.name for one in TARGETS if one.grows]
)
def test_time_and_memory_grow_no_faster_than_the_input(target: Target) -> None:
    grow(target, 5, LONG, 2)


def _law(data: bytes) -> None:
    if data.startswith(b"a"):
        raise KeyError(data)
    if data.startswith(b"b"):
        begin = time.process_time()  # by the clock, for machines differ
        while time.process_time() < begin + SLOW_S:
            sum(range(10_000))
    if data.startswith(b"c"):
        bytearray(1 << 26)


@pytest.mark.parametrize("data", [b"a", b"b"])
def test_the_judge_sees_what_breaks_the_law(data: bytes) -> None:
    with pytest.raises(Fault, match="KeyError" if data == b"a" else "took"):
        feed(Target(name="x", feed=_law, seeds=lambda: [b""]), data)


def test_the_judge_sees_memory_and_makes_inputs_smaller() -> None:
    with pytest.raises(Fault, match="bytes, expected"):
        grow(Target(name="x", feed=_law, seeds=lambda: [b"c"], words=(b"c",)), 1, 1 << 10, 20)
    with pytest.raises(Fault, match="given 1 bytes") as found:
        run(Target(name="x", feed=_law, seeds=lambda: [b"a" + bytes(64)]), 1, 1)
    assert found.value.data == b"a"
