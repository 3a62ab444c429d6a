"""One Bitcoin peer over a plain socket: just enough of the P2P protocol to ask for headers.

Message formats: Bitcoin developer reference, "P2P Network"; limits: Bitcoin Core's
`MAX_HEADERS_RESULTS` (net_processing.cpp) and `MAX_PROTOCOL_MESSAGE_LENGTH` (net.h). Whatever a
peer does, it costs bounded memory and ends at a moment set before it was asked.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from anchord import __version__
from anchord.core.header import HEADER_SIZE
from anchord.core.network import Network
from anchord.errors import NetworkError, ProtocolError

MAX_HEADERS = 2000
"""Headers in one message; fewer mean that the peer has no more."""
PROTOCOL_VERSION = 70016
MIN_PEER_VERSION = 31800
"""The first version that knows getheaders."""

_ENVELOPE = struct.Struct("<4s12sI4s")
_MAX_MESSAGE = 4_000_000
_MAX_KEPT = 3 + MAX_HEADERS * (HEADER_SIZE + 1)
_MAX_OTHER_MESSAGES = 1000
_KEPT = ("version", "verack", "ping", "headers")
_NO_ADDRESS = bytes(26)


class Address(msgspec.Struct, frozen=True):
    """Where a peer listens."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return host:port, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Peer:
    """A connection to one peer. Not shared between threads.

    Attributes:
        height: what the peer said its height is; nobody has checked that.

    Args:
        address: where it listens.
        network: whose magic bytes are spoken.
        timeout_s: how long each answer may take, to its last byte.
        until: moment of the monotonic clock after which nothing is waited for.

    Raises:
        NetworkError: unreachable, silent, or hung up.
        ProtocolError: what answered does not speak this network's protocol.
    """

    def __init__(
        self, address: Address, network: Network, *, timeout_s: float, until: float
    ) -> None:
        self.address = address
        self.height = 0
        self._network = network
        self._timeout_s = timeout_s
        self._until = until
        self._end = self._next_end()
        try:
            self._socket = socket.create_connection(
                (address.host, address.port), timeout=self._left()
            )
        except (OSError, UnicodeError) as error:  # the second: no host name at all
            raise NetworkError(
                f"cannot be reached: {getattr(error, 'strerror', None) or error}"
            ) from None
        try:
            self._shake_hands()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up; may be called twice."""
        with suppress(OSError):
            self._socket.close()

    def headers_after(self, locator: Sequence[bytes]) -> bytes:
        """Ask for the headers after the first block of `locator` that the peer has.

        Args:
            locator: block hashes, internal order, newest first.

        Returns:
            Up to 2000 headers back to back; empty when the peer has no more.

        Raises:
            NetworkError: silent, too slow, or hung up.
            ProtocolError: anything but a headers message of the right form.
        """
        self._end = self._next_end()
        self._send("getheaders", _getheaders(locator))
        return _headers_of(self._wait_for("headers"))

    def _shake_hands(self) -> None:
        self._send("version", _version(secrets.token_bytes(8)))
        self.height = _height_of(self._wait_for("version"))
        self._send("verack", b"")
        self._wait_for("verack")

    def _wait_for(self, wanted: str) -> bytes:
        """Return the next message of one kind; answer pings and pass over the rest."""
        for _ in range(_MAX_OTHER_MESSAGES):
            command, payload = self._receive()
            if command == wanted:
                return payload
            if command == "ping":
                self._send("pong", payload)
        raise ProtocolError(f"sent {_MAX_OTHER_MESSAGES} other messages instead of {wanted}")

    def _receive(self) -> tuple[str, bytes]:
        """Read one message; what is not ours to read is passed over in small pieces."""
        magic, name, length, checksum = _ENVELOPE.unpack(self._read(_ENVELOPE.size))
        if magic != self._network.magic:
            raise ProtocolError(
                f"message begins with {magic.hex()}, expected {self._network.magic.hex()}: "
                f"not a {self._network.name} peer"
            )
        command = name.rstrip(b"\0").decode("ascii", "replace")
        limit = _MAX_KEPT if command in _KEPT else _MAX_MESSAGE
        if length > limit:
            raise ProtocolError(f"message {command!r} of {length} bytes, at most {limit} expected")
        if command not in _KEPT:
            self._pass_over(length)
            return command, b""
        payload = self._read(length)
        if hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4] != checksum:
            raise ProtocolError(f"message {command!r} does not have its checksum")
        return command, payload

    def _pass_over(self, length: int) -> None:
        while length:
            length -= len(self._read(min(length, 1 << 16)))

    def _read(self, count: int) -> bytes:
        buffer = bytearray()
        while len(buffer) < count:
            try:
                self._socket.settimeout(self._left())
                part = self._socket.recv(count - len(buffer))
            except TimeoutError:
                raise NetworkError(self._too_slow()) from None
            except ConnectionError:
                raise NetworkError("hung up") from None
            except OSError as error:
                raise NetworkError(f"connection broke: {error}") from None
            if not part:
                raise NetworkError("hung up")
            buffer += part
        return bytes(buffer)

    def _send(self, command: str, payload: bytes) -> None:
        checksum = hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
        head = _ENVELOPE.pack(self._network.magic, command.encode(), len(payload), checksum)
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(head + payload)
        except TimeoutError:
            raise NetworkError(self._too_slow()) from None
        except ConnectionError:
            raise NetworkError("hung up") from None
        except OSError as error:
            raise NetworkError(f"connection broke: {error}") from None

    def _next_end(self) -> float:
        return min(time.monotonic() + self._timeout_s, self._until)

    def _left(self) -> float:
        """Return the seconds left for the answer being waited for; a drip gains nothing."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise NetworkError(self._too_slow())
        return left

    def _too_slow(self) -> str:
        if self._end >= self._until:
            return "the time for the whole sync ended"
        return f"gave no whole answer in {self._timeout_s:g} s"


def _version(nonce: bytes) -> bytes:
    """Return the payload of our version message: no services, no relay of transactions."""
    agent = f"/anchord:{__version__}/".encode()
    return (
        struct.pack("<iQq", PROTOCOL_VERSION, 0, int(time.time()))
        + _NO_ADDRESS * 2
        + nonce
        + bytes([len(agent)])
        + agent
        + struct.pack("<i?", 0, False)  # noqa: FBT003 - a field of the format
    )


def _height_of(payload: bytes) -> int:
    """Return the height in a version message.

    Raises:
        ProtocolError: too short, or a protocol that does not know getheaders.
    """
    if len(payload) < 81:
        raise ProtocolError(f"version message of {len(payload)} bytes, expected 85 or more")
    (version,) = struct.unpack_from("<i", payload)
    if version < MIN_PEER_VERSION:
        raise ProtocolError(f"speaks protocol {version}, at least {MIN_PEER_VERSION} is needed")
    agent, start = _compact_size(payload, 80)
    if len(payload) < start + agent + 4:
        raise ProtocolError("version message ends before its height")
    (height,) = struct.unpack_from("<i", payload, start + agent)
    return max(0, int(height))


def _getheaders(locator: Sequence[bytes]) -> bytes:
    """Return the payload that asks for headers without a stop."""
    count = bytes([len(locator)])  # at most about 40: the steps double
    return struct.pack("<I", PROTOCOL_VERSION) + count + b"".join(locator) + bytes(32)


def _headers_of(payload: bytes) -> bytes:
    """Return the headers of a headers message, back to back.

    Raises:
        ProtocolError: more than 2000, torn, or with transactions.
    """
    count, start = _compact_size(payload, 0)
    if count > MAX_HEADERS:
        raise ProtocolError(f"{count} headers in one message, at most {MAX_HEADERS} expected")
    step = HEADER_SIZE + 1
    if len(payload) != start + count * step:
        raise ProtocolError(f"headers message of {len(payload)} bytes for {count} headers")
    if any(payload[start + HEADER_SIZE :: step]):
        raise ProtocolError("headers message with transactions in it")
    places = range(start, len(payload), step)
    return b"".join(payload[at : at + HEADER_SIZE] for at in places)


def _compact_size(payload: bytes, at: int) -> tuple[int, int]:
    """Return the number at `at` and where it ends (CompactSize of the developer reference).

    Raises:
        ProtocolError: the payload ends inside.
    """
    first = payload[at : at + 1]
    width = {b"\xfd": 2, b"\xfe": 4, b"\xff": 8}.get(first, 0)
    raw = payload[at + 1 : at + 1 + width] if width else first
    if len(raw) != (width or 1):
        raise ProtocolError("message ends inside a number")
    return int.from_bytes(raw, "little"), at + 1 + width
