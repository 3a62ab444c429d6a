"""The stand-in for archive.org items on loopback, with a clock that stands still."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any, Self

import pytest

from anchord.sandbox import faults
from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.faults import FaultBoard, Kind
from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.faults import ARCHIVE_ORG, IAS3, ITEM_KINDS
from anchord.sandbox.items.front import item_services
from anchord.sandbox.items.rules import Rules
from anchord.sandbox.loopback import HOST, Acceptor, RequestCounts
from anchord.sandbox.web import Web

START = 1_796_032_800.0
KEYS = ("SANDBOXACCESS", "SANDBOXSECRET")
LOW = {"Authorization": f"LOW {KEYS[0]}:{KEYS[1]}"}
MAKE = {**LOW, "x-archive-auto-make-bucket": "1", "x-archive-queue-derive": "0"}
ITEM = "example-item-2026-11-30"
LONGEST_LAG = 1.0


class Said:
    """One answer, whole."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self) -> Any:
        return json.loads(self.body)


class ItemsSite:
    """Both services and their archive; a context manager."""

    def __init__(
        self, folder: Path, rules: Rules | None = None, clock: SandboxClock | None = None
    ) -> None:
        self.clock = clock or SandboxClock(START, frozen=True)
        self.archive = ItemsArchive(
            self.clock, folder, rules or Rules.quick(), access=KEYS[0], secret=KEYS[1]
        )
        self.board = FaultBoard([IAS3, ARCHIVE_ORG])
        self.counts = RequestCounts()
        self._acceptor = Acceptor(self.board, self.counts)
        web = Web(self._acceptor, self.board, self.counts)
        self.ports: dict[str, int] = {}
        for service in item_services(self.archive):
            listener = self._acceptor.listen(service.name)
            listener.serve = web.serve(service)
            self.ports[service.name] = listener.port

    def __enter__(self) -> Self:
        self._acceptor.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._acceptor.stop()
        self.archive.close()

    def url(self, service: str) -> str:
        return f"http://{HOST}:{self.ports[service]}"

    def call(
        self,
        service: str,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Said:
        connection = http.client.HTTPConnection(HOST, self.ports[service], timeout=10)
        try:
            connection.request(method, path, body, headers or {})
            return Said(connection.getresponse())
        finally:
            connection.close()

    def put(self, path: str, body: bytes, **headers: str) -> Said:
        """Upload; keywords are further headers, with "_" for "-"."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call(IAS3, "PUT", path, body, MAKE | more)

    def site(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> Said:
        return self.call(ARCHIVE_ORG, method, path, None, headers)

    def metadata(self, identifier: str = ITEM) -> Any:
        return self.site(f"/metadata/{identifier}").json()

    def files(self, identifier: str = ITEM) -> dict[str, Any]:
        """Return the listed files by name, without the archive's own."""
        rows = self.metadata(identifier).get("files", [])
        return {row["name"]: row for row in rows if row["format"] != "Metadata"}

    def download(self, path: str) -> Said:
        """Follow the redirects of a download, three at most."""
        for _ in range(4):
            said = self.site(path)
            if said.status != 302:
                return said
            path = said.headers["Location"]
        raise AssertionError("a download that never arrives")

    def limit(self, bucket: str = ITEM) -> Any:
        return self.call(IAS3, "GET", f"/?check_limit=1&accesskey={KEYS[0]}&bucket={bucket}").json()

    def settle(self) -> None:
        """Let every quick task run."""
        self.clock.advance(LONGEST_LAG + 0.01)

    def ready(self, name: str = "first.json", body: bytes = b"{}") -> None:
        """Have an item that is visible, with one file."""
        said = self.put(f"/{ITEM}/{name}", body)
        assert (said.status, said.body) == (200, b"")
        self.settle()


def know_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Teach the board the kinds of items, and the kinds of the wire for these services."""
    for name, row in ITEM_KINDS.items():
        monkeypatch.setitem(faults.KINDS, name, Kind(*row))


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def zipped(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as container:
        for name, body in members.items():
            container.writestr(name, body)
    return target.getvalue()
