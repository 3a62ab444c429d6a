"""Chains of headers: the rules, against libbitcoinkernel and a plain re-statement of Core's."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pbk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pbk.capi import bindings
from support.mining import EASING, NOW, RETARGETING, child, mine, solve, unsolve

from anchord.core.chain import ChainState, HeaderError, extend, next_bits, start
from anchord.core.header import Header, bits_of, block_hash, parse_header, target_of, work_of
from anchord.core.network import MAINNET, REGTEST, TESTNET4, Network
from anchord.core.rewind import state_before
from anchord.errors import AnchordError, VerificationError

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


def changed(header: Header, **fields: object) -> Header:
    return msgspec.structs.replace(header, **fields)


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


@pytest.mark.shared_data
def test_mainnets_first_block_follows_its_genesis(shared_data: Path) -> None:
    document = json.loads((shared_data / "ots-vectors" / "headers.json").read_text())
    raw = bytes.fromhex(next(h["header_hex"] for h in document["headers"] if h["height"] == 1))
    state = extend(start(MAINNET), raw, MAINNET, NOW)
    assert (state.height, state.work) == (1, 2 * 0x100010001)
    with pytest.raises(HeaderError, match="bad-prevblk"):
        extend(start(REGTEST), raw, REGTEST, NOW)


class Plain:
    """Core's difficulty and time rules re-stated step by step, walking back block by block."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.chain = [parse_header(network.genesis)]

    def bits(self, time: int) -> int:
        network, last = self.network, self.chain[-1]
        limit = bits_of(network.pow_limit)
        if len(self.chain) % network.interval == 0:
            first = self.chain[-network.interval]
            span = last.time - first.time
            span = sorted([network.timespan_s // 4, span, network.timespan_s * 4])[1]
            target = target_of(first.bits if network.bip94 else last.bits)
            return bits_of(min(target * span // network.timespan_s, network.pow_limit))
        if not network.eases:
            return last.bits
        if time > last.time + network.spacing_s * 2:
            return limit
        at = len(self.chain) - 1
        while at > 0 and at % network.interval != 0 and self.chain[at].bits == limit:
            at -= 1
        return self.chain[at].bits

    def refuses(self, header: Header) -> bool:
        last = self.chain[-1]
        times = sorted(each.time for each in self.chain[-11:])
        height = len(self.chain)
        begins = height % self.network.interval == 0
        warped = self.network.bip94 and begins and header.time < last.time - 600
        floors = [floor for first, floor in self.network.version_floors if height >= first]
        return (
            header.bits != self.bits(header.time)
            or header.time <= times[len(times) // 2]
            or warped
            or any(header.version < floor for floor in floors)
        )


@pytest.mark.parametrize("network", [RETARGETING, EASING], ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(6))
def test_difficulty_time_and_version_are_those_of_the_plain_rules(
    network: Network, seed: int
) -> None:
    chance = random.Random(seed)
    plain, state = Plain(network), start(network)
    refused = 0
    pace = 600
    for height in range(1, 130):
        if height % network.interval == 0:
            pace = chance.choice([100, 300, 600, 900, 3000])
        moment = max(1, state.time + chance.randint(-4 * pace, 6 * pace))
        assert next_bits(state, moment, network) == plain.bits(moment)
        bits = chance.choice([plain.bits(moment)] * 6 + [bits_of(network.pow_limit), state.bits])
        version = chance.choice([4, 4, 4, 4, 3, 2, 1])
        raw = solve(Header(version, state.hash, bytes(32), moment, bits, 0))
        if plain.refuses(parse_header(raw)):
            refused += 1
            with pytest.raises(HeaderError):
                extend(state, raw, network, NOW)
            raw = solve(child(state, network, time=state.time + chance.choice([400, 1201])))
            if plain.refuses(parse_header(raw)):
                continue
        state = extend(state, raw, network, NOW)
        plain.chain.append(parse_header(raw))
    assert refused > 10
    assert state.work == sum(work_of(each.bits) for each in plain.chain)
    whole = b"".join(each.pack() for each in plain.chain[1:])
    assert extend(start(network), whole, network, NOW) == state


def test_five_thousand_headers_check_alike_in_pieces_of_any_size() -> None:
    network = msgspec.structs.replace(RETARGETING, interval=2016, timespan_s=2016 * 600)
    chance = random.Random(1)
    paced = iter([550, 600, 600])
    pace = {"now": 500}

    def moment(at: ChainState) -> int:
        if at.height % 2016 == 2015:
            pace["now"] = next(paced, 600)
        ahead = at.times[0] + pace["now"] * len(at.times)
        return max(ahead + chance.randint(-1500, 1500), at.median_time + 1)

    headers, end = mine(5000, network, time=moment)
    assert extend(start(network), headers, network, NOW) == end
    state, at = start(network), 0
    while at < len(headers):
        size = chance.choice([1, 7, 2000, 2015, 2017]) * 80
        state = extend(state, headers[at : at + size], network, NOW)
        at += size
    assert state == end
    assert end.bits != bits_of(network.pow_limit)


@pytest.mark.parametrize("network", [RETARGETING, EASING, REGTEST], ids=lambda each: each.name)
def test_the_end_of_a_chain_can_be_had_for_any_earlier_height(network: Network) -> None:
    chance = random.Random(3)
    state, states, raws = start(network), [start(network)], [network.genesis]
    for _ in range(80):
        raw, state = mine(
            1, network, after=state, time=lambda at: at.time + chance.choice([30, 600, 1300])
        )
        states.append(state)
        raws.append(raw)

    def read(first: int, count: int) -> bytes:
        return b"".join(raws[first : first + count])

    for height, expected in enumerate(states):
        assert state_before(state, height, read, network) == expected


def _break(header: Header, how: str, state: ChainState) -> bytes:
    makers: dict[str, Callable[[], bytes]] = {
        "bad-prevblk": lambda: solve(changed(header, prev_hash=bytes(32))),
        "bad-diffbits": lambda: solve(changed(header, bits=0x207FFFFE)),
        "high-hash": lambda: unsolve(header),
        "time-too-old": lambda: solve(changed(header, time=state.median_time)),
        "time-too-new": lambda: solve(changed(header, time=NOW + 7201)),
        "bad-version": lambda: solve(changed(header, version=3)),
    }
    return makers[how]()


@pytest.mark.parametrize("how", sorted(CATEGORIES))
def test_a_refusal_names_height_rule_and_what_was_expected(how: str) -> None:
    headers, state = mine(20)
    raw = _break(child(state, REGTEST), how, state)
    with pytest.raises(HeaderError) as caught:
        extend(start(REGTEST), headers + raw, REGTEST, NOW)
    assert (caught.value.height, caught.value.rule) == (21, how)
    assert "21" in str(caught.value)


def test_a_period_of_testnet4_may_not_begin_ten_minutes_before_the_last_ended() -> None:
    _, state = mine(15, EASING, time=lambda at: at.time + (60 if at.height < 14 else 5000))
    for early, good in ((600, True), (601, False)):
        raw = solve(child(state, EASING, time=state.time - early))
        if good:
            assert extend(state, raw, EASING, NOW).height == 16
        else:
            with pytest.raises(HeaderError, match="time-timewarp-attack"):
                extend(state, raw, EASING, NOW)
    assert TESTNET4.bip94
    assert not REGTEST.bip94


def test_another_block_at_a_checkpoint_is_refused() -> None:
    headers, _ = mine(12)
    there = block_hash(headers[9 * 80 : 10 * 80])
    network = msgspec.structs.replace(REGTEST, checkpoints={10: there})
    assert extend(start(network), headers, network, NOW).height == 12
    other, _ = mine(12, salt=1)
    with pytest.raises(HeaderError, match="checkpoint-mismatch") as caught:
        extend(start(network), other, network, NOW)
    assert caught.value.height == 10


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_raise_only_our_errors(raw: bytes) -> None:
    try:
        extend(start(REGTEST), raw, REGTEST, NOW)
    except AnchordError:
        return
    assert raw == b""


def test_a_torn_end_is_refused() -> None:
    headers, _ = mine(2)
    with pytest.raises(VerificationError, match="multiples of 80"):
        extend(start(REGTEST), headers[:-1], REGTEST, NOW)
