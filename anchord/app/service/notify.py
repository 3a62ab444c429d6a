"""Telling the service manager how the service is: sd_notify(3), a datagram for each message.

https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html. Without `NOTIFY_SOCKET`
nothing is sent. What cannot be sent is dropped: work never waits for the service manager.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST_STATUS = 400


class Notifier:
    """Sends messages to the service manager, if there is one. Threads may share it.

    Args:
        environ: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` are read.
        pid: of this process; a watchdog that was set for another one is not ours.
    """

    def __init__(self, environ: Mapping[str, str], pid: int | None = None) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        mine = environ.get("WATCHDOG_PID") in (None, "", str(pid or os.getpid()))
        self.watchdog_s = _seconds(environ.get("WATCHDOG_USEC", "")) if mine else None
        """Seconds without a sign of life after which we are killed; None: nobody watches."""
        self._beaten_at = float("-inf")
        self._status = ""
        self._lock = threading.Lock()

    def ready(self) -> None:
        """Say that the service is up, or up again after a reload."""
        self._send("READY=1")

    def reloading(self) -> None:
        """Say that the configuration is read again; `ready` ends it."""
        moment = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={moment}")

    def stopping(self) -> None:
        """Say that the service is on its way down."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """Show one line in `systemctl status`; the same line twice is sent once."""
        line = " ".join(text.split())[:_LONGEST_STATUS]
        if line != self._status:
            self._status = line
            self._send(f"STATUS={line}")

    def beat(self) -> None:
        """Give a sign of life, at most once in a quarter of the time the watchdog allows.

        Called by the thread that works, so that one that hangs is noticed.
        """
        if self.watchdog_s is None:
            return
        now = time.monotonic()
        with self._lock:
            if now - self._beaten_at < self.watchdog_s / 4:
                return
            self._beaten_at = now
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel,
        ):
            # Its queue is full: the manager is busy, and a later sign of life does as well.
            channel.settimeout(1.0)
            channel.sendto(message.encode("utf-8", "replace"), self._address)


def _address(name: str) -> str | None:
    """Return what a socket is connected to; `@` begins an abstract name (unix(7))."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else None


def _seconds(text: str) -> float | None:
    return int(text) / 1e6 if text.isascii() and text.isdigit() and int(text) > 0 else None
