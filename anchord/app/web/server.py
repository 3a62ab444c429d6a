"""Listening: uvicorn, with limits, and signs of life for the service manager."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from typing import TYPE_CHECKING

import uvicorn

from anchord.app.metrics.address import host_and_port
from anchord.app.metrics.exposition import Metrics
from anchord.app.service.logs import tell
from anchord.app.service.notify import Notifier
from anchord.app.web.application import Offered, application
from anchord.app.web.face import Face
from anchord.app.web.health import Readiness
from anchord.app.web.patience import Patient
from anchord.app.web.readers import Readers
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anchord.app.config import Loaded
    from anchord.app.face.site import Site

MOST_AT_ONCE = 100
"""Connections beyond these are answered 503: nobody holds the machine up by opening more."""
_IDLE_S = 5
_STOP_S = 10
_LONGEST_HEAD = 16_384
_BACKLOG = 128


def serve(loaded: Loaded, environ: Mapping[str, str], site: Site) -> int:
    """Serve until a signal; return the exit code.

    Args:
        loaded: what is served, and where.
        environ: of the process; names the service manager's socket.
        site: what pages say of where they are.

    Raises:
        ConfigError: the address cannot be used, or the tree is where secrets are.
    """
    web = loaded.config.web
    tree = loaded.resolve(web.tree) if web.tree else None
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(*host_and_port(web.bind, "web.bind")))
        metrics = Metrics(lambda: loaded)
        stack.callback(metrics.close)
        readiness = Readiness(loaded, tree)
        readiness.missing()  # what is in the way from the start stands in the log from the start
        offered = Offered(
            missing=readiness.missing,
            face=stack.enter_context(_face(loaded, site)) if web.records else None,
            tree=tree,
            metrics=metrics.exposition if web.metrics else None,
        )
        stack.enter_context(_stoppable())
        Server(offered, Notifier(environ), _at(listener)).run(sockets=[listener])
    tell(logging.INFO, "stopped", "stopped")
    return 0


@contextlib.contextmanager
def _face(loaded: Loaded, site: Site) -> Iterator[Face]:
    with contextlib.closing(Readers(loaded)) as readers:
        yield Face(loaded=loaded, readers=readers, site=site)


class Server(uvicorn.Server):
    """Tells the service manager how it is; its loop gives the sign of life."""

    def __init__(self, offered: Offered, notifier: Notifier, at: str) -> None:
        super().__init__(
            uvicorn.Config(
                application(offered), log_config=None, access_log=False, server_header=False,
                proxy_headers=False, http=Patient, ws="none", loop="asyncio", lifespan="off",
                limit_concurrency=MOST_AT_ONCE, timeout_keep_alive=_IDLE_S,
                timeout_graceful_shutdown=_STOP_S, h11_max_incomplete_event_size=_LONGEST_HEAD,
            )
        )  # fmt: skip
        self._notifier, self._at = notifier, at

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin, and say so."""
        await super().startup(sockets)
        tell(logging.INFO, "started", f"anchord serves {self._at}", at=self._at)
        self._notifier.status(f"serves {self._at}")
        self._notifier.ready()

    async def on_tick(self, counter: int) -> bool:
        """Give a sign of life."""
        self._notifier.beat()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say so, and end."""
        self._notifier.stopping()
        await super().shutdown(sockets)


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at an address for the length of the block.

    Raises:
        ConfigError: it cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named, asyncio sends each part of an answer at once (TCP_NODELAY);
    # else the second one waits for the client's delayed acknowledgement, 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            raise ConfigError(
                f"web.bind: {host} port {port} cannot be used: {error.strerror}; name another one, "
                "or stop who has it"
            ) from None
        yield listener


def _at(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Let a signal that uvicorn heeded, and raises again at its end, end nothing more."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda *_: None) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
