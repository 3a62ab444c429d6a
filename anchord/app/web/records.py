"""Routes of records: pages and documents at their own addresses, and ways there from other names.

What is made of a view comes from `anchord.app.face.files`, byte for byte as a published tree has
it. A record has one address; every other name of it leads there (303), and a name of several lists
them (300).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from anchord.app.face.files import (
    JSON,
    JSON_LD,
    PAGE,
    PROOF_TYPE,
    RECORD_FILES,
    RESOLVER,
    SVG,
)
from anchord.app.web import negotiation
from anchord.app.web.about import about_routes
from anchord.app.web.answers import ASK_AGAIN, FOR_MINUTES, answer
from anchord.app.web.certificates import Certificates
from anchord.app.web.finding import (
    CERTIFICATE,
    PROOF,
    Asked,
    find,
    place_of_record,
    read_asked,
)
from anchord.app.web.listing import list_routes
from anchord.app.web.lookup import leading_to, lookup_routes, matches
from anchord.app.web.problems import Problem
from anchord.app.web.views import Views
from anchord.engine.export import ots_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.app.web.face import Face
    from anchord.core.model import StoredRecord

_MADE = {one.name: one for one in RECORD_FILES}
_FORMS = (negotiation.HTML, negotiation.JSON_LD, negotiation.JSON)
_PDF = "application/pdf"


def record_routes(face: Face) -> list[BaseRoute]:
    """Return all routes about records."""
    records = _Records(face)
    return [
        Route("/pith/{rest:path}", records.numbered),
        Route("/record/{rest:path}", records.unnumbered),
        Route("/.well-known/pith/{suffix}/bundle.json", records.well_known),
        *lookup_routes(face),
        *list_routes(face),
        *about_routes(face),
    ]


class _Records:
    """Answers for single records; threads share it."""

    def __init__(self, face: Face) -> None:
        self._face, self._views = face, Views(face.readers)
        self._certificates = Certificates(face)

    def numbered(self, request: Request) -> Response:
        return self._record(request, "pith", read_asked(request.path_params["rest"]))

    def unnumbered(self, request: Request) -> Response:
        return self._record(request, "record", read_asked(request.path_params["rest"]))

    def well_known(self, request: Request) -> Response:
        return self._record(request, "pith", Asked(request.path_params["suffix"], "bundle.json"))

    def _record(self, request: Request, folder: str, asked: Asked) -> Response:
        mark = self._views.mark()
        with self._face.readers.lend() as store:
            found = find(store, asked.name)
            if not found:
                raise Problem(404, _ABSENT)
            if len(found) > 1:
                return matches(request, self._face, store, asked.name, found)
            place = place_of_record(found[0])
            if place != f"{folder}/{asked.name}":
                return leading_to(request, asked.path(place))
            return self._file(request, store, found[0], asked, mark)

    def _file(
        self, request: Request, store: SqlReadingStore, record: StoredRecord, asked: Asked,
        mark: object,
    ) -> Response:  # fmt: skip
        if asked.file == PROOF:
            return _proof(request, store, record)
        if asked.file == CERTIFICATE:
            data = self._certificates.pdf(store, record, mark)
            return answer(request, data, _PDF)
        name, kind, varies = _form(request, asked.file)
        if name == RESOLVER and asked.file is None and request.scope["path"].endswith("/"):
            # Relative addresses in it count from here without the slash.
            return leading_to(request, asked.path(place_of_record(record)))
        made = _MADE[name].make(self._views.view(store, record, mark), self._face.site)
        keep = FOR_MINUTES if kind == SVG else ASK_AGAIN
        return answer(request, made, kind, keep, varies=varies)


def _form(request: Request, file: str | None) -> tuple[str, str, bool]:
    """Return which file answers, as which media type, and whether that depends on the request."""
    if file is None:
        wanted = negotiation.preferred(request, _FORMS)
        if wanted == negotiation.HTML:
            return PAGE, _MADE[PAGE].media_type, True
        return RESOLVER, wanted, True
    kind = _MADE[file].media_type
    if kind == JSON_LD:
        return file, negotiation.preferred(request, (JSON_LD, JSON)), True
    return file, kind, False


def _proof(request: Request, store: SqlReadingStore, record: StoredRecord) -> Response:
    found = ots_of(store, record)
    if found is None:
        raise Problem(404, "no calendar has answered for this record yet: ask again in some hours")
    return answer(request, found.data, PROOF_TYPE)


_ABSENT = (
    "no such record here: understood are Pith Numbers, 8 or more characters of one, SHA-256 "
    "digests, arXiv ids and DOIs"
)
