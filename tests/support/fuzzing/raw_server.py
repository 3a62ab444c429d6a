"""A server on loopback that answers every connection with the same bytes, whatever was asked."""

from __future__ import annotations

import atexit
import contextlib
import re
import socket
import threading
from functools import cache

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)


class RawServer:
    """Attributes:
    data: what it answers with; sent at once, then the connection is closed.
    listens: it waits for a whole HTTP request first.
    """

    def __init__(self, *, listens: bool) -> None:
        self.data, self.listens = b"", listens
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()
        atexit.register(self._listener.close)

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), peer:
                peer.settimeout(2)
                if self.listens:
                    _hear(peer)
                peer.sendall(self.data)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(1 << 16):
                    pass


def _hear(peer: socket.socket) -> None:
    heard = b""
    while (part := peer.recv(1 << 16)) != b"":
        heard += part
        head, end, body = heard.partition(b"\r\n\r\n")
        found = _LENGTH.search(head + b"\r\n")
        if end and len(body) >= int(found[1] if found else 0):
            return


@cache
def http_server() -> RawServer:
    """Return the one that hears the question out."""
    return RawServer(listens=True)


@cache
def peer_server() -> RawServer:
    """Return the one that talks at once."""
    return RawServer(listens=False)
