"""One header: layout, hash, compact targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bitcoin.core import CBlockHeader
from bitcoin.core.serialize import compact_from_uint256, uint256_from_compact
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.chain import start
from anchord.core.header import (
    Header,
    bits_of,
    block_hash,
    display,
    internal,
    parse_header,
    target_of,
    work_of,
)
from anchord.core.network import NETWORKS, network
from anchord.errors import AnchordError, ConfigError, VerificationError

GENESIS_HASHES = {
    "mainnet": "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f",
    "testnet4": "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
    "signet": "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6",
    "regtest": "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206",
}


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_every_network_begins_with_its_genesis_block(name: str) -> None:
    chosen = network(name)
    assert display(start(chosen).hash) == GENESIS_HASHES[name]
    assert target_of(parse_header(chosen.genesis).bits) <= chosen.pow_limit
    assert bits_of(chosen.pow_limit) == parse_header(chosen.genesis).bits
    assert all(len(block) == 32 for block in chosen.checkpoints.values())


def test_an_unknown_network_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="mainnet, testnet4, signet, regtest"):
        network("testnet3")


@pytest.mark.shared_data
def test_real_mainnet_headers_hash_and_carry_their_work(shared_data: Path) -> None:
    document = json.loads((shared_data / "ots-vectors" / "headers.json").read_text())
    assert len(document["headers"]) == 5
    for each in document["headers"]:
        raw = bytes.fromhex(each["header_hex"])
        header = parse_header(raw)
        assert display(block_hash(raw)) == each["block_hash"]
        assert header.pack() == raw
        assert display(header.merkle_root) == each["merkle_root_display"]
        assert header.time == each["time"]
        assert f"{header.bits:08x}" == each["bits"]
        assert int.from_bytes(block_hash(raw), "little") <= target_of(header.bits)


@settings(deadline=None)
@given(st.binary(min_size=80, max_size=80))
def test_fields_are_those_of_the_reference_library(raw: bytes) -> None:
    ours, theirs = parse_header(raw), CBlockHeader.deserialize(raw)
    assert ours == Header(
        theirs.nVersion,
        theirs.hashPrevBlock,
        theirs.hashMerkleRoot,
        theirs.nTime,
        theirs.nBits,
        theirs.nNonce,
    )
    assert block_hash(raw) == theirs.GetHash()
    assert ours.pack() == raw


@settings(deadline=None)
@given(st.binary(max_size=200).filter(lambda raw: len(raw) != 80))
def test_anything_but_80_bytes_is_refused(raw: bytes) -> None:
    with pytest.raises(VerificationError, match="80 bytes"):
        parse_header(raw)


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=(1 << 255) - 1))
def test_compact_form_is_that_of_the_reference_library(target: int) -> None:
    bits = bits_of(target)
    assert bits == compact_from_uint256(target)
    assert target_of(bits) == uint256_from_compact(bits)
    assert 0 < target_of(bits) <= target


@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0, max_value=(1 << 32) - 1))
def test_bits_are_a_target_or_refused(bits: int) -> None:
    try:
        target = target_of(bits)
    except AnchordError:
        return
    assert 0 < target < 1 << 256
    assert work_of(bits) == (1 << 256) // (target + 1)


@pytest.mark.parametrize(
    ("bits", "reason"),
    [
        (0x01FEDCBA, "negative"),
        (0x04923456, "negative"),
        (0x00000000, "zero"),
        (0x01003456, "zero"),
        (0xFF123456, "over 256 bits"),
        (0x23000100, "over 256 bits"),
    ],
)
def test_impossible_bits_are_refused(bits: int, reason: str) -> None:
    with pytest.raises(VerificationError, match=reason):
        target_of(bits)


def test_work_of_the_first_block_is_the_known_figure() -> None:
    assert work_of(0x1D00FFFF) == 0x100010001


@settings(deadline=None)
@given(st.binary(min_size=32, max_size=32))
def test_display_turns_round_and_back(block: bytes) -> None:
    assert internal(display(block)) == block


@pytest.mark.parametrize("shown", ["", "zz" * 32, "00" * 31, "00" * 33])
def test_what_is_no_hash_is_refused(shown: str) -> None:
    with pytest.raises(VerificationError, match="64 hex digits"):
        internal(shown)
