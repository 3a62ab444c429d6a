"""One Bitcoin peer: what is said to it, and what it may not do."""

from __future__ import annotations

import io
import socket
import time
from functools import cache

import bitcoin
import pytest
from bitcoin.messages import MsgSerializable, msg_getheaders, msg_version
from hypothesis import given, settings
from hypothesis import strategies as st
from support import scripted_peer as scripts
from support.mining import mine
from support.scripted_peer import ScriptedPeer, Talk

from anchord.adapters.headers import p2p
from anchord.adapters.headers.p2p import Address, Peer
from anchord.adapters.headers.peers import candidates, parse_peer
from anchord.core.chain import start
from anchord.core.header import block_hash
from anchord.core.network import MAINNET, REGTEST
from anchord.errors import AnchordError, ConfigError, NetworkError, ProtocolError


@cache
def headers() -> bytes:
    return mine(2100)[0]


def connect(peer: ScriptedPeer, *, timeout_s: float = 5.0, until: float = 60.0) -> Peer:
    return Peer(
        parse_peer(peer.address, REGTEST),
        REGTEST,
        timeout_s=timeout_s,
        until=time.monotonic() + until,
    )


def test_headers_are_asked_for_and_come_whole() -> None:
    with ScriptedPeer(headers()) as peer:
        mine_peer = connect(peer)
        assert mine_peer.height == 2100
        first = mine_peer.headers_after([start(REGTEST).hash])
        assert first == headers()[: 2000 * 80]
        assert mine_peer.headers_after([block_hash(first[-80:])]) == headers()[2000 * 80 :]
        assert mine_peer.headers_after([block_hash(headers()[-80:])]) == b""
        mine_peer.close()
        mine_peer.close()
        assert peer.pongs == [b"pingpong"]


def test_our_messages_are_what_the_reference_library_reads() -> None:
    bitcoin.SelectParams("regtest")
    try:
        with ScriptedPeer(headers()) as peer:
            connect(peer).close()
            raw = scripts.message("version", peer.versions[0])
        version = MsgSerializable.stream_deserialize(io.BytesIO(raw))
        assert isinstance(version, msg_version)
        assert version.nVersion == p2p.PROTOCOL_VERSION
        assert version.strSubVer.startswith(b"/anchord:")
        assert abs(version.nTime - time.time()) < 60
        locator = [bytes([each]) * 32 for each in range(30)]
        raw = scripts.message("getheaders", p2p._getheaders(locator))
        asked = MsgSerializable.stream_deserialize(io.BytesIO(raw))
        assert isinstance(asked, msg_getheaders)
        assert list(asked.locator.vHave) == locator
        assert asked.hashstop == bytes(32)
    finally:
        bitcoin.SelectParams("mainnet")


def answer(raw: bytes) -> scripts.Script:
    return lambda talk, _: talk.raw(raw)


def _message(payload: bytes) -> bytes:
    return scripts.message("headers", payload)


WRONG = {
    "garbage": (scripts.garbage, ProtocolError, "begins with"),
    "other network": (
        answer(scripts.message("headers", b"\0", MAINNET.magic)),
        ProtocolError,
        "not a regtest",
    ),
    "bad checksum": (
        answer(_message(b"\0")[:20] + b"\1\2\3\4\0"),
        ProtocolError,
        "checksum",
    ),
    "too long": (
        answer(_message(b"")[:16] + b"\xff\xff\xff\x7f" + bytes(4)),
        ProtocolError,
        "at most",
    ),
    "other too long": (
        answer(scripts.message("inv", b"")[:16] + b"\xff\xff\xff\x7f" + bytes(4)),
        ProtocolError,
        "at most",
    ),
    "too many": (answer(_message(b"\xfd\xd1\x07" + bytes(81))), ProtocolError, "at most 2000"),
    "empty payload": (answer(_message(b"")), ProtocolError, "inside a number"),
    "cut": (answer(_message(b"\2" + bytes(81))), ProtocolError, "for 2 headers"),
    "transactions": (answer(_message(b"\1" + bytes(80) + b"\1")), ProtocolError, "transactions"),
    "pings for ever": (scripts.pings_for_ever, ProtocolError, "other messages"),
    "hang up": (scripts.hang_up, NetworkError, "hung up|broke"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_breaks_the_protocol_ends_the_talk(name: str) -> None:
    script, kind, words = WRONG[name]
    with ScriptedPeer(headers(), script) as peer:
        talk = connect(peer)
        with pytest.raises(kind, match=words):
            talk.headers_after([start(REGTEST).hash])
        talk.close()


@pytest.mark.parametrize("script", [scripts.silent, scripts.drip], ids=["silent", "drip"])
def test_a_peer_that_stalls_costs_its_timeout_and_no_more(script: scripts.Script) -> None:
    with ScriptedPeer(headers(), script) as peer:
        talk = connect(peer, timeout_s=0.3)
        began = time.monotonic()
        with pytest.raises(NetworkError, match=r"no whole answer in 0.3 s"):
            talk.headers_after([start(REGTEST).hash])
        assert time.monotonic() - began < 2
        talk.close()


def test_the_end_of_the_whole_sync_ends_every_wait() -> None:
    with ScriptedPeer(headers(), scripts.silent) as peer:
        talk = connect(peer, timeout_s=30, until=0.3)
        with pytest.raises(NetworkError, match="whole sync ended"):
            talk.headers_after([start(REGTEST).hash])
        with pytest.raises(NetworkError, match="whole sync ended"):
            talk.headers_after([start(REGTEST).hash])
        talk.close()


def test_a_peer_that_never_shakes_hands_is_dropped() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(NetworkError, match="no whole answer"),
    ):
        Peer(
            Address("127.0.0.1", server.getsockname()[1]),
            REGTEST,
            timeout_s=0.2,
            until=time.monotonic() + 9,
        )


def test_a_peer_of_the_stone_age_is_dropped() -> None:
    with (
        ScriptedPeer(headers(), version=209) as peer,
        pytest.raises(ProtocolError, match="speaks protocol 209"),
    ):
        connect(peer)


@pytest.mark.parametrize("host", ["127.0.0.1", "..", "x" * 300])
def test_what_cannot_be_reached_is_a_network_error(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NetworkError, match="cannot be reached"):
        Peer(Address(host, port), REGTEST, timeout_s=2, until=time.monotonic() + 9)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_random_payloads_raise_only_our_errors(payload: bytes) -> None:
    for read in (p2p._headers_of, p2p._height_of):
        try:
            read(payload)
        except AnchordError:
            continue


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=1, max_size=200))
def test_random_bytes_from_a_peer_raise_only_our_errors(noise: bytes) -> None:
    def script(talk: Talk, _: list[bytes]) -> None:
        talk.raw(noise)
        raise ConnectionError

    with ScriptedPeer(b"", script) as peer:
        talk = connect(peer)
        with pytest.raises(AnchordError):
            talk.headers_after([start(REGTEST).hash])
        talk.close()


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("example.org", Address("example.org", 18444), "example.org:18444"),
        ("example.org:1", Address("example.org", 1), "example.org:1"),
        ("127.0.0.1:65535", Address("127.0.0.1", 65535), "127.0.0.1:65535"),
        ("::1", Address("::1", 18444), "[::1]:18444"),
        ("[::1]:99", Address("::1", 99), "[::1]:99"),
        ("[::1]", Address("::1", 18444), "[::1]:18444"),
    ],
)
def test_peers_are_named_as_people_name_them(text: str, address: Address, shown: str) -> None:
    assert parse_peer(text, REGTEST) == address
    assert str(address) == shown


@pytest.mark.parametrize("text", ["", ":1", "a:0", "a:65536", "a:x", "[::1]9", "a:", "a:-1", "a:²"])
def test_what_names_no_peer_is_refused(text: str) -> None:
    if text == "a:":
        assert parse_peer(text, REGTEST) == Address("a", REGTEST.port)
        return
    with pytest.raises(ConfigError, match="correct it"):
        parse_peer(text, REGTEST)


def test_peers_come_from_seeds_when_none_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, port: int, **_: object) -> list[object]:
        if host == MAINNET.seeds[0]:
            raise OSError("no such name")
        number = MAINNET.seeds.index(host)
        return [(0, 0, 0, "", (f"192.0.2.{number * 20 + each}", port)) for each in range(20)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    found = candidates([], MAINNET, time.monotonic() + 5)
    assert len(set(found)) == 24
    assert all(each.port == 8333 and each.host.startswith("192.0.2.") for each in found)


def test_seeds_that_never_answer_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    hang = threading.Event()

    def resolve(host: str, port: int, **_: object) -> list[object]:
        hang.wait(20)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(NetworkError, match="no DNS seed of mainnet answered"):
        candidates([], MAINNET, time.monotonic() + 0.1)
    hang.set()


def test_regtest_has_no_seeds_and_says_so() -> None:
    with pytest.raises(ConfigError, match="name peers"):
        candidates([], REGTEST, time.monotonic() + 1)
