"""What a process with a clock far ahead touched, once the clock is right."""

from __future__ import annotations

import contextlib

import pytest
from support.killing import Fuse, Killed, die_by_exception
from support.storing_captures import DAY, CaptureShop, papers
from support.storing_items import Workshop

from anchord.core.storage import CaptureState, FileKind, FileState

YEARS_S = 7 * 365 * DAY
LONGEST_S = 45 * DAY
"""After this long every capture was confirmed twice."""


class Ahead:
    """The right time, for the archive, while the clock of a shop runs ahead."""

    def __init__(self, shop: CaptureShop | Workshop) -> None:
        self._shop, self.by = shop, 0

    def now(self) -> int:
        return self._shop.clock.now() - self.by


@pytest.fixture
def shop(tmp_path):
    with_clock = CaptureShop(tmp_path)
    with_clock.right = Ahead(with_clock)
    with_clock.archive.clock = with_clock.right
    yield with_clock
    with_clock.close()


def live_ahead(shop: CaptureShop, seconds: int, fuse: int) -> None:
    """Let a process run whose clock is years ahead, and die, if its fuse is shorter."""
    shop.clock.advance(YEARS_S)
    shop.right.by = YEARS_S
    shop.begin(Fuse(fuse, die_by_exception))
    with contextlib.suppress(Killed):
        shop.run_for(seconds)
    shop.clock.advance(-YEARS_S)
    shop.right.by = 0
    shop.begin()


@pytest.mark.parametrize("fuse", [3, 5, 8, 13, 21, 34, 10**9])
def test_what_a_clock_ahead_put_off_is_stored_once_it_is_right(shop, fuse):
    shop.add(papers(3))
    live_ahead(shop, 2 * 3_600, fuse)
    shop.run_for(2 * DAY)
    assert shop.states() == {"stored": 3}
    assert all(shop.clock.now() >= capture.stored_at for capture in shop.all())
    shop.run_for(LONGEST_S)
    assert [capture.confirmations for capture in shop.all()] == [2, 2, 2]


def test_waits_of_our_own_choosing_are_left_alone(shop):
    shop.add(papers(2))
    shop.run_for(3_600)
    before = shop.all()
    assert {capture.state for capture in before} == {CaptureState.STORED}
    shop.begin()
    shop.step()
    assert shop.all() == before


def test_files_and_items_of_a_day_to_come_are_confirmed_and_closed(tmp_path):
    work = Workshop(tmp_path)
    right = Ahead(work)
    work.archive._clock = right.now
    try:
        work.batch(3)
        work.clock.moment += YEARS_S
        right.by = YEARS_S
        work.run(work.clock.now() + 6 * 3_600)
        work.clock.moment -= YEARS_S
        right.by = 0
        work.begin()
        work.run(work.clock.now() + 3 * DAY)
        (item,) = work.items.items(("open", "closed"))
        files = work.items.files(item.id)
        assert item.state == "closed"
        assert {file.kind for file in files} == set(FileKind)
        assert {file.state for file in files} == {FileState.STORED}
        assert all(file.confirmed_at is not None for file in files)
    finally:
        work.close()
