"""The site (archive.org): metadata, tasks, and the way to downloads.

Metadata: https://archive.org/developers/md-read.html. Tasks:
https://archive.org/developers/tasks.html.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import unquote

from anchord.sandbox.items import headers as said
from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.download import VIEW, Downloads, item_dir
from anchord.sandbox.items.store import Item
from anchord.sandbox.items.target import Target
from anchord.sandbox.items.tasks import Version, done_row, summary, wait_admin, waiting_row
from anchord.sandbox.web import Answer, Request

_TASKS = "/services/tasks.php"
_PAGE = Answer(200, b"<html><body>Internet Archive</body></html>", "text/html")
_LIBRARY = "internetarchive/"
_FORMATS = {"zip": "ZIP", "json": "JSON", "jsonl": "JSON Lines", "txt": "Text"}
_SERVERS = ("ia600000.us.archive.org", "ia800000.us.archive.org")
_MAX_ROWS = 500


class ArchiveOrg:
    """What the site says."""

    def __init__(self, archive: ItemsArchive) -> None:
        self._archive = archive
        self._downloads = Downloads(archive)

    def route(self, method: str, target: Target) -> str:
        """Return `metadata`, `tasks`, `rate-limits`, `download`, `data` or `other`."""
        if method not in {"GET", "HEAD"}:
            return "other"
        if target.path == _TASKS:
            return "rate-limits" if "rate_limits" in target.query else "tasks"
        parts = target.parts
        if target.path == VIEW or parts[1:2] == ["items"]:
            return "data"
        known = parts[0] if len(parts) > 1 else ""
        return known if known in {"metadata", "download"} else "other"

    def answer(self, request: Request, target: Target) -> Answer:
        """Answer as the site does."""
        self._watch_keys(request)
        route = self.route(request.method, target)
        if route == "metadata":
            return self._metadata(request, target)
        if route == "tasks":
            return self._tasks(request, target)
        if route == "rate-limits":
            return self._rate_limits(request, target)
        if route == "download":
            return self._downloads.download(request, target)
        if route == "data":
            return self._downloads.data(request, target)
        return Answer(404, b"<html><body>Page not found</body></html>", "text/html")

    def _watch_keys(self, request: Request) -> None:
        """Count access keys where they do not belong; the library's User-Agent always has it."""
        archive = self._archive
        agent = request.headers.get("User-Agent", "")
        foreign = archive.access in agent and not agent.startswith(_LIBRARY)
        archive.tally.add("keys_in_foreign_user_agents", int(foreign))
        archive.tally.add("keys_in_urls", int(archive.access in unquote(request.path)))

    # ------------------------------------------------------------------ metadata

    def _metadata(self, request: Request, target: Target) -> Answer:
        _, identifier, *path = target.parts
        self._archive.tally.read(identifier)
        if request.fault_is("metadata-html"):
            return _PAGE
        document = self._document(request, identifier)
        if not path:
            return _json(document)
        found = _inside(document, path)
        if found is None:
            words = f"Couldn't locate key {path[-1]!r} in metadata for item {identifier}"
            return _json({"error": words})
        return _json({"result": found})

    def _document(self, request: Request, identifier: str) -> dict[str, Any]:
        item = self._archive.item(identifier)
        if item is None or not item.shown or request.fault_is("item-missing"):
            return {}
        if item.dark or request.fault_is("item-dark"):
            return {"is_dark": True}
        return self._described(request, item)

    def _described(self, request: Request, item: Item) -> dict[str, Any]:
        rows = [_file_row(version) for version in item.files.values()]
        rows += _own_rows(item)
        document: dict[str, Any] = {
            "created": int(self._archive.clock.now()),
            "d1": _SERVERS[0],
            "d2": _SERVERS[1],
            "dir": item_dir(item),
            "files": rows,
            "files_count": len(rows),
            "item_last_updated": int(item.changed),
            "item_size": sum(version.size for version in item.files.values()),
            "metadata": item.metadata,
            "server": _SERVERS[0],
            "uniq": item.number,
            "workable_servers": list(_SERVERS),
        }
        if request.fault_is("servers-unavailable"):
            return document | {"files": [], "files_count": 0, "servers_unavailable": True}
        waiting = self._waiting_rows(item)
        return document | ({"pending_tasks": True, "tasks": waiting} if waiting else {})

    # ------------------------------------------------------------------ tasks

    def _tasks(self, request: Request, target: Target) -> Answer:
        archive, query = self._archive, target.query
        archive.tally.add("task_reads")
        if request.fault_is("metadata-html"):
            return _PAGE
        if not archive.knows(said.credentials(request.headers)):
            words = "No authorization: the Tasks API needs S3 keys"
            return _json({"success": False, "error": words}, 401)
        waiting, done = self._rows(query.get("identifier"))
        rows = [
            *(waiting if _on(query, "catalog") else []),
            *(done if _on(query, "history") else []),
        ]
        if query.get("limit") == "0":
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            return Answer(200, lines.encode(), "application/json-l")
        value: dict[str, Any] = {}
        if query.get("summary", "1") == "1":
            value["summary"] = summary([row["wait_admin"] for row in waiting])
        return _json({"success": True, "value": value | _paged(rows, query)})

    def _rows(self, identifier: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        names = [identifier] if identifier else list(self._archive.waiting())
        items = [item for name in names if (item := self._archive.item(name)) is not None]
        waiting = [row for item in items for row in self._waiting_rows(item)]
        return waiting, [done_row(i.identifier, task) for i in items for task in i.history]

    def _waiting_rows(self, item: Item) -> list[dict[str, Any]]:
        now = self._archive.clock.now()
        return [
            waiting_row(
                item.identifier,
                task,
                wait_admin(task, now, first=place == 0, halted=item.halted),
            )
            for place, task in enumerate(item.queue)
        ]

    def _rate_limits(self, request: Request, target: Target) -> Answer:
        archive = self._archive
        if not archive.knows(said.credentials(request.headers)):
            words = "No authorization: the Tasks API needs S3 keys"
            return _json({"success": False, "error": words}, 401)
        value = {
            "cmd": target.query.get("cmd", ""),
            "task_limits": archive.rules.task_limits,
            "tasks_inflight": archive.waiting().total(),
            "tasks_blocked_by_offline": 0,
        }
        return _json({"success": True, "value": value})


def _file_row(version: Version) -> dict[str, Any]:
    return dict(version.metadata) | {
        "name": version.name,
        "source": "original",
        "format": _FORMATS.get(version.name.rpartition(".")[2].lower(), "Unknown"),
        "mtime": str(int(version.at)),
        "size": str(version.size),
        "md5": version.md5,
        "crc32": version.crc32,
        "sha1": version.sha1,
    }


def _own_rows(item: Item) -> list[dict[str, Any]]:
    """Return the files the archive writes itself; the list of files has no size of its own."""
    mark = hashlib.md5(f"{item.identifier} {item.changed}".encode(), usedforsecurity=False)
    own = {"source": "original", "format": "Metadata", "md5": mark.hexdigest()}
    return [
        {"name": f"{item.identifier}_meta.xml", "mtime": str(int(item.made)), "size": "1024"} | own,
        {"name": f"{item.identifier}_files.xml", "summation": "md5"} | own,
    ]


def _inside(document: Any, path: list[str]) -> Any:
    """Return what a path leads to in a JSON document; None: nothing."""
    for part in path:
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            return None
    return document


def _paged(rows: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    """Return a page of rows by category, and the cursor to the next."""
    start = int(query["cursor"]) if query.get("cursor", "").isdigit() else 0
    limit = int(query["limit"]) if query.get("limit", "").isdigit() else 50
    end = start + min(limit, _MAX_ROWS)
    page: dict[str, Any] = {}
    for name in ("catalog", "history"):
        if _on(query, name):
            page[name] = [row for row in rows[start:end] if row["category"] == name]
    return page | ({"cursor": str(end)} if end < len(rows) else {})


def _on(query: dict[str, str], name: str) -> bool:
    return query.get(name) == "1"


def _json(value: object, status: int = 200) -> Answer:
    """Return JSON without a line end: the library reads rate limits up to the last byte."""
    return Answer(status, json.dumps(value, separators=(",", ":")).encode(), "application/json")
