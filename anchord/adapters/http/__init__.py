"""The one way out over HTTP: one call, one connection, one total time limit, one size limit."""

from __future__ import annotations

from anchord.adapters.http.address import base_url, is_loopback
from anchord.adapters.http.answer import Response, redirected, require_ok, retry_after
from anchord.adapters.http.client import USER_AGENT, Client
from anchord.adapters.http.words import authority, clean

__all__ = [
    "USER_AGENT",
    "Client",
    "Response",
    "authority",
    "base_url",
    "clean",
    "is_loopback",
    "redirected",
    "require_ok",
    "retry_after",
]
