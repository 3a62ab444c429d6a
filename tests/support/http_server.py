"""Scripted HTTP servers on loopback: any bytes, any pace, resets; one connection, one script.

A script is a function that gets what was asked and yields steps: bytes are sent, a number is a
pause in seconds, `RESET` resets the connection and `SILENCE` says nothing until the server ends.
When a script ends the connection is closed, as HTTP/1.0 does.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple, Self


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Step(Enum):
    """What a script can do beside sending and pausing."""

    RESET = "reset"
    SILENCE = "silence"


RESET, SILENCE = Step.RESET, Step.SILENCE
Script = Callable[[Asked], Iterable[bytes | float | Step]]


def reply(
    body: bytes = b"", status: str = "200 OK", headers: str = "", *, length: int | None = None
) -> bytes:
    """Return an HTTP/1.0 answer as the calendar server makes it; `length` may lie."""
    size = len(body) if length is None else length
    head = f"HTTP/1.0 {status}\r\nContent-Length: {size}\r\n{headers}\r\n"
    return head.encode("latin-1") + body


def drip(data: bytes, pause_s: float) -> Iterator[bytes | float]:
    """Yield `data` one byte at a time."""
    for byte in data:
        yield bytes([byte])
        yield pause_s


class ScriptedServer:
    """Listens on a free port of 127.0.0.1 and follows `script` on every connection.

    Args:
        script: what to do once a request has come.
        tls: wraps each connection.
        on_accept: what to do before anything is read; for servers that spoil the connection.
    """

    def __init__(
        self,
        script: Script,
        *,
        tls: ssl.SSLContext | None = None,
        on_accept: Iterable[bytes | float | Step] = (),
    ) -> None:
        self._script, self._tls, self._on_accept = script, tls, tuple(on_accept)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.asked: list[Asked] = []
        self.connections = 0
        self.port: int = self._listener.getsockname()[1]
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._start(self._serve, peer)

    def _serve(self, peer: socket.socket) -> None:
        peer.settimeout(5)
        with contextlib.suppress(OSError), contextlib.closing(peer):
            if self._follow(peer, self._on_accept):
                self._talk(peer)

    def _talk(self, peer: socket.socket) -> None:
        if self._tls is None:
            self._exchange(peer)
            return
        with self._tls.wrap_socket(peer, server_side=True) as secure:
            self._exchange(secure)

    def _exchange(self, peer: socket.socket) -> None:
        asked = _read(peer)
        if asked is not None:
            self.asked.append(asked)
            self._follow(peer, self._script(asked))

    def _follow(self, peer: socket.socket, steps: Iterable[bytes | float | Step]) -> bool:
        """Do the steps; False when the connection is not usable any more."""
        for step in steps:
            if isinstance(step, bytes):
                peer.sendall(step)
            elif step is RESET:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            elif self._over.wait(step if isinstance(step, float) else None):
                return False
        return True


def _read(peer: socket.socket) -> Asked | None:
    """Read one request with Content-Length."""
    with peer.makefile("rb") as lines:
        first = lines.readline().decode("latin-1").split()
        if len(first) != 3:
            return None
        headers: dict[str, str] = {}
        while line := lines.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = lines.read(int(headers.get("content-length", "0")))
    return Asked(first[0], first[1], headers, body)


def always(*steps: bytes | float | Step) -> Script:
    """Return a script that does the same whatever was asked."""
    return lambda _asked: steps


def dead_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
