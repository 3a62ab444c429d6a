"""The routes: health, metrics, records and dashboard, and files. Nothing is ever written."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from anchord.app.metrics.exposition import CONTENT_TYPE
from anchord.app.web.problems import Problems
from anchord.app.web.tree import TreeFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from anchord.app.web.face import Face

HEADERS = {
    # A tree may be anybody's: no file of it may run anything, or be taken for what it is not.
    "content-security-policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
"""What every answer carries (https://cheatsheetseries.owasp.org, HTTP Headers); pages of ours have
a Content-Security-Policy of their own."""
_FRESH = {"cache-control": "no-store"}
_OWN = re.compile(r"/(?:|healthz|readyz|metrics|parked|events|events\.stream|audit|audit\.json)")
"""How the machine does, and what is under way: many a server answers its own network alone, and
any page in a browser there could read it to strangers."""
_WORTH_CODING = 1024
_LEVEL = 5
"""Of gzip: beyond it, time grows and answers hardly shrink."""
_DAY_S = 86_400


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What is handed out."""

    missing: Callable[[], list[str]]
    """Returns what keeps this from working."""
    face: Face | None = None
    """The store's records; None: they are not shown."""
    tree: Path | None = None
    metrics: Callable[[], bytes] | None = None
    """Returns the exposition; None: it is not served."""


def application(offered: Offered) -> Starlette:
    """Return the application over what is offered."""

    def healthz(_request: Request) -> Response:
        """Answer that the process lives, whatever the store does."""
        return PlainTextResponse("ok\n", headers=_FRESH)

    def readyz(_request: Request) -> Response:
        """Answer whether what is served can be served."""
        missing = offered.missing()
        document = {"ready": not missing, "missing": missing}
        return JSONResponse(document, 503 if missing else 200, headers=_FRESH)

    routes: list[BaseRoute] = [Route("/healthz", healthz), Route("/readyz", readyz)]
    if offered.metrics is not None:
        routes.append(Route("/metrics", _metrics(offered.metrics)))
    if offered.face is not None:
        routes += _face_routes(offered.face)
    if offered.tree is not None:
        routes.append(Mount("/", TreeFiles(directory=offered.tree, check_dir=False)))
    site = None if offered.face is None else offered.face.site
    found = Starlette(
        routes=routes, middleware=_middleware(), exception_handlers=Problems(site).handlers()
    )
    # It would name the host that the client named, and no address here ends in two ways.
    found.router.redirect_slashes = False
    return found


def _face_routes(face: Face) -> list[BaseRoute]:
    from anchord.app.web.dashboard import dashboard_routes
    from anchord.app.web.records import record_routes

    return [*record_routes(face), *dashboard_routes(face)]


def _middleware() -> list[Middleware]:
    return [
        Middleware(Guarded),
        Middleware(Shared),
        Middleware(GZipMiddleware, minimum_size=_WORTH_CODING, compresslevel=_LEVEL),
    ]  # fmt: skip


def _metrics(exposition: Callable[[], bytes]) -> Callable[[Request], Response]:
    def metrics(_request: Request) -> Response:
        return Response(exposition(), media_type=CONTENT_TYPE, headers=_FRESH)

    return metrics


class Shared:
    """Lets pages and scripts of others have documents of records: those are everybody's.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._own = app
        self._shared = CORSMiddleware(
            app, allow_origins=["*"], allow_methods=["GET", "HEAD"], allow_headers=["*"],
            expose_headers=["ETag", "Link"], max_age=_DAY_S,
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, and say who may read it."""
        is_own = _OWN.fullmatch(scope["path"]) is not None

        async def send_whose(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["cross-origin-resource-policy"] = (
                    "same-origin" if is_own else "cross-origin"
                )
            await send(message)

        await (self._own if is_own else self._shared)(scope, receive, send_whose)


class Guarded:
    """Puts `HEADERS` on every answer, and a tag of its own on what was compressed.

    Compressed bytes are others, so their tag is another, too (RFC 9110, 8.8.3.3). Whatever is
    behind this sees and gives tags of what is not compressed.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, with the headers."""
        has_coded = any(name == _CONDITION and _CODED in text for name, text in scope["headers"])
        if has_coded:
            scope = {**scope, "headers": [_plain(*pair) for pair in scope["headers"]]}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                coded = headers.get("content-encoding") == "gzip"
                if coded or (has_coded and message["status"] == _NOT_MODIFIED):
                    _tag_coded(headers)
            await send(message)

        # At a stop uvicorn cuts off who is still reading; that is no fault to tell.
        with contextlib.suppress(asyncio.CancelledError):
            await self._app(scope, receive, send_guarded)


_CONDITION, _CODED, _NOT_MODIFIED = b"if-none-match", b'-gzip"', 304


def _plain(name: bytes, text: bytes) -> tuple[bytes, bytes]:
    return name, text.replace(_CODED, b'"') if name == _CONDITION else text


def _tag_coded(headers: MutableHeaders) -> None:
    tag = headers.get("etag", "")
    if tag.startswith('"'):
        headers["etag"] = tag[:-1] + _CODED.decode("ascii")
