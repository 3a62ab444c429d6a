"""Calls in flight, by lane: made on threads, their results handed back on the caller's thread.

A pass starts calls and takes in those that have ended; what is still in flight is taken in by a
later pass of the same process, so a service that takes a minute to answer holds up nobody else.
Nothing is lost when the process ends in between: the intent of each call was stored before it.
"""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any, Self

from anchord.errors import AnchordError, FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

_GRACE_S = 0.5
"""How long calls in flight are waited for at the end."""


class _Call:
    """One call: where it runs, what it is about, and who takes its result."""

    def __init__(
        self, lane: str, key: Hashable, future: Future[Any], then: Callable[[int, Any], None]
    ) -> None:
        self.lane, self.key, self.future, self.then = lane, key, future, then


class Calls:
    """Runs calls in lanes of a fixed width. Used by one thread; a context manager.

    Args:
        widths: how many calls may be in flight at once, by lane.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._widths = dict(widths)
        self._calls: list[_Call] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def room(self, lane: str) -> int:
        """Return how many more calls the lane takes now."""
        return self._widths[lane] - sum(call.lane == lane for call in self._calls)

    def busy(self, lane: str | None = None) -> bool:
        """Tell whether a call is in flight, in one lane or in any."""
        return any(lane is None or call.lane == lane for call in self._calls)

    def has(self, key: Hashable) -> bool:
        """Tell whether a call about `key` is in flight."""
        return any(call.key == key for call in self._calls)

    def start(
        self,
        lane: str,
        key: Hashable,
        function: Callable[[], Any],
        then: Callable[[int, Any], None],
    ) -> None:
        """Run `function` on a thread of the lane.

        Args:
            lane: which; there must be room.
            key: what the call is about, for `has`.
            function: makes the call; an AnchordError it raises is handed on as the result.
            then: is given (now, result) by `collect`, on the caller's thread.
        """
        if self.room(lane) < 1:
            raise FatalError(f"lane {lane} has no room for another call: this is a bug")
        self._calls.append(_Call(lane, key, self._run(lane, function), then))

    def _run(self, lane: str, function: Callable[[], Any]) -> Future[Any]:
        """Run it on a thread that keeps no process alive: an upload may take an hour."""
        future: Future[Any] = Future()
        threading.Thread(target=_into, args=(future, function), name=lane, daemon=True).start()
        return future

    def collect(self, now: int) -> int:
        """Hand the results that have come to whoever started them; return how many there were."""
        ended = [call for call in self._calls if call.future.done()]
        for call in ended:
            self._calls.remove(call)
            call.then(now, call.future.result())
        return len(ended)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a call has ended; False when none did in time, or none is in flight."""
        if not self._calls:
            return False
        done, _ = wait(
            [call.future for call in self._calls], timeout=timeout_s, return_when=FIRST_COMPLETED
        )
        return bool(done)

    def close(self) -> None:
        """Give the calls in flight a moment, then leave them; intents tell what to look up."""
        wait([call.future for call in self._calls], timeout=_GRACE_S)
        self._calls.clear()


def _into(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except AnchordError as error:
        future.set_result(error)
    except BaseException as error:  # noqa: BLE001 - raised where the result is taken in
        future.set_exception(error)
