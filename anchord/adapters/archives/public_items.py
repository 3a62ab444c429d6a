"""Items of archive.org as anybody reads them: metadata, and members of ZIPs, without keys.

Sources: the metadata read API (https://archive.org/developers/md-read.html), and the download
address `/download/<item>/<zip>/<member>`, which leads to the machine that holds the item.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from anchord.adapters.archives.hosts import stand_in
from anchord.adapters.http import Client, Response, redirected, retry_after
from anchord.adapters.http.address import host_of
from anchord.core.item import Fetched, ItemSeen
from anchord.core.item_answer import MAX_METADATA_BYTES, clean_words, read_item, read_refusal
from anchord.core.storage import Refused
from anchord.errors import NetworkError, ProtocolError

API_URL = "https://archive.org"
MAX_MEMBER_BYTES = 64 << 20
_MAX_MOVES = 4
"""A download takes one or two (to the machine that holds the item); more is a loop."""
_MOVED = frozenset({301, 302, 303, 307, 308})
_ABSENT = frozenset({404, 410})
_OK = 200
_HOST = re.compile(r"(?:[a-z0-9-]+\.)*archive\.org", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{2,100}")


class PublicItems:
    """Implements `anchord.ports.copies.ItemReader`. Threads may share it.

    Args:
        url: archive.org itself, or a stand-in on loopback.
        where: what events call it.
        timeout_s: total time of one call.
        user_agent: how the reader names itself.

    Raises:
        ConfigError: an address that is neither the archive's nor on loopback.
    """

    def __init__(self, url: str, *, where: str, timeout_s: float, user_agent: str) -> None:
        self._base = stand_in(url, API_URL, "archive.items.api_url") or API_URL
        self._where = where
        self._client = Client(timeout_s, user_agent)

    @property
    def where(self) -> str:
        """What events call it."""
        return self._where

    def describe(self, identifier: str) -> ItemSeen | Refused:
        """Read an item's metadata."""
        if not _IDENTIFIER.fullmatch(identifier):
            return _refused("bad-name", f"no identifier of an item: {identifier!r:.120}")
        said = self._get(f"{self._base}/metadata/{identifier}", MAX_METADATA_BYTES)
        if isinstance(said, Refused):
            return said
        return read_item(said.status, said.body, identifier, (), retry_after(said))

    def member(self, identifier: str, file: str, member: str) -> Fetched | Refused | None:
        """Download one member and hash it; redirects are followed within the archive only."""
        path = "/".join(quote(part, safe="") for part in (identifier, file, member))
        url = f"{self._base}/download/{path}"
        for _ in range(_MAX_MOVES):
            said = self._get(url, MAX_MEMBER_BYTES)
            if isinstance(said, Refused):
                return said
            if said.status not in _MOVED:
                return _read_member(said)
            try:
                url = redirected(said, url)
            except ProtocolError as error:
                return _refused("unknown-answer", str(error))
            if not self._within(url):
                return _refused("unknown-answer", f"the download leads to {host_of(url)!r:.80}")
        return _refused("unknown-answer", "the download leads in a circle")

    def _within(self, url: str) -> bool:
        """Tell whether an address is the archive's own: nobody else says what it holds."""
        if self._base == API_URL:
            return url.startswith("https://") and bool(_HOST.fullmatch(host_of(url)))
        return urlsplit(url)[:2] == urlsplit(self._base)[:2]

    def _get(self, url: str, max_bytes: int) -> Response | Refused:
        return _asked(lambda: self._client.get(url, max_bytes=max_bytes))


def _asked(send: Callable[[], Response]) -> Response | Refused:
    try:
        said = send()
    except NetworkError as error:
        return _refused("connection-refused" if error.refused else "no-answer", str(error))
    except ProtocolError as error:
        return _refused("too-large" if error.too_long else "unknown-answer", str(error))
    framed = "Content-Length" in said.headers or "Transfer-Encoding" in said.headers
    if said.status == _OK and not framed:
        return _refused("no-answer", "the answer does not tell its length: it may be cut short")
    return said


def _read_member(said: Response) -> Fetched | Refused | None:
    if said.status == _OK:
        return Fetched(size=len(said.body), sha256=hashlib.sha256(said.body).digest())
    if said.status in _ABSENT:
        return None
    return read_refusal(said.status, said.body, retry_after(said))


def _refused(code: str, message: str) -> Refused:
    return Refused(code=code, message=clean_words(message))
