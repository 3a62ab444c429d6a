"""A service manager as far as a service sees it: a socket that takes its messages (sd_notify)."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path


class ManagerSocket:
    """Binds a datagram socket, and keeps what comes with the moment it came."""

    def __init__(self, address: Path | str) -> None:
        self.name = str(address)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.name[1:] if self.name.startswith("@") else self.name)
        self.messages: list[dict[str, str]] = []
        self.moments: list[float] = []

    def close(self) -> None:
        self._socket.close()

    def take(self, timeout_s: float) -> None:
        """Take the messages that come within a time."""
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                raw = self._socket.recv(65_536)
            except TimeoutError:
                return
            self.moments.append(time.monotonic())
            lines = (line.partition("=") for line in raw.decode().splitlines())
            self.messages.append({key: value for key, _, value in lines})

    def until(self, wanted: Callable[[dict[str, str]], bool], timeout_s: float = 20) -> None:
        """Take messages until one is as wanted."""
        seen, end = 0, time.monotonic() + timeout_s
        while not any(map(wanted, self.messages[seen:])):
            seen = len(self.messages)
            assert time.monotonic() < end, self.messages
            self.take(0.05)

    def all(self, key: str) -> list[str]:
        """Return the values of a variable in the order they came."""
        return [message[key] for message in self.messages if key in message]
