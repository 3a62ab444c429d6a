"""Headers judged by libbitcoinkernel and by us: both must accept and refuse the same."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pbk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pbk.capi import bindings
from support.mining import NOW, changed, child, mine, solve, unsolve

from anchord.core.chain import ChainState, HeaderError, extend, start
from anchord.core.header import parse_header
from anchord.core.network import REGTEST

Verdict = str
CATEGORIES = {
    "bad-prevblk": "MISSING_PREV",
    "high-hash": "INVALID_HEADER",
    "bad-diffbits": "INVALID_HEADER",
    "time-too-old": "INVALID_HEADER",
    "time-too-new": "TIME_FUTURE",
    "bad-version": "INVALID_HEADER",
}


class Kernel:
    """libbitcoinkernel judging regtest headers."""

    def __init__(self, folder: Path) -> None:
        self._chain = pbk.load_chainman(folder, pbk.ChainType.REGTEST)

    def judge(self, raw: bytes) -> Verdict:
        """Return "ok" or the category of the refusal."""
        state = pbk.BlockValidationState()
        header = pbk.BlockHeader(raw)
        bindings.btck_chainstate_manager_process_block_header(self._chain, header, state)
        if state.validation_mode == pbk.ValidationMode.VALID:
            return "ok"
        return state.block_validation_result.name


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    pbk.disable_log_category(pbk.LogCategory.ALL)
    return Kernel(tmp_path)


def judge(state: ChainState, raw: bytes, now: int) -> Verdict:
    """Return our verdict in the kernel's words."""
    try:
        extend(state, raw, REGTEST, now)
    except HeaderError as error:
        return CATEGORIES[error.rule]
    return "ok"


def wrong_headers(state: ChainState, now: int) -> Iterator[tuple[str, bytes]]:
    """Yield a header made wrong in each way, and borderline ones that are right."""
    good = child(state, REGTEST)
    yield "bad proof of work", unsolve(good)
    yield "unknown parent", solve(changed(good, prev_hash=b"\x07" * 32))
    yield "harder bits, and met", solve(changed(good, bits=0x207FFFFE))
    yield "bits of mainnet", solve(changed(good, bits=0x1D00FFFF), 0x207FFFFF)
    yield "bits over the limit", solve(changed(good, bits=0x2100FFFF))
    yield "negative bits", solve(changed(good, bits=0x20FFFFFF), 0x207FFFFF)
    yield "zero bits", solve(changed(good, bits=0), 0x207FFFFF)
    yield "overflowing bits", solve(changed(good, bits=0xFF7FFFFF), 0x207FFFFF)
    yield "time is the median", solve(changed(good, time=state.median_time))
    yield "time before the median", solve(changed(good, time=state.median_time - 1))
    yield "time zero", solve(changed(good, time=0))
    yield "time two hours and a minute ahead", solve(changed(good, time=now + 7260))
    yield "time at the end of time", solve(changed(good, time=(1 << 32) - 1))
    for version in (-(1 << 31), -1, 0, 1, 2, 3, 4, 5, 0x20000000, (1 << 31) - 1):
        yield f"version {version}", solve(changed(good, version=version))
    yield "time just after the median", solve(changed(good, time=state.median_time + 1))
    yield "time two hours ahead less a minute", solve(changed(good, time=now + 7140))


def test_headers_wrong_in_each_way_are_judged_as_the_kernel_judges(kernel: Kernel) -> None:
    now = int(time.time())
    headers, tip = mine(30, time=lambda at: at.time + (600 if at.height % 3 != 2 else -300))
    state = start(REGTEST)
    seen: dict[str, Verdict] = {}
    for place in range(0, len(headers), 80):
        if place // 80 in (0, 4, 11, 29):
            for name, raw in wrong_headers(state, now):
                seen[name] = kernel.judge(raw)
                assert judge(state, raw, now) == seen[name], (name, state.height + 1)
        raw = headers[place : place + 80]
        assert kernel.judge(raw) == judge(state, raw, now) == "ok"
        state = extend(state, raw, REGTEST, now)
    assert state == tip
    assert set(seen.values()) == {"ok", "INVALID_HEADER", "MISSING_PREV", "TIME_FUTURE"}


def test_a_period_may_begin_long_before_the_last_one_ended_on_regtest(kernel: Kernel) -> None:
    """BIP 94 is switched off on regtest in the kernel; so it is here."""
    headers, state = mine(143, time=lambda at: at.time + (60 if at.height < 142 else 90_000))
    for place in range(0, len(headers), 80):
        assert kernel.judge(headers[place : place + 80]) == "ok"
    raw = solve(child(state, REGTEST, time=state.median_time + 1))
    assert state.height + 1 == REGTEST.interval
    assert kernel.judge(raw) == judge(state, raw, NOW) == "ok"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 639), st.integers(0, 7), st.data())
def test_random_damage_is_judged_as_the_kernel_judges(
    tmp_path_factory: pytest.TempPathFactory, bit: int, index: int, data: st.DataObject
) -> None:
    kernel = damage_kernel(tmp_path_factory)
    headers, _ = mine(8)
    state = extend(start(REGTEST), headers[: index * 80], REGTEST, NOW)
    raw = bytearray(headers[index * 80 : index * 80 + 80])
    raw[bit // 8] ^= 1 << bit % 8
    now = int(time.time())
    verdict = judge(state, bytes(raw), now)
    if verdict != "ok" or parse_header(bytes(raw)).prev_hash == state.hash:
        assert kernel.judge(bytes(raw)) == verdict


_kernels: list[Kernel] = []


def damage_kernel(factory: pytest.TempPathFactory) -> Kernel:
    """Return one kernel that already knows the eight headers."""
    if not _kernels:
        _kernels.append(Kernel(factory.mktemp("kernel")))
        headers, _ = mine(8)
        for place in range(0, len(headers), 80):
            assert _kernels[0].judge(headers[place : place + 80]) == "ok"
    return _kernels[0]


@pytest.mark.shared_data
def test_the_real_regtest_chain_checks(shared_data: Path, kernel: Kernel) -> None:
    document = json.loads((shared_data / "ots-vectors" / "regtest" / "headers.json").read_text())
    chain = [bytes.fromhex(document["headers"][str(height)]) for height in range(130)]
    assert chain[0] == REGTEST.genesis
    state = extend(start(REGTEST), b"".join(chain[1:]), REGTEST, NOW)
    assert state.height == 129
    assert all(kernel.judge(raw) == "ok" for raw in chain[1:])
