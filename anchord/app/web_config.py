"""The table `[web]` of the configuration: what `anchord serve` does."""

from __future__ import annotations

import re

from anchord.app.section import Section
from anchord.errors import ConfigError

_ADDRESS = re.compile(
    r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~-]+)*/?"
)
"""A host, perhaps a folder; it goes into pages and documents, so nothing in it needs an escape."""
_LONGEST_NAME = 100


class WebConfig(Section, frozen=True, kw_only=True):
    """What `anchord serve` hands out, and where."""

    bind: str = "127.0.0.1:8080"
    """IP address and port that `anchord serve` answers at, e.g. `[::1]:8080`. Put a web server with
    TLS before it where strangers come."""
    records: bool = True
    """Whether `anchord serve` shows the records of the store: pages, documents, search,
    dashboard."""
    base_url: str = ""
    """Address at which strangers find what `anchord serve` answers, e.g. `https://example.org`.
    Empty: pages and documents name no host, and their links are relative."""
    name: str = "anchord"
    """What pages call this registry or mirror."""
    tree: str = ""
    """Folder that `anchord serve` hands out: the one that `anchord mirror publish` writes. Empty:
    none."""
    audit_report: str = ""
    """JSON file that `/audit` shows: the one that `anchord audit -o FILE.json` writes. Empty:
    none."""
    metrics: bool = False
    """Whether `anchord serve` answers `/metrics`, too. Leave it off where strangers come."""


def check_web(config: WebConfig) -> None:
    """Refuse names and addresses that do not fit into a page.

    Raises:
        ConfigError: an address that is none, or a name of several lines.
    """
    if config.base_url and not _ADDRESS.fullmatch(config.base_url):
        raise ConfigError(
            "web.base_url: expected the address that strangers use, e.g. https://example.org or "
            f"https://example.org/folder, got {config.base_url!r:.120}"
        )
    name = config.name
    if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
        raise ConfigError(
            f"web.name: expected up to {_LONGEST_NAME} characters on one line, got {name!r:.120}"
        )
