"""Connections that hold nobody up: who says nothing, or takes nothing, is cut off after a while.

uvicorn waits for ever for the first request, for the rest of a head, for a body that nobody asked
for, and for a reader that has stopped to read. It takes so many connections and no more, so a few
strangers who only connect would be all that it serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

ASKING_S = 15.0
"""From the connection, or from the answer before, until a request has been asked; an answer that
was given must have been taken by then, too."""
READING_S = 60.0
"""How long a reader may take for the some 50 kB that are on their way to it."""


class Patient(H11Protocol):
    """One connection, with an end to waiting."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._asking: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        super().connection_made(transport)
        self._wait()

    def handle_events(self) -> None:
        """Look at what came; once a request has begun to be answered, no more is waited for."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            _end(self._asking)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.cycle.response_complete:  # else what was sent ahead is being answered already
            self._wait()

    def pause_writing(self) -> None:
        """Wait for the reader."""
        super().pause_writing()
        _end(self._reading)
        self._reading = self.loop.call_later(READING_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the reader reads."""
        super().resume_writing()
        _end(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        _end(self._asking)
        _end(self._reading)
        super().connection_lost(exc)

    def _wait(self) -> None:
        _end(self._asking)
        self._asking = self.loop.call_later(ASKING_S, self.transport.abort)


def _end(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
