"""All metrics of one anchord, as the text that is served or written to a file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from anchord.app.metrics.exposing import CONTENT_TYPE, Sheet, text_of
from anchord.app.metrics.filling import fill
from anchord.app.metrics.reading import Meter, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.app.config import Loaded
    from anchord.app.metrics.tally import Tally

__all__ = ["CONTENT_TYPE", "Metrics", "text_now"]

PATIENCE_S = 3.0
"""How long a scrape waits for new numbers before it takes the last ones; Prometheus waits 10 s."""


class Metrics:
    """What monitoring is shown. Threads may share it; nothing is opened until it is asked.

    Args:
        loaded: returns the configuration as it is now.
        tally: what this process does; None: the process is no service, so only the store is shown.
    """

    def __init__(self, loaded: Callable[[], Loaded], tally: Tally | None = None) -> None:
        self._loaded, self._tally = loaded, tally
        self._meter = Meter(loaded)

    def exposition(self, patience_s: float = PATIENCE_S) -> bytes:
        """Return all metrics in Prometheus' text format; raises nothing, whatever the store does.

        Where the store cannot be read, `anchord_store_up` is 0.
        """
        reading = self._meter.latest(patience_s)
        sheet = Sheet()
        fill(sheet, self._loaded().config, reading, int(time.time()))
        if self._tally is not None:
            self._tally.put(sheet)
        return text_of(sheet, process=self._tally is not None)

    def close(self) -> None:
        """Let go of the store; may be called twice."""
        self._meter.close()


def text_now(loaded: Loaded) -> bytes:
    """Return what the store has, read once, for a file that is collected later.

    Raises:
        ConfigError: there is no such store, or not of this schema.
        StoreBusyError: reading took too long.
        FatalError: the store cannot be read.
    """
    sheet = Sheet()
    fill(sheet, loaded.config, read(loaded), int(time.time()))
    return text_of(sheet, process=False)
