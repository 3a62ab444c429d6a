"""How the archive names pages and moments: sort-friendly keys, 14 digits.

The key folds http and https, case, `www.` and default ports, so two URLs may share one
(wayback-cdx-server README, "urlkey"; the SURT form of internetarchive/surt).
"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from urllib.parse import SplitResult, unquote, urlsplit

_WWW = re.compile(r"www\d*\.")
_DEFAULT_PORTS = {None, 80, 443}


@functools.lru_cache(maxsize=65_536)
def urlkey(url: str) -> str:
    """Return the key of a URL: `org,example)/path?query`."""
    parts = split(url)
    query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    path = (parts.path.rstrip("/") or "/") + (f"?{query}" if query else "")
    return f"{host_key(parts.netloc)}){path}"


def split(url: str) -> SplitResult:
    """Return the parts of a URL in small letters; what is none has an empty host."""
    try:
        return urlsplit(unquote(url if "://" in url else f"http://{url}").lower())
    except ValueError:
        return urlsplit("")


def host_key(netloc: str) -> str:
    """Return the beginning of the keys of a host: `org,example`."""
    name, _, port = netloc.rpartition("@")[2].partition(":")
    name = ",".join(reversed(_WWW.sub("", name, count=1).split(".")))
    return (
        name if not port or (port.isdigit() and int(port) in _DEFAULT_PORTS) else f"{name}:{port}"
    )


def host_of(url: str) -> str:
    """Return the host of a URL, in small letters."""
    return split(url).hostname or ""


def is_capturable(url: str) -> bool:
    """Tell whether Save Page Now takes this for a URL: http(s), a host with a dot, no blanks."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"} and "." in host.strip(".") and not re.search(r"\s", url)
    )


def digits(moment: float) -> str:
    """Return a moment as 14 digits, UTC."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y%m%d%H%M%S")


def moment_of(timestamp: str) -> float:
    """Return the moment of 1 to 14 digits; missing ones are the smallest possible.

    Digits that are no date count as the beginning of their year; what is no digits as year 1.
    """
    full = timestamp + "00000101000000"[len(timestamp) :]
    try:
        return datetime.strptime(full, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        year = full[:4]
        number = int(year) if year.isascii() and year.isdigit() else 1
        return datetime(max(1, number), 1, 1, tzinfo=UTC).timestamp()
