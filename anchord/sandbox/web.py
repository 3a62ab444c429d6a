"""The HTTP side of every service: request in, answer out, and the faults of the wire.

A service says what is right; this file sends it, or spoils it when a fault strikes.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Callable, Iterator
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol

import msgspec

from anchord.sandbox.faults import Fault, FaultBoard
from anchord.sandbox.loopback import Acceptor, RequestCounts, Serve

TEXT = "text/plain"
MOVED = "/moved"
"""Where a redirect without a location leads: the same service, so that a client that follows
redirects would get the right answer, and is found out by the count of `moved`."""
_PIECE = 1 << 18
_MAX_DRAIN = 1 << 28


class HangUpError(Exception):
    """The service closes the connection without an answer."""


class Request(msgspec.Struct):
    """What came in."""

    method: str
    path: str
    headers: Message
    read: Callable[[int], bytes]
    fault: Fault | None = None
    """The fault that strikes this request; services look for their own kinds."""

    def fault_is(self, kind: str) -> Fault | None:
        """Return the fault when it is of this kind."""
        return self.fault if self.fault is not None and self.fault.kind == kind else None


class Answer(msgspec.Struct, frozen=True):
    """What goes out."""

    status: int
    body: bytes = b""
    content_type: str | None = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    sized: bool = True
    """Whether Content-Length is sent; without it the end of the connection ends the answer."""
    file: Path | None = None
    """Sent behind the body piece by piece, for what is too big to hold in memory."""

    @property
    def length(self) -> int:
        """The bytes of body and file."""
        return len(self.body) + (self.file.stat().st_size if self.file else 0)

    def pieces(self, length: int) -> Iterator[bytes]:
        """Yield the first `length` bytes of body and file."""
        yield self.body[:length]
        left = length - len(self.body)
        if self.file is not None and left > 0:
            with self.file.open("rb") as source:
                while left > 0 and (piece := source.read(min(left, _PIECE))):
                    left -= len(piece)
                    yield piece


def json_answer(value: Any, status: int = 200) -> Answer:
    """Return a JSON document as an answer."""
    return Answer(status, json.dumps(value).encode() + b"\n", "application/json")


class Service(Protocol):
    """One server of the sandbox."""

    name: str
    protocol_version: str
    """HTTP/1.0: one request a connection; HTTP/1.1: kept alive."""

    def route(self, method: str, path: str) -> str:
        """Return the name under which a request is counted and struck by faults."""
        ...

    def answer(self, request: Request) -> Answer:
        """Return the right answer (or the service's own fault).

        Raises:
            HangUpError: close without an answer.
        """
        ...


class Web:
    """Puts services on loopback."""

    def __init__(self, acceptor: Acceptor, faults: FaultBoard, counts: RequestCounts) -> None:
        self.acceptor = acceptor
        self.faults = faults
        self.counts = counts

    def serve(self, service: Service) -> Serve:
        """Return what serves a connection of `service`."""
        handler = type(
            "Handler",
            (_Handler,),
            {"protocol_version": service.protocol_version, "web": self, "service": service},
        )

        def serve(connection: socket.socket) -> None:
            handler(connection, connection.getpeername(), None)

        return serve


class _Handler(BaseHTTPRequestHandler):
    """One connection; the base class reads the request line and the headers."""

    disable_nagle_algorithm = True
    """An answer is two writes; on a kept connection the second would wait for the first's ACK."""
    web: Web
    service: Service

    def do_GET(self) -> None:
        """Serve a GET."""
        self._serve("GET")

    def do_HEAD(self) -> None:
        """Serve a HEAD: what a GET would be answered, without its body."""
        self._serve("HEAD")

    def do_POST(self) -> None:
        """Serve a POST."""
        self._serve("POST")

    def do_PUT(self) -> None:
        """Serve a PUT."""
        self._serve("PUT")

    def do_DELETE(self) -> None:
        """Serve a DELETE."""
        self._serve("DELETE")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (name of the base class)
        """Say nothing: requests are counted instead."""

    def _serve(self, method: str) -> None:
        path = self.path
        if path.startswith(MOVED + "/"):
            path = path.removeprefix(MOVED)
            self.web.counts.add(self.service.name, "moved")
        route = self.service.route(method, path)
        self.web.counts.add(self.service.name, route)
        fault = self.web.faults.take(self.service.name, route)
        request = Request(method, path, self.headers, self.rfile.read, fault)
        if fault is None or not self._replaced(fault):
            self._answer(request)

    def _answer(self, request: Request) -> None:
        try:
            answer = self.service.answer(request)
        except HangUpError:
            self.close_connection = True
            return
        if request.fault is None or not self._spoiled(request.fault, answer):
            self._send(answer)

    def _replaced(self, fault: Fault) -> bool:
        """Do what a fault does instead of asking the service; False: the service is asked."""
        own = f"http://{self.headers.get('Host', '')}{MOVED}{self.path}"
        answers = {
            "oversize": lambda: Answer(200, b"\0" * int(fault.number("size", 1 << 20)), None),
            "redirect": lambda: Answer(
                302, b"", TEXT, (("Location", fault.text("location", own)),)
            ),
            "garbage": lambda: Answer(
                200, b"\x13\x37" + os.urandom(62), "application/octet-stream"
            ),
            "http-500": lambda: Answer(500, b"Internal Server Error"),
            "http-429": lambda: Answer(
                429,
                b"Too Many Requests",
                TEXT,
                (("Retry-After", str(int(fault.number("retry_after_s", 1)))),),
            ),
        }
        if fault.kind == "silent":
            self._drain()
            self.web.acceptor.hold(self.connection)
            self.close_connection = True
            return True
        if fault.kind not in answers:
            return False
        self._drain()
        self.close_connection = True
        self._send(answers[fault.kind]())
        return True

    def _spoiled(self, fault: Fault, answer: Answer) -> bool:
        """Send a right answer in a wrong way; False: it is sent as it is."""
        if fault.kind == "slow" and self.web.acceptor.hold(
            self.connection, fault.number("delay_s", 1.0)
        ):
            return False
        if fault.kind in {"slow", "lost-reply"}:
            self.close_connection = True
            return True
        if fault.kind == "trailing":
            self._send(msgspec.structs.replace(answer, body=answer.body + b"\0" * 8))
        elif fault.kind == "truncated":
            self._send_half(answer, clean=bool(fault.number("clean", 0)))
        elif fault.kind == "drip":
            self._drip(answer, fault.number("delay_s", 0.2))
        else:
            return False
        return True

    def _drain(self) -> None:
        """Read what the client sends, so that closing is no reset."""
        length = self.headers.get("Content-Length", "0")
        left = min(int(length), _MAX_DRAIN) if length.isdigit() else 0
        while left > 0 and (piece := self.rfile.read(min(left, _PIECE))):
            left -= len(piece)

    def _head(self, answer: Answer, length: int) -> None:
        self.send_response(answer.status)
        if answer.content_type is not None:
            self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers:
            self.send_header(name, value)
        if answer.sized or self.protocol_version != "HTTP/1.0":
            self.send_header("Content-Length", str(length))
        if self.close_connection and self.protocol_version != "HTTP/1.0":
            self.send_header("Connection", "close")  # or a pool takes it for alive
        self.end_headers()

    def _send(self, answer: Answer) -> None:
        length = answer.length
        self._head(answer, length)
        if answer.status != HTTPStatus.NO_CONTENT and self.command != "HEAD":
            self._write(answer.pieces(length))

    def _write(self, pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            self.wfile.write(piece)

    def _send_half(self, answer: Answer, *, clean: bool) -> None:
        half = answer.length // 2
        self._head(answer, half if clean else answer.length)
        self._write(answer.pieces(half))
        self.close_connection = True

    def _drip(self, answer: Answer, delay_s: float) -> None:
        self._head(answer, answer.length)
        for byte in itertools.chain.from_iterable(answer.pieces(answer.length)):
            if not self.web.acceptor.hold(self.connection, delay_s):
                break
            self.wfile.write(bytes([byte]))
        self.close_connection = True
