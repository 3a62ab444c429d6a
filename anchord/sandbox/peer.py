"""A Bitcoin peer that gives headers over the P2P protocol.

Framing and messages: Bitcoin developer reference, "P2P Network"; the order of the handshake
as Bitcoin Core's net_processing.cpp does it. Everything else a client sends is ignored.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable

from anchord.sandbox.block import MAGIC, VERSION, compact_size, double_sha256, mine_header
from anchord.sandbox.chain import Chain
from anchord.sandbox.faults import Fault, FaultBoard
from anchord.sandbox.loopback import Acceptor, RequestCounts, reset

PROTOCOL = 70016
MAX_HEADERS = 2000
"""Headers in one message (Core: net_processing.h MAX_HEADERS_RESULTS)."""
MAX_MESSAGE = 4_000_000
_SERVICES = 0x409
_ANNOUNCED = 8
"""A longer gap is announced by the newest header alone, and the client asks for the rest."""


def frame(command: str, payload: bytes) -> bytes:
    """Return a message as it goes over the wire."""
    head = MAGIC + command.encode().ljust(12, b"\0") + struct.pack("<I", len(payload))
    return head + double_sha256(payload)[:4] + payload


class Peer:
    """One peer of the sandbox.

    Args:
        name: what faults and counts call it.
        chain: whose headers it gives.
        faults: what goes wrong on command.
        counts: every message is counted by its command.
    """

    def __init__(
        self,
        name: str,
        chain: Chain,
        acceptor: Acceptor,
        faults: FaultBoard,
        counts: RequestCounts,
    ) -> None:
        self.name = name
        self.chain = chain
        self.acceptor = acceptor
        self.faults = faults
        self.counts = counts
        self._talks: set[_Talk] = set()
        self._lock = threading.Lock()
        chain.watch(self.announce)

    def serve(self, connection: socket.socket) -> None:
        """Talk on one connection until it ends."""
        talk = _Talk(self, connection)
        with self._lock:
            self._talks.add(talk)
        try:
            talk.run()
        finally:
            with self._lock:
                self._talks.discard(talk)

    def announce(self) -> None:
        """Send new headers to those who asked for them by `sendheaders`."""
        with self._lock:
            talks = list(self._talks)
        for talk in talks:
            talk.announce()


class _Talk:
    """One connection."""

    def __init__(self, peer: Peer, connection: socket.socket) -> None:
        self._peer = peer
        self._connection = connection
        self._sending = threading.Lock()
        self._wants_headers = False
        self._known = peer.chain.height

    def run(self) -> None:
        """Answer until the other side ends or breaks the protocol."""
        answers: dict[str, Callable[[bytes], bool]] = {
            "version": self._version,
            "ping": lambda payload: self._send("pong", payload),
            "sendheaders": self._sendheaders,
            "getheaders": self._getheaders,
        }
        while (message := self._receive()) is not None:
            command, payload = message
            self._peer.counts.add(self._peer.name, command)
            if command in answers and not answers[command](payload):
                return

    def announce(self) -> None:
        """Send what is new, if this side asked for headers."""
        headers = self._peer.chain.headers()
        new = headers[self._known + 1 :]
        if not self._wants_headers:
            return
        self._known = len(headers) - 1
        try:
            self._send("headers", _headers(new if 0 < len(new) <= _ANNOUNCED else headers[-1:]))
        except OSError:
            self._wants_headers = False  # it hung up; its own thread ends the talk

    def _send(self, command: str, payload: bytes = b"") -> bool:
        with self._sending:
            self._connection.sendall(frame(command, payload))
        return True

    def _receive(self) -> tuple[str, bytes] | None:
        head = self._read(24)
        if len(head) < 24 or head[:4] != MAGIC:
            return None
        length = int.from_bytes(head[16:20], "little")
        if length > MAX_MESSAGE:
            return None
        payload = self._read(length)
        if len(payload) < length or double_sha256(payload)[:4] != head[20:24]:
            return None
        return head[4:16].rstrip(b"\0").decode("ascii", "replace"), payload

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self._connection.recv(size - len(data))):
            data += more
        return data

    def _version(self, _: bytes) -> bool:
        address = struct.pack("<Q", _SERVICES) + b"\0" * 10 + b"\xff\xff" + b"\x7f\0\0\x01\0\0"
        agent = b"/Satoshi:29.0.0(sandbox, not Bitcoin)/"
        height = self._peer.chain.height
        self._send(
            "version",
            struct.pack("<iQq", PROTOCOL, _SERVICES, int(time.time()))
            + address * 2
            + os.urandom(8)
            + compact_size(len(agent))
            + agent
            + struct.pack("<iB", height, 0),
        )
        for feature in ("wtxidrelay", "sendaddrv2", "verack"):
            self._send(feature)
        return self._send("ping", os.urandom(8))

    def _sendheaders(self, _: bytes) -> bool:
        self._wants_headers = True
        return True

    def _getheaders(self, payload: bytes) -> bool:
        fault = self._peer.faults.take(self._peer.name, "getheaders")
        if fault is not None and fault.kind == "hang-up":
            reset(self._connection)
            return False
        if fault is not None and fault.kind == "stall":
            return self._peer.acceptor.hold(self._connection)
        headers = self._peer.chain.headers()
        self._known = len(headers) - 1
        headers = _bent(headers, fault)
        start = _fork_point(headers, payload) + 1
        return self._send("headers", _headers(headers[start : start + MAX_HEADERS]))


def _headers(headers: list[bytes]) -> bytes:
    return compact_size(len(headers)) + b"".join(header + b"\0" for header in headers)


def _fork_point(headers: list[bytes], payload: bytes) -> int:
    """Return the height of the first locator hash that is on the chain; genesis when none is."""
    heights = {double_sha256(header): height for height, header in enumerate(headers)}
    count = payload[4] if payload[4:5] and payload[4] < 0xFD else 0
    locator = [payload[5 + 32 * i : 37 + 32 * i] for i in range(count)]
    return next((heights[known] for known in locator if known in heights), 0)


def _bent(headers: list[bytes], fault: Fault | None) -> list[bytes]:
    """Return the headers a lying peer would send."""
    if fault is not None and fault.kind == "lie":
        return [headers[0], *_without_work(headers)]
    if fault is not None and fault.kind == "cheap-fork":
        return _cheap_fork(headers[0], int(fault.number("length", len(headers) // 2)))
    return headers


def _without_work(headers: list[bytes]) -> list[bytes]:
    """Return a linked chain whose hashes all miss the target."""
    chain, previous = [], double_sha256(headers[0])
    for header in headers[1:]:
        head = struct.pack("<i", VERSION) + previous + os.urandom(32) + header[68:76]
        nonce = 0
        while double_sha256(bad := head + struct.pack("<I", nonce))[31] < 0x80:
            nonce += 1
        chain.append(bad)
        previous = double_sha256(bad)
    return chain


def _cheap_fork(genesis: bytes, length: int) -> list[bytes]:
    """Return a branch from genesis with less work than the chain, each header good by itself."""
    chain, start = [genesis], int.from_bytes(genesis[68:72], "little")
    for number in range(1, length + 1):
        root = os.urandom(32)
        chain.append(mine_header(double_sha256(chain[-1]), root, start + 600 * number))
    return chain
