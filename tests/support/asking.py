"""`anchord serve`'s application, asked in this process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import msgspec

from anchord.app.config import load
from anchord.app.web.application import Offered, application
from anchord.app.web.face import Face, site_of
from anchord.app.web.readers import Readers


class Answer(msgspec.Struct):
    """What came back."""

    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "")


class Asked:
    """The application over the store of a configuration.

    Args:
        config: its file.
        tree: a folder that is served, too.
        settings: of `[web]`.
    """

    def __init__(self, config: Path, tree: Path | None = None, **settings: Any) -> None:
        loaded = load(str(config))
        web = msgspec.structs.replace(loaded.config.web, **settings)
        changed = msgspec.structs.replace(loaded.config, web=web)
        loaded = msgspec.structs.replace(loaded, config=changed)
        self.readers = Readers(loaded)
        face = Face(loaded=loaded, readers=self.readers, site=site_of(loaded))
        self.application = application(Offered(missing=list, face=face, tree=tree))
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self.readers.close()

    def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        """Send one request with the target as it is; "_" in names of headers is "-"."""
        return self._loop.run_until_complete(self._ask(target, method, headers))

    async def _ask(self, target: str, method: str, headers: dict[str, str]) -> Answer:
        path, _, query = target.partition("?")
        sent = [(k.replace("_", "-").lower().encode(), v.encode()) for k, v in headers.items()]
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(),
            "headers": sent, "root_path": "", "server": ("test", 80), "client": ("test", 1),
        }  # fmt: skip
        answer = Answer()
        asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in asked:
                return message
            await asyncio.Event().wait()  # the client stays, and says nothing more
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                pairs = message["headers"]
                answer.headers = {name.decode(): value.decode() for name, value in pairs}
            else:
                answer.body += message.get("body", b"")

        await self.application(scope, receive, send)  # type: ignore[arg-type]
        return answer
