"""What the routes that show records work with."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import msgspec

from anchord.app.face.site import Site
from anchord.app.metrics.address import host_and_port

if TYPE_CHECKING:
    from anchord.app.config import Loaded
    from anchord.app.web.readers import Readers


class Face(msgspec.Struct, frozen=True, kw_only=True):
    """One store, shown."""

    loaded: Loaded
    readers: Readers
    """Open the store to be read, at a fresh moment each time."""
    site: Site

    @property
    def test_network(self) -> str:
        """The network whose blocks prove nothing about Bitcoin; empty: it is Bitcoin."""
        network = self.loaded.config.headers.network
        return "" if network == "mainnet" else network


def site_of(loaded: Loaded) -> Site:
    """Return where a configuration says that its pages are, and what they are called."""
    web = loaded.config.web
    base_url = web.base_url.rstrip("/") or None
    host, port = host_and_port(web.bind, "web.bind")
    if port == 0 or not ipaddress.ip_address(host).is_loopback:
        return Site(base_url=base_url, name=web.name)
    host = f"[{host}]" if ":" in host else host
    return Site(base_url=base_url, name=web.name, local_url=f"http://{host}:{port}")
