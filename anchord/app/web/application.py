"""The routes: health, metrics, and the files of a published tree. Nothing is ever written."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from anchord.app.metrics.exposition import CONTENT_TYPE
from anchord.app.web.tree import TreeFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    # A tree may be anybody's: no file of it may run anything, or be taken for what it is not.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
"""What every answer carries (https://cheatsheetseries.owasp.org, HTTP Headers)."""
_FRESH = {"cache-control": "no-store"}


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What is handed out."""

    missing: Callable[[], list[str]]
    """Returns what keeps this from working."""
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
    if offered.tree is not None:
        routes.append(Mount("/", TreeFiles(directory=offered.tree, check_dir=False)))
    return Starlette(routes=routes, middleware=[Middleware(Guarded)])


def _metrics(exposition: Callable[[], bytes]) -> Callable[[Request], Response]:
    def metrics(_request: Request) -> Response:
        return Response(exposition(), media_type=CONTENT_TYPE, headers=_FRESH)

    return metrics


class Guarded:
    """Puts `HEADERS` on every answer.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, with the headers."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        # At a stop uvicorn cuts off who is still reading; that is no fault to tell.
        with contextlib.suppress(asyncio.CancelledError):
            await self._app(scope, receive, send_guarded)
