"""Answers that are documents: their bytes, a tag of these, and who may keep them for how long.

RFC 9110, 8.8.3 and 13.1.2 (ETag, If-None-Match), RFC 9111 (Cache-Control).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from starlette.responses import Response

from anchord.app.face.rendering import CSP

if TYPE_CHECKING:
    from starlette.requests import Request

ASK_AGAIN = "no-cache"
"""It may be kept, and is asked for again each time: most answers then have no body."""
FOR_EVER = "public, max-age=31536000, immutable"
"""Its name changes with its content."""
FOR_MINUTES = "public, max-age=300"
FOR_HOURS = "public, max-age=3600"
PAGE_HEADERS = {"content-security-policy": f"{CSP}; frame-ancestors 'none'"}
"""Pages of ours load their own style and script, and nothing else."""
_HEX_DIGITS = 32


def answer(
    request: Request, data: bytes, media_type: str, keep: str = ASK_AGAIN, *, varies: bool = False
) -> Response:
    """Return a document, or that it is still the one the client has.

    Args:
        request: what was asked.
        data: the document.
        media_type: of it; pages get the headers of pages.
        keep: the Cache-Control.
        varies: the same address answers in other forms, too.
    """
    tag = hashlib.sha256(data).hexdigest()[:_HEX_DIGITS]
    headers = {"etag": f'"{tag}"', "cache-control": keep}
    if varies:
        headers["vary"] = "Accept"
    if media_type.startswith("text/html"):
        headers |= PAGE_HEADERS
    if _has(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=media_type, headers=headers)


def _has(request: Request, tag: str) -> bool:
    """Tell whether the client says that it has this document; compared weakly (RFC 9110)."""
    stated = ",".join(request.headers.getlist("if-none-match")).split(",")
    return any(text.strip().removeprefix("W/") in (f'"{tag}"', "*") for text in stated)
