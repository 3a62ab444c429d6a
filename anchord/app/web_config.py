"""The table `[web]` of the configuration: what `anchord serve` does."""

from __future__ import annotations

from anchord.app.section import Section


class WebConfig(Section, frozen=True, kw_only=True):
    """What `anchord serve` hands out, and where."""

    bind: str = "127.0.0.1:8080"
    """IP address and port that `anchord serve` answers at, e.g. `[::1]:8080`. Put a web server with
    TLS before it where strangers come."""
    tree: str = ""
    """Folder that `anchord serve` hands out: the one that `anchord mirror publish` writes. Empty:
    none."""
    metrics: bool = False
    """Whether `anchord serve` answers `/metrics`, too. Leave it off where strangers come."""
