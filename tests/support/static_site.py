"""A static web server on loopback for one folder: ETag, 304, and misbehaviour as planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from support.http_server import Asked, ScriptedServer, Step, reply

Steps = Iterable[bytes | float | Step]


class StaticSite(ScriptedServer):
    """Serves the files of a folder.

    Args:
        folder: what is served; changes show at once.
        validators: send ETag and Last-Modified.

    Attributes:
        faults: by path, steps instead of the file; a list is used up from its beginning.
    """

    def __init__(self, folder: Path, *, validators: bool = True) -> None:
        super().__init__(self._answer)
        self._folder, self._validators = folder, validators
        self.faults: dict[str, Steps | list[Steps] | Callable[[Asked], Steps]] = {}

    def _answer(self, asked: Asked) -> Steps:
        path = asked.path.lstrip("/")
        fault = self.faults.get(path)
        if callable(fault):
            return fault(asked)
        if isinstance(fault, list):
            if fault:
                return fault.pop(0)  # type: ignore[return-value]
        elif fault is not None:
            return fault  # type: ignore[return-value]
        return (self.file(path, asked),)

    def file(self, path: str, asked: Asked) -> bytes:
        """Return the honest answer."""
        file = self._folder / path
        if not file.is_file():
            return reply(b"not here", "404 Not Found")
        data = file.read_bytes()
        if not self._validators:
            return reply(data)
        etag = f'"{sha256(data).hexdigest()[:16]}"'
        moment = "Last-Modified: Thu, 01 Aug 2024 12:00:00 GMT\r\n"
        if asked.headers.get("if-none-match") == etag:
            return reply(b"", "304 Not Modified", f"ETag: {etag}\r\n")
        return reply(data, headers=f"ETag: {etag}\r\n{moment}")

    def paths(self) -> list[str]:
        """Return what was asked for, in order."""
        return [asked.path.lstrip("/") for asked in self.asked]
