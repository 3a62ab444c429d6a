"""How captured hosts fare: one page that is gone is a page, a hundred are a wrong template."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.core.capture_rules import host_alert, rule_of
from anchord.engine.capture_lanes import HostSeen, host_lane

if TYPE_CHECKING:
    from anchord.engine.capture_lanes import CaptureLanes

_REMEMBERED = 10_000
"""Beyond this the counts are halved, so that they speak of the present."""


class Hosts:
    """Counts by host, and the alerts that follow."""

    def __init__(self, lanes: CaptureLanes) -> None:
        self._lanes = lanes

    def worked(self, host: str, now: int) -> None:
        """Count a page that was captured."""
        seen = self._count(host, now, None)
        alert = host_alert(seen.code, seen.failed, seen.tried) if seen.code else None
        self._lanes.works(host_lane(host), now, alert)

    def refused(self, host: str, code: str, alert: str | None, now: int) -> None:
        """Count a page that was not."""
        watched = code if rule_of(code).watched else None
        seen = self._count(host, now, watched)
        if watched is not None:
            alert = host_alert(code, seen.failed, seen.tried)
        if alert is not None:
            self._lanes.alert(host_lane(host), now, f"{host}: {alert}")

    def _count(self, host: str, now: int, watched: str | None) -> HostSeen:
        def add(seen: HostSeen) -> HostSeen:
            halve = 2 if seen.tried >= _REMEMBERED else 1
            return msgspec.structs.replace(
                seen,
                tried=seen.tried // halve + 1,
                failed=seen.failed // halve + (watched is not None),
                code=watched or seen.code,
            )

        return self._lanes.change_host(host, now, add)
