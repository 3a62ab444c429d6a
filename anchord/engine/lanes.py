"""Threads for calls to calendars: a few for each calendar, so that a silent one holds up nobody."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")

_WIDTH = 2
"""Calls in flight to one calendar: the real ones have a backlog of five connections."""


class Lanes:
    """Runs calls, those of one name in a lane of their own. A context manager."""

    def __init__(self) -> None:
        self._pools: dict[str, ThreadPoolExecutor] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def call(
        self, name: str, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        """Run a function in the lane of `name`."""
        if name not in self._pools:
            self._pools[name] = ThreadPoolExecutor(_WIDTH, thread_name_prefix="calendar")
        return self._pools[name].submit(function, *args, **kwargs)

    def close(self) -> None:
        """Wait for the calls in flight; what has not begun is dropped."""
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)
