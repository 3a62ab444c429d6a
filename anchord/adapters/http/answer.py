"""What an answer's status and words mean: the same rules for every server."""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Mapping

import msgspec

from anchord.adapters.http.words import authority, clean
from anchord.core.http_date import retry_after_s
from anchord.errors import ProtocolError, RateLimitedError, TransientError


class Response(msgspec.Struct, frozen=True):
    """What a server answered, whatever the status; redirects come back, they are not followed."""

    status: int
    headers: Mapping[str, str]
    """Names are matched without regard to case."""
    body: bytes
    """As it came on the wire; content codings are neither asked for nor decoded. Of an answer
    other than 2xx it may be only the beginning: there it is words for people."""


def require_ok(response: Response, who: str) -> None:
    """Let a 200 pass; turn every other status into the error that says what must happen next.

    Raises:
        RateLimitedError: 429, with the time of Retry-After.
        TransientError: 408 or 5xx, with the time of Retry-After.
        ProtocolError: anything else, redirects included.
    """
    status, words = response.status, clean(response.body)
    if status == http.client.OK:
        return
    if status == http.client.TOO_MANY_REQUESTS:
        raise RateLimitedError(
            f"{who} asks for fewer requests (429); it is asked again later",
            retry_after=retry_after(response),
        )
    if status == http.client.REQUEST_TIMEOUT or status >= http.client.INTERNAL_SERVER_ERROR:
        raise TransientError(
            f"{who} cannot answer now ({status}: {words}); it is asked again later",
            retry_after=retry_after(response),
        )
    if status == http.client.NOT_MODIFIED:
        raise ProtocolError(f"{who} says that nothing changed (304), and was not asked whether")
    if 300 <= status < 400:
        target = clean(authority(response.headers.get("Location", "")))
        raise ProtocolError(
            f"{who} redirects ({status}) to {target or 'itself'}; redirects are not followed: "
            "if it has moved, set its new address"
        )
    raise ProtocolError(f"{who}: expected 200, got {status} ({words}); check its address")


def redirected(response: Response, url: str) -> str:
    """Return where a redirect from `url` leads (RFC 9110, 10.2.2).

    Raises:
        ProtocolError: its Location is no address.
    """
    try:
        target = urllib.parse.urljoin(url, response.headers.get("Location", ""))
        urllib.parse.urlsplit(target)
    except ValueError:
        raise ProtocolError(
            f"{authority(url)} redirects ({response.status}) to what is no address; not followed"
        ) from None
    return target


def retry_after(response: Response) -> float | None:
    """Return the seconds of Retry-After (RFC 9110, 10.2.3), 0 to one day; None without sense."""
    return retry_after_s(response.headers)
