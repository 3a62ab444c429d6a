"""Which addresses may be asked: https, or http on this machine, and nothing fancy in them."""

from __future__ import annotations

import ipaddress
import re

from anchord.adapters.http.words import authority
from anchord.errors import ConfigError

_BASE_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?(?:/[A-Za-z0-9._~-]+)*/?"
)


def base_url(url: str, what: str, *, plain_anywhere: bool = False) -> str:
    """Return a configured base URL without its trailing slash.

    Args:
        url: what the configuration says.
        what: the configuration's name for it, for the message.
        plain_anywhere: http is allowed off loopback too.

    Raises:
        ConfigError: not http(s), http off loopback, or with user, query, fragment or oddities.
    """
    match = _BASE_URL.fullmatch(url)
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        # What stands before an "@" may be a password.
        got = "one with an '@' in it" if "@" in url else f"{url!r:.200}"
        raise ConfigError(
            f"{what}: expected https://host[:port][/path] without user, query and fragment, "
            f"got {got}"
        )
    if match["scheme"] == "http" and not (plain_anywhere or is_loopback(match["host"])):
        raise ConfigError(f"{what}: {url} must use https; http is for loopback addresses only")
    return url.removesuffix("/")


def is_loopback(host: str) -> bool:
    """Tell whether `host` is localhost or a literal loopback address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Return the host of `url` without its port."""
    return re.sub(r":[0-9]*$", "", authority(url))
