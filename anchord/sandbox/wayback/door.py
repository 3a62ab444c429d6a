"""The archive's port: while the firewall is closed nobody listens there."""

from __future__ import annotations

import threading

from anchord.sandbox.loopback import Acceptor, Listener
from anchord.sandbox.wayback.service import WaybackService

_GLANCE_S = 0.05


class Door:
    """Closes and opens the port as the service says.

    Looked at when a request was refused, and whenever the clock is advanced; while it is shut a
    thread waits for a clock that runs by itself.
    """

    def __init__(self, service: WaybackService, listener: Listener, acceptor: Acceptor) -> None:
        self._service = service
        self._listener = listener
        self._acceptor = acceptor
        self._lock = threading.Lock()
        self._shut = False
        service.on_refusal = self.look
        service.clock.watch(self.look)

    def look(self) -> None:
        """Close or open when it is time."""
        with self._lock:
            refusing = self._service.refusing()
            if refusing == self._shut or self._acceptor.stopping.is_set():
                return
            self._shut = refusing
            if not refusing:
                self._acceptor.admit(self._listener)
                return
            self._acceptor.refuse(self._listener)
            threading.Thread(target=self._wait, name="sandbox-door", daemon=True).start()

    def _wait(self) -> None:
        while self._shut and not self._acceptor.stopping.wait(_GLANCE_S):
            self.look()
