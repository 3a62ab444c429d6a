"""The ledger's events as they come, for many readers at once: server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html. One task looks for all streams, and
only while there are any. The id of a message is the event's sequence number in the ledger, so a
browser that lost the connection says by itself where it was (`Last-Event-ID`). Who is too far
behind is told how many events were left out instead of being sent all of them; who reads too slowly
is cut off, and comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from anchord.app.web.happenings import happening
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from anchord.app.web.face import Face
    from anchord.app.web.figures import Board
    from anchord.ports.face import RecentEvent

MOST_STREAMS = 40
"""At once; the server takes 100 connections."""
BEHIND = 200
"""Events that are sent to who is behind; of more, only the newest."""
EVERY_S = 1.0
"""Between two looks whether anybody wrote to the store."""
PING_S = 15
_RETRY_MS = 5_000
_SEND_S = 20.0
_GOODBYE_S = 1.0
_UNREAD = 16
"""Looks whose news may wait for one reader."""

_Result = TypeVar("_Result")


class News(msgspec.Struct, frozen=True):
    """What one look found."""

    events: Sequence[RecentEvent]
    figures: int
    """Number of the newest figures: pages with others are out of date."""


class Feed:
    """Looks for news, and gives it to every stream. Everything happens in one event loop.

    Args:
        face: the store that is shown.
        board: its figures.
        every_s: seconds between two looks.
    """

    def __init__(self, face: Face, board: Board, every_s: float = EVERY_S) -> None:
        self._face, self._board, self._every_s = face, board, every_s
        self._streams: set[asyncio.Queue[News | None]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def full(self) -> bool:
        """Whether no further stream may begin."""
        return len(self._streams) >= MOST_STREAMS

    async def messages(self, after: int | None) -> AsyncIterator[ServerSentEvent]:
        """Yield what happens, for ever; ends when this reader cannot keep up.

        Args:
            after: sequence number of the last event that the reader has; None: it wants only what
                comes from now on.
        """
        if self.full:
            return
        queue: asyncio.Queue[News | None] = asyncio.Queue(_UNREAD)
        self._streams.add(queue)
        try:
            self._look_on()
            yield ServerSentEvent(comment="the ledger's events, as they come", retry=_RETRY_MS)
            async for news in self._all_news(queue):
                newest = news.events[-1].seq if news.events else 0
                # A number beyond the ledger's end is of another store.
                seen = newest if after is None or after > newest else after
                for message in _messages(news, seen):
                    yield message
                after = newest
        finally:
            self._streams.discard(queue)

    async def _all_news(self, queue: asyncio.Queue[News | None]) -> AsyncIterator[News]:
        first = await _asked(self._newest)
        if first is not None:
            yield first
        while (news := await queue.get()) is not None:
            yield news

    def _look_on(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        mark = await _asked(self._face.readers.mark)
        figures = self._board.latest(0).number
        while self._streams:
            await asyncio.sleep(self._every_s)
            now = await _asked(self._face.readers.mark)
            number = self._board.latest(0).number
            if now is None or (now == mark and number == figures):
                continue
            news = await _asked(self._newest)
            if news is not None:
                mark, figures = now, news.figures
                self._give(news)

    def _give(self, news: News) -> None:
        for queue in list(self._streams):
            if queue.full():
                self._streams.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(news)

    def _newest(self) -> News:
        with self._face.readers.lend() as store:
            return News(store.faces.recent(None, BEHIND), self._board.latest(0).number)


class Stream(EventSourceResponse):
    """An answer that goes on until the reader leaves or the server stops."""

    def __init__(self, messages: AsyncIterator[ServerSentEvent]) -> None:
        super().__init__(messages, ping=PING_S, send_timeout=_SEND_S, ping_message_factory=_ping)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; a reader that takes nothing any more is let go of without a word."""
        open_yet = False

        async def send_noted(message: Message) -> None:
            nonlocal open_yet
            await send(message)
            open_yet = message["type"] == _START or message.get("more_body", False)

        with contextlib.suppress(TimeoutError):
            await super().__call__(scope, receive, send_noted)
            if open_yet:  # the server stops; unended, each answer would be told as a fault
                await asyncio.wait_for(send({"type": _BODY, "body": b""}), _GOODBYE_S)


_START, _BODY = "http.response.start", "http.response.body"


def _messages(news: News, seen: int) -> list[ServerSentEvent]:
    """Return what a reader does not have yet of some news."""
    fresh = [event for event in news.events if event.seq > seen]
    messages = []
    if fresh and fresh[0].seq > seen + 1:
        left_out = fresh[0].seq - seen - 1
        messages.append(ServerSentEvent(event="skipped", data=str(left_out)))
    for event in fresh:
        data = msgspec.json.encode(happening(event)).decode()
        messages.append(ServerSentEvent(event="ledger", id=str(event.seq), data=data))
    messages.append(ServerSentEvent(event="figures", data=str(news.figures)))
    return messages


def _ping() -> ServerSentEvent:
    return ServerSentEvent(comment="still here")


async def _asked(question: Callable[[], _Result]) -> _Result | None:
    """Return an answer of the store, asked in a thread; None: it has none now, ask again later."""
    try:
        return await run_in_threadpool(question)
    except AnchordError:
        return None
