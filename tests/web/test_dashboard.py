"""The dashboard says what the store says, waits for nothing, and survives what a store may do."""

from __future__ import annotations

import html
import re
import threading
import time
from pathlib import Path

import msgspec
import pytest
from support import monitored
from support.asking import Asked
from support.stores import made
from support.workplace import Workplace, sample

from anchord.adapters.store.counts import Health
from anchord.adapters.store.measures import Measured
from anchord.app.config import load
from anchord.app.metrics.reading import Reading
from anchord.app.web import figures as figures_module
from anchord.app.web.face import Face, site_of
from anchord.app.web.figures import Board, Figures
from anchord.app.web.overview import overview
from anchord.app.web.parties import groups
from anchord.app.web.readers import Readers
from anchord.errors import StoreBusyError
from anchord.ports.face import Day

PAGES = ("/", "/parked", "/events", "/audit")
NOW = 1_000_000 + 7_200


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return monitored.filled(tmp_path).path


def words(page: str) -> str:
    """Return what people read, on one line."""
    text = re.sub(r"<(head|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def shown(config: Path) -> str:
    with Asked(config) as asked:
        answer = asked.ask("/")
        assert answer.status == 200
        return words(answer.body.decode())


def test_every_page_is_whole_with_nothing_inline_and_a_strict_policy(config):
    with Asked(config) as asked:
        for path in PAGES:
            answer = asked.ask(path)
            page = answer.body.decode()
            assert answer.status == 200, path
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]* src=)", page), path
            assert len(re.findall("<h1", page)) == 1
            assert answer.headers["cache-control"] == "no-store"
            assert asked.ask(path, "HEAD").status == 200
            ids = re.findall(r'\sid="([^"]+)"', page)
            assert len(ids) == len(set(ids)), path


def test_everything_that_is_known_is_told(config):
    page = shown(config)
    for known in (
        "14 records", "5 parked", "4 waiting for the next batch", "2 submitted",
        "To be mended: mend it",
        f"{monitored.URL_A} failed 3 times down", f"{monitored.URL_B} not asked yet",
        f"{monitored.AUTHORITY} 1 batch waiting", "block 100", "Save Page Now stopped",
        "The Wayback index pauses until 9999", "registry failed 2 times 7 records taken, 1 refused",
        "folder 2 events behind", "3 in all, 2 events due", "covers 2 of 3 events",
    ):  # fmt: skip
        assert known in page, known
    assert "gone" not in page, "what is not configured any more is nobody's concern"


def test_a_completed_store_is_whole_and_its_events_lead_to_their_records(tmp_path):
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2))
    with Asked(place.config) as asked:
        page = asked.ask("/").body.decode()
        assert "Anchored 100 % 2 of 2 none waits" in words(page)
        assert "Stored 0 % 0 of 2 2 wait" in words(page)
        paths = set(re.findall(r'<a class="mono" href="(pith/[A-Z2-7]{26})"', page))
        assert len(paths) == 2
        for path in paths:
            assert asked.ask(f"/{path}").status == 200


def test_an_empty_store_has_a_page_too(tmp_path):
    place = Workplace(tmp_path)
    page = shown(place.config)
    assert "0 records" in page
    assert "No event is signed yet." in page


@pytest.mark.parametrize("far", [None, 0, 1, NOW + 50, 1 << 40, 1 << 62])
def test_no_moment_a_store_may_hold_keeps_the_page_from_being_made(config, far):
    loaded = load(str(config))
    board = Board(Face(loaded=loaded, readers=Readers(loaded), site=site_of(loaded)))
    figures = board.latest(30)
    found = figures.reading.measured
    assert found is not None
    moments = {name: far for name, kind in Measured.__annotations__.items() if kind == "int | None"}
    assert len(moments) >= 7
    changed = msgspec.structs.replace(found, **moments)
    reading = msgspec.structs.replace(figures.reading, measured=changed)
    made_of = msgspec.structs.replace(figures, reading=reading)
    told = overview(loaded.config, made_of, NOW)
    assert told is not None
    assert told.last


def test_shares_are_of_the_last_day_and_only_all_is_all(config):
    loaded = load(str(config))
    board = Board(Face(loaded=loaded, readers=Readers(loaded), site=site_of(loaded)))
    days = (
        Day(day=19_000, records=0, anchored=0, stored=0, complete=0),
        Day(day=19_001, records=100_000, anchored=99_999, stored=1, complete=0),
    )
    figures = msgspec.structs.replace(board.latest(30), days=days)
    told = overview(loaded.config, figures, NOW)
    assert told is not None
    assert [(one.name, one.done, one.share) for one in told.facets] == [
        ("anchored", 99_999, "99.9 %"), ("stored", 1, "0 %"), ("complete", 0, "0 %"),
    ]  # fmt: skip


def test_pictures_go_on_until_today_where_nobody_wrote_since(config):
    loaded = load(str(config))
    board = Board(Face(loaded=loaded, readers=Readers(loaded), site=site_of(loaded)))
    last = Day(day=19_001, records=10, anchored=5, stored=1, complete=0)
    figures = msgspec.structs.replace(board.latest(30), days=(last,))
    for now, days in ((19_001 * 86_400, [19_001]), (19_040 * 86_400, [19_040, 19_001])):
        told = overview(loaded.config, figures, now)
        assert told is not None
        assert [one.day for one in told.days] == days
        assert {one.records for one in told.days} == {10}


@pytest.mark.parametrize(("days", "state"), [(1, "answers"), (30, "not asked lately")])
def test_who_was_asked_long_ago_is_not_said_to_answer(config, days, state):
    loaded = load(str(config))
    board = Board(Face(loaded=loaded, readers=Readers(loaded), site=site_of(loaded)))
    found = board.latest(30).reading.measured
    assert found is not None
    url = loaded.config.anchoring.calendars[0].url
    healthy = Health(url=url, last_ok_at=NOW, last_error_at=None, last_error=None, failures=0)
    asked = msgspec.structs.replace(found, calendars=(healthy,))
    known = groups(loaded.config, asked, None, None, NOW + days * 86_400)
    parties = {one.name: one for group in known for one in group.parties}
    assert parties[url].state == state


# ---------------------------------------------------------------------- the board


class Slow:
    """Reads figures when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.read = 0
        self.error: Exception | None = None
        self._real = figures_module.read
        monkeypatch.setattr(figures_module, "read", self)

    def __call__(self, loaded: object) -> Reading:
        assert self.go.wait(30)
        self.read += 1
        if self.error is not None:
            raise self.error
        return self._real(loaded)  # type: ignore[arg-type]


class Hand:
    """A clock that a test moves."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


def boards(config: Path) -> tuple[Board, Hand]:
    loaded, clock = load(str(config)), Hand()
    face = Face(loaded=loaded, readers=Readers(loaded), site=site_of(loaded))
    return Board(face, clock), clock


def newest(board: Board, clock: Hand) -> Figures:
    """Let the board read anew, and return what it read."""
    if board._thread is None:  # the time that a reading takes is not moved under it
        clock.at += 1e6
        board.latest(0)
    end = time.monotonic() + 30
    while board._thread is not None:
        assert time.monotonic() < end
        time.sleep(0.005)
    return board._figures


def test_the_first_reader_waits_no_longer_than_told_and_later_ones_never(config, slow):
    board, clock = boards(config)
    assert board.latest(0.01).number == 0
    slow.go.set()
    first = newest(board, clock)
    assert first.reading.measured is not None
    slow.go.clear()
    monitored.write(load(str(config)), config.parent)
    clock.at += 1e6
    began = time.monotonic()
    assert board.latest(30).number == first.number, "the old ones meanwhile"
    assert time.monotonic() - began < 5
    slow.go.set()
    assert newest(board, clock).number > first.number


def test_nothing_is_read_while_nobody_writes_and_at_most_so_often_when_somebody_does(config, slow):
    slow.go.set()
    board, clock = boards(config)
    newest(board, clock)
    first = newest(board, clock)  # the first look may have made SQLite's files beside the store
    read = slow.read
    for _ in range(3):
        assert newest(board, clock).number == first.number
    assert slow.read == read
    monitored.write(load(str(config)), config.parent)
    for _ in range(20):
        board.latest(0)  # the clock stands still
    assert slow.read == read
    assert newest(board, clock).number > first.number
    assert slow.read == read + 1


def test_a_busy_store_keeps_its_numbers_and_a_lost_one_has_none(config, slow):
    slow.go.set()
    board, clock = boards(config)
    first = newest(board, clock)
    monitored.write(load(str(config)), config.parent)
    slow.error = StoreBusyError("busy")
    kept = newest(board, clock)
    assert kept.reading.measured == first.reading.measured
    told = overview(load(str(config)).config, kept, NOW)
    assert told is not None
    assert "of before" in told.trouble
    slow.error = RuntimeError("unforeseen")
    assert newest(board, clock).reading.measured is None
    slow.error = None
    assert newest(board, clock).reading.measured is not None


def test_a_store_that_cannot_be_read_is_told_of_without_saying_where_it_is(tmp_path):
    config = monitored.configured(tmp_path).path
    url = made(tmp_path)
    text = config.read_text("utf-8")
    config.write_text(text.replace(url, "sqlite:///nowhere/secret.db"), "utf-8")
    with Asked(config) as asked:
        for path in ("/", "/parked", "/events"):
            answer = asked.ask(path)
            assert answer.status == 503
            assert "cannot be read now" in answer.body.decode()
            assert b"secret.db" not in answer.body
