"""Chains of headers: the rules, against a plain re-statement of Bitcoin Core's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mining import EASING, NOW, RETARGETING, changed, child, mine, solve, unsolve

from anchord.core.chain import ChainState, HeaderError, extend, next_bits, start
from anchord.core.header import Header, bits_of, block_hash, parse_header, target_of, work_of
from anchord.core.network import MAINNET, REGTEST, TESTNET4, Network
from anchord.core.rewind import state_before
from anchord.errors import AnchordError, VerificationError

RULES = (
    "bad-prevblk",
    "high-hash",
    "bad-diffbits",
    "time-too-old",
    "time-too-new",
    "bad-version",
)


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


@pytest.mark.parametrize("how", RULES)
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
