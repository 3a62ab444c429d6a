"""Files of a published tree: whole, as they lie there, and nothing that lies elsewhere.

Starlette's own StaticFiles finds and sends them: it resolves every path, and refuses one that comes
out elsewhere, through symbolic links too (https://www.starlette.io/staticfiles/). Here stands what
a tree of receipts needs beside: types that do not depend on the machine, no hidden files, no parts
of files, and an answer that is looked at again each time.
"""

from __future__ import annotations

import stat
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles

if TYPE_CHECKING:
    import os

    from starlette.types import Receive, Scope, Send

TYPES = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ots": "application/vnd.opentimestamps.ots",
    ".html": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".jsonld": "application/ld+json",
    ".sty": "text/plain; charset=utf-8",
    ".zip": "application/zip",
}
"""By the end of the name; all else is bytes (https://www.iana.org/assignments/media-types)."""
_NOTES = ("checkpoint", "checkpoints")
"""Signed notes are text (c2sp.org/tlog-tiles); they stand in files or folders of this name."""
_WELL_KNOWN = ".well-known"
"""The one name with a dot before it that is served (RFC 8615)."""
_NOT_READ = (b"range", b"if-range", b"if-modified-since")
"""A tree can be published twice in a second, so no file's date says that it is still the same."""
_PAGE = "index.html"
_THERE, _ABSENT = 307, 404
PAGE_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Of pages: those that are published load a script of the tree; others bring styles along."""


class TreeFiles(StaticFiles):
    """A folder, to be read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; a part that is asked for is not looked at, which RFC 9110, 14.2 allows."""
        headers = [pair for pair in scope["headers"] if pair[0] not in _NOT_READ]
        await super().__call__({**scope, "headers": headers}, receive, send)

    def get_path(self, scope: Scope) -> str:
        """Return the path below the folder; each file has one name, all others are nothing's.

        The one exception is a page, which is at its folder's address, too; the folder's name
        without the slash leads there.
        """
        asked = scope["path"] + _PAGE * scope["path"].endswith("/")
        path = super().get_path({**scope, "path": asked})
        return path if f"/{path}" == asked else ""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Answer with a file, or with where the page of a folder is."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code != _ABSENT or not path or path.endswith(_PAGE):
                raise
            if not await run_in_threadpool(self._has_page, path):
                raise
            # Relative: the client's word for this host is nobody's to repeat.
            there = f"./{quote(PurePath(path).name)}/"
            return Response(status_code=_THERE, headers={"location": there})

    def _has_page(self, folder: str) -> bool:
        try:
            _, found = self.lookup_path(f"{folder}/{_PAGE}")
        except (OSError, ValueError):  # too long, or no name of a file
            return False
        return found is not None and stat.S_ISREG(found.st_mode)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Return where a path leads; nowhere when it is hidden, or this user may not read it."""
        if any(part.startswith(".") and part != _WELL_KNOWN for part in PurePath(path).parts):
            return "", None
        try:
            return super().lookup_path(path)
        except PermissionError:
            return "", None

    def file_response(
        self, full_path: os.PathLike[str] | str, stat_result: os.stat_result, scope: Scope,
        status_code: int = 200,
    ) -> Response:  # fmt: skip
        """Return a file with its type, or that it has not changed."""
        answer = FileResponse(
            full_path, status_code, media_type=type_of(PurePath(full_path)), stat_result=stat_result
        )
        if stat_result is not None:
            answer.headers["etag"] = _tag(stat_result)
        del answer.headers["last-modified"]
        answer.headers["accept-ranges"] = "none"
        answer.headers["cache-control"] = "no-cache"
        if PurePath(full_path).suffix == ".html":
            answer.headers["content-security-policy"] = PAGE_POLICY
        if self.is_not_modified(answer.headers, Headers(scope=scope)):
            return NotModifiedResponse(answer.headers)
        return answer


def _tag(found: os.stat_result) -> str:
    """Return what differs when a file was replaced or written to."""
    return f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_ctime_ns:x}-{found.st_size:x}"'


def type_of(path: PurePath) -> str:
    """Return the media type of a file of a tree."""
    known = TYPES.get(path.suffix)
    if known is not None:
        return known
    is_note = path.name in _NOTES or path.parent.name in _NOTES
    return TYPES[".txt"] if is_note else "application/octet-stream"
