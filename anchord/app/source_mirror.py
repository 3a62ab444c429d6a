"""A mirror as a source: its signed index is read again and again, new bundles are pulled.

The same pull as `anchord mirror pull`, some seconds of it at a time. What was fetched is in the
table of pulls, so there is no cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.mirror_wiring import Opener
from anchord.core.model import Rejection
from anchord.engine.pull_report import FALSE, UNFINISHED, Differences, Kind
from anchord.engine.pulling import Parts, PullOptions, pull
from anchord.errors import ConfigError, TransientError
from anchord.ports.source import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.wiring import App
    from anchord.engine.pull_names import Place
    from anchord.engine.pull_report import Difference

_LOOK_S = 20.0
"""Seconds of fetching after which a pass goes on."""


class MirrorSource:
    """One mirror that is looked at.

    Args:
        name: the source's.
        every_s: seconds between two looks.
        url: the mirror, as `anchord mirror pull` takes it.
        rate: most requests a second.
        app: whose store it goes into.
    """

    kind = "pith"

    def __init__(self, name: str, every_s: int, url: str, rate: float, app: App) -> None:
        self.name, self.every_s = name, every_s
        self._url, self._rate, self._app = url, rate, app

    def place(self, cursor: bytes | None) -> str:
        """Return where it stands: what was pulled is known file by file."""
        del cursor
        return "by what changed in the index"

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        """Pull some of what is new."""
        del cursor, now
        differences = Differences()
        opener = Opener(
            self._rate, only_this=True,
            on_refused=lambda name, why: differences.add(Kind.MANIFEST_REFUSED, name, why),
        )  # fmt: skip
        for place in opener.open(self._url):
            yield self._pull(place, differences)
        rejections = [self._rejection(one) for one in differences.kept() if one.kind in FALSE]
        if rejections:
            yield Step(items=rejections)
        left = [one for one in differences.kept() if one.kind in UNFINISHED]
        if left:
            raise TransientError(left[0].what)

    def _pull(self, place: Place, differences: Differences) -> Step:
        """Pull from one mirror for some seconds; everything that came is durable afterwards."""
        if place.mirror.index is None:
            raise ConfigError(
                "the mirror has no index, so what is new in it cannot be "
                "told: set url to the address of a record with {id} in it, and ids"
            )
        app, most = self._app, max(int(self._rate * _LOOK_S), 1)
        parts = Parts(
            store=app.store, records=app.store, keyring=app.keyring, clock=app.clock,
            differences=differences, on_progress=lambda _what, _done, _total: None,
        )  # fmt: skip
        done = pull([place], parts, PullOptions(states=False, limit=most))
        fetched = sum(one.fetched for one in done.mirrors)
        whole = all(one.fetched + one.refused < most for one in done.mirrors)
        return Step(new=done.new, pause=not whole and fetched > 0)

    def _rejection(self, one: Difference) -> Rejection:
        about = f", {one.record}" if one.record else ""
        return Rejection(where=f"{self.name}{about}", line=None, reason=f"{one.kind}: {one.what}")
