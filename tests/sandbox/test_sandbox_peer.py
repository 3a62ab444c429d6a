"""The peers speak the P2P protocol; python-bitcoinlib's messages are the other side."""

from __future__ import annotations

import io
import socket

import bitcoin
import pytest
from bitcoin.core.serialize import VarIntSerializer
from bitcoin.messages import (
    MsgSerializable,
    msg_getaddr,
    msg_getheaders,
    msg_ping,
    msg_pong,
    msg_verack,
    msg_version,
)

from anchord.sandbox.block import TARGET, double_sha256
from anchord.sandbox.peer import frame


@pytest.fixture(autouse=True)
def _regtest():
    bitcoin.SelectParams("regtest")
    yield
    bitcoin.SelectParams("mainnet")


class Client:
    """A peer's other end."""

    def __init__(self, address):
        host, _, port = address.partition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.stream = self.socket.makefile("rb")

    def send(self, message):
        self.socket.sendall(message.to_bytes())

    def read(self):
        """Return the next message's command and payload."""
        head = self.stream.read(24)
        if len(head) < 24:
            return None, b""
        payload = self.stream.read(int.from_bytes(head[16:20], "little"))
        assert double_sha256(payload)[:4] == head[20:24]
        return head[4:16].rstrip(b"\0").decode(), payload

    def until(self, command):
        while True:
            got, payload = self.read()
            if got in {command, None}:
                return payload if got else None

    def shake_hands(self):
        self.send(msg_version())
        self.until("verack")
        self.send(msg_verack())

    def headers_after(self, *locator):
        """Ask for headers and return them as 80-byte strings."""
        request = msg_getheaders()
        request.locator.vHave = list(locator)
        self.send(request)
        payload = self.until("headers")
        if payload is None:
            return None
        return headers_in(payload)

    def close(self):
        self.stream.close()
        self.socket.close()


def headers_in(payload):
    """Cut a headers message apart: each is followed by a count of transactions, always 0.

    (python-bitcoinlib's msg_headers forgets that byte.)
    """
    stream = io.BytesIO(payload)
    count = VarIntSerializer.stream_deserialize(stream)
    entries = [stream.read(81) for _ in range(count)]
    assert stream.read() == b""
    assert all(entry[80:] == b"\0" for entry in entries)
    return [entry[:80] for entry in entries]


@pytest.fixture
def client(sandbox):
    one = Client(sandbox.peer_address)
    yield one
    one.close()


def test_the_handshake_and_ping_are_understood_by_python_bitcoinlib(sandbox, client):
    client.send(msg_version())
    version = MsgSerializable.stream_deserialize(client.stream)
    assert version.command == b"version"
    assert version.nStartingHeight == sandbox.height
    assert b"sandbox, not Bitcoin" in version.strSubVer
    client.until("verack")
    client.send(msg_verack())
    client.send(msg_getaddr())
    client.send(msg_ping(nonce=7))
    assert int.from_bytes(client.until("pong"), "little") == 7
    client.send(msg_pong(nonce=1))


def test_headers_come_from_genesis_or_after_the_first_known_hash(sandbox, client):
    client.shake_hands()
    all_headers = sandbox.chain.headers()
    assert client.headers_after() == all_headers[1:]
    assert client.headers_after(b"\1" * 32) == all_headers[1:]
    assert client.headers_after(b"\1" * 32, double_sha256(all_headers[100])) == all_headers[101:]
    assert client.headers_after(double_sha256(all_headers[-1])) == []


def test_a_stale_hash_in_the_locator_is_passed_over(sandbox, client):
    client.shake_hands()
    stale, fork = sandbox.chain.tip.hash, sandbox.chain.block(sandbox.height - 1)
    sandbox.reorg(1)
    assert client.headers_after(stale, fork.hash) == sandbox.chain.headers()[fork.height + 1 :]


def test_at_most_2000_headers_come_at_once(sandbox, client):
    sandbox.mine(2100 - sandbox.height)
    client.shake_hands()
    first = client.headers_after()
    assert len(first) == 2000
    assert len(client.headers_after(double_sha256(first[-1]))) == 100


def test_new_blocks_are_announced_to_who_sent_sendheaders(sandbox, client):
    client.shake_hands()
    client.socket.sendall(frame("sendheaders", b""))
    client.send(msg_ping(nonce=1))
    client.until("pong")
    sandbox.mine(2)
    assert headers_in(client.until("headers")) == sandbox.chain.headers()[-2:]


@pytest.mark.parametrize(
    "wrong",
    [
        b"\xf9\xbe\xb4\xd9" + frame("verack", b"")[4:],
        frame("ping", b"12345678")[:-1] + b"0",
        frame("ping", b"")[:16] + b"\xff\xff\xff\xff" + b"\0" * 4,
    ],
    ids=["other network", "checksum", "too long"],
)
def test_a_broken_message_ends_the_connection(client, wrong):
    client.socket.sendall(wrong)
    assert client.read() == (None, b"")


def test_a_stalling_peer_shakes_hands_and_sends_no_headers(sandbox, client):
    sandbox.fault("peer-1", "stall")
    client.shake_hands()
    client.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.headers_after()


def test_a_lying_peers_headers_are_linked_and_have_no_work(sandbox, client):
    sandbox.fault("peer-1", "lie")
    client.shake_hands()
    headers = client.headers_after()
    assert len(headers) == sandbox.height
    for before, header in zip([sandbox.chain.headers()[0], *headers], headers, strict=False):
        assert header[4:36] == double_sha256(before)
        assert int.from_bytes(double_sha256(header), "little") > TARGET


def test_a_cheap_fork_is_good_by_itself_and_has_less_work(sandbox, client):
    sandbox.fault("peers", "cheap-fork", length=40)
    client.shake_hands()
    headers = client.headers_after()
    assert len(headers) == 40 < sandbox.height
    for before, header in zip([sandbox.chain.headers()[0], *headers], headers, strict=False):
        assert header[4:36] == double_sha256(before)
        assert int.from_bytes(double_sha256(header), "little") <= TARGET
    assert not set(headers) & set(sandbox.chain.headers())


def test_a_peer_that_hangs_up_heals_after_its_count(sandbox, client):
    sandbox.fault("peer-1", "hang-up", count=1)
    client.shake_hands()
    with pytest.raises(ConnectionResetError):
        client.headers_after()
    again = Client(sandbox.peer_address)
    again.shake_hands()
    assert len(again.headers_after()) == sandbox.height
    again.close()


def test_messages_are_counted(sandbox, client):
    client.shake_hands()
    client.headers_after()
    counts = sandbox.requests["peer-1"]
    assert (counts["version"], counts["verack"], counts["getheaders"]) == (1, 1, 1)
