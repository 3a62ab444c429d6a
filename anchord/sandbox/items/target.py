"""What a request is about: its host, its path, its query; in whichever form it came.

A proxy is sent `GET http://archive.org/metadata/x`; everybody else sends the path, and Host.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec


class Target(msgspec.Struct, frozen=True):
    """One address."""

    host: str
    """Empty when the request line names none."""
    path: str
    """As it came, percent-encoded."""
    query: dict[str, str]

    @classmethod
    def of(cls, address: str) -> Target:
        """Read the middle of a request line."""
        if address.startswith("/"):
            path, _, text = address.partition("?")  # never a host, also with "//" in front
            return cls("", path, _query(text))
        parts = urlsplit(address)
        return cls(parts.hostname or "", parts.path or "/", _query(parts.query))

    @property
    def parts(self) -> list[str]:
        """The pieces of the path, decoded."""
        return [unquote(part) for part in self.path.split("/") if part]


def _query(text: str) -> dict[str, str]:
    return dict(parse_qsl(text, keep_blank_values=True))
