"""A Bitcoin peer on loopback that does what its script says: honest, silent, lying, dying."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Self

from anchord.core.header import block_hash
from anchord.core.network import REGTEST

Script = Callable[["Talk", list[bytes]], None]
"""What a peer does when it is asked for headers after one of these blocks."""


def message(command: str, payload: bytes, magic: bytes = REGTEST.magic) -> bytes:
    """Return a whole message."""
    checksum = hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    return magic + struct.pack("<12sI4s", command.encode(), len(payload), checksum) + payload


def headers_payload(raws: list[bytes]) -> bytes:
    """Return the payload of a headers message."""
    count = bytes([len(raws)]) if len(raws) < 253 else b"\xfd" + struct.pack("<H", len(raws))
    return count + b"".join(raw + b"\0" for raw in raws)


def split(headers: bytes) -> list[bytes]:
    """Return headers one by one."""
    return [headers[at : at + 80] for at in range(0, len(headers), 80)]


class Talk:
    """One conversation with whoever connected."""

    def __init__(self, peer: ScriptedPeer, connection: socket.socket) -> None:
        self.peer = peer
        self.connection = connection

    def raw(self, data: bytes) -> None:
        self.connection.sendall(data)

    def send(self, command: str, payload: bytes) -> None:
        self.raw(message(command, payload, self.peer.magic))

    def send_headers(self, raws: list[bytes]) -> None:
        self.send("headers", headers_payload(raws))

    def receive(self) -> tuple[str, bytes]:
        head = self._exactly(24)
        assert head[:4] == self.peer.magic
        length = int.from_bytes(head[16:20], "little")
        payload = self._exactly(length)
        assert hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4] == head[20:]
        return head[4:16].rstrip(b"\0").decode(), payload

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.connection.recv(count - len(data))
            if not part:
                raise ConnectionError
            data += part
        return data


def honest(talk: Talk, locator: list[bytes]) -> None:
    """Answer as a good node does."""
    chain = talk.peer.chain
    places = {block_hash(raw): height for height, raw in enumerate(chain)}
    fork = next((places[block] for block in locator if block in places), 0)
    talk.send_headers(chain[fork + 1 : fork + 2001])


def silent(talk: Talk, locator: list[bytes]) -> None:
    """Say nothing."""


def garbage(talk: Talk, locator: list[bytes]) -> None:
    talk.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)


def drip(talk: Talk, locator: list[bytes]) -> None:
    """Send the answer one byte at a time, for ever."""
    for byte in message("headers", headers_payload(talk.peer.chain[1:2001])):
        if talk.peer.stopping.wait(0.02):
            return
        talk.raw(bytes([byte]))


def pings_for_ever(talk: Talk, locator: list[bytes]) -> None:
    for _ in range(5000):
        talk.send("ping", bytes(8))


def after(count: int, then: Script, first: Script = honest) -> Script:
    """Return a script that behaves `count` times and then does something else."""
    asked = [0]

    def script(talk: Talk, locator: list[bytes]) -> None:
        asked[0] += 1
        (first if asked[0] <= count else then)(talk, locator)

    return script


def hang_up(talk: Talk, locator: list[bytes]) -> None:
    raise ConnectionError


def says(raws: list[bytes]) -> Script:
    """Return a script that answers with these headers whatever is asked."""

    def script(talk: Talk, locator: list[bytes]) -> None:
        talk.send_headers(raws)

    return script


class ScriptedPeer:
    """The listening peer, used as a context manager."""

    def __init__(
        self,
        headers: bytes,
        script: Script = honest,
        *,
        magic: bytes = REGTEST.magic,
        genesis: bytes = REGTEST.genesis,
        claims: int | None = None,
        version: int = 70016,
    ) -> None:
        self.chain = [genesis, *split(headers)]
        self.script = script
        self.magic = magic
        self.claims = len(self.chain) - 1 if claims is None else claims
        self.version = version
        self.locators: list[list[bytes]] = []
        self.pongs: list[bytes] = []
        self.versions: list[bytes] = []
        self.stopping = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stopping.set()
        for open_socket in [self._server, *self._connections]:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
            open_socket.close()
        for thread in self._threads:
            thread.join(5)

    def wait_asked(self, times: int) -> None:
        """Wait until headers were asked for that many times."""
        end = time.monotonic() + 20
        while len(self.locators) < times:
            assert time.monotonic() < end, "nobody asked"
            time.sleep(0.005)

    def _spawn(self, work: Callable[..., None], *parts: object) -> None:
        thread = threading.Thread(target=work, args=parts, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._connections.append(connection)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            self._talk(Talk(self, connection))

    def _talk(self, talk: Talk) -> None:
        command, payload = talk.receive()
        assert command == "version"
        self.versions.append(payload)
        agent = b"/scripted:1/"
        body = struct.pack("<iQq", self.version, 9, int(time.time())) + bytes(60)
        talk.send(
            "version", body + bytes([len(agent)]) + agent + struct.pack("<iB", self.claims, 1)
        )
        talk.send("sendaddrv2", b"")
        talk.send("verack", b"")
        talk.send("ping", b"pingpong")
        talk.send("addr", bytes(3000))
        while True:
            command, payload = talk.receive()
            if command == "pong":
                self.pongs.append(payload)
            if command == "getheaders":
                count = payload[4]
                locator = [payload[5 + 32 * at : 37 + 32 * at] for at in range(count)]
                assert len(payload) == 5 + 32 * count + 32
                self.locators.append(locator)
                self.script(talk, locator)
