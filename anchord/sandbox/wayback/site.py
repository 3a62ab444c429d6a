"""The web as the archive sees it: every http(s) URL has a page, and some have another.

Nothing is fetched from anywhere; a page is made from its URL.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

import msgspec

from anchord.sandbox.wayback.urlkey import host_of

MAX_REDIRECTS = 3
"""SPN2 Public API document, "Limitations"."""
HTML = "text/html; charset=utf-8"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a URL answers."""

    status: int = 200
    body: bytes | None = None
    """None: the page made from the URL."""
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    """Where it redirects to."""
    edition: int = 1
    """A new edition of a made page has other bytes."""
    path_only: bool = False
    """The archive's status names only the path of its final URL, as it sometimes does
    (internetarchive/sandcrawler, ia.py)."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One answer on the way to a page."""

    url: str
    page: Page
    body: bytes


class Site:
    """Which URL answers what.

    Args:
        before_change: called before anything changes, so that whoever visits late sees what was.
    """

    def __init__(self, before_change: Callable[[], object] = lambda: None) -> None:
        self._before_change = before_change
        self._pages: dict[str, Page] = {}
        self._unknown_hosts: set[str] = set()
        self._excluded: set[str] = set()

    def put(self, url: str, page: Page) -> None:
        """Let a URL answer this."""
        self._before_change()
        self._pages[url] = page

    def clear(self, url: str | None = None) -> None:
        """Let a URL, or all, answer as usual."""
        self._before_change()
        if url is None:
            self._pages.clear()
        else:
            self._pages.pop(url, None)

    def change(self, url: str) -> None:
        """Put a new edition of a page out: its bytes change."""
        self._before_change()
        page = self._pages.get(url, Page())
        self._pages[url] = msgspec.structs.replace(page, edition=page.edition + 1)

    def unresolve(self, host: str) -> None:
        """Let a host be unknown to the name servers."""
        self._before_change()
        self._unknown_hosts.add(host)

    def exclude(self, host: str) -> None:
        """Exclude a host from the archive, as its owner may ask."""
        self._before_change()
        self._excluded.add(host)

    def resolves(self, url: str) -> bool:
        """Tell whether the URL's host is known."""
        return host_of(url) not in self._unknown_hosts

    def excluded(self, url: str) -> bool:
        """Tell whether the URL's host is excluded."""
        return host_of(url) in self._excluded

    def visit(self, url: str) -> list[Seen]:
        """Return what a browser gets, each redirect and the page where it ends.

        More than MAX_REDIRECTS + 1 answers mean that it gave up.
        """
        way: list[Seen] = []
        while len(way) <= MAX_REDIRECTS + 1:
            page = self._pages.get(url, _USUAL)
            way.append(Seen(url=url, page=page, body=_body(url, page)))
            if page.location is None:
                break
            url = urljoin(url, page.location)
        return way


_USUAL = Page()


def _body(url: str, page: Page) -> bytes:
    if page.body is not None:
        return page.body
    if page.location is not None:
        return b""
    if urlsplit(url).path.endswith(".json"):
        return json.dumps({"url": url, "edition": page.edition}).encode()
    if page.status != 200:
        return f"<!doctype html><title>{page.status}</title><p>This is no page.\n".encode()
    return _made(url, page.edition)


def _made(url: str, edition: int) -> bytes:
    """Return a page that names its URL and the ends of its path, as a record's page would."""
    parts = [part for part in urlsplit(url).path.split("/") if part]
    ends = ["/".join(parts[i:]) for i in range(len(parts))] or ["front page"]
    arxiv = host_of(url).endswith("arxiv.org") and parts[:1] == ["abs"]
    names = ends + (["arXiv:" + "/".join(parts[1:])] if arxiv else [])
    lines = "".join(f"<p>{html.escape(name)}</p>\n" for name in names)
    at = html.escape(url)
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        f'<title>{html.escape(ends[-1])}</title><link rel="canonical" href="{at}"></head>\n'
        f"<body><h1>{at}</h1>\n{lines}<p>edition {edition}</p></body></html>\n"
    ).encode()
