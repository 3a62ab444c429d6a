"""Where pages are: what differs from one operator to the next, and how pages lead to each other."""

from __future__ import annotations

import msgspec

from anchord.core.bundle import Bundle
from anchord.engine.export import stem_of
from anchord.engine.publishing_about import folder_of


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One operator's pages."""

    base_url: str | None = None
    """Where strangers find them, without a slash at the end; None: nowhere in particular, and
    whatever needs an absolute address is left out or goes by files."""
    name: str = "anchord"
    """Of the registry or mirror, for titles."""
    local_url: str = "http://127.0.0.1:8080"
    """Where `anchord serve` answers on its own machine: what a shell is told to ask while there is
    no `base_url`."""


ROOT = "../../"
"""From a record's page to the root. Pages are served at `pith/X` and lie in trees at
`pith/X/index.html`; a browser stops at the root (RFC 3986, 5.2.4), so this fits both."""


def place_of(bundle: Bundle) -> str:
    """Return the path of a record's page below the root, `pith/<26>` or `record/<64 hex>`."""
    return folder_of(stem_of(bundle.digest, numbered=bundle.number is not None))
