"""Showing a service's or a worker's metrics while it serves."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from anchord.app.metrics.address import host_and_port
from anchord.app.metrics.tally import LineCounter, Tally
from anchord.app.service.logs import tell
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.app.config import Loaded


@contextlib.contextmanager
def monitored(loaded: Callable[[], Loaded], tally: Tally) -> Iterator[None]:
    """Serve metrics at `service.metrics` within the block, and count the lines of the log.

    An address that cannot be had is told and passed over: work does not wait for monitoring.

    Args:
        loaded: returns the configuration as it is now.
        tally: what this process counts.
    """
    where = loaded().config.service.metrics
    if not where:
        yield
        return
    # Late: who shows nothing does not carry what showing needs.
    from anchord.app.metrics.door import opened
    from anchord.app.metrics.exposition import Metrics

    host, port = host_and_port(where)
    counter, log = LineCounter(tally), logging.getLogger("anchord")
    log.addHandler(counter)
    metrics = Metrics(loaded, tally)
    try:
        with contextlib.ExitStack() as stack:
            try:
                port = stack.enter_context(opened(metrics, host, port))
                tell(logging.INFO, "metrics", f"metrics are at http://{host}:{port}/metrics")
            except ConfigError as error:
                tell(logging.WARNING, "metrics", f"{error}; work goes on without")
            yield
    finally:
        log.removeHandler(counter)
        metrics.close()
