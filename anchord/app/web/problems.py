"""Answers that say why there is no other: RFC 9457 for programs, a page for people.

What is damaged or misconfigured is told in the log; strangers learn that it is, and not where.
"""

from __future__ import annotations

import logging
import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from anchord.app.face.rendering import render
from anchord.app.face.site import Site
from anchord.app.service.logs import tell
from anchord.app.web.answers import PAGE_HEADERS
from anchord.app.web.negotiation import HTML, JSON, PROBLEM, preferred
from anchord.errors import AnchordError, ConfigError, RefusedError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

PATIENCE_S = 5
"""When to ask again while the store is busy."""
TOLD_AGAIN_S = 60.0
"""How long the same words are not logged again, however many ask."""
_MOST_TOLD = 100
_LONGEST = 600
_DEEPEST = 30


class Problem(Exception):  # noqa: N818  an answer, not a fault of ours
    """Ends the work on a request with an answer that says why.

    Args:
        status: of HTTP.
        detail: what was expected, what came, what to do; for strangers.
        headers: to be sent with it.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


class Problems:
    """Turns what went wrong into answers.

    Args:
        site: whose pages; None: programs and people get the same.
        clock: seconds that only grow.
    """

    def __init__(self, site: Site | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._site, self._clock = site, clock
        self._told: dict[str, float] = {}
        self._lock = threading.Lock()

    def handlers(self) -> dict[type[Exception] | int, Callable[[Request, Exception], Response]]:
        """Return what Starlette asks, by the exception."""
        return {
            Problem: self._stated,
            HTTPException: self._of_http,
            AnchordError: self._of_ours,
            500: self._unforeseen,
        }

    def answer(
        self, request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return what says `detail` in the form that is asked for."""
        title = HTTPStatus(status).phrase
        kept = {"cache-control": "no-store", "vary": "Accept", **(headers or {})}
        if self._site is not None and preferred(request, (PROBLEM, JSON, HTML)) == HTML:
            page = render(
                "problem.html", root=root_of(request), site=self._site, status=status,
                title=title, detail=detail,
            )  # fmt: skip
            return Response(page, status, {**kept, **PAGE_HEADERS}, media_type=HTML)
        document = {
            "type": "about:blank", "title": title, "status": status, "detail": detail[:_LONGEST],
        }  # fmt: skip
        return JSONResponse(document, status, kept, media_type=PROBLEM)

    def _stated(self, request: Request, problem: Exception) -> Response:
        assert isinstance(problem, Problem)  # noqa: S101  by the table above
        return self.answer(request, problem.status, problem.detail, problem.headers)

    def _of_http(self, request: Request, error: Exception) -> Response:
        """Answer what Starlette itself found: no such path, another method."""
        assert isinstance(error, HTTPException)  # noqa: S101  by the table above
        words = {
            404: "there is nothing at this address: see openapi.json for what there is",
            405: "nothing can be written here: ask with GET or HEAD",
        }
        detail = words.get(error.status_code, str(error.detail))
        return self.answer(request, error.status_code, detail, error.headers)

    def _of_ours(self, request: Request, error: Exception) -> Response:
        if isinstance(error, RefusedError):
            return self.answer(request, 400, str(error))
        if isinstance(error, TransientError):
            self._tell_seldom(logging.WARNING, "busy", f"a request was not answered: {error}")
            again = {"retry-after": str(PATIENCE_S)}
            return self.answer(request, 503, "the store is busy: ask again in some seconds", again)
        self._tell_seldom(logging.ERROR, "damaged", f"a request could not be answered: {error}")
        status = 503 if isinstance(error, ConfigError) else 500
        return self.answer(
            request, status, "the store cannot show this; its operator finds the reason in the log"
        )

    def _tell_seldom(self, level: int, event: str, words: str) -> None:
        """Log what is in the way, once a minute: a probe or a crawler may ask all the time."""
        now = self._clock()
        with self._lock:
            if now - self._told.get(words, float("-inf")) < TOLD_AGAIN_S:
                return
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            self._told[words] = now
        tell(level, event, words)

    def _unforeseen(self, request: Request, _error: Exception) -> Response:
        return self.answer(request, 500, "this is a bug; its operator finds it in the log")


def root_of(request: Request) -> str:
    """Return the way from the address that was asked for to the root, as a relative reference.

    Slashes are counted as they were sent: one that is written as %2F ends nothing (RFC 3986, 2.2).
    """
    sent: bytes = request.scope.get("raw_path") or request.scope["path"].encode("utf-8")
    depth = max(sent.partition(b"?")[0].count(b"/") - 1, 0)
    # Nothing is that deep; a page of errors must not be a thousand times what was asked for.
    return "../" * depth if depth <= _DEEPEST else "/"
