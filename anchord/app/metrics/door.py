"""The door monitoring comes in by: `GET /metrics` over HTTP/1.1, one answer a connection.

Nobody who knocks can hurt the work behind it: one thread serves all, a head must come whole within
seconds and few bytes, so many connections are open at once and no more, and the store is read no
oftener for it. There is nothing to write, no other path, and no secret to be had.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from anchord.app.metrics.exposition import CONTENT_TYPE, PATIENCE_S, Metrics
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_HEAD = 8_192
_HEAD_S = 5.0
_ANSWER_S = PATIENCE_S + 7.0
_MOST_OPEN = 32
_AT_ONCE = 2
"""Expositions made at the same time."""
_TEXT = "text/plain; charset=utf-8"


@contextlib.contextmanager
def opened(metrics: Metrics, host: str, port: int) -> Iterator[int]:
    """Serve metrics within the block, on a thread; give the port.

    Args:
        metrics: what is shown.
        host: an IP address of this machine.
        port: 0: any that is free.

    Raises:
        ConfigError: the address cannot be had.
    """
    loop = asyncio.new_event_loop()
    door = _Door(metrics)
    thread = threading.Thread(target=loop.run_forever, name="metrics", daemon=True)
    thread.start()
    try:
        # On its own thread from the start: a worker's thread runs a loop already.
        server = asyncio.run_coroutine_threadsafe(_listening(door, host, port), loop).result()
    except OSError as error:
        _end(loop, thread)
        raise ConfigError(
            f"metrics cannot be served at {host}:{port}: {error.strerror or error}; free the "
            "address, or name another one in service.metrics"
        ) from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(door.shut(server), loop).result()
        _end(loop, thread)


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _listening(door: _Door, host: str, port: int) -> asyncio.Server:
    return await asyncio.start_server(
        door.answer, host, port, limit=_LONGEST_HEAD, backlog=_MOST_OPEN
    )


class _Door:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._open: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, or hang up."""
        task = asyncio.current_task()
        try:
            if task is None or len(self._open) >= _MOST_OPEN:
                return
            self._open.add(task)
            with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
                await self._exchange(reader, writer)
        finally:
            self._open.discard(task)
            # Whoever does not read has no claim to the rest.
            writer.transport.abort()

    async def shut(self, server: asyncio.Server) -> None:
        """Let nobody in any more, and hang up on who is."""
        server.close()
        for task in (open_now := list(self._open)):
            task.cancel()
        await asyncio.gather(*open_now, return_exceptions=True)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_S):
            method, path = await _request(reader)
        async with asyncio.timeout(_ANSWER_S):
            status, kind, body = await self._answer_to(method, path)
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                "Connection: close\r\n\r\n".encode("ascii")
            )
            writer.write(b"" if method == "HEAD" else body)
            writer.close()
            await writer.wait_closed()

    async def _answer_to(self, method: str, path: str) -> tuple[str, str, bytes]:
        if not method:
            return "400 Bad Request", _TEXT, b"expected an HTTP/1 request of at most 8 KiB\n"
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", _TEXT, b"expected GET\n"
        if path.partition("?")[0] != "/metrics":
            return "404 Not Found", _TEXT, b"metrics are at /metrics\n"
        try:
            async with self._places:
                body = await asyncio.to_thread(self._metrics.exposition)
        except Exception as error:  # noqa: BLE001 - a fault of monitoring stays with monitoring
            return "500 Internal Server Error", _TEXT, f"{type(error).__name__}\n".encode()
        return "200 OK", CONTENT_TYPE, body


async def _request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Return method and path of a request (RFC 9112, 3); both empty: it is none."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
        return "", ""
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    whole = len(words) == 3 and words[2] in ("HTTP/1.0", "HTTP/1.1")
    return (words[0], words[1]) if whole else ("", "")
