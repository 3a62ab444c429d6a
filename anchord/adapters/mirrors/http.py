"""A mirror behind a web server: one request at a time, at a pace, and asked only for what changed.

RFC 9110: conditional requests (13), Retry-After (10.2.3). A redirect is followed within the same
server only: a mirror that sends us elsewhere could make us ask what we would never have asked.
"""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus

from anchord.adapters.http import (
    Client,
    Response,
    authority,
    base_url,
    clean,
    redirected,
    require_ok,
)
from anchord.adapters.http.address import host_of, is_loopback
from anchord.errors import ConfigError, ProtocolError, TransientError
from anchord.ports.mirror import Absent, Fetched, NotModified

TRIES = 4
LONGEST_WAIT_S = 60.0
"""A server that asks for more patience than this is left for the next pull."""
_HOPS = 3
_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_MOVED = (301, 302, 303, 307, 308)


def checked_url(url: str, what: str) -> str:
    """Return a URL that may be asked: https, or http on this machine.

    Raises:
        ConfigError: anything else.
    """
    return base_url(url, what)


def loopback(url: str) -> bool:
    """Tell whether a URL is of this machine."""
    return is_loopback(host_of(url))


class HttpMirror:
    """Fetches files of one mirror by their URLs.

    Args:
        name: the mirror's address.
        client: the way out.
        rate: most requests a second.
        local: it was given by a person as an address of this machine, or named by such a one;
            others may not send us to servers that only this machine can reach.
        accept: the form that is asked for (RFC 9110, 12.5.1); None: any.
        sleep: waits; tests hand in their own.
        monotonic: seconds that never go back.
    """

    at_once = 1

    def __init__(
        self,
        name: str,
        client: Client,
        rate: float,
        *,
        local: bool,
        accept: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._client, self._pause_s, self._local = client, 1.0 / rate, local
        self._accept = {} if accept is None else {"Accept": accept}
        self._sleep, self._monotonic = sleep, monotonic
        self._next_at = 0.0

    def get(
        self, name: str, etag: str | None, last_modified: str | None, limit: int
    ) -> Fetched | NotModified | Absent:
        """Return one file; a server that says when to come again is waited for, up to a minute."""
        headers = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        conditions = {key: value for key, value in headers.items() if value is not None}
        for tries in range(1, TRIES + 1):
            try:
                return self._follow(name, conditions, limit)
            except TransientError as error:
                wait = error.retry_after
                if tries == TRIES or wait is None or wait > LONGEST_WAIT_S:
                    raise
                self._sleep(wait)
        raise AssertionError  # the last try returns or raises

    def _follow(
        self, url: str, conditions: dict[str, str], limit: int
    ) -> Fetched | NotModified | Absent:
        for _ in range(_HOPS + 1):
            response = self._ask(url, conditions, limit)
            if response.status not in _MOVED:
                return _understood(response, url, conditioned=bool(conditions))
            url = _moved(url, response)
        raise ProtocolError(f"{authority(url)} redirects in circles: check its address")

    def _ask(self, url: str, conditions: dict[str, str], limit: int) -> Response:
        try:
            url = checked_url(url, "the address of a mirror's file")
        except ConfigError as error:
            raise ProtocolError(str(error)) from None
        if loopback(url) and not self._local:
            raise ProtocolError(
                f"mirror {self.name} names {authority(url)}, which is this machine: not asked"
            )
        wait = self._next_at - self._monotonic()
        if wait > 0:
            self._sleep(wait)
        self._next_at = self._monotonic() + self._pause_s
        headers = {**conditions, **self._accept}
        return self._client.get(url, headers=headers, max_bytes=limit)


def _understood(
    response: Response, url: str, *, conditioned: bool
) -> Fetched | NotModified | Absent:
    if response.status in _GONE:
        return Absent()
    if response.status == HTTPStatus.NOT_MODIFIED and conditioned:
        return NotModified()
    require_ok(response, authority(url))
    return Fetched(
        data=response.body,
        etag=_kept(response.headers.get("ETag")),
        last_modified=_kept(response.headers.get("Last-Modified")),
    )


def _kept(text: str | None) -> str | None:
    """Return a validator to send back as it came; odd ones are not kept."""
    return text if text and len(text) <= 200 and text.isascii() and text.isprintable() else None


def _moved(url: str, response: Response) -> str:
    target = redirected(response, url)
    before, after = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
    if (before.scheme, before.netloc) != (after.scheme, after.netloc):
        to = clean(authority(target)) or f"an address of scheme {clean(after.scheme)}"
        raise ProtocolError(
            f"{authority(url)} redirects ({response.status}) to {to}: not "
            "followed; if the mirror has moved there, pull from its new address"
        )
    return target
