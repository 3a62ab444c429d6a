"""Sockets whose timeout is a total: a server that drips one byte a second cannot hold a call.

An ordinary socket timeout begins anew with every read, so headers or a body that come byte
by byte can take for ever. Here every operation gets only what is left of the first timeout
that was set: connecting, the TLS handshake, each read and each write.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from typing import Any, ClassVar

import urllib3.connection
import urllib3.connectionpool
from urllib3.exceptions import ProtocolError

_GATEWAYS = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))
"""RFC 6052, RFC 8215 and RFC 4291: the last 32 bits are an IPv4 address."""
_Address = tuple[int, int, int, str, Any]
"""What getaddrinfo gives: family, kind, protocol, canonical name, address."""


class TotalTimeoutSocket(socket.socket):
    """A socket with a deadline: the first `settimeout` sets it, later ones only bring it nearer."""

    tls: ClassVar[type[ssl.SSLSocket]]
    """The same over TLS."""
    _ends_at: float | None = None

    def settimeout(self, value: float | None, /) -> None:
        """Allow `value` seconds from now for everything still to come."""
        if value is not None:
            ends_at = time.monotonic() + value
            self._ends_at = ends_at if self._ends_at is None else min(self._ends_at, ends_at)
            super().settimeout(value)

    def gettimeout(self) -> float | None:
        """Return what is left; a TLS socket made from this one takes it over from here."""
        return None if self._ends_at is None else max(self._ends_at - time.monotonic(), 0.001)

    def _arm(self) -> None:
        """Give the next operation what is left of the time."""
        if self._ends_at is not None:
            left = self._ends_at - time.monotonic()
            if left <= 0:
                raise TimeoutError("the total time is over")
            super().settimeout(left)

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        """Read within what is left of the time."""
        self._arm()
        return super().recv_into(*args, **kwargs)

    def send(self, *args: Any, **kwargs: Any) -> int:
        """Write once within what is left of the time."""
        self._arm()
        return super().send(*args, **kwargs)

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        """Write everything within what is left of the time."""
        self._arm()
        super().sendall(*args, **kwargs)


class _TotalTimeoutTLSSocket(TotalTimeoutSocket, ssl.SSLSocket):
    """The handshake is bounded as a whole by the timeout, which `wrap_socket` takes over."""


TotalTimeoutSocket.tls = _TotalTimeoutTLSSocket


class NotPublicError(OSError):
    """An address of this machine or of a private network, where none may be asked."""


def connect(host: str, port: int, timeout_s: float, *, public: bool = False) -> socket.socket:
    """Connect to the first address of `host` that answers, all within `timeout_s`.

    Every address gets an equal share of the time that is left, so that a silent one (IPv6
    that leads nowhere) does not eat the time of the next.

    `public`: the name comes from a stranger. What it stands for is looked at, not how it is
    written: 127.1, a name that leads to a router, and one that leads elsewhere each time it is
    looked up are all the same here.

    Raises:
        NotPublicError: it leads into this machine or a private network.
        OSError: no address, or none answers; TimeoutError when time ran out.
    """
    ends_at = time.monotonic() + timeout_s
    addresses = _resolve(host.strip("[]"), port, timeout_s)
    if public and not all(_is_public(str(address[4][0])) for address in addresses):
        raise NotPublicError
    failed: OSError = socket.gaierror(socket.EAI_NONAME, "the name has no address")
    for tried, address in enumerate(addresses):
        left = ends_at - time.monotonic()
        try:
            sock = _dial(address, max(left, 0.001) / (len(addresses) - tried))
        except OSError as error:
            failed = error
            continue
        sock.settimeout(max(ends_at - time.monotonic(), 0.001))
        return sock
    raise failed


def _is_public(address: str) -> bool:
    """Tell whether an address is one of the Internet (IANA's special-purpose registries)."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and (within := _embedded(found)):
        # Python calls gateways to IPv4 global, wherever these lead.
        return all(map(_is_global, within))
    return _is_global(found)


def _is_global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_global and not address.is_multicast


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address] | None:
    """Return the IPv4 addresses that an IPv6 one stands for, by any of the ways in use."""
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:  # RFC 3056
        return [address.sixtofour]
    if address.teredo is not None:  # RFC 4380
        return list(address.teredo)
    if any(address in network for network in _GATEWAYS):
        return [ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)]
    return None


def _dial(address: _Address, timeout_s: float) -> TotalTimeoutSocket:
    family, kind, protocol, _, target = address
    sock = TotalTimeoutSocket(family, kind, protocol)
    try:
        socket.socket.settimeout(sock, timeout_s)  # this address's share, not the total
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect(target)
    except BaseException:
        sock.close()
        raise
    return sock


def _resolve(host: str, port: int, timeout_s: float) -> list[_Address]:
    """Look a name up; the system's resolver knows no timeout, so a thread of its own waits."""
    found: queue.SimpleQueue[list[_Address] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            found.put(error)
        except UnicodeError:
            found.put(socket.gaierror(socket.EAI_NONAME, "not a host name"))

    threading.Thread(target=look_up, name="anchord-resolve", daemon=True).start()
    try:
        answer = found.get(timeout=timeout_s)
    except queue.Empty:
        raise TimeoutError("the name could not be looked up in time") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


class _HTTPConnection(urllib3.connection.HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _connect_for(self)


class _HTTPSConnection(urllib3.connection.HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connect_for(self)


class _PublicHTTPSConnection(_HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _connect_for(self, public=True)


def _connect_for(
    connection: urllib3.connection.HTTPConnection, *, public: bool = False
) -> socket.socket:
    """Connect; urllib3 passes over a bare ConnectionResetError, as if sending had failed."""
    try:
        timeout_s = float(connection.timeout or 0)
        return connect(connection.host, connection.port, timeout_s, public=public)
    except OSError as error:
        raise ProtocolError("no connection", error) from error


class HTTPPool(urllib3.connectionpool.HTTPConnectionPool):
    """Makes connections with a total timeout."""

    ConnectionCls = _HTTPConnection


class HTTPSPool(urllib3.connectionpool.HTTPSConnectionPool):
    """Makes TLS connections with a total timeout."""

    ConnectionCls = _HTTPSConnection


class PublicHTTPSPool(urllib3.connectionpool.HTTPSConnectionPool):
    """The same, to addresses of the Internet only."""

    ConnectionCls = _PublicHTTPSConnection
