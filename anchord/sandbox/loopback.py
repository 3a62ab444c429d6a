"""Listening on loopback: one thread accepts for every service, one thread serves a connection.

Nothing of the sandbox is ever reachable from another machine.
"""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable

from anchord.errors import ConfigError
from anchord.sandbox.faults import FaultBoard

HOST = "127.0.0.1"
Serve = Callable[[socket.socket], None]
_GLANCE_S = 0.02
"""How often a held connection is looked at."""
_LINGER_S = 0.5
_LINGER_BYTES = 1 << 20
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class RequestCounts:
    """How often each service was asked for what. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}

    def add(self, service: str, route: str) -> None:
        """Count one request."""
        with self._lock:
            self._counts.setdefault(service, Counter())[route] += 1

    def of(self, service: str) -> Counter[str]:
        """Return a copy of one service's counts."""
        with self._lock:
            return Counter(self._counts.get(service, {}))

    def all(self) -> dict[str, dict[str, int]]:
        """Return a copy of all counts."""
        with self._lock:
            return {service: dict(counts) for service, counts in self._counts.items()}


class Listener:
    """A bound, listening socket and, once `serve` is set, what happens to its connections."""

    def __init__(self, name: str, *, port: int, backlog: int) -> None:
        self.name = name
        self.serve: Serve | None = None
        self.backlog = backlog
        self.socket = _socket()
        try:
            self.socket.bind((HOST, port))
        except OSError as error:
            self.socket.close()
            raise ConfigError(
                f"the sandbox's {name} needs port {port} of {HOST}: {error.strerror}; "
                "end what uses it, or use another folder"
            ) from None
        self.socket.listen(backlog)
        self.port: int = self.socket.getsockname()[1]

    def deafen(self) -> None:
        """Stop listening and keep the port: whoever connects is refused."""
        self.socket.close()
        self.socket = _socket()
        self.socket.bind((HOST, self.port))


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


class Acceptor:
    """Accepts connections for all listeners until it is stopped.

    Args:
        faults: a service that is `dead` there resets its connections here.
        counts: every connection is counted as `connections`.
    """

    def __init__(self, faults: FaultBoard, counts: RequestCounts) -> None:
        self.stopping = threading.Event()
        self._faults = faults
        self._counts = counts
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._listeners: list[Listener] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="sandbox-accept", daemon=True)

    def listen(self, name: str, *, port: int = 0, backlog: int = 128) -> Listener:
        """Listen on `port` (0: a free one); connections are closed until `serve` is set.

        Raises:
            ConfigError: the port is taken.
        """
        listener = Listener(name, port=port, backlog=backlog)
        self._listeners.append(listener)
        self._selector.register(listener.socket, selectors.EVENT_READ, listener)
        return listener

    def refuse(self, listener: Listener) -> None:
        """Let connections to this one be refused from now on, as if nobody listened there."""
        with self._lock:
            if not self.stopping.is_set():
                self._selector.unregister(listener.socket)
                listener.deafen()

    def admit(self, listener: Listener) -> None:
        """Accept connections to it again."""
        with self._lock:
            if not self.stopping.is_set():
                listener.socket.listen(listener.backlog)
                self._selector.register(listener.socket, selectors.EVENT_READ, listener)

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def stop(self) -> None:
        """Stop accepting, end every connection, free the ports."""
        self.stopping.set()
        self._wake.send(b"x")
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._selector.close()
        for listener in self._listeners:
            listener.socket.close()
        self._wake.close()
        self._woken.close()

    def _run(self) -> None:
        while not self.stopping.is_set():
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._accept(key.data)

    def _accept(self, listener: Listener) -> None:
        try:
            connection, _ = listener.socket.accept()
        except OSError:
            return  # the other side went away before it was accepted
        self._counts.add(listener.name, "connections")
        if self._faults.take(listener.name, "connections", "dead"):
            reset(connection)
            return
        with self._lock:
            self._open.add(connection)
        threading.Thread(
            target=self._serve, args=(listener, connection), name=listener.name, daemon=True
        ).start()

    def _serve(self, listener: Listener, connection: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):  # the other side hung up; that is its right
                if listener.serve is not None:
                    listener.serve(connection)
                    end(connection)
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def hold(self, connection: socket.socket, seconds: float | None = None) -> bool:
        """Say nothing on `connection` for a time, or until the other side or the sandbox ends.

        Returns:
            True when the time is up and both are still there.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or (left := end - time.monotonic()) > 0:
            if self.stopping.wait(_GLANCE_S if end is None else min(_GLANCE_S, left)):
                return False
            if gone(connection):
                return False
        return True


def end(connection: socket.socket) -> None:
    """Say that nothing more comes, and take what is still on its way in.

    Closing with unread bytes would reset the connection, and a reset may overtake the answer: a
    client whose body was refused unread would then not see why.
    """
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(_LINGER_S)
    left = _LINGER_BYTES
    while left > 0 and (taken := connection.recv(min(left, 65_536))):
        left -= len(taken)


def reset(connection: socket.socket) -> None:
    """Close with a TCP reset, as a crashed server does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    connection.close()


def gone(connection: socket.socket) -> bool:
    """Tell whether the other side has closed the connection."""
    readable, _, _ = select.select([connection], [], [], 0)
    try:
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True
