"""Which lines of anchord have run: an input that reaches a new one is worth breaking further.

From Python 3.12 on the interpreter tells of each line once and then no more (PEP 669), which costs
next to nothing. Before, tracing would cost more inputs than it finds: there all lines are old.
"""

from __future__ import annotations

import sys
from typing import Any, Self

_OURS = "/anchord/"


class Seen:
    """Watches within a `with` block."""

    def __init__(self) -> None:
        self._new = False
        self._monitoring: Any = getattr(sys, "monitoring", None)

    def __enter__(self) -> Self:
        watch = self._monitoring
        if watch is not None:
            watch.use_tool_id(watch.COVERAGE_ID, "anchord-fuzz")
            watch.register_callback(watch.COVERAGE_ID, watch.events.LINE, self._line)
            watch.set_events(watch.COVERAGE_ID, watch.events.LINE)
            watch.restart_events()
        return self

    def __exit__(self, *_exception: object) -> None:
        watch = self._monitoring
        if watch is not None:
            watch.set_events(watch.COVERAGE_ID, 0)
            watch.register_callback(watch.COVERAGE_ID, watch.events.LINE, None)
            watch.free_tool_id(watch.COVERAGE_ID)

    def is_new(self) -> bool:
        """Tell whether a line ran for the first time since this was last asked."""
        new, self._new = self._new, False
        return new

    def _line(self, code: Any, _line: int) -> Any:
        if _OURS in code.co_filename:
            self._new = True
        return self._monitoring.DISABLE
