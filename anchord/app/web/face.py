"""What the routes that show records work with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.app.face.site import Site

if TYPE_CHECKING:
    from anchord.app.config import Loaded
    from anchord.app.web.readers import Readers


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """One store, shown."""

    loaded: Loaded
    readers: Readers
    """Open the store to be read, at a fresh moment each time."""
    site: Site


def site_of(loaded: Loaded) -> Site:
    """Return where a configuration says that its pages are, and what they are called."""
    web = loaded.config.web
    return Site(base_url=web.base_url.rstrip("/") or None, name=web.name)
