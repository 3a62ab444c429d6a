"""Ways from any name of a record to the record: 303 to the one that is meant, 300 with several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from anchord.app.face.context import address
from anchord.app.face.documents import encoded
from anchord.app.face.openapi import LONGEST_REFERENCE
from anchord.app.face.rendering import render
from anchord.app.web import negotiation
from anchord.app.web.answers import ASK_AGAIN, PAGE_HEADERS
from anchord.app.web.finding import find, place_of_digest, place_of_record
from anchord.app.web.parameters import text_of
from anchord.app.web.problems import Problem, root_of
from anchord.core.moment import utc
from anchord.core.reference import FORMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.app.face.site import Site
    from anchord.app.web.face import Face
    from anchord.core.model import StoredRecord
    from anchord.ports.face import Listed

_MEDIA = (negotiation.JSON, negotiation.HTML)


def lookup_routes(face: Face) -> list[BaseRoute]:
    """Return the route of look-ups."""

    def lookup(request: Request) -> Response:
        """Lead from a name to the record."""
        text = text_of(request, "ref", LONGEST_REFERENCE)
        if not text:
            raise Problem(400, "ref: expected a name of a record, as in /lookup?ref=2507.10392")
        with face.readers.lend() as store:
            found = find(store, text)
            if not found:
                raise Problem(
                    404,
                    f"no record {text.strip()!r:.100} here: expected {FORMS}, or the id that "
                    "another source gave",
                )
            if len(found) > 1:
                return matches(request, face, store, text, found)
            return leading_to(request, place_of_record(found[0]))

    return [Route("/lookup", lookup)]


def leading_to(request: Request, path: str) -> Response:
    """Return what leads to a path below the root; the address is relative, whatever the host."""
    headers = {"location": root_of(request) + path, "cache-control": ASK_AGAIN}
    return Response(status_code=303, headers=headers)


def matches(
    request: Request, face: Face, store: SqlReadingStore, text: str, found: Sequence[StoredRecord]
) -> Response:
    """Return the list of records that a name means."""
    rows = store.faces.listed([record.id for record in found], face.readers.keyring())
    root, headers = root_of(request), {"cache-control": ASK_AGAIN, "vary": "Accept"}
    if negotiation.preferred(request, _MEDIA) == negotiation.HTML:
        page = render(
            "matches.html", root=root, site=face.site, here="records", reference=text,
            rows=[row_of(row, face.site, root) for row in rows], network=face.test_network,
        )  # fmt: skip
        return Response(page, 300, {**headers, **PAGE_HEADERS}, media_type=negotiation.HTML)
    document = {"reference": text, "matches": [row_of(row, face.site, root) for row in rows]}
    return Response(encoded(document), 300, headers, media_type=negotiation.JSON)


def row_of(row: Listed, site: Site, root: str) -> dict[str, Any]:
    """Return a record of a list, as documents and pages have it."""
    source = None
    if row.source_id is not None:
        source = {"kind": row.source_kind, "id": row.source_id, "version": row.source_version}
    numbered = row.name.startswith("pith:")
    place = place_of_digest(row.digest, numbered=numbered)
    return {
        "name": row.name,
        "pith_number": row.name if numbered else None,
        "canonical_sha256": row.digest.hex(),
        "source": source,
        "label": row.label,
        "added_at": utc(row.added_at),
        "anchored": row.anchored,
        "stored": row.stored,
        "url": address(site, place, root),
        "json": address(site, f"{place}.json", root),
    }
