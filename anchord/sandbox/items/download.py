"""Downloads: files of items, and members of ZIP files without downloading the whole.

As the real site does, `/download/...` answers with a redirect to the machine that holds the item;
here to a path of the same service.
"""

from __future__ import annotations

import mimetypes
import zipfile
from urllib.parse import quote, urlencode

from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.store import Item
from anchord.sandbox.items.target import Target
from anchord.sandbox.items.tasks import Version
from anchord.sandbox.web import Answer, Request

VIEW = "/view_archive.php"
_BINARY = "application/octet-stream"
_MAX_MEMBER = 1 << 28


def item_dir(item: Item) -> str:
    """Return the folder of an item on its machine."""
    return f"/{item.number % 36}/items/{item.identifier}"


class Downloads:
    """What can be fetched from items."""

    def __init__(self, archive: ItemsArchive) -> None:
        self._archive = archive

    def download(self, request: Request, target: Target) -> Answer:
        """Answer `/download/<item>/<file>` and `/download/<item>/<zip>/<member>`."""
        self._archive.tally.add("downloads")
        refused = _struck(request)
        if refused is not None:
            return refused
        _, identifier, *rest = target.parts
        item, name = self._open_item(identifier), "/".join(rest)
        if item is None:
            return _page(404, "Item not available")
        if item.dark:
            return _page(403, "The item is not available due to issues with the item's content.")
        if name in item.files:
            return _moved(f"{item_dir(item)}/{quote(name)}")
        container, member = _inside(item, name)
        if container is None:
            return _page(404, "Page not found")
        query = urlencode({"archive": f"{item_dir(item)}/{container}", "file": member})
        return _moved(f"{VIEW}?{query}")

    def data(self, request: Request, target: Target) -> Answer:
        """Answer what a redirect led to: a file, or a member of a ZIP file."""
        refused = _struck(request)
        if refused is not None:
            return refused
        inside = target.path == VIEW
        whole = target.query.get("archive", "") if inside else "/".join(target.parts)
        version = self._version(whole.strip("/"))
        if version is None:
            return _page(404, "404 Not Found")
        member = target.query.get("file", "") if inside else None
        answer = self._whole(version) if member is None else self._member(version, member)
        if request.fault_is("download-corrupt"):
            answer = _flipped(answer)
        self._archive.tally.add("download_bytes", answer.length)
        return answer

    def _version(self, path: str) -> Version | None:
        """Return the file at `<n>/items/<item>/<file>`; None: there is none to be had."""
        _, _, rest = path.partition("/items/")
        identifier, _, name = rest.partition("/")
        item = self._open_item(identifier)
        return None if item is None or item.dark else item.files.get(name)

    def _open_item(self, identifier: str) -> Item | None:
        item = self._archive.item(identifier)
        return item if item is not None and item.shown else None

    def _whole(self, version: Version) -> Answer:
        path = self._archive.blob(version)
        kind = mimetypes.guess_type(version.name)[0] or _BINARY
        return Answer(200, b"", kind, file=path) if path.exists() else _page(404, "404 Not Found")

    def _member(self, version: Version, member: str) -> Answer:
        try:
            with zipfile.ZipFile(self._archive.blob(version)) as container:
                if container.getinfo(member).file_size > _MAX_MEMBER:
                    return _page(500, "file too large to be viewed")
                body = container.read(member)
        except (KeyError, zipfile.BadZipFile, FileNotFoundError):
            return _page(404, "404 Not Found")
        return Answer(200, body, mimetypes.guess_type(member)[0] or _BINARY)


def _inside(item: Item, name: str) -> tuple[str | None, str]:
    """Return the ZIP file a path leads into, and the member."""
    for file in item.files:
        if file.lower().endswith(".zip") and name.startswith(file + "/"):
            return file, name[len(file) + 1 :]
    return None, ""


def _struck(request: Request) -> Answer | None:
    if request.fault_is("download-missing"):
        return _page(404, "Page not found")
    if request.fault_is("download-503"):
        return _page(503, "Temporarily Offline")
    return None


def _flipped(answer: Answer) -> Answer:
    """Return other bytes of the same length."""
    body = b"".join(answer.pieces(answer.length))
    other = bytes([body[0] ^ 0xFF]) + body[1:] if body else body
    return Answer(answer.status, other, answer.content_type, answer.headers)


def _moved(location: str) -> Answer:
    return Answer(302, b"", "text/html", (("Location", location),))


def _page(status: int, words: str) -> Answer:
    return Answer(status, f"<html><body><h1>{words}</h1></body></html>".encode(), "text/html")
