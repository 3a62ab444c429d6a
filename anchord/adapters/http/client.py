"""The one way out over HTTP: one call, one connection, one total time limit, one size limit.

Calendars speak HTTP/1.0 without keep-alive and drop connections under load
(opentimestamps-server, otsserver/rpc.py), so nothing is kept open between calls: a reset
always means that this call failed, never that an old connection had gone stale, and no
hidden retry is needed. A call tries once; whoever calls keeps the time of the next try.
"""

from __future__ import annotations

import base64
import http.client
import logging
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from anchord import __version__
from anchord.adapters.http.address import host_of, is_loopback
from anchord.adapters.http.answer import Response
from anchord.adapters.http.deadline import (
    HTTPPool,
    HTTPSPool,
    PublicHTTPSPool,
    TotalTimeoutSocket,
)
from anchord.adapters.http.failure import failure
from anchord.adapters.http.words import authority, clean
from anchord.errors import ConfigError, NetworkError, ProtocolError

USER_AGENT = f"anchord/{__version__}"

# It warns of bad headers with a traceback that quotes them, and the address with its query.
logging.getLogger("urllib3").setLevel(logging.ERROR)


class Client:
    """Sends single requests. Threads may share it; there is nothing to close.

    Args:
        timeout_s: total time for a whole call: name, connection, TLS, headers and body.
        user_agent: how the client names itself.
        private: the hosts that may lie in a private network; None: all may. Behind a proxy it is
            the proxy that looks names up, and that knows where it may go.
    """

    def __init__(
        self,
        timeout_s: float,
        user_agent: str = USER_AGENT,
        *,
        private: frozenset[str] | None = None,
    ) -> None:
        self._timeout_s, self._private = timeout_s, private
        self._user_agent = user_agent
        self._proxies = urllib.request.getproxies_environment()

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = 10_000,
        basic_auth: tuple[str, str] | None = None,
    ) -> Response:
        """GET `url`.

        Raises:
            NetworkError: unreachable, too slow, reset, cut short, certificate not accepted.
            ProtocolError: not HTTP, or a 2xx answer longer than `max_bytes` (`too_long`).
            ConfigError: the environment names a proxy of a kind that is not supported.
        """
        sent = self._headers(headers, basic_auth)
        return self._call("GET", url, headers=sent, body=None, max_bytes=max_bytes)

    def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = 10_000,
        basic_auth: tuple[str, str] | None = None,
        status_suffices: bool = False,
    ) -> Response:
        """POST `body` to `url`; Content-Length is set from it.

        Args:
            url: where to.
            body: what is sent.
            headers: beside the client's own.
            max_bytes: most bytes of a 2xx answer.
            basic_auth: user and password.
            status_suffices: a 200 without a length and without a body counts as an answer, as
                small receivers of webhooks give it.

        Raises:
            NetworkError: unreachable, too slow, reset, cut short, certificate not accepted;
                the request may still have been carried out.
            ProtocolError: not HTTP, or a 2xx answer longer than `max_bytes` (`too_long`).
            ConfigError: the environment names a proxy of a kind that is not supported.
        """
        sent = self._headers(headers, basic_auth)
        return self._call(
            "POST", url, headers=sent, body=body, max_bytes=max_bytes, bare=status_suffices
        )

    def _headers(
        self, headers: Mapping[str, str] | None, basic_auth: tuple[str, str] | None
    ) -> dict[str, str]:
        sent = {
            "User-Agent": self._user_agent,
            "Connection": "close",
            "Accept-Encoding": "identity",
            **(headers or {}),
        }
        if basic_auth is not None:
            sent["Authorization"] = _basic(":".join(basic_auth))
        return sent

    def _call(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: bytes | None,
        max_bytes: int,
        bare: bool = False,
    ) -> Response:
        """Make one call."""
        who, ends_at = authority(url), time.monotonic() + self._timeout_s
        try:
            with self._manager(url) as manager:
                answer = manager.request(
                    method,
                    url,
                    headers=headers,
                    body=body,
                    timeout=urllib3.Timeout(total=self._timeout_s),
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
                try:
                    return _read(answer, max_bytes, who, bare=bare)
                finally:
                    answer.close()
        except (HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            late = time.monotonic() >= ends_at
            proxied = self._proxy(url) is not None
            raise failure(error, who, self._timeout_s, late=late, proxied=proxied) from None

    def _manager(self, url: str) -> urllib3.PoolManager:
        """Return a pool manager for one call: a kept connection would carry an old deadline."""
        secure = url.startswith("https:")
        options: dict[str, Any] = {"num_pools": 1}
        if secure:
            options["ssl_context"] = self._tls
        proxy = self._proxy(url)
        manager = _through(proxy, options) if proxy else urllib3.PoolManager(**options)
        public = self._private is not None and host_of(url).lower() not in self._private
        over_tls = PublicHTTPSPool if public and not proxy else HTTPSPool
        manager.pool_classes_by_scheme = {"http": HTTPPool, "https": over_tls}
        return manager

    def _proxy(self, url: str) -> str | None:
        """Return the proxy of HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY or loopback says no."""
        scheme = "https" if url.startswith("https:") else "http"
        proxy, host = self._proxies.get(scheme), host_of(url)
        if not proxy or is_loopback(host):
            return None
        bypass = urllib.request.proxy_bypass_environment(  # type: ignore[attr-defined]
            host, self._proxies
        )
        return None if bypass else proxy

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The machine's certificate store (SSL_CERT_FILE overrides it), names checked."""
        context = ssl.create_default_context()
        context.sslsocket_class = TotalTimeoutSocket.tls
        return context


def _basic(pair: str) -> str:
    """Return an Authorization value (RFC 7617, in UTF-8)."""
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _through(proxy: str, options: dict[str, Any]) -> urllib3.ProxyManager:
    """Return a manager that goes through `proxy`; its password stays out of every message."""
    parsed = urllib3.util.parse_url(proxy if "://" in proxy else f"http://{proxy}")
    if parsed.scheme != "http" or not parsed.host:
        raise ConfigError(
            f"the environment names the proxy {clean(authority(proxy))!r}: expected "
            "http://host:port; unset it, or add the server to NO_PROXY"
        )
    headers = (
        {"Proxy-Authorization": _basic(urllib.parse.unquote(parsed.auth))} if parsed.auth else None
    )
    address = f"http://{parsed.netloc}"
    return urllib3.ProxyManager(address, proxy_headers=headers, **options)


def _read(answer: urllib3.BaseHTTPResponse, max_bytes: int, who: str, *, bare: bool) -> Response:
    """Read at most one byte more than allowed, so that a longer answer is seen, not cut."""
    body = bytearray()
    while len(body) <= max_bytes:
        piece = answer.read(max_bytes + 1 - len(body), decode_content=False)
        if not piece:
            break
        body += piece
    if len(body) > max_bytes and 200 <= answer.status < 300:
        raise ProtocolError(
            f"{who}: expected at most {max_bytes:,} bytes, got more; the answer is not used",
            too_long=True,
        )
    framed = "Content-Length" in answer.headers or "Transfer-Encoding" in answer.headers
    if not (body or framed or bare) and answer.status == http.client.OK:
        # http.client takes a connection that ends within the headers for an empty answer.
        raise NetworkError(f"{who}: hung up before its answer was over; it is tried again later")
    return Response(answer.status, answer.headers, bytes(body[:max_bytes]))
