"""The two hosts of archive.org items as services of the sandbox.

Each answers for the other one too when a request names it, so that one port can stand in for both.
"""

from __future__ import annotations

from typing import Protocol

from anchord.sandbox.items.api import ArchiveOrg
from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.faults import ARCHIVE_ORG, IAS3
from anchord.sandbox.items.ias3 import Ias3
from anchord.sandbox.items.target import Target
from anchord.sandbox.web import Answer, Request

_SIDES = {"s3.us.archive.org": IAS3, "archive.org": ARCHIVE_ORG}


class Side(Protocol):
    """What one host says."""

    def route(self, method: str, target: Target) -> str:
        """Return the name under which a request is counted and struck by faults."""
        ...

    def answer(self, request: Request, target: Target) -> Answer:
        """Return the right answer, or the fault of the request."""
        ...


class ItemsService:
    """One port; a service of the sandbox.

    Args:
        name: `ias3` or `archive-org`: for whom it speaks when a request names nobody.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, name: str, archive: ItemsArchive) -> None:
        self.name = name
        self.archive = archive
        self._sides: dict[str, Side] = {IAS3: Ias3(archive), ARCHIVE_ORG: ArchiveOrg(archive)}

    def route(self, method: str, path: str) -> str:
        """Return `put`, `delete`, `head`, `check-limit`, `metadata`, `download`, ... or `other`."""
        target = Target.of(path)
        return self._side(target.host).route(method, target)

    def answer(self, request: Request) -> Answer:
        """Answer as the named host does."""
        target = Target.of(request.path)
        host = target.host or request.headers.get("Host", "").partition(":")[0]
        return self._side(host).answer(request, target)

    def _side(self, host: str) -> Side:
        return self._sides[_SIDES.get(host, self.name)]


def item_services(archive: ItemsArchive) -> tuple[ItemsService, ItemsService]:
    """Return the upload host and the site, of one archive."""
    return ItemsService(IAS3, archive), ItemsService(ARCHIVE_ORG, archive)
