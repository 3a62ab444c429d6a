"""Addresses and timestamps of captures: which two mean the same page, and which never do."""

from __future__ import annotations

import re
from typing import NamedTuple

from anchord.core.moment import seconds, utc
from anchord.errors import VerificationError

WAYBACK = "https://web.archive.org"
"""Where people look at captures, whatever server was asked."""

_STAMP = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})", re.ASCII)
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[^\]/?#@\\\s]*\]|[^/?#:@\\\s]*)(?::(?P<port>[0-9]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.IGNORECASE | re.DOTALL,
)
"""No user before the host, and no backslash there: browsers read it as a slash, so that
`https://other.example\\@host/` is a page of another host (WHATWG URL, 4.4)."""
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DEFAULT_PORTS = {"http": ("", "80"), "https": ("", "443")}


class _Page(NamedTuple):
    host: str
    path: str
    query: str


def moment_of(timestamp: str) -> int:
    """Return the Unix seconds of 14 digits, UTC.

    Raises:
        VerificationError: anything else.
    """
    match = _STAMP.fullmatch(timestamp)
    if match is None:
        raise VerificationError(f"expected a timestamp of 14 digits, got {timestamp!r:.40}")
    year, month, day, hour, minute, second = match.groups()
    return seconds(f"{year}-{month}-{day}T{hour}:{minute}:{second}Z")


def stamp_of(moment: int) -> str:
    """Return Unix seconds as 14 digits, UTC."""
    return re.sub(r"[^0-9]", "", utc(moment))


def is_stamp(timestamp: object) -> bool:
    """Tell whether a value is a timestamp of 14 digits that names a moment."""
    if not isinstance(timestamp, str):
        return False
    try:
        moment_of(timestamp)
    except VerificationError:
        return False
    return True


def capture_url(timestamp: str, final_url: str) -> str:
    """Return where people see a capture."""
    return f"{WAYBACK}/web/{timestamp}/{final_url}"


def whole_url(original_url: str, submitted_url: str) -> str:
    """Return the final URL of a capture; the service sometimes gives only its path.

    What is neither an address nor a path comes back as it is: it is no page's.
    """
    base = _URL.fullmatch(submitted_url)
    if base is None or not original_url.startswith("/"):
        return original_url
    if original_url.startswith("//"):
        return f"{base['scheme']}:{original_url}"
    return submitted_url[: base.start("path")] + original_url


def same_host(one: str, other: str) -> bool:
    """Tell whether two URLs are of one host: "www.", default port, scheme and case aside."""
    left, right = _page(one), _page(other)
    return left is not None and right is not None and left.host == right.host


def same_page(submitted: str, final: str) -> bool:
    """Tell whether two URLs name one page.

    Scheme, "www.", default port, case of the host, one trailing slash, the fragment and needless
    escapes (RFC 3986, 6.2.2) make no difference; everything else does.
    """
    page = _page(submitted)
    return page is not None and page == _page(final)


def expected_redirect(submitted: str, final: str, must_hold: str | None) -> bool:
    """Tell whether a redirect still leads to the record.

    It must stay on the host, and name the record in the path by the whole word that its id is
    part of in the address: "2601.00001v2" where the id is "2601.00001", for another version is
    another page. Only when the submitted address has the id in its query it may stand there:
    otherwise a login page that remembers where we came from would pass. A home page or an icon
    never passes.

    Args:
        submitted: what was to be captured.
        final: what was captured, made whole.
        must_hold: the record's id as the address has it; without one nothing is expected.
    """
    before, after = _page(submitted), _page(final)
    if not must_hold or before is None or after is None or before.host != after.host:
        return False
    if not after.path or after.path.lower().endswith((".ico", "/favicon.png", "/favicon.svg")):
        return False
    where = ((before.path, after.path), (before.query, f"{after.path}?{after.query}"))
    for had, has in where:
        word = re.search(rf"(?<![A-Za-z0-9]){re.escape(_plain(must_hold))}[A-Za-z0-9_-]*", had)
        if word is not None:
            named = rf"(?<![A-Za-z0-9]){re.escape(word[0])}(?![A-Za-z0-9])"
            return re.search(named, has) is not None
    return False


def _page(url: str) -> _Page | None:
    match = _URL.fullmatch(url)
    if match is None or not match["host"]:
        return None
    host = match["host"].lower().removeprefix("www.").rstrip(".")
    port = match["port"] or ""
    if port not in _DEFAULT_PORTS[match["scheme"].lower()]:
        host = f"{host}:{port}"
    return _Page(host, _plain(match["path"]).removesuffix("/"), _plain(match["query"] or ""))


def _plain(text: str) -> str:
    """Undo needless escapes and write the others in upper case."""

    def one(match: re.Match[str]) -> str:
        letter = chr(int(match[1], 16))
        return letter if letter in _UNRESERVED else match[0].upper()

    return _ESCAPE.sub(one, text)
