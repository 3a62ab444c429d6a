"""Routes of what is there once: style, schemas, the description of the API, keys, the manifest."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from anchord.app.face.assets import FOLDER as ASSETS
from anchord.app.face.assets import asset
from anchord.app.face.files import about_files
from anchord.app.face.schemas import FOLDER as SCHEMAS
from anchord.app.web.answers import ASK_AGAIN, FOR_EVER, FOR_HOURS, answer
from anchord.app.web.problems import Problem
from anchord.app.web.tree import type_of
from anchord.core.merge import MERGE_VERSION
from anchord.core.mirror_manifest import MANIFEST, WELL_KNOWN
from anchord.core.moment import utc
from anchord.engine.publishing_about import KEY, About, key_files, mirror_manifest, signing_key

if TYPE_CHECKING:
    from starlette.requests import Request

    from anchord.app.web.face import Face
    from anchord.core.keyring import PublicKey

_JSON = "application/json"
ROBOTS = b"""\
User-agent: *
Disallow: /lookup
Disallow: /events.stream
Disallow: /*/certificate.pdf
"""
"""Crawlers need no look-ups, no streams, and nothing that is made at some cost (RFC 9309)."""


def about_routes(face: Face) -> list[BaseRoute]:
    """Return the routes of what is there once."""
    fixed = dict(about_files(face.site))
    keys = _Keys(face)

    def robots(request: Request) -> Response:
        return answer(request, ROBOTS, "text/plain", FOR_HOURS)

    def icon(request: Request) -> Response:
        """Answer what browsers ask for beside everything that is no page."""
        return answer(request, fixed[asset("icon.svg")], "image/svg+xml", FOR_HOURS)

    routes: list[BaseRoute] = [_fixed(path, data) for path, data in fixed.items()]
    for folder in ("/", f"/{WELL_KNOWN}"):
        routes.append(Route(folder + MANIFEST, keys.manifest))
        routes.append(Route(folder + KEY, keys.active))
    return [*routes, Route("/keys/{name}.json", keys.one), Route("/robots.txt", robots),
            Route("/favicon.ico", icon)]  # fmt: skip


def _fixed(path: str, data: bytes) -> Route:
    keep = FOR_EVER if path.startswith(ASSETS + "/") else FOR_HOURS
    kind = (
        "application/schema+json"
        if path.startswith(SCHEMAS + "/")
        else type_of(PurePosixPath(path))
    )

    def fixed(request: Request) -> Response:
        return answer(request, data, kind, keep)

    return Route(f"/{path}", fixed)


class _Keys:
    """Answers about keys, and the manifest, which names one."""

    def __init__(self, face: Face) -> None:
        self._face = face

    def active(self, request: Request) -> Response:
        """Answer with the public key that signs now."""
        key = self._key()
        data = signing_key(self._face.readers.keyring(), key.key_id)
        return answer(request, data, _JSON, ASK_AGAIN)

    def one(self, request: Request) -> Response:
        """Answer with one key of the keyring."""
        files = dict(key_files(self._face.readers.keyring()))
        data = files.get(f"keys/{request.path_params['name']}.json")
        if data is None:
            raise Problem(404, "no such key in the keyring")
        return answer(request, data, _JSON, ASK_AGAIN)

    def manifest(self, request: Request) -> Response:
        """Answer with the manifest of this server: bundles by their names, and no index.

        An index is signed, and this process has no private key; a published tree has one.
        """
        key, site = self._key(), self._face.site
        about = About(
            name=site.name, merge_version=MERGE_VERSION, base_url=site.base_url, indexed=False
        )
        # What it says changes with the key at most, so that is its moment.
        made_at = utc(key.valid_from or 0)
        data = mirror_manifest(about, self._face.readers.keyring(), key.key_id, made_at)
        return answer(request, data, _JSON, ASK_AGAIN)

    def _key(self) -> PublicKey:
        key = self._face.readers.keyring().active()
        if key is None:
            raise Problem(404, "no key signs here")
        return key
