"""Receiving: nothing is lost or doubled wherever it is killed, and no source holds up a pass."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace
from support.evidence import bundle_with, stored_event
from support.killing import Fuse, Killed, Wrapped
from support.parties import FakeChain, FakeSigner, make_parts
from support.passes import Passes, bare, numbered
from support.sourcing import ListSource, digests, with_sources
from support.workplace import sample

from anchord.core.model import Document, Rejection
from anchord.engine import receiving
from anchord.errors import (
    ConfigError,
    FatalError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    SignatureError,
    StoreBusyError,
)

NOW = 2_000_000_000
BAD = Rejection(where="list", line=3, reason="expected a record")


@pytest.fixture
def parts(tmp_path):
    found = make_parts(tmp_path)
    yield found
    found.store.close()


def test_a_pass_begins_with_what_sources_have(tmp_path):
    source = ListSource()
    source.items = numbered(5)
    parts = with_sources(make_parts(tmp_path), source)
    report = Passes(parts, FakeChain())()
    assert (report.received.new, report.sealed) == (5, 5)
    parts.store.close()


def test_a_pass_without_sources_asks_nothing_and_writes_nothing(parts):
    assert Passes(parts)().received is None
    assert parts.store.sources.all() == []
    assert receiving.next_moment(parts, NOW) is None


def test_a_source_is_looked_at_when_it_is_due(parts):
    first, second = ListSource("first", 60), ListSource("second", 600)
    parts = with_sources(parts, first, second)
    for later in (0, 30, 60, 90, 120, 600):
        receiving.receive(parts, NOW + later)
    assert (len(first.looks), len(second.looks)) == (4, 2)
    assert receiving.next_moment(parts, NOW + 600) == NOW + 660


@pytest.mark.parametrize(
    "error",
    [NetworkError("away"), ProtocolError("nonsense"), ConfigError("set it right"),
     SignatureError("forged"), StoreBusyError("theirs")],
)  # fmt: skip
def test_a_source_that_fails_is_told_and_never_stops_a_pass(tmp_path, error):
    bad, good = ListSource("bad"), ListSource("good")
    bad.items, good.items = [*bare(2), error], bare(3, "good")
    parts = with_sources(make_parts(tmp_path), bad, good)
    report = Passes(parts)()
    assert (report.received.failed, report.sealed) == (1, 5)
    assert report.received.problems == {"bad": str(error)}
    row = parts.store.sources.get("bad")
    assert (row.failures, row.last_error, row.taken) == (1, str(error), 2)
    parts.store.close()


def test_what_makes_our_own_state_unsafe_is_not_swallowed(parts):
    source = ListSource()
    source.items = [FatalError("stop")]
    with pytest.raises(FatalError):
        receiving.receive(with_sources(parts, source), NOW)


def test_failures_are_waited_for_longer_and_longer_and_a_success_ends_that(parts):
    source = ListSource(every_s=60)
    source.items = [NetworkError("away")]
    parts, waits, now = with_sources(parts, source), [], NOW
    for _ in range(9):
        receiving.receive(parts, now)
        at = parts.store.sources.get("list").next_at
        waits.append(at - now)
        now = at
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    source.items = bare(1)
    receiving.receive(parts, now)
    row = parts.store.sources.get("list")
    assert (row.failures, row.next_at, row.last_error) == (0, now + 60, "away")


def test_a_source_that_asks_for_patience_gets_it(parts):
    source = ListSource()
    source.items = [RateLimitedError("less", retry_after=9000)]
    receiving.receive(with_sources(parts, source), NOW)
    assert parts.store.sources.get("list").next_at == NOW + 9000


def test_what_is_refused_is_counted_and_the_first_of_it_told(parts):
    source, told = ListSource(), []
    source.items = [BAD, *bare(3), BAD]
    parts = with_sources(parts, source)
    received = receiving.look(parts, source, NOW, told.append).received
    assert (received.new, received.refused, told) == (3, 2, [BAD, BAD])
    assert received.problems == {"list": "2 refused, first list:3: expected a record"}
    assert parts.store.sources.get("list").refused == 2


def test_a_pause_lets_the_rest_of_the_pass_go_first(tmp_path):
    source = ListSource(at_once=2)
    source.items, source.pause_after = bare(10), 2
    parts = with_sources(make_parts(tmp_path), source)
    passes = Passes(parts)
    assert [passes(60).sealed for _ in range(3)] == [4, 4, 2]
    assert source.looks == [None, b"4", b"8"]
    parts.store.close()


def test_a_forged_bundle_is_refused_and_a_sound_one_taken(parts):
    signer, records = FakeSigner(), [sample(1), sample(2)]
    parts = replace(parts, keyring=signer.keyring)
    events = [stored_event(record, signer) for record in records]
    events[1]["payload"]["http_status"] = 404
    source = ListSource()
    source.items = [
        Document(record=record, raw=bundle_with(record, [event]))
        for record, event in zip(records, events, strict=True)
    ]
    received = receiving.look(with_sources(parts, source), source, NOW).received
    assert (received.new, received.refused) == (1, 1), received
    assert digests(parts) == {records[0].digest.hex()}


def test_a_source_of_another_kind_is_read_from_the_beginning(parts):
    source = ListSource()
    source.items = bare(4)
    parts = with_sources(parts, source)
    receiving.receive(parts, NOW)
    source.kind = "folder"
    receiving.receive(parts, NOW + 1)
    assert source.looks == [None, None]


def test_two_that_read_one_source_never_move_it_back(parts):
    """A worker that was stopped past its lease goes on, and another was there meanwhile."""
    slow, quick = ListSource(), ListSource()
    slow.items = quick.items = bare(20)
    parts = with_sources(parts, slow)

    def meanwhile(_stage, done, _total):
        if done == 4:
            receiving.look(replace(parts, on_progress=lambda *_: None), quick, NOW)

    received = receiving.look(replace(parts, on_progress=meanwhile), slow, NOW).received
    assert "another process" in received.problems["list"]
    assert parts.store.sources.get("list").cursor == b"20"
    assert len(digests(parts)) == 20


def test_killed_anywhere_nothing_is_lost_and_nothing_taken_twice(tmp_path):
    """Before and after each write; then a new process reads on."""
    wanted = {record.digest.hex() for record in bare(9)}
    for at in itertools.count(1):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        parts, source = make_parts(folder), ListSource(at_once=4)
        source.items = [*bare(9), BAD]

        def die():
            raise Killed

        fuse = Fuse(at, die)
        store = Wrapped(parts.store, fuse, ("add",))
        store.sources = Wrapped(parts.store.sources, fuse, ("begin", "advance", "ended", "failed"))
        killed = True
        try:
            receiving.receive(with_sources(replace(parts, store=store), source), NOW)
            killed = False
        except Killed:
            pass
        source.looks.clear()
        receiving.receive(with_sources(parts, source), NOW)
        assert digests(parts) == wanted
        row = parts.store.sources.get("list")
        assert row.cursor == b"10"
        assert row.taken <= 9
        parts.store.close()
        if not killed:
            break
    assert at > 12


def test_stopping_between_two_steps_closes_the_source(parts):
    closed = []

    class Closing(ListSource):
        def look(self, cursor, now):
            try:
                yield from super().look(cursor, now)
            finally:
                closed.append(True)

    def stop(*_):
        raise Killed

    source = Closing()
    source.items = bare(9)
    with pytest.raises(Killed):
        receiving.look(replace(parts, on_progress=stop), source, NOW)
    assert closed == [True]
    assert parts.store.sources.get("list").cursor == b"2"
