"""All files that are made of one record, and all that are there once.

`anchord serve` answers with these bytes and `anchord mirror publish` writes them, so both give the
same. `proof.ots` is not made of a view: whoever has the store adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from anchord.app.face.assets import ASSETS
from anchord.app.face.badge import badge
from anchord.app.face.context import CONTEXT_FILE, context_bytes
from anchord.app.face.documents import events, resolver
from anchord.app.face.graph import graph
from anchord.app.face.latex_package import pith_sty
from anchord.app.face.llms import llms
from anchord.app.face.openapi import openapi
from anchord.app.face.page import page
from anchord.app.face.schemas import schema_files
from anchord.app.face.site import Site, place_of
from anchord.core.canonical import canonical_bytes
from anchord.core.record_view import RecordView

Maker: TypeAlias = Callable[[RecordView, Site], bytes]

PAGE, RESOLVER = "index.html", "record.json"
HTML, JSON, JSON_LD = "text/html; charset=utf-8", "application/json", "application/ld+json"
SVG, PROOF_TYPE = "image/svg+xml", "application/vnd.opentimestamps.ots"
LLMS, OPENAPI, STYLE = "llms.txt", "openapi.json", "pith.sty"


class RecordFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a record."""

    name: str
    """In the record's folder; `record.json` lies beside it, as `<folder>.json`."""
    media_type: str
    make: Maker

    def path(self, place: str) -> str:
        """Return where it is below the root; `place` is what `place_of` says of the record."""
        return f"{place}.json" if self.name == RESOLVER else f"{place}/{self.name}"


def _bundle(view: RecordView, _site: Site) -> bytes:
    return view.raw


def _state(view: RecordView, _site: Site) -> bytes:
    return canonical_bytes(view.state) + b"\n"


def _badge(view: RecordView, _site: Site) -> bytes:
    return badge(view)


RECORD_FILES = (
    RecordFile(name="bundle.json", media_type=JSON, make=_bundle),
    RecordFile(name="state.json", media_type=JSON, make=_state),
    RecordFile(name="graph.json", media_type=JSON_LD, make=graph),
    RecordFile(name="events.json", media_type=JSON_LD, make=events),
    RecordFile(name="badge.svg", media_type=SVG, make=_badge),
    RecordFile(name=RESOLVER, media_type=JSON_LD, make=resolver),
    RecordFile(name=PAGE, media_type=HTML, make=page),
)
"""In the order in which a tree is written: evidence first, the page that leads to it last."""


def files_of(view: RecordView, site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield path below the root and bytes of every file that is made of a record."""
    place = place_of(view.bundle)
    for one in RECORD_FILES:
        yield one.path(place), one.make(view, site)


def about_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield path below the root and bytes of what is there once."""
    yield from ASSETS.items()
    yield from schema_files().items()
    yield CONTEXT_FILE, context_bytes()
    yield LLMS, llms(site)
    yield OPENAPI, openapi(site)
    yield STYLE, pith_sty(site)
