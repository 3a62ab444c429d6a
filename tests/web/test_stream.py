"""The stream of events: each event once and in order, whatever happens to connections."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sse_starlette import ServerSentEvent
from support.face_places import Serving
from support.workplace import Workplace, sample

from anchord.app.config import load
from anchord.app.web import stream as stream_module
from anchord.app.web.face import Face, site_of
from anchord.app.web.figures import Board
from anchord.app.web.readers import Readers
from anchord.app.web.stream import Feed, News, _messages
from anchord.ports.face import RecentEvent

QUICK_S = 0.02
Heard = list[tuple[str | None, str | None, str]]


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    made = Workplace(tmp_path)
    made.anchor(sample(1), sample(2))
    return made


@pytest.fixture
def feed(place: Workplace) -> Iterator[Feed]:
    loaded = load(str(place.config))
    readers = Readers(loaded)
    face = Face(loaded=loaded, readers=readers, site=site_of(loaded))
    yield Feed(face, Board(face), QUICK_S)
    readers.close()


def length(place: Workplace) -> int:
    with place.app() as app:
        return app.store.counts.events()


def recent(seq: int) -> RecentEvent:
    return RecentEvent(
        seq=seq, event_type="timestamp_anchored", created_at=0, event_id=f"sha256:{seq:064x}",
        record_id=1, name="sha256:" + "0" * 64,
    )  # fmt: skip


def told(message: ServerSentEvent) -> tuple[str | None, str | None, str]:
    return message.event, message.id, str(message.data)


def ids(heard: Heard) -> list[int]:
    return [int(number) for event, number, _ in heard if event == "ledger" and number]


async def hear(
    messages: AsyncIterator[ServerSentEvent], enough: Callable[[Heard], bool],
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Heard:  # fmt: skip
    """Listen until it is enough."""
    heard: Heard = []
    doing = None

    async def listen() -> None:
        nonlocal doing
        async for message in messages:
            heard.append(told(message))
            if meanwhile is not None and doing is None and message.event == "figures":
                doing = asyncio.ensure_future(meanwhile())
            if enough(heard):
                return

    await asyncio.wait_for(listen(), 30)
    if doing is not None:
        await doing
    return heard


def test_a_reader_is_told_what_it_missed_and_then_what_comes_each_event_once(place, feed):
    first = length(place)

    async def more() -> None:
        await asyncio.to_thread(place.anchor, sample(3))

    last = first + 2
    heard = asyncio.run(hear(feed.messages(1), lambda all_: ids(all_)[-1:] == [last], more))
    assert ids(heard) == list(range(2, last + 1))
    data = [json.loads(text) for event, _, text in heard if event == "ledger"]
    assert [one["seq"] for one in data] == ids(heard)
    assert all(one["path"].startswith("pith/") for one in data)


@pytest.mark.parametrize("after", [None, 10**15])
def test_a_reader_of_nothing_or_of_another_store_is_told_only_what_comes(place, feed, after):
    heard = asyncio.run(hear(feed.messages(after), lambda all_: all_[-1][0] == "figures"))
    assert ids(heard) == []


@given(first=st.integers(0, 30), count=st.integers(0, 30), seen=st.integers(0, 70))
def test_news_is_what_was_not_seen_and_the_gap_before_it_is_counted(first, count, seen):
    events = [recent(seq) for seq in range(first + 1, first + count + 1)]
    heard = [told(message) for message in _messages(News(events, 7), seen)]
    expected = [event.seq for event in events if event.seq > seen]
    assert ids(heard) == expected
    gap = [int(text) for event, _, text in heard if event == "skipped"]
    assert sum(gap) == (max(first - seen, 0) if expected else 0)
    assert heard[-1] == ("figures", None, "7")


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts=st.lists(st.integers(1, 4), max_size=4))
def test_a_reader_that_loses_the_connection_and_comes_back_misses_and_doubles_nothing(
    place, feed, cuts
):
    last = length(place)
    seen: list[int] = []
    for cut in [*cuts, last + 1]:
        after = seen[-1] if seen else 0
        left = last - after

        def enough(heard: Heard, cut: int = min(cut, left)) -> bool:
            return len(ids(heard)) >= cut and (cut > 0 or heard[-1][0] == "figures")

        seen += ids(asyncio.run(hear(feed.messages(after), enough)))
    assert seen == list(range(1, last + 1))


def test_who_reads_too_slowly_is_cut_off_and_holds_nobody_up(feed, monkeypatch):
    monkeypatch.setattr(stream_module, "_UNREAD", 2)

    async def run() -> None:
        slow = feed.messages(None)
        await anext(slow)
        for number in range(5):
            feed._give(News([recent(10**6 + number)], number))
        assert [message async for message in slow][-1:] != []  # it ends

    asyncio.run(asyncio.wait_for(run(), 30))
    assert not feed._streams


def test_no_more_than_so_many_streams_and_the_looking_ends_with_the_last(feed, monkeypatch):
    monkeypatch.setattr(stream_module, "MOST_STREAMS", 2)

    async def run() -> None:
        streams = [feed.messages(None) for _ in range(2)]
        for one in streams:
            await anext(one)
        assert feed.full
        assert [message async for message in feed.messages(None)] == []
        for one in streams:
            await one.aclose()
        assert not feed.full
        assert feed._task is not None
        await asyncio.wait_for(feed._task, 10)

    asyncio.run(run())


def test_a_server_sends_events_and_stops_in_the_midst_of_streams(place):
    with Serving(place.config) as running:
        port = int(running.url.rpartition(":")[2])
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        link.request(
            "GET", "/events.stream", headers={"last-event-id": "1", "accept-encoding": "gzip"}
        )
        answer = link.getresponse()
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["content-encoding"] is None
        assert answer.headers["cache-control"] == "no-store"
        lines = iter(answer.readline, b"")
        assert next(line for line in lines if line.startswith(b"id:")).strip() == b"id: 2"
        began = time.monotonic()
        running._process.send_signal(signal.SIGTERM)
        assert running._process.wait(20) == 0
        assert time.monotonic() - began < 8
        link.close()
