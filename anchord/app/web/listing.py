"""Routes of lists: all records, the newest first, and those that a name or a word picks out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from anchord.app.face.documents import encoded
from anchord.app.face.openapi import LONGEST_REFERENCE, MOST_ROWS, ROWS
from anchord.app.face.rendering import render
from anchord.app.web import negotiation
from anchord.app.web.answers import answer
from anchord.app.web.finding import find, place_of_record
from anchord.app.web.lookup import leading_to, row_of
from anchord.app.web.parameters import number_of, text_of, word_of
from anchord.app.web.problems import Problem, root_of
from anchord.ports.face import ANCHORED_WORDS, STORED_WORDS, Listing

if TYPE_CHECKING:
    from starlette.requests import Request

    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.app.web.face import Face
    from anchord.core.keyring import Keyring

_FORMS = (negotiation.HTML, negotiation.JSON)
_LAST_CURSOR = 10**18 - 1
_LONGEST_SOURCE = 256
_CONTROL = re.compile("[\x00-\x1f\x7f]")
"""No kind of source has these, and databases take not all of them."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a list is asked for."""

    q: str
    anchored: str | None
    stored: str | None
    source: str | None
    cursor: int | None
    limit: int

    @property
    def filtered(self) -> bool:
        """Whether anything but a name picks records out."""
        return any((self.anchored, self.stored, self.source, self.cursor))

    def query(self, cursor: int | None) -> str:
        """Return the same question for the part that begins at a cursor."""
        asked = {"q": self.q, "anchored": self.anchored, "stored": self.stored,
                 "source": self.source, "cursor": cursor}  # fmt: skip
        if self.limit != ROWS:
            asked["limit"] = self.limit
        return urlencode({name: value for name, value in asked.items() if value})


def list_routes(face: Face) -> list[BaseRoute]:
    """Return the routes of lists."""

    def records_json(request: Request) -> Response:
        """Answer with a part of the list."""
        wanted = _wanted(request)
        with face.readers.lend() as store:
            listing = _listing(store, wanted, face.readers.keyring())
        return _document(request, face, wanted, listing, "records.json", varies=False)

    def records(request: Request) -> Response:
        """Answer with a part of the list, for people or for programs."""
        wanted = _wanted(request)
        people = negotiation.preferred(request, _FORMS) == negotiation.HTML
        with face.readers.lend() as store:
            if people and wanted.q.strip() and not wanted.filtered:
                found = find(store, wanted.q)
                if len(found) == 1:
                    return leading_to(request, place_of_record(found[0]))
            listing = _listing(store, wanted, face.readers.keyring())
        if not people:
            return _document(request, face, wanted, listing, "records", varies=True)
        return _page(request, face, wanted, listing)

    return [Route("/records", records), Route("/records.json", records_json)]


def _wanted(request: Request) -> Wanted:
    return Wanted(
        q=text_of(request, "q", LONGEST_REFERENCE),
        anchored=word_of(request, "anchored", ANCHORED_WORDS),
        stored=word_of(request, "stored", STORED_WORDS),
        source=_source(request),
        cursor=number_of(request, "cursor", 0, _LAST_CURSOR),
        limit=number_of(request, "limit", 1, MOST_ROWS) or ROWS,
    )


def _source(request: Request) -> str | None:
    text = text_of(request, "source", _LONGEST_SOURCE)
    if _CONTROL.search(text):
        raise Problem(400, "source: expected a kind of source, such as arxiv, got what is no text")
    return text or None


def _listing(store: SqlReadingStore, wanted: Wanted, keyring: Keyring) -> Listing:
    if not wanted.q.strip():
        return store.faces.page(
            before=wanted.cursor, limit=wanted.limit, anchored=wanted.anchored,
            stored=wanted.stored, source=wanted.source, keyring=keyring,
        )  # fmt: skip
    # A name means few records, so all of them are one part of a list.
    found = [record.id for record in reversed(find(store, wanted.q))]
    rows = store.faces.listed(found, keyring)
    kept = [
        row
        for row in rows
        if wanted.anchored in (None, row.anchored)
        and wanted.stored in (None, row.stored)
        and wanted.source in (None, row.source_kind)
        and (wanted.cursor is None or row.id < wanted.cursor)
    ]
    last = kept[wanted.limit - 1].id if len(kept) > wanted.limit else None
    return Listing(tuple(kept[: wanted.limit]), last)


def _document(
    request: Request, face: Face, wanted: Wanted, listing: Listing, path: str, *, varies: bool
) -> Response:
    root, more = root_of(request), None
    if listing.next is not None:
        more = f"{root}{path}?{wanted.query(listing.next)}"
    document: dict[str, Any] = {
        "records": [row_of(row, face.site, root) for row in listing.rows],
        "next": more,
    }
    found = answer(request, encoded(document), negotiation.JSON, varies=varies)
    if more is not None:
        found.headers["link"] = f'<{more}>; rel="next"'
    return found


def _page(request: Request, face: Face, wanted: Wanted, listing: Listing) -> Response:
    root = root_of(request)
    page = render(
        "records.html", root=root, site=face.site, here="records", wanted=wanted,
        rows=[row_of(row, face.site, root) for row in listing.rows],
        more=None if listing.next is None else f"?{wanted.query(listing.next)}",
        anchored_words=ANCHORED_WORDS, stored_words=STORED_WORDS, network=face.test_network,
    )  # fmt: skip
    return answer(request, page, f"{negotiation.HTML}; charset=utf-8", varies=True)
