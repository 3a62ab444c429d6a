"""The address by which `anchord sandbox mine|reorg|fault|status` drives a running sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.moment import utc
from anchord.errors import ConfigError
from anchord.sandbox.archive import SiteChange
from anchord.sandbox.web import Answer, Request, json_answer

if TYPE_CHECKING:
    from anchord.sandbox.run import Sandbox


class Command(msgspec.Struct, forbid_unknown_fields=True):
    """What can be asked for; each command takes some of it."""

    count: int | None = None
    depth: int = 1
    drop: bool = False
    service: str | None = None
    kind: str = ""
    options: dict[str, str | int | float] = {}
    seconds: float = 0
    site: SiteChange | None = None


class Control:
    """A service of the sandbox: JSON in, JSON out."""

    name = "control"
    protocol_version = "HTTP/1.0"

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._commands: dict[tuple[str, str], Callable[[Command], Any]] = {
            ("GET", "/status"): lambda _: msgspec.to_builtins(sandbox.status()),
            ("POST", "/mine"): self._mine,
            ("POST", "/reorg"): self._reorg,
            ("POST", "/fault"): self._fault,
            ("POST", "/clear"): self._clear,
            ("POST", "/advance"): self._advance,
            ("POST", "/site"): self._site,
        }

    def route(self, method: str, path: str) -> str:
        """Return the command."""
        del method
        return path.strip("/")

    def answer(self, request: Request) -> Answer:
        """Carry out a command."""
        command = self._commands.get((request.method, request.path))
        if command is None:
            return json_answer({"error": f"no command {request.method} {request.path}"}, 404)
        length = int(request.headers.get("Content-Length") or 0)
        try:
            asked = msgspec.json.decode(request.read(length) or b"{}", type=Command)
            return json_answer(command(asked))
        except (ConfigError, msgspec.MsgspecError) as error:
            return json_answer({"error": str(error)}, 400)

    def _mine(self, asked: Command) -> dict[str, Any]:
        blocks = self._sandbox.mine(1 if asked.count is None else asked.count)
        return _mined(blocks[-1].height, len(blocks), blocks[-1].display_hash)

    def _reorg(self, asked: Command) -> dict[str, Any]:
        blocks = self._sandbox.reorg(asked.depth, drop=asked.drop)
        return _mined(blocks[-1].height, len(blocks), blocks[-1].display_hash)

    def _fault(self, asked: Command) -> dict[str, Any]:
        self._sandbox.fault(asked.service or "", asked.kind, asked.count, **asked.options)
        return {"faults": self._sandbox.board.waiting()}

    def _clear(self, asked: Command) -> dict[str, Any]:
        self._sandbox.clear_faults(asked.service)
        return {"faults": self._sandbox.board.waiting()}

    def _advance(self, asked: Command) -> dict[str, Any]:
        return {"archive_now": utc(int(self._sandbox.advance(asked.seconds)))}

    def _site(self, asked: Command) -> dict[str, Any]:
        change = asked.site or SiteChange(url="", clear=True)
        self._sandbox.change_site(change)
        return {"url": change.url or None}


def _mined(height: int, blocks: int, best: str) -> dict[str, Any]:
    return {"height": height, "blocks": blocks, "best_block": best}
