"""archive.org's side of items in a few lines: what is uploaded is listed, unless told otherwise.

Not the sandbox's faithful service: this one says exactly what a test wants said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from support.http_server import Asked, ScriptedServer, Step, reply

Steps = Iterable[bytes | float | Step]
JSON = "Content-Type: application/json\r\n"


def json_reply(value: Any, status: str = "200 OK") -> bytes:
    return reply(json.dumps(value).encode(), status, JSON)


class ItemService:
    """One port for archive.org, its S3 and its nodes; a context manager.

    Attributes:
        said: route -> steps to take instead of the right answer, once each, in order.
        items: identifier -> metadata document.
        files: (identifier, name) -> bytes.
    """

    def __init__(self) -> None:
        self.said: dict[str, list[Steps]] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.files: dict[tuple[str, str], bytes] = {}
        self.routes: list[str] = []
        self._server = ScriptedServer(self._script)
        self.url = self._server.url

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.__exit__(*exception)

    @property
    def asked(self) -> list[Asked]:
        return self._server.asked

    def say(self, route: str, *steps: bytes | float | Step) -> None:
        self.said.setdefault(route, []).append(steps)

    def _script(self, asked: Asked) -> Steps:
        url = urlsplit(asked.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        parts = [unquote(part) for part in url.path.split("/") if part]
        route = self._route(asked, parts, query)
        self.routes.append(route)
        if self.said.get(route):
            return self.said[route].pop(0)
        return [getattr(self, f"_{route}")(asked, parts, query)]

    def _route(self, asked: Asked, parts: list[str], query: dict[str, str]) -> str:
        if asked.method == "PUT":
            return "put"
        if parts[:1] == ["metadata"]:
            return "metadata"
        if parts[:1] == ["download"]:
            return "download"
        if parts[:1] == ["services"]:
            return "tasks"
        return "limit" if "check_limit" in query else "auth"

    def _metadata(self, _asked: Asked, parts: list[str], _query: dict[str, str]) -> bytes:
        return json_reply(self.items.get(parts[1], {}))

    def _tasks(self, _asked: Asked, _parts: list[str], _query: dict[str, str]) -> bytes:
        summary = {"queued": 1, "running": 0, "error": 0, "paused": 0}
        return json_reply({"success": True, "value": {"summary": summary}})

    def _limit(self, _asked: Asked, _parts: list[str], query: dict[str, str]) -> bytes:
        detail = {
            "accesskey_ration": 74,
            "accesskey_tasks_queued": 4,
            "bucket_ration": 24,
            "bucket_tasks_queued": 1,
            "limit_reason": f"none for {query['accesskey']}",
            "total_global_limit": 1799,
            "total_tasks_queued": 1017,
        }
        return json_reply({"accesskey": query["accesskey"], "detail": detail, "over_limit": 0})

    def _auth(self, _asked: Asked, _parts: list[str], _query: dict[str, str]) -> bytes:
        return json_reply({"username": "someone@example.org", "itemname": "@someone"})

    def _put(self, asked: Asked, parts: list[str], _query: dict[str, str]) -> bytes:
        identifier, name = parts
        md5 = hashlib.md5(asked.body, usedforsecurity=False).hexdigest()
        assert asked.headers["content-md5"] == md5
        prefix = "x-archive-meta00-"
        metadata = {
            header.removeprefix(prefix).replace("--", "_"): value
            for header, value in asked.headers.items()
            if header.startswith(prefix)
        }
        item = self.items.setdefault(
            identifier, {"metadata": {**metadata, "identifier": identifier}, "files": []}
        )
        file = {"name": name, "size": str(len(asked.body)), "md5": md5}
        sha1 = hashlib.sha1(asked.body, usedforsecurity=False).hexdigest()
        item["files"].append({**file, "sha1": sha1})
        self.files[identifier, name] = asked.body
        return reply()

    def _download(self, _asked: Asked, parts: list[str], _query: dict[str, str]) -> bytes:
        body = self.files.get((parts[1], parts[2]))
        return reply(b"", "404 Not Found") if body is None else reply(body)
