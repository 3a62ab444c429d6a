"""The routes of the dashboard: the whole registry, parked work, events as they come, audits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from anchord.app.face.rendering import render
from anchord.app.report.contents import moment
from anchord.app.web import overview
from anchord.app.web.answers import PAGE_HEADERS
from anchord.app.web.audit_page import AuditPage
from anchord.app.web.figures import Board
from anchord.app.web.happenings import Happening, happening
from anchord.app.web.problems import Problem
from anchord.app.web.stream import MOST_STREAMS, Feed, Stream
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from anchord.app.web.face import Face
    from anchord.app.web.figures import Figures

RECENT = 100
"""Events on their page."""
_FEW = 10
PATIENCE_S = 5.0
"""How long the first reader waits for numbers; later ones never do."""
_FRESH = {"cache-control": "no-store"}
_HEADERS = {**PAGE_HEADERS, **_FRESH}
_LAST_ID = "last-event-id"
_LONGEST_ID = 18
"""Digits; a ledger's sequence numbers have 64 bits."""
_READING = (
    "The records are being counted for the first time: a large store takes some seconds. This page "
    "loads again by itself."
)
_SOON = {"refresh": "3"}
"""Loads a page again without a script (https://html.spec.whatwg.org, 7.4.7)."""
_UNREADABLE = "The store cannot be read now. Why stands in the log of anchord serve."


def dashboard_routes(face: Face) -> list[BaseRoute]:
    """Return the routes; nothing is opened until somebody asks."""
    pages = Pages(face)
    return [
        Route("/", pages.overview),
        Route("/parked", pages.parked),
        Route("/events", pages.events),
        Route("/events.stream", pages.stream),
        Route("/audit", pages.audit),
        Route("/audit.json", pages.audit_json),
    ]


class Pages:
    """The pages, over one store.

    Args:
        face: the store that is shown.
    """

    def __init__(self, face: Face) -> None:
        self._face = face
        self._board = Board(face)
        self._feed = Feed(face, self._board)
        self._audit = AuditPage(face)

    def overview(self, _request: Request) -> Response:
        """Answer how complete the registry is, what is under way, and how everybody does."""
        figures = self._board.latest(PATIENCE_S)
        shown = overview.overview(self._face.loaded.config, figures, int(time.time()))
        return self._page(
            "dashboard.html", figures, here="", shown=shown, number=figures.number,
            events=self._newest(_FEW) or (), few=_FEW, lines=overview.LINES, share=overview.share,
            day_words=overview.day_words,
        )  # fmt: skip

    def parked(self, _request: Request) -> Response:
        """Answer what is parked, why, and what to type."""
        figures = self._board.latest(PATIENCE_S)
        as_of = moment(int(figures.reading.known_at or 0))
        return self._page("parked.html", figures, here="parked", kinds=figures.parked, as_of=as_of)

    def events(self, _request: Request) -> Response:
        """Answer the newest events."""
        found = self._newest(RECENT)
        page = render(
            "events.html", root="", site=self._face.site, here="events", events=found or (),
            most=RECENT, trouble=_UNREADABLE if found is None else "",
        )  # fmt: skip
        return HTMLResponse(page, 503 if found is None else 200, headers=_HEADERS)

    async def stream(self, request: Request) -> Response:
        """Answer with events as they come, from where the reader was."""
        if self._feed.full:
            words = f"{MOST_STREAMS} readers follow the events already: try again in a minute"
            raise Problem(503, words, {"retry-after": "60"})
        return Stream(self._feed.messages(_last_seen(request.headers, request.query_params)))

    def audit(self, _request: Request) -> Response:
        """Answer the newest audit that the operator shows."""
        page, status = self._audit.answer()
        return HTMLResponse(page, status, headers=_HEADERS)

    def audit_json(self, _request: Request) -> Response:
        """Answer the newest report as JSON."""
        document = self._audit.document()
        if document is None:
            raise Problem(404, "there is no report: the operator names one in web.audit_report")
        return Response(document, media_type="application/json", headers=_FRESH)

    def _newest(self, count: int) -> list[Happening] | None:
        """Return the newest events, asked anew, for that is cheap; None: they cannot be read."""
        try:
            with self._face.readers.lend() as store:
                return [happening(event) for event in reversed(store.faces.recent(None, count))]
        except AnchordError:
            return None

    def _page(self, template: str, figures: Figures, **values: object) -> Response:
        missing = figures.reading.measured is None
        counting = missing and not figures.number
        trouble = _READING if counting else _UNREADABLE if missing else ""
        page = render(template, root="", site=self._face.site, trouble=trouble, **values)
        status = 503 if missing and not counting else 200
        return HTMLResponse(page, status, headers=_HEADERS | (_SOON if counting else {}))


def _last_seen(headers: Mapping[str, str], query: Mapping[str, str]) -> int | None:
    """Return which event a reader has; the browser's own word counts before the page's."""
    for text in (headers.get(_LAST_ID), query.get("after")):
        if text and text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID:
            return int(text)
    return None
